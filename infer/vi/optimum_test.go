package vi_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// decaying is Adam with a step size that falls to zero.
func decaying(peak float64, steps int) infer.Method {
	return optim.Adam{LR: infer.Linear(peak, 0, steps/2, steps)}
}

// matched asserts that two covariances agree within 2 % of the standard deviations of their elements.
func matched(t *testing.T, want, got []float64, what string) {
	t.Helper()
	d := int(math.Sqrt(float64(len(want))))
	for i := range d {
		for j := range d {
			assert.InDelta(t, want[i*d+j], got[i*d+j], 0.02*math.Sqrt(want[i*d+i]*want[j*d+j]),
				"%s: covariance of %d and %d", what, i, j)
		}
	}
}

// For a normal target of precision Λ the independent elements have variances T/Λ_ii, not those of the target.
func TestDiagOptimum(t *testing.T) {
	const steps = 1500
	n := correlated(4)
	for _, temperature := range []float64{0.25, 1} {
		transform := build(t, vi.Diag{Optimizer: decaying(0.03, steps), Samples: 256, Antithetic: true,
			Temperature: infer.Constant(temperature)}, n.logPosterior())
		s := fitted(t, transform, params(n.layout(), make([]float64, 4), 0), nil, steps, 1)
		sd, mean := must(must(s.SD()).Values()), must(s.Mean.Values())
		marginal := n.covariance(temperature)
		for i := range sd {
			want := temperature / n.precision.At(i, i)
			assert.InEpsilon(t, want, sd[i]*sd[i], 0.02, "variance %d at T = %g", i, temperature)
			assert.InDelta(t, n.m[i], mean[i], 0.02*math.Sqrt(want))
			assert.Greater(t, marginal[i*5], 1.1*want, "the target is correlated enough to tell")
		}
	}
}

func TestDenseOptimum(t *testing.T) {
	const steps = 1500
	n := correlated(4)
	for _, temperature := range []float64{0.25, 1} {
		transform := build(t, vi.Dense{Optimizer: decaying(0.03, steps), Samples: 4,
			Temperature: infer.Constant(temperature)}, n.logPosterior())
		s := fitted(t, transform, params(n.layout(), make([]float64, 4), 0), nil, steps, 1)
		matched(t, n.covariance(temperature), values(must(s.Covariance()).T()), name("T = %g", temperature))
		within(t, n.m, must(s.Mean.Values()), 0.01*math.Sqrt(temperature), "mean")
	}
}

// A covariance that is exactly of rank 2 plus a diagonal. (The factor itself is known only up to a rotation.)
func TestLowRankOptimum(t *testing.T) {
	const steps, d, rank = 3000, 6, 2
	for _, temperature := range []float64{0.25, 1} {
		n := lowRankNormal(spread(d*rank+2*d), d, rank, 1)
		transform := build(t, vi.LowRank{Optimizer: decaying(0.03, steps), Rank: rank, Samples: 4,
			Temperature: infer.Constant(temperature)}, n.logPosterior())
		s := fitted(t, transform, params(n.layout(), make([]float64, d), 0), nil, steps, 1)
		matched(t, n.covariance(temperature), values(must(s.Covariance()).T()), name("T = %g", temperature))
		within(t, n.m, must(s.Mean.Values()), 0.01, "mean")
	}
}

