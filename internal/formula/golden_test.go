package formula_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/stretchr/testify/require"
)

// loose lets empty cells and collinear columns pass.
var loose = formula.Options{EmptyCells: true, Collinear: true}

func load(t testing.TB, name string, to any) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, to))
}

func table(t testing.TB, columns ...data.Column) *data.Table {
	t.Helper()
	made, err := data.NewTable(columns...)
	require.NoError(t, err)
	return made
}

func fit(t testing.TB, text string, to *data.Table, o formula.Options) *formula.Design {
	t.Helper()
	f, err := formula.Parse(text)
	require.NoError(t, err, text)
	d, err := f.Fit(to, o)
	require.NoError(t, err, text)
	return d
}

func numbers(t testing.TB, d *formula.Design, of *data.Table) *formula.Rows {
	t.Helper()
	r, err := d.Rows(of)
	require.NoError(t, err)
	return r
}

// near compares numbers, relative to the largest of both.
func near(t testing.TB, want, got []float64, tolerance float64, of string) {
	t.Helper()
	require.Len(t, got, len(want), of)
	size := 1.0
	for _, v := range want {
		size = max(size, v, -v)
	}
	for i := range want {
		require.InDelta(t, want[i], got[i], tolerance*size, "%s, number %d", of, i)
	}
}

// The matrices of 200 random formulas are those of patsy, column by column. Their order is another one: here it is that
// of R, whose terms are ordered by degree alone, and where the first factor of a product changes first.
func TestPatsy(t *testing.T) {
	var golden struct {
		Table map[string]json.RawMessage
		Pool  [][]float64
		Cases []struct {
			Formula   string
			Intercept bool
			Names     []string
			Columns   []int
		}
	}
	load(t, "golden.json", &golden)
	var columns []data.Column
	for name, text := range golden.Table {
		c := data.Column{Name: name}
		if json.Unmarshal(text, &c.Numbers) != nil {
			c.Numbers = nil
			require.NoError(t, json.Unmarshal(text, &c.Labels))
		}
		columns = append(columns, c)
	}
	rows := table(t, columns...)
	require.Len(t, golden.Cases, 200)
	for _, c := range golden.Cases {
		d := fit(t, c.Formula, rows, loose)
		require.Equal(t, c.Intercept, d.Intercept(), c.Formula)
		require.ElementsMatch(t, c.Names, d.Names(), c.Formula)
		r := numbers(t, d, rows)
		for j, name := range d.Names() {
			got := make([]float64, r.N)
			for i := range got {
				got[i] = r.X[i*len(c.Names)+j]
			}
			near(t, golden.Pool[c.Columns[slices.Index(c.Names, name)]], got, 1e-12, c.Formula+": "+name)
		}
	}
}

// matrixR is a matrix of R, row-major.
type matrixR struct {
	Formula string
	Columns int
	X       []float64
}

// goldenR is testdata/golden_r.json.
type goldenR struct {
	X, Z        []float64
	A, B        []string
	NewX        []float64 `json:"new_x"`
	NewZ        []float64 `json:"new_z"`
	NewA        []string  `json:"new_a"`
	NewB        []string  `json:"new_b"`
	Matrices    []matrixR
	Predictions []matrixR
	Smooths     []struct {
		K, Level int
		By       string
		Train    []float64 // Z Zᵀ
		New      []float64
	}
}

func tablesR(t testing.TB) (g goldenR, train, fresh *data.Table) {
	t.Helper()
	load(t, "golden_r.json", &g)
	train = table(t, data.Column{Name: "x", Numbers: g.X}, data.Column{Name: "z", Numbers: g.Z},
		data.Column{Name: "a", Labels: g.A}, data.Column{Name: "b", Labels: g.B})
	fresh = table(t, data.Column{Name: "x", Numbers: g.NewX}, data.Column{Name: "z", Numbers: g.NewZ},
		data.Column{Name: "a", Labels: g.NewA}, data.Column{Name: "b", Labels: g.NewB})
	return g, train, fresh
}

// Where products have the terms that are in them, and their factors come in the order of their first mention, the
// matrix is that of R in the order of R.
func TestR(t *testing.T) {
	g, train, fresh := tablesR(t)
	require.Len(t, g.Matrices, 36)
	require.Len(t, g.Predictions, 5)
	for _, m := range g.Matrices {
		d := fit(t, m.Formula, train, formula.Options{})
		require.Len(t, d.Names(), m.Columns, m.Formula)
		near(t, m.X, numbers(t, d, train).X, 1e-12, m.Formula)
	}
	for _, m := range g.Predictions {
		near(t, m.X, numbers(t, fit(t, m.Formula, train, formula.Options{}), fresh).X, 1e-12, "new data: "+m.Formula)
	}
}

// Smooths are those of mgcv, for training data, and for new data within and beyond them.
func TestSmoothR(t *testing.T) {
	g, train, fresh := tablesR(t)
	require.Len(t, g.Smooths, 6)
	for _, s := range g.Smooths {
		text := fmt.Sprintf("~ s(x, k = %d)", s.K)
		if s.By != "" {
			text = fmt.Sprintf("~ s(x, k = %d, by = %s)", s.K, s.By)
		}
		d := fit(t, text, train, formula.Options{})
		require.Equal(t, s.K-2, d.Smooths()[s.Level].Columns)
		near(t, s.Train, covariance(numbers(t, d, train).Smooths[s.Level], s.K-2), 1e-10, text)
		near(t, s.New, covariance(numbers(t, d, fresh).Smooths[s.Level], s.K-2), 1e-10, text+", new data")
	}
}

// covariance is Z Zᵀ.
func covariance(z []float64, p int) []float64 {
	var out []float64
	for i := 0; i < len(z); i += p {
		for j := 0; j < len(z); j += p {
			sum := 0.0
			for k := range p {
				sum += z[i+k] * z[j+k]
			}
			out = append(out, sum)
		}
	}
	return out
}
