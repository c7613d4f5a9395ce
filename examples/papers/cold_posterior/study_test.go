package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/examples/internal/killed"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// smallest is a study of one temperature and two seeds.
func smallest(problem, dir string) (*study, error) {
	o := testOptions(dir)
	o.problem, o.methods, o.variance, o.embedding, o.epochs = problem, true, 1, 0.05, 1
	s, err := newStudy(o)
	if err == nil {
		s.Settings.Temperatures = []float64{0.5}
	}
	return s, err
}

// studied runs it, and prints it as a table and as JSON.
func studied(problem, dir string, workers int, observer infer.Observer) (out [2]string, err error) {
	s, err := smallest(problem, dir)
	if err != nil {
		return out, err
	}
	if err := s.compute(context.Background(), options{workers: workers, observer: observer}); err != nil {
		return out, err
	}
	if err := s.plot(); err != nil {
		return out, err
	}
	var table bytes.Buffer
	if err := s.print(&table); err != nil {
		return out, err
	}
	text, err := json.Marshal(s)
	return [2]string{table.String(), string(text)}, err
}

// All methods are in the table, with scores that can be what they are called. A study that is killed in the middle, and
// goes on with another number of workers, ends with the same table to the last bit.
func TestStudyGoesOn(t *testing.T) {
	want, err := studied("digits", t.TempDir(), 1, nil)
	require.NoError(t, err)
	var s study
	require.NoError(t, json.Unmarshal([]byte(want[1]), &s))
	names := allMethods()
	require.Len(t, s.Rows, len(names))
	for i, r := range s.Rows {
		assert.Equal(t, names[i], r.Method)
		assert.Equal(t, 2, r.Scores.Repetitions)
		assert.LessOrEqual(t, r.Scores.Mean.NLL, r.Scores.Mean.Gibbs+1e-9, "%s: Jensen", r.Method)
		assert.True(t, 0 < r.Scores.Mean.Accuracy && r.Scores.Mean.Accuracy <= 1, r.Method)
		assert.Zero(t, r.Held, r.Method)
	}

	// Rows of draws of one chain have the temperatures of that chain, the others those of all.
	for _, w := range walks {
		serial, parallel := s.find(w.name+", serial"), s.find(w.name+", parallel")
		require.Equal(t, w.langevin, serial.Kinetic == nil, w.name)
		assert.NotEqual(t, serial.Configurational.Mean, parallel.Configurational.Mean, w.name)
		if !w.langevin {
			assert.NotEqual(t, serial.Kinetic.Mean, parallel.Kinetic.Mean, w.name)
			assert.Positive(t, serial.Kinetic.SE)
		}
	}

	dir := t.TempDir()
	stored := func(pattern string) int {
		found, err := filepath.Glob(filepath.Join(dir, "quick", "methods-digits", pattern))
		require.NoError(t, err)
		return len(found)
	}
	killed.Once(t, "study", dir, func() bool { return stored("sghmc*.json") >= 2 })

	got, err := studied("digits", dir, 2, nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, 10, stored("*.png"))
	require.NoDirExists(t, filepath.Join(dir, "quick", "methods-digits", "running"))
}

// find is the first row of a method.
func (s *study) find(method string) row {
	for _, r := range s.Rows {
		if r.Method == method {
			return r
		}
	}
	return row{}
}

// The first chain is the first of each reading, and the readings stay as they were. Some have no kinetic temperatures.
func TestFirstChain(t *testing.T) {
	all := []infer.Reading{
		{Updates: 3, Kinetic: [][]float64{{1, 2}, {3, 4}}, Configurational: [][]float64{{5, 6}, {7, 8}}},
		{Updates: 6, Configurational: [][]float64{{9, 10}, {11, 12}}},
	}
	first := firstChain(all)
	require.Equal(t, [][]float64{{1, 2}}, first[0].Kinetic)
	require.Equal(t, [][]float64{{5, 6}}, first[0].Configurational)
	require.Empty(t, first[1].Kinetic)
	require.Equal(t, [][]float64{{9, 10}}, first[1].Configurational)
	require.Equal(t, 6, first[1].Updates)
	require.Len(t, all[0].Kinetic, 2)
}

// Curves are on both sides of their temperature, and within the picture, however many there are.
func TestAside(t *testing.T) {
	for n := 1; n < 20; n++ {
		assert.InDelta(t, 0, aside(0, n)+aside(n-1, n), 1e-15)
		assert.LessOrEqual(t, aside(n-1, n), 0.05+1e-15)
		if n > 1 {
			assert.Greater(t, aside(1, n), aside(0, n))
		}
	}
	assert.InDelta(t, -0.0375, aside(0, 4), 1e-15)
}

// The same table is made of reviews.
func TestStudyOfReviews(t *testing.T) {
	out, err := studied("imdb", t.TempDir(), 2, nil)
	require.NoError(t, err)
	var s study
	require.NoError(t, json.Unmarshal([]byte(out[1]), &s))
	require.Len(t, s.Rows, len(allMethods()))
	require.Contains(t, out[0], "imdb: 100 cases to train with, 50 to test with")
}