// At T = 0 the mean goes to the mode and the scale to nothing. With pairs of opposite noise and a normal target the
// mean moves exactly as the optimiser alone would.
func TestZeroTemperatureIsOptimisation(t *testing.T) {
	n := correlated(3)
	start := params(n.layout(), []float64{1, -1, 0.5}, 0)
	o := optim.SGD{LR: infer.Constant(0.1), Momentum: 0.5}
	alone := build(t, o, n.logPosterior())
	zero := infer.Constant(0)
	for what, method := range map[string]infer.Method{
		"vi.Diag":    vi.Diag{Optimizer: o, Samples: 2, Antithetic: true, Temperature: zero},
		"vi.Dense":   vi.Dense{Optimizer: o, Samples: 2, Antithetic: true, Temperature: zero},
		"vi.LowRank": vi.LowRank{Optimizer: o, Samples: 2, Antithetic: true, Temperature: zero},
	} {
		transform := build(t, method, n.logPosterior())
		s := begin(t, transform, start, 1)
		point, err := alone.Init(start)
		require.NoError(t, err)
		for range 100 {
			var info infer.Info
			s, info = update(t, transform, s, nil)
			require.Nil(t, info.Diverged)
			assert.InDelta(t, -info.LogPosterior[0], info.Stats["nelbo"][0], 1e-12, "there is no entropy in it")
			point, _, err = alone.Update(point, nil)
			require.NoError(t, err)
			within(t, must(point.Position().Values()), must(s.Mean.Values()), 1e-12, what+": the mean")
		}
	}
	// The gradient in the log standard deviations s is −Λ_ii e^{2s} on average, so that small steps ℓ take e^{−2s}
	// along 2Λ_ii ℓ: the standard deviations fall as 1/√t, and are never 0.
	const steps, lr = 500, 0.01
	s := fitted(t, build(t, vi.Diag{Optimizer: optim.SGD{LR: infer.Constant(lr)}, Samples: 256, Temperature: zero,
		InitScale: 1}, n.logPosterior()), start, nil, steps, 1)
	for i, sd := range must(must(s.SD()).Values()) {
		assert.InEpsilon(t, 1/math.Sqrt(1+2*n.precision.At(i, i)*lr*steps), sd, 0.03)
	}
	for what, method := range map[string]infer.Method{
		"vi.Dense":   vi.Dense{Optimizer: decaying(0.02, 2*steps), Temperature: zero, InitScale: 1},
		"vi.LowRank": vi.LowRank{Optimizer: decaying(0.02, 2*steps), Temperature: zero, InitScale: 1},
	} {
		s := fitted(t, build(t, method, n.logPosterior()), start, nil, 2*steps, 1)
		within(t, n.m, must(s.Mean.Values()), 0.05, what+": the mode")
		for _, sd := range must(must(s.SD()).Values()) {
			assert.Less(t, sd, 0.25, "%s: the standard deviations, from 1, go down", what)
		}
	}
}

// conjugate is a normal prior and a normal likelihood, with correlations.
type conjugate struct{ prior, likelihood normal }

func newConjugate() conjugate {
	c := conjugate{prior: correlated(3), likelihood: correlated(3)}
	c.likelihood.m = []float64{2, -1, 1.5}
	p := mat.NewSymDense(3, nil)
	p.CopySym(c.prior.precision)
	p.SetSym(0, 1, -p.At(0, 1))
	p.SetSym(2, 2, 3*p.At(2, 2))
	c.likelihood.precision = p
	return c
}

func (c conjugate) target() infer.Target {
	prior, likelihood := c.prior.logPosterior(), c.likelihood.logPosterior()
	return infer.FromParts(func(p infer.Params, b infer.Batch) (torch.Tensor, torch.Tensor) {
		one, _ := prior(p, b)
		two, _ := likelihood(p, b)
		return one, two
	}, 0)
}

// posterior is the normal of the log density a·log prior + b·log likelihood.
func (c conjugate) posterior(a, b float64) normal {
	var precision, left, right mat.Dense
	left.Scale(a, c.prior.precision)
	right.Scale(b, c.likelihood.precision)
	precision.Add(&left, &right)
	var one, two, m mat.VecDense
	one.MulVec(&left, mat.NewVecDense(3, c.prior.m))
	two.MulVec(&right, mat.NewVecDense(3, c.likelihood.m))
	one.AddVec(&one, &two)
	if err := m.SolveVec(&precision, &one); err != nil {
		panic(err)
	}
	return normal{m: m.RawVector().Data, precision: mat.NewSymDense(3, precision.RawMatrix().Data)}
}

// λ KL(q‖prior) − E_q[log likelihood] has its optimum at the normal of precision P + Λ/λ and of mean (P + Λ/λ)⁻¹(Pm +
// Λc/λ): the likelihood is tempered and the prior is not. With a temperature too, λ(T E log q − E log prior) − E log
// likelihood, at T times the covariance that goes with λ log prior + log likelihood, over λ.
func TestKLWeightOptimum(t *testing.T) {
	const steps = 1000
	c := newConjugate()
	for _, k := range []struct{ lambda, temperature float64 }{{0.3, 1}, {2, 1}, {0.5, 0.25}} {
		want := c.posterior(1, 1/k.lambda)
		weight, temp := infer.Constant(k.lambda), infer.Constant(k.temperature)
		for what, method := range map[string]infer.Method{
			"vi.Dense": vi.Dense{Optimizer: decaying(0.03, steps), Samples: 4, KLWeight: weight, Temperature: temp},
			"vi.LowRank": vi.LowRank{Optimizer: decaying(0.03, steps), Samples: 4, KLWeight: weight, Temperature: temp,
				Rank: 3},
		} {
			if what == "vi.LowRank" && k.temperature == 1 {
				continue // one case is enough to see that it is handed on
			}
			transform, err := method.Build(c.target())
			require.NoError(t, err)
			s := fitted(t, transform, params(want.layout(), make([]float64, 3), 0), nil, steps, 1)
			matched(t, want.covariance(k.temperature), values(must(s.Covariance()).T()),
				name("%s, λ = %g, T = %g", what, k.lambda, k.temperature))
			within(t, want.m, must(s.Mean.Values()), 0.01, "mean")
		}
	}
	// The likelihood's maximum at λ = 0; the scale goes to nothing as at T = 0.
	transform, err := vi.Diag{Optimizer: decaying(0.02, steps), Samples: 4,
		KLWeight: infer.Constant(0)}.Build(c.target())
	require.NoError(t, err)
	s := fitted(t, transform, params(c.prior.layout(), make([]float64, 3), 0), nil, steps, 1)
	within(t, c.likelihood.m, must(s.Mean.Values()), 0.03, "the maximum of the likelihood")
}

