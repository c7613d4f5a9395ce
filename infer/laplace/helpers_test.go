package laplace_test

import (
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
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

// linear is z = Xw, of shape [n].
func linear(p infer.Params, b infer.Batch) *ts.Tensor {
	return b.Get("x").MustMatmul(p.Get("w"), false)
}

// gaussianOuter is log N(y; z, s²).
func gaussianOuter(s float64) curvature.Outer {
	return func(z *ts.Tensor, b infer.Batch) *ts.Tensor {
		r := b.Get("y").MustSub(z, false).MustSquare(false).MustMulScalar(ts.FloatScalar(-0.5/(s*s)), false)
		return r.MustSubScalar(ts.FloatScalar(0.5*math.Log(2*math.Pi*s*s)), false)
	}
}

// logisticOuter is log p(y | logit z) for labels 0 and 1.
func logisticOuter(z *ts.Tensor, b infer.Batch) *ts.Tensor {
	sign := b.Get("y").MustMulScalar(ts.FloatScalar(2), false).MustSubScalar(ts.FloatScalar(1), false)
	return z.MustMul(sign, false).MustLogSigmoid(false)
}

// normalPrior is log N(θ; 0, I/λ) with its constants.
func normalPrior(lambda float64) func(p infer.Params) *ts.Tensor {
	return func(p infer.Params) *ts.Tensor {
		d := float64(p.Layout.Dim())
		square := p.Flat.MustSquare(false).MustSum(p.Flat.DType(), false)
		return square.MustMulScalar(ts.FloatScalar(-lambda/2), false).MustAddScalar(ts.FloatScalar(d/2*math.Log(lambda/(2*math.Pi))), false)
	}
}

// meanPosterior is (1/N) log prior + (1/n) Σ log likelihood, and sumPosterior N times that.
func meanPosterior(each curvature.PerDatum, prior func(p infer.Params) *ts.Tensor, n float64) infer.LogPosterior {
	return func(p infer.Params, b infer.Batch) (*ts.Tensor, infer.Aux) {
		l := each(p, b)
		return l.MustMean(l.DType(), false).MustAdd(prior(p).MustMulScalar(ts.FloatScalar(1/n), false), false), nil
	}
}

func sumPosterior(each curvature.PerDatum, prior func(p infer.Params) *ts.Tensor, n float64) infer.LogPosterior {
	mean := meanPosterior(each, prior, n)
	return func(p infer.Params, b infer.Batch) (*ts.Tensor, infer.Aux) {
		v, aux := mean(p, b)
		return v.MustMulScalar(ts.FloatScalar(n), false), aux
	}
}

// pass is the state after one pass over the data in batches of a size.
func pass(t testing.TB, transform infer.Transform, p infer.Params, b infer.Batch, size int64) infer.State {
	t.Helper()
	s := begin(t, transform, p)
	n := must(b.Size())
	for from := int64(0); from < n; from += size {
		part := infer.Batch{}
		for name, x := range b {
			part[name] = x.MustNarrow(0, from, min(size, n-from), false)
		}
		s, _ = update(t, transform, s, part)
	}
	return s
}

// precision are the elements of a state's precision.
func precision(s infer.State) []float64 { return values(must(s.(laplace.Posterior).Precision())) }

// diagonal are the diagonal elements of a matrix.
func diagonal(m mat.Symmetric) []float64 {
	var out []float64
	for i := range m.SymmetricDim() {
		out = append(out, m.At(i, i))
	}
	return out
}

// regression is a linear-Gaussian model with its exact posterior under the prior N(0, I/λ): precision, mean, and log marginal likelihood.
type regression struct {
	x, y      []float64
	n, d      int
	s         float64
	batch     infer.Batch
	layout    *infer.Layout
	gram      *mat.SymDense // XᵀX/s²
	precision *mat.SymDense
	mean      []float64
	evidence  float64
}

func newRegression(seed int64, n, d int, s, lambda float64) regression {
	r := regression{x: normals(seed, n*d), y: normals(seed+1, n), n: n, d: d, s: s, layout: layout(infer.Shapes{"w": {int64(d)}})}
	for i := range r.y {
		r.y[i] += 2*r.x[i*d] - r.x[i*d+d-1]
	}
	r.batch = infer.Batch{"x": vector(r.x, int64(n), int64(d)), "y": vector(r.y)}
	r.gram, r.precision, r.mean, r.evidence = r.posterior(lambda)
	return r
}

func (r regression) posterior(lambda float64) (gram, precision *mat.SymDense, mean []float64, evidence float64) {
	design := mat.NewDense(r.n, r.d, r.x)
	gram = mat.NewSymDense(r.d, nil)
	gram.SymOuterK(1/(r.s*r.s), design.T())
	precision = plus(gram, lambda, identity(r.d, 1))
	rhs := times(design.T(), r.y)
	for i := range rhs {
		rhs[i] /= r.s * r.s
	}
	mean = times(inverse(precision), rhs)
	// y ~ N(0, XXᵀ/λ + s²I)
	marginal := mat.NewSymDense(r.n, nil)
	marginal.SymOuterK(1/lambda, design)
	marginal = plus(marginal, r.s*r.s, identity(r.n, 1))
	quadratic := mat.Dot(mat.NewVecDense(r.n, r.y), mat.NewVecDense(r.n, times(inverse(marginal), r.y)))
	return gram, precision, mean, -0.5 * (float64(r.n)*math.Log(2*math.Pi) + logDet(marginal) + quadratic)
}
