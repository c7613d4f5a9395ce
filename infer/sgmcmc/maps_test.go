package sgmcmc_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
)

// The settings of two papers, by hand: learning rate 0.01 with momentum 0.9 is ε = 0.1, α = 1, σ = 1, and with
// dampening 0.9 on a learning rate of 0.01 it is ε = 0.1, σ² = 10, α = 10; 0.1 and 0.98 with 50 000 data are h =
// √(2e-6), γ = 0.02·√(5e5).
func TestMapsOfThePapers(t *testing.T) {
	e := must(sgmcmc.FromSGD(0.01, 0.9, 25000))
	within(t, []float64{0.1, 1, 1}, []float64{e.Epsilon, e.Alpha, e.Sigma}, 1e-14, "SGHMC")

	// Dampening τ: ε = 1 − τ, σ² = (1 − τ)/lr, α = (1 − μ)/lr, and ℓ is (1 − τ)·lr (Duffield et al. 2025, equation 10).
	e = must(sgmcmc.FromSGHMC(0.1, 10, math.Sqrt(10), 1))
	within(t, []float64{0.001, 0.9}, []float64{e.LR, e.Momentum}, 1e-14, "SGD")

	e = must(sgmcmc.FromSGD(0.1, 0.98, 50000))
	within(t, []float64{math.Sqrt(2e-6), 0.02 * math.Sqrt(5e5)}, []float64{e.Step, e.Friction}, 1e-12, "h and γ")
}

// From any tradition into all and back: a few roundings.
func TestMapsThereAndBack(t *testing.T) {
	numbers := func(e sgmcmc.Equivalent) []float64 {
		return []float64{e.LR, e.Momentum, e.Step, e.Friction, e.Epsilon / e.Sigma, e.Alpha / e.Sigma}
	}
	for _, n := range []int{1, 7, 25000} {
		for _, lr := range []float64{1e-6, 0.01, 0.7} {
			for _, momentum := range []float64{0, 0.5, 0.98} {
				want := must(sgmcmc.FromSGD(lr, momentum, n))
				assert.Equal(t, lr, want.LR)
				assert.Equal(t, momentum, want.Momentum)
				for what, got := range map[string]sgmcmc.Equivalent{
					"SGHMC":    must(sgmcmc.FromSGHMC(want.Epsilon, want.Alpha, 0, n)),
					"Langevin": must(sgmcmc.FromLangevin(want.Step, want.Friction, n)),
				} {
					for i, v := range numbers(want) {
						assert.InDelta(t, v, numbers(got)[i], 4e-15*max(v, 1), "%s, number %d", what, i)
					}
				}
				// σ is free: any gives the same SGD.
				for _, sigma := range []float64{0.3, 4} {
					other := must(sgmcmc.FromSGHMC(sigma*want.Epsilon, sigma*want.Alpha, sigma, n))
					assert.InEpsilon(t, lr, other.LR, 4e-15)
					assert.InDelta(t, momentum, other.Momentum, 4e-15)
				}
				// The noise of all is that of the velocity εm/σ².
				c := want.SGHMC(infer.Constant(0.7))
				noise := 2 * (1 - momentum) * lr * 0.7 / float64(n)
				assert.InEpsilon(t, math.Pow(want.Epsilon, 3)*2*want.Alpha*c.Temperature(0)/float64(n), noise, 1e-13)
				assert.InEpsilon(t, want.Step*want.Step*2*want.Friction*want.Step*0.7, noise, 1e-13) // (h·√(2γhT))²
			}
		}
	}
}

// One update of every form at T = 0 moves the same way. SGD's is optim.SGD; Wenzel's is written out; SGHMC's velocity
// after an update is the one that SGD has just moved by.
func TestMapsMoveAlikeAtZeroTemperature(t *testing.T) {
	q := newQuartic()
	for _, c := range []struct {
		lr, momentum float64
		n            int
	}{{0.05, 0.9, 40}, {0.01, 0, 1}, {0.2, 0.5, 1000}} {
		e := must(sgmcmc.FromSGD(c.lr, c.momentum, c.n))
		start, batch := params(q.layout, spread(q.layout.Dim()), 0), q.batch()
		theta := values(start.Flat.T())
		v := scaled(0.1, spread(len(theta)))
		_, g := q.value(theta)
		want, wantV := make([]float64, len(theta)), make([]float64, len(theta))
		for i := range theta {
			wantV[i] = c.momentum*v[i] + c.lr*g[i]
			want[i] = theta[i] + wantV[i]
		}

		// SGD with the buffer b = v/ℓ.
		sgd := build(t, optim.SGD{LR: infer.Constant(c.lr), Momentum: c.momentum}, q.logPosterior)
		s, _ := update(t, sgd, optim.SGDState{State: method.State{Params: start, Step: 1},
			Buffer: torch.Of(vector(scaled(1/c.lr,
				v)))}, batch)
		within(t, want, values(s.Params.Flat.T()), golden, "SGD")

		// Wenzel et al. with m = v/h: m' = (1 − hγ)m + hng, θ' = θ + hm'.
		wenzel := make([]float64, len(theta))
		for i := range theta {
			m := (1-e.Step*e.Friction)*v[i]/e.Step + e.Step*float64(c.n)*g[i]
			wenzel[i] = theta[i] + e.Step*m
		}
		within(t, want, wenzel, golden, "Wenzel et al.")

		// SGHMC with m = vσ²/ε: θ moves by the old velocity, the new one is SGD's.
		for _, sigma := range []float64{1, 2.5} {
			e := must(sgmcmc.FromSGHMC(sigma*e.Epsilon, sigma*e.Alpha, sigma, c.n))
			config := e.SGHMC(zero)
			config.Momenta = torch.Of(vector(scaled(sigma*sigma/e.Epsilon, v)))
			transform := build(t, config, q.logPosterior)
			first, _ := update(t, transform, begin[sgmcmc.SGHMCState](t, transform, start, 1), batch)
			within(t, wantV, scaled(e.Epsilon/(sigma*sigma), values(first.Momenta.T())), golden, "the velocity of SGHMC")
			old := make([]float64, len(theta))
			for i := range theta {
				old[i] = theta[i] + v[i]
			}
			within(t, old, values(first.Params.Flat.T()), golden, "SGHMC")
			second, _ := update(t, transform, first, batch)
			for i := range theta {
				old[i] += wantV[i]
			}
			within(t, old, values(second.Params.Flat.T()), golden, "SGHMC one update later")
		}
	}
}