// A constant weight λ is the tempered likelihood with an objective of λ times the size: SGD with 1/λ of the step size
// goes the same way. Weight 1 is the posterior; and a weight is a schedule.
func TestKLWeightIsTheTemperedLikelihood(t *testing.T) {
	const lambda = 0.4
	c := newConjugate()
	start := params(c.prior.layout(), []float64{0.3, 0.1, -0.2}, 0)
	sgd := func(lr float64) infer.Method { return optim.SGD{LR: infer.Constant(lr), Momentum: 0.5} }
	tempered := must(infer.TemperLikelihood(c.target(), lambda)).LogPosterior
	joined := c.target().LogPosterior
	for _, k := range []struct {
		what   string
		weight infer.Schedule
		lr     float64
		other  infer.LogPosterior
		scale  float64
	}{{"tempered", infer.Constant(lambda), 0.02 / lambda, tempered, lambda}, {"none", nil, 0.02, joined, 1}} {
		parts, err := vi.Diag{Optimizer: sgd(k.lr), KLWeight: k.weight}.Build(c.target())
		require.NoError(t, err)
		whole := build(t, vi.Diag{Optimizer: sgd(0.02)}, k.other)
		a, b := begin(t, parts, start, 1), begin(t, whole, start, 1)
		for range 50 {
			var infoA, infoB infer.Info
			a, infoA = update(t, parts, a, nil)
			b, infoB = update(t, whole, b, nil)
			within(t, must(b.Variational().Values()), must(a.Variational().Values()), 1e-12, k.what)
			assert.InDelta(t, k.scale*infoB.Stats["nelbo"][0], infoA.Stats["nelbo"][0], 1e-10, k.what)
			assert.InDelta(t, values(infoB.Aux["log_prior"].T())[0], values(infoA.Aux["log_prior"].T())[0], 1e-10,
				"aux is before the weight")
		}
	}
	annealed, err := vi.Diag{Optimizer: climb, Samples: 1, KLWeight: infer.Linear(0, 1, 0, 1)}.Build(c.target())
	require.NoError(t, err)
	s := begin(t, annealed, start, 1)
	s, info := update(t, annealed, s, nil)
	parts := func(info infer.Info) (float64, float64) {
		return values(info.Aux["log_prior"].T())[0], values(info.Aux["log_likelihood"].T())[0]
	}
	_, likelihood := parts(info)
	assert.InDelta(t, likelihood, info.LogPosterior[0], 1e-12, "at weight 0")
	_, info = update(t, annealed, s, nil)
	prior, likelihood := parts(info)
	assert.InDelta(t, prior+likelihood, info.LogPosterior[0], 1e-9*math.Abs(prior+likelihood), "at weight 1")
}

// The recipe of docs/vi.md: started at the mode with a small scale, 500 updates of a falling step find a regression's
// exact posterior, within 3 % of its standard deviations and a tenth of one in the means.
func TestStartNearTheMode(t *testing.T) {
	n := correlated(3)
	f := n.logPosterior()
	l := n.layout()
	climb := build(t, optim.Adam{LR: infer.Linear(0.05, 0, 0, 500)}, f)
	run := infer.Options{Warmup: 500, Draws: infer.None}
	far := params(l, []float64{3, -2, 1}, 0)
	mode, err := infertest.Run(context.Background(), climb, far, infer.Full(nil), run)
	require.NoError(t, err)
	guide := vi.Dense{Optimizer: optim.Adam{LR: infer.Linear(0.05, 0, 0, 500)}, Samples: 8, InitScale: 0.1}
	transform := build(t, guide, f)
	fit, err := infertest.Run(context.Background(), transform, mode.State.Position(), infer.Full(nil), run)
	require.NoError(t, err)
	sd := values(must(fit.State.(vi.State).SD()).Flat.T())
	covariance := n.covariance(1)
	mean := values(fit.State.Position().Flat.T())
	for i := range sd {
		want := math.Sqrt(covariance[i*len(sd)+i])
		require.InEpsilon(t, want, sd[i], 0.03)
		require.InDelta(t, n.m[i], mean[i], 0.1*want)
	}
}
