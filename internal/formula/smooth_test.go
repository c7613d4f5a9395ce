package formula_test

import (
	"math"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

// curvature is K of the natural cubic splines with knots x: fᵀ K f = ∫ f”² for the values f at the knots (Green and
// Silverman 1994, Nonparametric Regression and Generalized Linear Models, section 2.1.2).
func curvature(t testing.TB, x []float64) *mat.Dense {
	n := len(x)
	q, r := mat.NewDense(n, n-2, nil), mat.NewDense(n-2, n-2, nil)
	for j := 1; j < n-1; j++ {
		h, next := x[j]-x[j-1], x[j+1]-x[j]
		q.Set(j-1, j-1, 1/h)
		q.Set(j, j-1, -1/h-1/next)
		q.Set(j+1, j-1, 1/next)
		r.Set(j-1, j-1, (h+next)/3)
		if j < n-2 {
			r.Set(j-1, j, next/6)
			r.Set(j, j-1, next/6)
		}
	}
	var inner, k mat.Dense
	require.NoError(t, inner.Solve(r, q.T()))
	k.Mul(q, &inner)
	return &k
}

// A smooth with a knot at each row is the smoothing spline: the ridge regression on its columns, with the constant and
// the line free, has the fit of the closed form (I + α K)⁻¹ y at each smoothness α.
func TestSmoothingSpline(t *testing.T) {
	const n = 12
	x, y := make([]float64, n), make([]float64, n)
	for i := range n {
		x[i] = float64(i) + 0.4*math.Sin(float64(5*i))
		y[i] = math.Sin(x[i]/2) + 0.3*math.Cos(float64(7*i))
	}
	rows := table(t, data.Column{Name: "x", Numbers: x}, data.Column{Name: "y", Numbers: y})
	d := fit(t, "y ~ s(x, k = 12)", rows, formula.Options{})
	r := numbers(t, d, rows)
	k := curvature(t, x)
	for _, alpha := range []float64{0.01, 1, 30} {
		dense := mat.NewDense(n, n, nil)
		dense.Scale(alpha, k)
		all := mat.NewDense(n, n, nil) // a column of ones, the line, and the penalised columns
		ridge := mat.NewDense(n, n, nil)
		for i := range n {
			dense.Set(i, i, dense.At(i, i)+1)
			all.Set(i, 0, 1)
			all.Set(i, 1, r.X[i])
			for j := range n - 2 {
				all.Set(i, 2+j, r.Smooths[0][i*(n-2)+j])
			}
		}
		ridge.Mul(all.T(), all)
		for j := 2; j < n; j++ { // mgcv divides S by its norm, beside a basis that is the identity at the knots
			ridge.Set(j, j, ridge.At(j, j)+alpha*mat.Norm(k, 1))
		}
		var want, right, b, got mat.VecDense
		require.NoError(t, want.SolveVec(dense, mat.NewVecDense(n, r.Y)))
		right.MulVec(all.T(), mat.NewVecDense(n, r.Y))
		require.NoError(t, b.SolveVec(ridge, &right))
		got.MulVec(all, &b)
		near(t, want.RawVector().Data, got.RawVector().Data, 1e-9, "fit")
	}
}

// Columns sum to 0 over the training data, and go on as lines beyond them, with the slope that they have at the ends.
func TestSmoothEnds(t *testing.T) {
	rows := small(t)
	d := fit(t, "y ~ s(x)", rows, formula.Options{})
	require.Equal(t, []string{"s(x)[linear]"}, d.Names())
	require.Equal(t, []formula.SmoothDesign{{Name: "s(x)", Kind: "s", Columns: 8, K: 10,
		Linear: []string{"s(x)[linear]"}}}, d.Smooths())
	z := numbers(t, d, rows).Smooths[0]
	for j := range 8 {
		sum := 0.0
		for i := j; i < len(z); i += 8 {
			sum += z[i]
		}
		require.InDelta(t, 0, sum, 1e-10)
	}
	column, err := rows.Column("x")
	require.NoError(t, err)
	low, high := column.Numbers[0], column.Numbers[0]
	for _, v := range column.Numbers {
		low, high = min(low, v), max(high, v)
	}
	const h = 1e-5
	at := func(x ...float64) []float64 {
		return numbers(t, d, table(t, data.Column{Name: "x", Numbers: x})).Smooths[0]
	}
	for _, end := range []struct{ at, out float64 }{{low, -1}, {high, 1}} {
		z := at(end.at-h*end.out, end.at, end.at+end.out, end.at+3*end.out)
		for j := range 8 {
			slope := z[2*8+j] - z[8+j]
			require.InDelta(t, 2*slope, z[3*8+j]-z[2*8+j], 1e-12)
			require.InDelta(t, slope, (z[8+j]-z[j])/h, 1e-4)
		}
	}
}

// A factor By has a smooth of each level, which is 0 in rows of others; a number By multiplies one without a
// constraint.
func TestSmoothBy(t *testing.T) {
	rows := small(t)
	d := fit(t, "y ~ g + s(x, k = 5, by = g)", rows, formula.Options{})
	require.Equal(t, []string{"g[b]", "g[c]", "s(x, k = 5, by = g)[a][linear]", "s(x, k = 5, by = g)[b][linear]",
		"s(x, k = 5, by = g)[c][linear]"}, d.Names())
	r := numbers(t, d, rows)
	alone := numbers(t, fit(t, "y ~ s(x, k = 5)", rows, formula.Options{}), rows)
	for i := range r.N {
		for level := range 3 {
			for j := range 3 {
				want := 0.0
				if i%3 == level {
					want = alone.Smooths[0][i*3+j]
				}
				require.InDelta(t, want, r.Smooths[level][i*3+j], 1e-14)
			}
		}
	}
	d = fit(t, "y ~ s(x, k = 5, by = z)", rows, formula.Options{})
	require.Equal(t, []string{"s(x, k = 5, by = z)[constant]", "s(x, k = 5, by = z)[linear]"}, d.Names())
	r = numbers(t, d, rows)
	for i := range r.N {
		require.Equal(t, r.Y[i], r.X[2*i]) // y is z
	}
}

// The covariances of the parts of t2 are products of those of the splines of its numbers and of (1, u), centred over
// the training data, for these and for new data. mgcv 1.8 has the same first part; it turns (1, u) of the others by a
// matrix that depends on the data.
func TestTensor(t *testing.T) {
	g, _, _ := tablesR(t)
	ones := slices.Repeat([]float64{1}, len(g.X)+len(g.NewX))
	n, all := len(g.X), len(ones)
	train := table(t, data.Column{Name: "x", Numbers: g.X}, data.Column{Name: "z", Numbers: g.Z},
		data.Column{Name: "one", Numbers: ones[:n]})
	both := table(t, data.Column{Name: "x", Numbers: slices.Concat(g.X, g.NewX)},
		data.Column{Name: "z", Numbers: slices.Concat(g.Z, g.NewZ)}, data.Column{Name: "one", Numbers: ones})
	d := fit(t, "~ t2(x, z)", train, formula.Options{})
	require.Equal(t, []string{"t2(x, z)[x]", "t2(x, z)[z]", "t2(x, z)[x:z]"}, d.Names())
	splines := [2]*formula.Design{fit(t, "~ s(x, k = 5, by = one)", train, loose),
		fit(t, "~ s(z, k = 5, by = one)", train, loose)}
	var spline, line [2][]float64
	for k, s := range splines {
		r := numbers(t, s, both)
		spline[k] = covariance(r.Smooths[0], 3)
		u := make([]float64, 0, 2*all)
		for i := range all {
			u = append(u, 1, r.X[2*i+1])
		}
		line[k] = covariance(u, 2)
	}
	got := numbers(t, d, both)
	for part, of := range [][2][]float64{{spline[0], spline[1]}, {spline[0], line[1]}, {line[0], spline[1]}} {
		want := mat.NewDense(all, all, nil)
		for i := range all {
			for j := range all {
				want.Set(i, j, of[0][i*all+j]*of[1][i*all+j])
			}
		}
		centre := mat.NewDense(all, all, nil) // I less the mean over the training data
		for i := range all {
			centre.Set(i, i, 1)
			for j := range n {
				centre.Set(i, j, centre.At(i, j)-1/float64(n))
			}
		}
		want.Product(centre, want, centre.T())
		require.Equal(t, []int{9, 6, 6}[part], d.Smooths()[part].Columns)
		near(t, want.RawMatrix().Data, covariance(got.Smooths[part], d.Smooths()[part].Columns), 1e-10, "part")
	}
	first, second := numbers(t, splines[0], both).X, numbers(t, splines[1], both).X
	for i := range all {
		u, v := first[2*i+1], second[2*i+1]
		near(t, []float64{u, v, u * v}, got.X[3*i:3*i+3], 1e-14, "columns without penalty")
	}
}
