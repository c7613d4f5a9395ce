package store

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkArviz checks what ArviZ's fixtures hold, in either format.
func checkArviz(t *testing.T, inf *Inference) {
	t.Helper()
	d := inf.Posterior
	require.Equal(t, []int{2, 4, 4}, []int{d.Chains(), d.Len(0), d.Len(1)})
	assert.Equal(t, placedSites(t, "mu", []int{}, "theta", []int{2, 3}, "w", []int{3}), d.Sites())
	assert.ElementsMatch(t, nutsStats, d.Stats())
	sameNumbers(t, []float64{math.NaN(), -0.48, 0.6, 0.04, -0.29, -0.78, -0.26, 3, 4, 5}, d.Row(0, 1))
	sameNumbers(t, []float64{math.Inf(-1), -0.1, 0.1, 0.04, -0.51, 0.59, 0.89, 18, 19, 20}, d.Row(1, 2))
	for name, want := range map[string][]float64{"divergent": {0, 1, 0, 0}, "tree_depth": {3, 3, 3, 3},
		"lp": {math.Copysign(0, -1), -1, -2, -3}, "accept": {.875, .875, .875, .875}} {
		got, err := d.Stat(name, 0)
		require.NoError(t, err)
		sameNumbers(t, want, got)
	}
	assert.Equal(t, []float64{-1, -1, -1}, inf.LogLikelihood.Row(1, 3))
	assert.Equal(t, []Array{{"y", []int{3}, []float64{1, 2, 3}}}, inf.ObservedData)
	assert.Equal(t, map[string][]any{"school": {"A", "B", "C"}}, inf.Coords)
	assert.Equal(t, map[string][]string{"w": {"school"}, "y": {"school"}}, inf.Dims)
	assert.Equal(t, "made by hand", inf.Attrs["note"])
	assert.Equal(t, "0.21.0", inf.Attrs["arviz_version"])
	assert.Empty(t, inf.Notes)
}

func TestReadArvizJSON(t *testing.T) {
	inf, err := Open("testdata/arviz.json")
	require.NoError(t, err)
	checkArviz(t, inf)
	assert.Equal(t, []float64{1, 1, 1}, inf.PosteriorPredictive.Row(0, 0))
	assert.Equal(t, 1, inf.Prior.Chains())
}

// Numbers have the types that ArviZ knows them by: floats have a point, divergences are booleans, depths integers.
func TestJSONTypes(t *testing.T) {
	d := filled(t, placedSites(t, "a<b>", []int{}), []string{"divergent", "tree_depth", "lp"}, true, 1)
	require.NoError(t, d.AppendChain(0, []float64{3}, []float64{1, 2, -4}))
	var b bytes.Buffer
	require.NoError(t, WriteJSONTo(&b, &Inference{Posterior: d, Attrs: map[string]any{"created_at": "now"}}))
	for _, want := range []string{`"a<b>": [[Infinity,3.0]]`, `"diverging": [[false,true]]`, `"tree_depth": [[0,2]]`,
		`,-4.0]]`, `"created_at": "now"`, `"inference_library": "kelvin"`} {
		assert.Contains(t, b.String(), want)
	}
}

func TestReadJSONErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `line 1, column 1: the file ends, want "{"`},
		{"[1]", `column 1: "[", want "{"`},
		{`{"posterior": {"mu": [[1, x]]}}`, `JSON: line 1, column 27 (posterior.mu): "x" is not a number`},
		{"{\"posterior\":\n {\"mu\": [[1,2],[3]]}}", "line 2, column 18 (posterior.mu): a list of 1, where others have 2"},
		{`{"posterior": {"mu": [[1],2]}}`, "(posterior.mu): a value 1 lists deep, where others are 2 deep"},
		{`{"posterior": {"mu": [1,[2]]}}`, "a list 1 lists deep, where there are values"},
		{`{"posterior": {"mu": [[1,"a"]]}}`, "numbers and text are mixed"},
		{`{"posterior": {"mu": [[1e999]]}}`, `"1e999" is too large for a float64`},
		{`{"posterior": {"mu": [[0x10]]}}`, `"0x10" is not a number`},
		{`{"posterior": {"mu": [[inf]]}}`, `"inf" is not a number`},
		{`{"posterior": {"mu": [[-]]}}`, `"-" is not a number`},
		{`{"posterior": {"mu": [[1,,2]]}}`, `",", want a value`},
		{`{"posterior": {"mu": [[1`, `the file ends, want "," or "]"`},
		{`{"posterior": {"mu": `, `the file ends where a value should be`},
		{`{"posterior": {"mu": [[1]], "mu": [[1]]}}`, "(posterior.mu): the variable has no name, or is there twice"},
		{`{"posterior": {}, "posterior": {}}`, "(posterior): the key is there twice"},
		{`{"posterior": {"mu": [1, 2]}}`, "posterior.mu: the shape is [2], want [chain][draw] and more"},
		{`{"posterior": {"mu": [[1]], "w": [[1,2]]}}`, "posterior.w: 1 chains of 2 draws, but 1 of 1 before it"},
		{`{"posterior": {"mu": [[1]]}, "sample_stats": {"lp": [[1],[2]]}}`,
			"posterior.lp: 2 chains of 1 draws, but 1 of 1 before it"},
		{`{"posterior": {"": [[1]]}}`, "has no name"},
		{`{"posterior": {"a\nb": [[1]]}}`, "has a control character"},
		{`{"attrs": 3}`, "(attrs): want an object"},
		{`{"x": "a` + "\n" + `"}`, "(x): a control character inside a string"},
		{`{"x": "\q"}`, "a wrong string"},
		{`{} x`, "there is more after the end"},
		{`{"x": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "nested deeper than 64"},
		{`{"posterior": {"x": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`, "or deeper than 64"},
	} {
		_, err := Limits{}.readJSON(strings.NewReader(c.text), "JSON")
		var at *ParseError
		require.ErrorAs(t, err, &at, c.text)
		assert.ErrorContains(t, err, c.want)
		assert.ErrorIs(t, err, ErrFormat)
	}
	path := filepath.Join(t.TempDir(), "x.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"posterior": {"mu": [[1, x]]}}`), 0o644))
	_, err := Open(path)
	assert.ErrorContains(t, err, path+": line 1, column 27 (posterior.mu)")
	broken := errors.New("the disk is gone")
	_, err = Read(failing{broken})
	assert.ErrorIs(t, err, broken)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// What has no place is left out with a note.
