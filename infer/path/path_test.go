package path_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Gamma(a, b) prior of the rate of n Poisson counts.
const (
	priorShape = 3.0
	priorRate  = 2.0
)

var counts = []float64{2, 5, 3, 1, 4}

func program(t *testing.T, evaluations *int) *ppl.Program {
	t.Helper()
	y, err := torch.FromSlice(counts)
	require.NoError(t, err)
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		*evaluations++
		rate := c.Sample("rate", dist.Gamma(priorShape, priorRate))
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Poisson(rate), c.Data("y")) })
	}, infer.Batch{"y": y})
	require.NoError(t, err)
	return p
}

func lgamma(x float64) float64 { v, _ := math.Lgamma(x); return v }

// logPrior is the log prior of u = log rate, with the Jacobian: a log b − log Γ(a) + a u − b e^u.
func logPrior(u float64) float64 {
	return priorShape*math.Log(priorRate) - lgamma(priorShape) + priorShape*u - priorRate*math.Exp(u)
}

func logLikelihood(u float64) float64 {
	sum := 0.0
	for _, y := range counts {
		sum += y*u - math.Exp(u) - lgamma(y+1)
	}
	return sum
}

var tiers = []native.Tier{native.Auto, native.VM, native.Replay, native.Eager}

// The log density is log prior + log |J| + β log likelihood, its slope the log likelihood and its gradient the
// derivative of the formula, in every tier, with a β for each row.
func TestLikelihoodPath(t *testing.T) {
	for _, tier := range tiers {
		evaluations := 0
		e, err := path.Path{}.On(program(t, &evaluations), tier)
		require.NoError(t, err, tier)
		require.Equal(t, tier == native.Auto || tier == native.VM, e.Compiled(), tier)
		x, beta := []float64{-1, 0.3, 0.9, 2}, []float64{0, 0.2, 0.7, 1}
		var p path.Points
		require.NoError(t, e.Eval(x, beta, &p), tier)
		for k, u := range x {
			require.InDelta(t, logPrior(u)+beta[k]*logLikelihood(u), p.LogP[k], 1e-10, tier)
			require.InDelta(t, logLikelihood(u), p.Slope[k], 1e-10, tier)
			total := 0.0
			for _, y := range counts {
				total += y - math.Exp(u)
			}
			require.InDelta(t, priorShape-priorRate*math.Exp(u)+beta[k]*total, p.Grad[k], 1e-10, tier)
			require.InDelta(t, logPrior(u)+0.45*logLikelihood(u), p.At(k, 0.45), 1e-10, tier)
		}
		z, err := e.LogZ0()
		require.NoError(t, err)
		require.Zero(t, z)
	}
}

// A change of β runs the model no more than before where it is compiled, which is what compiling is for.
func TestBetaCompilesOnce(t *testing.T) {
	evaluations := 0
	e, err := path.Path{}.On(program(t, &evaluations), native.Auto)
	require.NoError(t, err)
	before := evaluations
	var p path.Points
	for k := range 20 {
		require.NoError(t, e.Eval([]float64{0.1 * float64(k)}, []float64{float64(k) / 19}, &p))
	}
	require.Equal(t, before, evaluations)
}

// Prior draws have the mean and the variance of the prior, and draw i depends on its stream alone.
func TestStart(t *testing.T) {
	evaluations := 0
	e, err := path.Path{}.On(program(t, &evaluations), native.Eager)
	require.NoError(t, err)
	const n = 20000
	x, err := e.Start(n, 5, 0)
	require.NoError(t, err)
	sum, squares := 0.0, 0.0
	for _, u := range x {
		r := math.Exp(u)
		sum += r
		squares += (r - priorShape/priorRate) * (r - priorShape/priorRate)
	}
	mean, variance := priorShape/priorRate, priorShape/priorRate/priorRate
	require.InDelta(t, mean, sum/n, 4*math.Sqrt(variance/n))
	// The fourth central moment of Gamma(a, b) is (3a² + 6a)/b⁴.
	fourth := (3*priorShape*priorShape + 6*priorShape) / math.Pow(priorRate, 4)
	require.InDelta(t, variance, squares/n, 4*math.Sqrt((fourth-variance*variance)/n))
	again, err := e.Start(3, 5, 4000)
	require.NoError(t, err)
	require.Equal(t, x[4000:4003], again)
}