// Numbers of reviews and of passes change the study of all methods: a variational fit makes half as many passes, and a
// cycle a quarter. Those of the default study are what its settings say.
func TestStudySizedByFlags(t *testing.T) {
	o := options{methods: true, dir: t.TempDir(), problem: "imdb", seed: 1, reviews: 320, epochs: 3, variance: 1,
		embedding: 0.05, given: map[string]bool{"reviews": true, "epochs": true}}
	s, err := newStudy(o)
	require.NoError(t, err)
	require.Equal(t, []int{320, 30, 15, 7}, []int{s.Settings.Train, s.Settings.ModeUpdates,
		s.Settings.FitUpdates, s.Settings.Cycle}, "three passes over ten batches of 32")
	o.given, o.reviews, o.epochs = map[string]bool{"epochs": true}, 10, 1
	s, err = newStudy(o)
	require.NoError(t, err)
	require.Equal(t, []int{360, 11, 5, 2}, []int{s.Settings.Train, s.Settings.ModeUpdates,
		s.Settings.FitUpdates, s.Settings.Cycle}, "all made-up reviews, but a tenth")
	require.Equal(t, reviewsStudy(1), reviewsStudy(1).passed(2))
}

// Cells of one study of reviews are not those of another: made-up reviews are not those of a folder, a folder is not
// one of the same size in which a review changed, and starts of the embeddings are not others.
func TestStudiesOfOtherData(t *testing.T) {
	dir := t.TempDir()
	claim := func(data string, embedding float64) error {
		s, err := newStudy(options{methods: true, quick: true, dir: dir, problem: "imdb", seed: 1, epochs: 1, variance: 1,
			data: data, embedding: embedding})
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(s.dir, 0o755))
		return (&grid.Grid[[]entry]{Settings: s.Settings, Dir: s.dir}).Claim()
	}
	require.NoError(t, claim("", 0.05))
	require.NoError(t, claim("", 0.05), "again")
	folder := texts(t, 100)
	require.ErrorContains(t, claim(folder, 0.05), `data is "made up" there and "real" here`)

	dir = t.TempDir()
	require.NoError(t, claim(folder, 0.05))
	require.NoError(t, claim(texts(t, 100), 0.05), "the same reviews elsewhere")
	require.ErrorContains(t, claim(folder, 0.5), "embedding_start is 0.05 there and 0.5 here")
	for _, part := range []string{"test", "train"} {
		other := texts(t, 100)
		for i := range 50 { // in both classes, so that the vocabulary stays what it is
			for class, text := range map[string]string{"neg": "pos film", "pos": "neg film"} {
				path := filepath.Join(other, part, class, fmt.Sprint(i, ".txt"))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			}
		}
		require.ErrorContains(t, claim(other, 0.05), part+"_sha256 is ")
	}
}

// Flags without effect are refused, and those that have one are not.
func TestFlagsWithoutEffect(t *testing.T) {
	for _, c := range []struct {
		o     options
		given string
		want  string // "" for none
	}{
		{options{problem: "imdb"}, "reviews", ""},
		{options{problem: "imdb", methods: true}, "reviews", ""},
		{options{problem: "imdb", methods: true}, "epochs", ""},
		{options{problem: "imdb", data: "d"}, "embedding", ""},
		{options{problem: "imdb", methods: true, quick: true}, "quick", ""},
		{options{problem: "digits", quick: true}, "quick", ""},
		{options{problem: "digits"}, "reviews", "-reviews has an effect only with -problem imdb: leave it out"},
		{options{problem: "digits", methods: true}, "epochs", "-epochs has an effect only with -problem imdb"},
		{options{problem: "digits"}, "data", "-data has an effect only with -problem imdb"},
		{options{problem: "digits"}, "variance", "-variance has an effect only with -problem imdb"},
		{options{problem: "imdb"}, "embedding", "-embedding has an effect only with -problem imdb and -data"},
		{options{preset: "duffield-imdb"}, "reviews", "-reviews has an effect only without -quick and -preset"},
		{options{preset: "duffield-imdb"}, "variance", "-variance has an effect only without -preset"},
		{options{preset: "duffield-imdb", quick: true}, "quick", "-quick and -preset exclude each other"},
		{options{preset: "wenzel"}, "preset", `-preset is "wenzel": it must be one of duffield-imdb, `},
		{options{problem: "imdb", methods: true, quick: true}, "epochs", "-epochs has an effect only without -quick"},
		{options{problem: "digits"}, "seeds", "-seeds has an effect only with -preset"},
		{options{problem: "imdb", quick: true}, "quick", "-quick has an effect only on digits, and with -methods"},
	} {
		c.o.given = map[string]bool{c.given: true}
		if c.want == "" {
			require.NoError(t, c.o.useless(), "%+v", c.o)
			continue
		}
		c.o.dir = filepath.Join(t.TempDir(), "none")
		require.ErrorContains(t, run(context.Background(), io.Discard, c.o), c.want)
		require.NoDirExists(t, c.o.dir)
	}
}
