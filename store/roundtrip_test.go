package store

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// formats write an Inference into a directory and name what to open.
var formats = map[string]func(dir string, inf *Inference) (string, error){
	"csv": func(dir string, inf *Inference) (string, error) {
		_, err := WriteCSV(filepath.Join(dir, "run"), inf, CSVOptions{})
		return filepath.Join(dir, "run_*.csv"), err
	},
	"json": func(dir string, inf *Inference) (string, error) {
		path := filepath.Join(dir, "run.json")
		return path, WriteJSON(path, inf)
	},
	"zarr": func(dir string, inf *Inference) (string, error) {
		path := filepath.Join(dir, "run.zarr")
		return path, WriteZarr(path, inf, ZarrOptions{Chunk: 3})
	},
	"zarr plain": func(dir string, inf *Inference) (string, error) {
		path := filepath.Join(dir, "run.zarr")
		return path, WriteZarr(path, inf, ZarrOptions{Zlib: -1})
	},
	"zarr with zlib": func(dir string, inf *Inference) (string, error) {
		path := filepath.Join(dir, "run.zarr")
		return path, WriteZarr(path, inf, ZarrOptions{Zlib: 6})
	},
}

// What is written comes back bit for bit, whatever the names, shapes and lengths.
func TestRoundTrip(t *testing.T) {
	noSync(t)
	odd := placedSites(t, "mu", []int{}, "theta.1[0]", []int{3}, "δ/µ x", []int{2, 3}, "empty", []int{0},
		"none", []int{2, 0, 3}, "chain", []int{}, "tail__", []int{2}, ".hidden", []int{1}, "a:b", []int{},
		"a.b", []int{}, "a_b", []int{}, "mu_dim_0", []int{},
		`"quoted", # <&>\`, []int{1, 1}, "lp__", []int{})
	oddStats := append([]string{"my stat", "lp__", "other__", "a = b", "draw"}, nutsStats...)
	simple := placedSites(t, "mu", []int{}, "theta", []int{2, 3}, "w", []int{3})
	for name, d := range map[string]*draws.Draws{
		"simple":          filled(t, simple, nutsStats, true, 7, 7),
		"odd names":       filled(t, odd, oddStats, false, 7, 7),
		"one chain":       filled(t, simple, nutsStats, false, 5),
		"ragged":          filled(t, simple, nutsStats, true, 7, 2, 0, 4),
		"ragged, odd":     filled(t, odd, oddStats, false, 2, 7),
		"zero draws":      filled(t, odd, nutsStats, true, 0, 0),
		"no statistics":   filled(t, simple, nil, true, 4, 3),
		"statistics only": filled(t, nil, nutsStats, true, 4, 3),
		"names of ArviZ":  filled(t, simple, []string{"diverging", "tree_depth", "acceptance_rate"}, true, 4, 4),
		"eleven chains":   filled(t, simple, nutsStats, true, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
	} {
		for format, write := range formats {
			t.Run(name+" in "+format, func(t *testing.T) {
				path, err := write(t.TempDir(), &Inference{Posterior: d})
				require.NoError(t, err)
				got, err := Open(path)
				require.NoError(t, err)
				assert.Empty(t, got.Notes)
				assert.Nil(t, got.Warmup)
				identical(t, d, got.Posterior)
			})
		}
	}
}

// The warm-up comes back as a container of its own in every format.
func TestRoundTripWarmup(t *testing.T) {
	noSync(t)
	simple := placedSites(t, "mu", []int{}, "theta", []int{2, 3})
	for _, stats := range [][]string{nutsStats, {"lp"}} { // with and without an adaptation block
		inf := &Inference{Posterior: filled(t, simple, stats, true, 4, 3),
			Warmup: filled(t, simple, stats, true, 2, 5)}
		for format, write := range formats {
			t.Run(format, func(t *testing.T) {
				path, err := write(t.TempDir(), inf)
				require.NoError(t, err)
				got, err := Open(path)
				require.NoError(t, err)
				identical(t, inf.Posterior, got.Posterior)
				identical(t, inf.Warmup, got.Warmup)
			})
		}
	}
}

// JSON and Zarr have all groups, names of dimensions, labels and attributes.
func TestRoundTripGroups(t *testing.T) {
	sites := placedSites(t, "mu", []int{}, "w", []int{3})
	y := placedSites(t, "y", []int{3})
	inf := &Inference{
		Posterior: filled(t, sites, nutsStats, true, 4, 4), Warmup: filled(t, sites, nutsStats,
			true, 2, 2),
		LogLikelihood: filled(t, y, nil, true, 4, 4), PosteriorPredictive: filled(t, y, nil, true, 4, 4),
		Prior: filled(t, sites, []string{"lp"}, true, 6), PriorPredictive: filled(t, y, nil, true, 6),
		ObservedData: []Array{{"y", []int{3}, []float64{1, 2, difficult[0]}}, {"n", nil, []float64{3}},
			{"z", []int{0}, []float64{}}},
		ConstantData: []Array{{"x", []int{3, 2}, difficult[:6]}},
		Coords:       map[string][]any{"school": {"A", "Bé", ""}, "year": {2001., 2002.5, 2003.}},
		Dims:         map[string][]string{"w": {"school"}, "y": {"year"}},
		Attrs: map[string]any{"created_at": "then", "inference_library": "kelvin", "inference_library_version": "1",
			"seed": 7., "ok": true, "list": []any{1., "b", nil}, "bad": difficult[1]},
	}
	for _, format := range []string{"json", "zarr", "zarr with zlib"} {
		t.Run(format, func(t *testing.T) {
			path, err := formats[format](t.TempDir(), inf)
			require.NoError(t, err)
			got, err := Open(path)
			require.NoError(t, err)
			parts := got.sampled()
			for i, p := range inf.sampled() {
				identical(t, *p, *parts[i])
			}
			assert.Equal(t, inf.Coords, got.Coords)
			assert.Equal(t, inf.Dims, got.Dims)
			assert.Equal(t, inf.Attrs, got.Attrs)
			require.Len(t, got.ObservedData, 3)
			for _, a := range append(inf.ObservedData, inf.ConstantData...) {
				found := false
				for _, b := range append(got.ObservedData, got.ConstantData...) {
					if a.Name == b.Name {
						found = true
						assert.Equal(t, append([]int{}, a.Shape...), append([]int{}, b.Shape...))
						sameNumbers(t, a.Values, b.Values)
					}
				}
				assert.True(t, found, a.Name)
			}
		})
	}
}

// A group that ends up with other draws than the layout tells of is read as it stands, as after thinning in ArviZ.
func TestForeignChange(t *testing.T) {
	var b strings.Builder
	d := filled(t, placedSites(t, "mu", []int{}, "w", []int{2}), nutsStats, true, 3, 2)
	require.NoError(t, WriteJSONTo(&b, &Inference{Posterior: d}))
	text := withoutDigest(b.String())
	start := strings.Index(text, `"w": [`)
	end := strings.Index(text[start:], "\n") + start
	for _, changed := range []string{text[:start] + `"v": [[[1,2],[3,4],[5,6]],[[1,2],[3,4],[5,6]]]` + text[end:],
		text[:start] + `"w": [[1,2,3],[4,5,6]]` + text[end:]} {
		inf, err := Read(strings.NewReader(changed))
		require.NoError(t, err)
		assert.Equal(t, []int{3, 3}, []int{inf.Posterior.Len(0), inf.Posterior.Len(1)})
		assert.NotEqual(t, d.Sites(), inf.Posterior.Sites())
	}
}

// withoutDigest is JSON as another program would have written it.
func withoutDigest(text string) string {
	return text[:strings.LastIndex(text, ",\n\"kelvin_digest\"")] + "}\n"
}

// Labels of elements come back with the draws, from every format.
func TestLabelsRoundTrip(t *testing.T) {
	noSync(t)
	d := filled(t, placedSites(t, "b", []int{2}, "r", []int{2, 3}, "s", []int{}), nil, true, 4, 4)
	require.NoError(t, d.Label("b", []string{"age", `a "b", c`}))
	require.NoError(t, d.Label("r", nil, []string{"x", "y]", "ä"}))
	for format, write := range formats {
		pattern, err := write(t.TempDir(), &Inference{Posterior: d})
		require.NoError(t, err, format)
		inf, err := Open(pattern)
		require.NoError(t, err, format)
		require.Equal(t, d.Names(), inf.Posterior.Names(), format)
	}
}
