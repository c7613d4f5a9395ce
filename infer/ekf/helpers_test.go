package ekf_test

import (
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// must is the value of a call that cannot fail here; tests use it where an error is a mistake of the test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// values are the elements of a tensor.
func values(x *ts.Tensor) []float64 { return must(torch.ToSlice[float64](x)) }

// vector is a float64 tensor; without a shape it has one dimension.
func vector(v []float64, shape ...int64) *ts.Tensor { return must(torch.FromSlice(v, shape...)) }

// layout is the layout of the given sites.
func layout(shapes infer.Shapes) *infer.Layout { return must(infer.NewLayout(shapes)) }

// params is a point; with rows > 0 it has a chain axis of that length, also when that is 1.
func params(l *infer.Layout, flat []float64, rows int) infer.Params {
	shape := []int64{int64(l.Dim())}
	if rows > 0 {
		shape = []int64{int64(rows), int64(l.Dim())}
	}
	return infer.Params{Layout: l, Flat: vector(flat, shape...)}
}

// build is a transform of a valid configuration.
func build(t testing.TB, m infer.Method, f infer.LogPosterior) infer.Transform {
	t.Helper()
	transform, err := m.Build(f)
	require.NoError(t, err)
	return transform
}

// begin is the state of a transform at p.
func begin(t testing.TB, transform infer.Transform, p infer.Params) infer.State {
	t.Helper()
	s, err := transform.Init(p)
	require.NoError(t, err)
	return s
}

// update is one update that must succeed.
func update(t testing.TB, transform infer.Transform, s infer.State, b infer.Batch) (infer.State, infer.Info) {
	t.Helper()
	next, info, err := transform.Update(s, b)
	require.NoError(t, err)
	return next, info
}

// within asserts that two slices agree to an absolute tolerance.
func within(t testing.TB, want, got []float64, tol float64, what string) bool {
	t.Helper()
	if !assert.Len(t, got, len(want), what) {
		return false
	}
	for i := range want {
		if !(math.Abs(want[i]-got[i]) <= tol) {
			return assert.Failf(t, "values differ", "%s: element %d: want %.17g, got %.17g, off by %g, allowed %g",
				what, i, want[i], got[i], got[i]-want[i], tol)
		}
	}
	return true
}

// normals are n standard normal numbers of a seed.
func normals(seed int64, n int) []float64 {
	r := rand.New(rand.NewSource(seed))
	v := make([]float64, n)
	for i := range v {
		v[i] = r.NormFloat64()
	}
	return v
}

// spd is a symmetric positive definite matrix: a product of random matrices plus the identity.
func spd(seed int64, d int) *mat.SymDense {
	a := mat.NewDense(d, d, normals(seed, d*d))
	var m mat.SymDense
	m.SymOuterK(0.5, a)
	for i := range d {
		m.SetSym(i, i, m.At(i, i)+1)
	}
	return &m
}

// inverse is the inverse of a symmetric positive definite matrix.
func inverse(m mat.Symmetric) *mat.SymDense {
	var c mat.Cholesky
	if !c.Factorize(m) {
		panic("not positive definite")
	}
	var out mat.SymDense
	if err := c.InverseTo(&out); err != nil {
		panic(err)
	}
	return &out
}

// logDet is log |m|.
func logDet(m mat.Symmetric) float64 {
	var c mat.Cholesky
	if !c.Factorize(m) {
		panic("not positive definite")
	}
	return c.LogDet()
}

// plus is a + s·b.
func plus(a mat.Symmetric, s float64, b mat.Symmetric) *mat.SymDense {
	n := a.SymmetricDim()
	out := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			out.SetSym(i, j, a.At(i, j)+s*b.At(i, j))
		}
	}
	return out
}

// times is m v.
func times(m mat.Matrix, v []float64) []float64 {
	rows, _ := m.Dims()
	out := mat.NewVecDense(rows, nil)
	out.MulVec(m, mat.NewVecDense(len(v), v))
	return out.RawVector().Data
}

// entries are all elements of a matrix, row by row.
func entries(m mat.Matrix) []float64 {
	r, c := m.Dims()
	var out []float64
	for i := range r {
		for j := range c {
			out = append(out, m.At(i, j))
		}
	}
	return out
}

// identity is the identity matrix times s.
func identity(n int, s float64) *mat.SymDense {
	m := mat.NewSymDense(n, nil)
	for i := range n {
		m.SetSym(i, i, s)
	}
	return m
}

// logistic is the mean log likelihood of a logistic regression on site "w", and logisticEach that of each datum.
func logistic(p infer.Params, b infer.Batch) (*ts.Tensor, infer.Aux) {
	each := logisticEach(p, b)
	return each.MustMean(each.DType(), false), nil
}

func logisticEach(p infer.Params, b infer.Batch) *ts.Tensor {
	z := b.Get("x").MustMatmul(p.Get("w"), false)
	sign := b.Get("y").MustMulScalar(ts.FloatScalar(2), false).MustSubScalar(ts.FloatScalar(1), false)
	return z.MustMul(sign, false).MustLogSigmoid(false)
}

// logisticData are inputs [n, d] and labels of both kinds.
func logisticData(seed int64, n, d int) (x, y []float64, b infer.Batch) {
	x = normals(seed, n*d)
	y = make([]float64, n)
	for i, u := range normals(seed+1000, n) {
		if x[i*d]+u > 0 {
			y[i] = 1
		}
	}
	return x, y, infer.Batch{"x": vector(x, int64(n), int64(d)), "y": vector(y)}
}

// logisticScores are the gradients (y − σ(xᵀw)) x of the data, and the mean log likelihood, in plain Go.
func logisticScores(w, x, y []float64) (each [][]float64, mean []float64, value float64) {
	d, n := len(w), len(y)
	mean = make([]float64, d)
	for i := range n {
		row := x[i*d : (i+1)*d]
		z := 0.0
		for j := range w {
			z += row[j] * w[j]
		}
		s := 1 / (1 + math.Exp(-z))
		g := make([]float64, d)
		for j := range g {
			g[j] = (y[i] - s) * row[j]
			mean[j] += g[j] / float64(n)
		}
		each = append(each, g)
		value += (y[i]*math.Log(s) + (1-y[i])*math.Log(1-s)) / float64(n)
	}
	return each, mean, value
}
