package plot

import (
	"bytes"
	"io"
	"math"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag/check"
	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/diag/thermo"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

// pictures are all pictures of some numbers.
func pictures(t *testing.T, x []float64) map[string]func(w io.Writer, o Options) error {
	n := len(x) / 2
	a, b := x[:n], x[n:2*n]
	d, err := draws.New([]draws.Site{{Name: "a", Size: 1}, {Name: "b", Offset: 1, Size: 1}},
		[]string{draws.StatDivergent}, 1)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, d.AppendChain(0, []float64{a[i], b[i]}, []float64{b[i]}))
	}
	var readings []thermo.KineticReading
	r := &score.Reliability{}
	for i := range n {
		readings = append(readings, thermo.KineticReading{Value: a[i], Target: b[i], Low: b[i], High: a[i]})
		r.Bins = append(r.Bins, score.Bin{Low: a[i], High: b[i], Cases: n - 3, Confidence: a[i], Accuracy: b[i]})
	}
	out := map[string]func(w io.Writer, o Options) error{
		"forest":      func(w io.Writer, o Options) error { return Forest(w, d, nil, o) },
		"pair":        func(w io.Writer, o Options) error { return Pair(w, d, "a", "b", o) },
		"curve":       func(w io.Writer, o Options) error { return Curve(w, a, b, a, "x", "y", o) },
		"kinetic":     func(w io.Writer, o Options) error { return Kinetic(w, readings, o) },
		"reliability": func(w io.Writer, o Options) error { return Reliability(w, r, o) },
		"densities":   func(w io.Writer, o Options) error { return Densities(w, a, [][]float64{b}, o) },
		"intervals":   func(w io.Writer, o Options) error { return Intervals(w, nil, a, [][]float64{b, a}, o) },
		"at x":        func(w io.Writer, o Options) error { return Intervals(w, b, a, [][]float64{b, a}, o) },
		"rootogram":   func(w io.Writer, o Options) error { return Rootogram(w, a, [][]float64{b}, o) },
		"PIT":         func(w io.Writer, o Options) error { return PIT(w, x, o) },
	}
	if len(x) > 0 {
		outcome := &check.Outcome{Observed: x[0], Replicated: x[1:]}
		out["statistic"] = func(w io.Writer, o Options) error { return Statistic(w, outcome, o) }
	}
	for name, draw := range drawings {
		out[name] = func(w io.Writer, o Options) error { return draw(w, [][]float64{a, b}, o) }
	}
	return out
}

var undrawable = regexp.MustCompile(`(?i)[^a-z](nan|[+-]?inf)[^a-z]`)

// FuzzPictures draws any numbers: there is a picture of numbers that are finite, or an error that says what is out of
// range.
func FuzzPictures(f *testing.F) {
	tiny, huge := math.SmallestNonzeroFloat64, math.MaxFloat64
	testkit.FuzzNumbers(f, [][]float64{
		{},
		{1},
		slices.Repeat([]float64{0, tiny}, 50),
		slices.Repeat([]float64{tiny, 0, 3 * tiny, -tiny, 100 * tiny}, 20),
		slices.Repeat([]float64{-huge, huge, 0, huge, 1, 2, -3}, 14),
		slices.Repeat([]float64{huge, huge, 1e300}, 30),
		slices.Repeat([]float64{0.5}, 100),
		slices.Repeat([]float64{0, 1, 0.25, 2, 3, -1, 0.5}, 14),
		{math.NaN(), math.Inf(1), math.Inf(-1), 1, 2},
		slices.Repeat([]float64{1, math.Nextafter(1, 2), 1}, 30),
	}, func(t *testing.T, x []float64) {
		x = x[:min(len(x), 200)]
		for name, draw := range pictures(t, x) {
			var picture bytes.Buffer
			if err := draw(&picture, Options{Format: "svg", Title: "t"}); err != nil {
				require.ErrorIs(t, err, draws.ErrRange, "%s of %v", name, x)
				continue
			}
			require.NotRegexp(t, undrawable, picture.String(), "%s of %v", name, x)
		}
	})
}
