package formula_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/stretchr/testify/require"
)

// mo() and mi() are numbers of products: a factor beside them has a column for each level but one where the product
// without it is there too, and for each level where it is not, as model.matrix of R has them for a number.
func TestProducts(t *testing.T) {
	nan := math.NaN()
	rows := table(t, data.Column{Name: "a", Numbers: []float64{1, 3, 2, 1}},
		data.Column{Name: "x", Numbers: []float64{0.5, -1, 2, 3}}, data.Column{Name: "m", Numbers: []float64{7, nan, 5, 6}},
		data.Column{Name: "g", Labels: []string{"u", "v", "w", "v"}},
		data.Column{Name: "size", Labels: []string{"big", "small", "mid", "mid"}, Levels: []string{"small", "mid", "big"}})
	for text, want := range map[string]map[string][]float64{
		"~ mo(a)*x": {"mo(a)": {0, 2, 1, 0}, "mo(a):x": {0, 0.5, 2, -1, 1, 2, 0, 3}},
		"~ mi(m)*mo(size)": {"mi(m)": {7, nan, 5, 6}, "mo(size)": {2, 0, 1, 1},
			"mi(m):mo(size)": {7, 2, nan, 0, 5, 1, 6, 1}},
		"~ mo(a) + mo(a):g": {"mo(a)": {0, 2, 1, 0}, "mo(a):g[v]": {0, 0, 2, 1, 1, 0, 0, 1},
			"mo(a):g[w]": {0, 0, 2, 0, 1, 1, 0, 0}},
		"~ g:mo(a)": {"g[u]:mo(a)": {0, 1, 2, 0, 1, 0, 0, 0},
			"g[v]:mo(a)": {0, 0, 2, 1, 1, 0, 0, 1}, "g[w]:mo(a)": {0, 0, 2, 0, 1, 1, 0, 0}},
		"~ mo(a)*x - mo(a):x": {"mo(a)": {0, 2, 1, 0}},
		"~ log(x + 2):mi(m):I(x)": {"log(x + 2):mi(m):I(x)": {
			7, 0.5 * math.Log(2.5), nan, 0, 5, 2 * math.Log(4), 6, 3 * math.Log(5)}},
	} {
		d := fit(t, text, rows, formula.Options{})
		again, err := formula.Parse(d.Formula().String())
		require.NoError(t, err)
		require.Equal(t, d.Formula().String(), again.String())
		r := numbers(t, d, rows)
		require.Len(t, r.Smooths, len(want), text)
		for i, s := range d.Smooths() {
			require.Contains(t, want, s.Name, text)
			for j, v := range want[s.Name] {
				if got := r.Smooths[i][j]; !math.IsNaN(v) || !math.IsNaN(got) {
					require.InDelta(t, v, got, 1e-15, "%s %s %d", text, s.Name, j)
				}
			}
		}
	}
	f, err := formula.Parse("y ~ mo(a)*x + mi(m):mo(b)")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, f.Of("mo"))
	require.Equal(t, []string{"m"}, f.Of("mi"))
	require.ElementsMatch(t, []string{"y", "x", "a", "m", "b"}, f.Columns())
	_, err = fit(t, "~ mo(size):x", rows, formula.Options{}).Rows(table(t, data.Column{Name: "x", Numbers: []float64{1}},
		data.Column{Name: "size", Labels: []string{"huge"}}))
	require.ErrorContains(t, err, "huge")
}