// At T = 0 SGLD is SGD, and in Welling and Teh's form at T = 1 an update is θ + (η/2)G + √η z with G = n·g: ε = nη/2.
func TestMapsOfSGLD(t *testing.T) {
	q := newQuartic()
	const eta, n = 0.002, 50
	start, batch := params(q.layout, spread(q.layout.Dim()), 0), q.batch()
	transform := must(sgmcmc.SGLD{LR: infer.Constant(n * eta / 2)}.Build(infer.Mean(q.logPosterior, n)))
	s := begin[sgmcmc.SGLDState](t, transform, start, 5)
	z := noise(t, s.Streams, s.Params.Flat)
	theta := values(start.Flat.T())
	_, g := q.value(theta)
	want := make([]float64, len(theta))
	for i := range want {
		want[i] = theta[i] + eta/2*n*g[i] + math.Sqrt(eta)*z[i]
	}
	next, info := update(t, transform, s, batch)
	within(t, want, values(next.Params.Flat.T()), golden, "theta")
	assert.Equal(t, 1.0, info.Temperature)

	cold := must(sgmcmc.SGLD{LR: infer.Constant(0.1), Temperature: zero}.Build(infer.Mean(q.logPosterior, n)))
	sgd := must(optim.SGD{LR: infer.Constant(0.1)}.Build(infer.Mean(q.logPosterior, n)))
	a, _ := update(t, cold, begin[sgmcmc.SGLDState](t, cold, start, 1), batch)
	b, _ := update(t, sgd, begin[optim.SGDState](t, sgd, start, 1), batch)
	identical(t, values(b.Params.Flat.T()), values(a.Params.Flat.T()), "theta")
}

// The gradient of a prior N(0, sd²) in the mean log posterior is that of the weight decay in SGD.
func TestWeightDecayIsThePrior(t *testing.T) {
	q := newQuartic()
	const sd, n = 0.7, 12
	start, batch := params(q.layout, spread(q.layout.Dim()), 0), q.batch()
	withPrior := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		value, aux := q.logPosterior(p, b)
		prior := p.Flat.Dot(p.Flat).T().MustMulScalar(ts.FloatScalar(-0.5/(sd*sd)/n), false)
		return value.Add(prior), aux
	}
	a := build(t, optim.SGD{LR: infer.Constant(0.1)}, withPrior)
	b := build(t, optim.SGD{LR: infer.Constant(0.1), WeightDecay: 1 / (sd * sd * n)}, q.logPosterior)
	x, _ := update(t, a, begin[optim.SGDState](t, a, start, 1), batch)
	y, _ := update(t, b, begin[optim.SGDState](t, b, start, 1), batch)
	within(t, values(x.Params.Flat.T()), values(y.Params.Flat.T()), golden, "theta")
}

func TestMapErrors(t *testing.T) {
	first := func(_ sgmcmc.Equivalent, err error) error { return err }
	for _, c := range []struct {
		err         error
		field, text string
	}{
		{first(sgmcmc.FromSGD(0, 0.9, 1)), "lr", "sgmcmc.FromSGD: lr is 0: it must be finite and greater than 0"},
		{first(sgmcmc.FromSGD(nan, 0.9, 1)), "lr", "sgmcmc.FromSGD: lr is NaN: it must be finite and greater than 0"},
		{first(sgmcmc.FromSGD(0.1, 1, 1)), "momentum",
			"sgmcmc.FromSGD: momentum is 1: it must be at least 0 and less than 1"},
		{first(sgmcmc.FromSGD(0.1, nan, 1)), "momentum",
			"sgmcmc.FromSGD: momentum is NaN: it must be at least 0 and less than 1"},
		{first(sgmcmc.FromSGD(0.1, 0.9, 0)), "n", "sgmcmc.FromSGD: n is 0: it must be at least 1: the number of data"},
		{first(sgmcmc.FromLangevin(0, 1, 1)), "step",
			"sgmcmc.FromLangevin: step is 0: it must be finite and greater than 0"},
		{first(sgmcmc.FromLangevin(0.5, 3, 1)), "friction",
			"sgmcmc.FromLangevin: friction is 3: it must be greater than 0 and at most 1/step = 2, or the " +
				"momentum 1 − step·friction is not in [0, 1)"},
		{first(sgmcmc.FromSGHMC(0, 1, 1, 1)), "epsilon",
			"sgmcmc.FromSGHMC: epsilon is 0: it must be finite and greater than 0"},
		{first(sgmcmc.FromSGHMC(1, 1, -1, 1)), "sigma",
			"sgmcmc.FromSGHMC: sigma is -1: it must be finite and greater than 0"},
		{first(sgmcmc.FromSGHMC(0.5, 0, 2, 1)), "alpha",
			"sgmcmc.FromSGHMC: alpha is 0: it must be greater than 0 and at most σ²/ε = 8, or the momentum 1 − " +
				"εα/σ² is not in [0, 1)"},
	} {
		require.Error(t, c.err, c.text)
		field(t, c.err, c.field, c.text)
	}
}
