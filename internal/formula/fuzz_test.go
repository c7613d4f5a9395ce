package formula_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/stretchr/testify/require"
)

// small is a table of each kind of column.
func small(t testing.TB) *data.Table {
	const n = 24
	x, z, w := make([]float64, n), make([]float64, n), make([]float64, n)
	g, h := make([]string, n), make([]string, n)
	for i := range n {
		x[i] = math.Sin(float64(3*i)) * 2
		z[i] = 1 + float64(i*i%17)
		w[i] = float64(i % 4)
		g[i] = string(rune('a' + i%3))
		h[i] = []string{"u", "v"}[i/3%2]
	}
	return table(t, data.Column{Name: "y", Numbers: z}, data.Column{Name: "x", Numbers: x},
		data.Column{Name: "z", Numbers: z}, data.Column{Name: "w", Numbers: w},
		data.Column{Name: "g", Labels: g}, data.Column{Name: "h", Labels: h})
}

// No text makes Parse panic. What it reads it writes so that it reads the same; a design that fits has finite
// numbers.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"y ~ x + g*h + s(z) + offset(log(z)) + (1 + x | g) + (x || h) + (1 | g/w) + (1 | mm(g,h))",
		"y | cens(w) + trials(w) + weights(z) ~ 0 + poly(x, 2) + bs(z, df = 5)", "log(y) ~ (x + z + g)^2 - x:g",
		"y|trunc(lb=-1,ub=100)~I(x^2/-(z+1)*2)+C(g,Treatment(\"b\")):x", "~ `a b` %in% 'c'",
		"y ~ -1 + g:h/x", "~ ((((x",
		"~ 1e309", "~ x - (1 | g)", "y ~ s(x, k = 5, by = g) + s(z, by = x)", "y ~ C(w, Poly) + scale(x):center(z)",
		"~ pow(x, 2) + exp(x) ** 2", "~ é + .x + x_1", "y ~ mm(g, h)", "~ (1 | mm(g, h, weights = cbind(z, z)))",
	} {
		f.Add(seed)
	}
	rows := small(f)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := formula.Parse(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		if len(parsed.String()) > 1<<14 {
			return // too long for Parse
		}
		again, err := formula.Parse(parsed.String())
		require.NoError(t, err, parsed.String())
		require.Equal(t, parsed.String(), again.String())
		require.Equal(t, parsed.Columns(), again.Columns())
		d, err := parsed.Fit(rows, formula.Options{EmptyCells: true, Collinear: true})
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		checkRows(t, d, rows)
	})
}

// checkRows checks the shapes of rows, and that all numbers are finite.
func checkRows(t testing.TB, d *formula.Design, of *data.Table) {
	t.Helper()
	r := numbers(t, d, of)
	require.Len(t, r.X, r.N*len(d.Names()))
	for _, v := range r.X {
		require.False(t, math.IsNaN(v) || math.IsInf(v, 0))
	}
	for i, g := range d.Groups() {
		require.Len(t, r.Groups[i].X, r.N*len(g.Columns))
		require.Len(t, r.Groups[i].Index, r.N*g.Members)
		for _, k := range r.Groups[i].Index {
			require.True(t, k >= 0 && k < len(g.Levels))
		}
	}
	for i, s := range d.Smooths() {
		require.Len(t, r.Smooths[i], r.N*s.Columns)
	}
}