// normals is a target with unit normal prior and likelihood, which is a function and not a model.
func normals(parts bool) infer.Target {
	if parts {
		return infer.FromParts(func(p infer.Params, b infer.Batch) (prior, likelihood torch.Tensor) {
			x := p.Get("x")
			return x.Square().Sum().Mul(-0.5).Sub(math.Log(2 * math.Pi)), x.Sub(1).Square().Sum().Mul(-0.5)
		}, 1)
	}
	return infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		x := p.Get("x")
		return x.Sub(0.5).Square().Sum().Neg(), nil
	}, 4)
}

func handwritten(t *testing.T, target infer.Target) infer.Program {
	t.Helper()
	l, err := infer.NewLayout(infer.Shapes{"x": {2}})
	require.NoError(t, err)
	start, err := infer.Zeros(l)
	require.NoError(t, err)
	return infer.Handwritten(target, start, nil)
}

// The paths of functions: full, and from a reference, with the Jacobian untempered, by their formulas.
func TestHandwrittenPaths(t *testing.T) {
	x := []float64{0.3, -1.2, 2, 0.1}
	for _, tier := range tiers {
		target := normals(false)
		target.LogJacobian = func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			return p.Get("x").Sum().Mul(0.25), nil
		}
		logp := func(k int) float64 { return -math.Pow(x[2*k]-0.5, 2) - math.Pow(x[2*k+1]-0.5, 2) }
		jacobian := func(k int) float64 { return 0.25 * (x[2*k] + x[2*k+1]) }

		var p path.Points
		full, err := path.Path{Full: true}.On(handwritten(t, target), tier)
		require.NoError(t, err)
		require.NoError(t, full.Eval(x, []float64{0.3}, &p))
		for k := range p.LogP {
			require.InDelta(t, 0.3*4*logp(k)/4+jacobian(k), p.LogP[k], 1e-12)
			require.InDelta(t, logp(k), p.Slope[k], 1e-12)
		}

		h := &path.Harmonic{Mean: []float64{1, 0}, Precision: []float64{2, 0.5}}
		from, err := path.Path{Reference: h}.On(handwritten(t, target), tier)
		require.NoError(t, err)
		require.NoError(t, from.Eval(x, []float64{0.3, 0.8}, &p))
		for k, beta := range []float64{0.3, 0.8} {
			start := -math.Pow(x[2*k]-1, 2) - 0.25*math.Pow(x[2*k+1], 2)
			end := logp(k) + jacobian(k)
			require.InDelta(t, (1-beta)*start+beta*end, p.LogP[k], 1e-12)
			require.InDelta(t, end-start, p.Slope[k], 1e-12)
			require.InDelta(t, (1-beta)*-2*(x[2*k]-1)+beta*(-2*(x[2*k]-0.5)+0.25), p.Grad[2*k], 1e-12)
		}
		z, err := from.LogZ0()
		require.NoError(t, err)
		require.InDelta(t, math.Log(2*math.Pi/math.Sqrt(2*0.5)), z, 1e-12)
	}
}