func TestReadJSONNotes(t *testing.T) {
	inf, err := Read(strings.NewReader(`{"posterior": {"mu": [[1, null]], "label": [["a", "b"]]},
		"sample_stats": {"big": [[[1],[2]]], "lp": [[true, 2]]},
		"predictions": {"y": [[[1]]]}, "observed_data": {"t": ["a"]}, "sample_stats_prior": {"lp": [[1]]}}`))
	require.NoError(t, err)
	sameNumbers(t, []float64{1, math.NaN()}, inf.Posterior.Pooled(0))
	assert.Equal(t, []string{"lp"}, inf.Posterior.Stats())
	for _, want := range []string{
		"JSON: predictions was left out: Kelvin has no place for it", "JSON: posterior.label was left out: it holds text",
		"JSON: sample_stats.big was left out: it is not one number for each draw",
		"JSON: observed_data.t was left out: it holds text",
		"JSON: group sample_stats_prior was left out: there is no group prior",
	} {
		assert.Contains(t, inf.Notes, want)
	}
}

func TestWriteErrors(t *testing.T) {
	d := filled(t, placedSites(t, "mu", []int{}, "w", []int{3}, "v", []int{2}), nutsStats, true,
		2, 2)
	for _, c := range []struct {
		inf  *Inference
		want string
	}{
		{&Inference{LogLikelihood: d}, "log_likelihood: the format has no place for the statistics"},
		{&Inference{Posterior: d, Dims: map[string][]string{"w": {"a", "b"}}},
			`posterior: Dims has 2 names for "w" of shape [3]`},
		{&Inference{Posterior: d, Dims: map[string][]string{"w": {"a"}, "v": {"a"}}},
			`dimension "a" of "v" has size 2, elsewhere or in Coords 3`},
		{&Inference{Posterior: d, Dims: map[string][]string{"w": {"a"}}, Coords: map[string][]any{"a": {1}}},
			`has size 3, elsewhere or in Coords 1`},
		{&Inference{Posterior: d, Dims: map[string][]string{"w": {"draw"}}}, "neither chain nor draw"},
		{&Inference{ObservedData: []Array{{"y", []int{2}, []float64{1}}}},
			`observed_data: "y" has 1 values, but the shape [2]`},
		{&Inference{ObservedData: []Array{{"y", nil, []float64{1}}, {"y", nil, []float64{1}}}},
			`the name "y" is empty or there twice`},
		{&Inference{Posterior: d, Attrs: map[string]any{"f": func() {}}}, "unsupported type"},
	} {
		dir := t.TempDir()
		for _, err := range []error{WriteJSON(filepath.Join(dir, "a.json"), c.inf),
			WriteZarr(filepath.Join(dir, "a.zarr"), c.inf, ZarrOptions{})} {
			assert.ErrorIs(t, err, ErrLayout)
			assert.ErrorContains(t, err, c.want)
			assert.True(t, strings.HasPrefix(err.Error(), "store: "), err.Error())
		}
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Empty(t, left, "a failure leaves nothing behind")
	}
	broken := errors.New("the disk is full")
	assert.ErrorIs(t, WriteJSONTo(failing{broken}, &Inference{Posterior: d}), broken)
	assert.ErrorContains(t, WriteJSON(filepath.Join(t.TempDir(), "no", "a.json"), &Inference{Posterior: d}),
		"store: write JSON: open")
}
