package laplace_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// See package infertest.
var (
	values   = infertest.Values
	vector   = infertest.Vector
	layout   = infertest.Layout
	params   = infertest.Params
	build    = infertest.Build
	within   = infertest.Within
	normals  = infertest.Normals
	inverse  = infertest.Inverse
	logDet   = infertest.LogDet
	plus     = infertest.Plus
	times    = infertest.Times
	entries  = infertest.Entries
	identity = infertest.Identity
)

func must[T any](v T, err error) T { return infertest.Must(v, err) }

// buildOn is a transform of a valid configuration, on a target.
func buildOn(t testing.TB, m infer.Method, target infer.Target) infer.Transform {
	t.Helper()
	transform, err := m.Build(target)
	require.NoError(t, err)
	return transform
}

func begin(t testing.TB, transform infer.Transform, p infer.Params) infer.State {
	t.Helper()
	return infertest.Begin[infer.State](t, transform, p, 0)
}

func update(t testing.TB, transform infer.Transform, s infer.State, b infer.Batch) (infer.State, infer.Info) {
	t.Helper()
	return infertest.Update(t, transform, s, b)
}

// linear is z = Xw, of shape [n].
func linear(p infer.Params, b infer.Batch) torch.Tensor {
	return b.Get("x").MatMul(p.Get("w"))
}

// gaussianOuter is log N(y; z, s²).
func gaussianOuter(s float64) curvature.Outer {
	return func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return b.Get("y").Sub(z).Square().Mul(-0.5 / (s * s)).Sub(0.5 * math.Log(2*math.Pi*s*s))
	}
}

// logisticOuter is log p(y | logit z) for labels 0 and 1.
func logisticOuter(z torch.Tensor, b infer.Batch) torch.Tensor {
	return z.Mul(b.Get("y").Mul(2).Sub(1)).LogSigmoid()
}

// normalPrior is log N(θ; 0, I/λ) with its constants.
func normalPrior(lambda float64) func(p infer.Params) torch.Tensor {
	return func(p infer.Params) torch.Tensor {
		d := float64(p.Layout.Dim())
		return p.Flat.Square().Sum().Mul(-lambda / 2).Add(d / 2 * math.Log(lambda/(2*math.Pi)))
	}
}

// meanPosterior is (1/N) log prior + (1/n) Σ log likelihood, and sumPosterior N times that.
func meanPosterior(each curvature.PerDatum, prior func(p infer.Params) torch.Tensor, n float64) infer.LogPosterior {
	return func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return each(p, b).Mean().Add(prior(p).Mul(1 / n)), nil
	}
}

func sumPosterior(each curvature.PerDatum, prior func(p infer.Params) torch.Tensor, n float64) infer.LogPosterior {
	mean := meanPosterior(each, prior, n)
	return func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		v, aux := mean(p, b)
		return v.Mul(n), aux
	}
}

// pass is the state after one pass over the data in batches of a size.
func pass(t testing.TB, transform infer.Transform, p infer.Params, b infer.Batch, size int) infer.State {
	t.Helper()
	s := begin(t, transform, p)
	n := must(b.Size())
	for from := 0; from < n; from += size {
		part := infer.Batch{}
		for name, x := range b {
			part[name] = torch.Of(x.T().MustNarrow(0, int64(from), int64(min(size, n-from)), false))
		}
		s, _ = update(t, transform, s, part)
	}
	return s
}

// precision are the elements of a state's precision.
func precision(s infer.State) []float64 { return values(must(s.(laplace.Posterior).Precision()).T()) }

// diagonal are the diagonal elements of a matrix.
func diagonal(m mat.Symmetric) []float64 {
	var out []float64
	for i := range m.SymmetricDim() {
		out = append(out, m.At(i, i))
	}
	return out
}

// regression is a linear-Gaussian model with its exact posterior under the prior N(0, I/λ): precision, mean, and log
// marginal likelihood.
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

func newRegression(seed int, n, d int, s, lambda float64) regression {
	r := regression{x: normals(seed, n*d), y: normals(seed+1, n), n: n, d: d, s: s,
		layout: layout(infer.Shapes{"w": {d}})}
	for i := range r.y {
		r.y[i] += 2*r.x[i*d] - r.x[i*d+d-1]
	}
	r.batch = infer.Batch{"x": torch.Of(vector(r.x, n, d)), "y": torch.Of(vector(r.y))}
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