// The observation path of a classifier: p(y|θ)^β / Σ_c p(c|θ)^β is softmax of β times the logits. At β = 0 it is 1/2
// for each datum, so that log Z0 = −N log 2. Its slope is compared with the formula's derivative.
func TestObservationPath(t *testing.T) {
	y := []float64{1, 0, 1}
	data, err := torch.FromSlice(y)
	require.NoError(t, err)
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 1))
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.BernoulliLogits(w), c.Data("y")) })
	}, infer.Batch{"y": data})
	require.NoError(t, err)
	// log (σ(w)^β + σ(−w)^β) of each datum
	normalizer := func(p infer.Params, b infer.Batch, beta torch.Tensor) torch.Tensor {
		w := p.Get("w")
		one, other := w.LogSigmoid().Mul(beta), w.Neg().LogSigmoid().Mul(beta)
		return one.Exp().Add(other.Exp()).Log().Mul(float64(len(y)))
	}
	for _, tier := range tiers {
		e, err := path.Path{Normalizer: normalizer}.On(p, tier)
		require.NoError(t, err, tier)
		require.False(t, e.Linear())
		const w, beta = 0.7, 0.4
		var at path.Points
		require.NoError(t, e.Eval([]float64{w}, []float64{beta}, &at))
		want, slope := -0.5*w*w-0.5*math.Log(2*math.Pi), 0.0
		for _, v := range y {
			s := 2*v - 1
			want -= math.Log1p(math.Exp(-s * beta * w))
			slope += s * w / (1 + math.Exp(s*beta*w))
		}
		require.InDelta(t, want, at.LogP[0], 1e-10, tier)
		require.InDelta(t, slope, at.Slope[0], 1e-10, tier)
		z, err := e.LogZ0()
		require.NoError(t, err)
		require.InDelta(t, -3*math.Ln2, z, 1e-9)
	}
}

// A density that a Go function computes is evaluated at the point without its β.
func TestGoDensity(t *testing.T) {
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		c.Density("go", func(x, grad [][]float64) float64 {
			grad[0][0] = -4 * math.Pow(x[0][0], 3)
			return -math.Pow(x[0][0], 4)
		}, x)
	}, nil)
	require.NoError(t, err)
	e, err := path.Path{}.On(p, native.Auto)
	require.NoError(t, err)
	require.False(t, e.Compiled())
	var at path.Points
	require.NoError(t, e.Eval([]float64{0.5, -1}, []float64{0.5, 1}, &at))
	require.InDeltaSlice(t, []float64{-0.0625, -1}, at.Slope, 1e-12)
	require.InDeltaSlice(t, []float64{-0.5 - 0.25, 1 + 4}, at.Grad, 1e-12)
}

func TestErrors(t *testing.T) {
	y, err := torch.FromSlice([]float64{1})
	require.NoError(t, err)
	flat, err := ppl.Compile(func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Flat())
		c.Observe("y", dist.Normal(mu, 1), c.Data("y"))
	}, infer.Batch{"y": y})
	require.NoError(t, err)
	e, err := path.Path{}.On(flat, native.Eager)
	require.NoError(t, err)
	_, err = e.LogZ0()
	require.ErrorContains(t, err, `site "mu"`)
	require.ErrorContains(t, err, "improper")

	full, err := path.Path{Full: true}.On(handwritten(t, normals(true)), native.Eager)
	require.NoError(t, err)
	_, err = full.Start(1, 0, 0)
	require.ErrorContains(t, err, "no normalizer")
	_, err = full.LogZ0()
	require.ErrorIs(t, err, infer.ErrConfig)

	unknown, err := path.Path{}.On(handwritten(t, normals(true)), native.Eager)
	require.NoError(t, err)
	_, err = unknown.LogZ0()
	require.ErrorContains(t, err, "infer.Target.Prior")

	_, err = path.Path{}.On(handwritten(t, normals(false)), native.Eager)
	require.ErrorContains(t, err, "FromParts")
	_, err = path.Path{Full: true, Reference: &path.Harmonic{}}.On(flat, native.Eager)
	require.ErrorContains(t, err, "at most one")
	_, err = path.Path{Reference: &path.Harmonic{}}.On(flat, native.Eager)
	require.ErrorContains(t, err, "1 dimensions")
	_, err = path.Path{}.On(nil, native.Eager)
	require.ErrorIs(t, err, infer.ErrConfig)
	_, err = path.Path{}.On(flat, "fast")
	require.ErrorIs(t, err, infer.ErrConfig)
	var p path.Points
	require.ErrorContains(t, e.Eval([]float64{1}, []float64{1.5}, &p), "from 0 to 1")
	require.ErrorIs(t, e.Eval([]float64{1}, []float64{0, 1}, &p), infer.ErrConfig)
	require.ErrorIs(t, e.Eval([]float64{1}, []float64{0}, nil), infer.ErrConfig)
	_, err = e.Start(0, 0, 0)
	require.ErrorIs(t, err, infer.ErrConfig)
}
