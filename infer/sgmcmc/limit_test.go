package sgmcmc_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
)

// zero is the temperature of optimisation.
var zero = infer.Constant(0)

// At T = 0 SGLD adds no term to θ + εg, and SGD without momentum is that same expression.
func TestSGLDAtZeroTemperatureIsSGDBitForBit(t *testing.T) {
	q := newQuartic()
	for _, lr := range []rate{fixed(0.1), varied(0.2)} {
		for _, chains := range shapesOfChains {
			t.Run(name("lr %s, %s", lr.name, chains.name), func(t *testing.T) {
				cold := build(t, sgmcmc.SGLD{LR: lr.f, Temperature: zero, Beta: 0.3}, q.logPosterior)
				sgd := build(t, optim.SGD{LR: lr.f}, q.logPosterior)
				start, batch := params(q.layout, spread(max(chains.rows, 1)*q.layout.Dim()), chains.rows), q.batch()
				a, b := begin[sgmcmc.SGLDState](t, cold, start, 1), begin[optim.SGDState](t, sgd, start, 1)
				for step := range 100 {
					before := values(a.Params.Flat.T())
					a, _ = update(t, cold, a, batch)
					b, _ = update(t, sgd, b, batch)
					require.NotEqual(t, before, values(a.Params.Flat.T()), "update %d does not move", step)
					if !identical(t, values(b.Params.Flat.T()), values(a.Params.Flat.T()), name("update %d", step)) {
						return
					}
				}
				assert.Zero(t, a.Streams.Offset, "nothing is drawn")
			})
		}
	}
}

// At T = 0 and from zero momenta, which is where nil momenta start there, SGHMC is θ' = θ + ερm, m' = (1
// − ερα)m + εg(θ).
func TestSGHMCAtZeroTemperatureIsTheMomentumRecursion(t *testing.T) {
	q := newQuartic()
	const eps, alpha, sigma, rows = 0.2, 1.3, 1.2, 4
	rho := 1 / (sigma * sigma)
	transform := build(t, sgmcmc.SGHMC{LR: infer.Constant(eps), Alpha: infer.Constant(alpha), Sigma: sigma,
		Temperature: zero}, q.logPosterior)
	theta := spread(rows * q.layout.Dim())
	m := make([]float64, len(theta))
	s, batch := begin[sgmcmc.SGHMCState](t, transform, params(q.layout, theta, rows), 3), q.batch()
	within(t, m, values(s.Momenta.T()), 0, "momenta at the start")
	for step := range 100 {
		_, g := q.rows(theta)
		for i := range theta {
			theta[i], m[i] = theta[i]+eps*rho*m[i], m[i]+eps*g[i]-eps*rho*alpha*m[i]
		}
		s, _ = update(t, transform, s, batch)
		if !within(t, theta, values(s.Params.Flat.T()), golden, name("theta after update %d", step)) ||
			!within(t, m, values(s.Momenta.T()), golden, name("momenta after update %d", step)) {
			return
		}
	}
}

// SGHMC at T = 0 is SGD with learning rate ℓ = ε²ρ and momentum μ = 1 − ερα, one step behind. SGD moves a point φ with
// the buffer that has the newest gradient in it,
//
//	b' = μb + g,  φ' = φ + ℓb'
//
// and SGHMC moves θ with the old momenta m = εb. So φₜ = θₜ₊₁ is moved by SGD's recursion when the gradient that SGD
// gets at update t is taken at θₜ = φₜ₋₁, the point before φₜ. With gradients of its own points SGD goes elsewhere.
func TestSGHMCAtZeroTemperatureIsSGDWithMomentumOneStepBehind(t *testing.T) {
	q := newQuartic()
	const eps, alpha, sigma = 0.2, 1.3, 1.2
	const rho = 1 / (sigma * sigma)
	sghmc := build(t, sgmcmc.SGHMC{LR: infer.Constant(eps), Alpha: infer.Constant(alpha), Sigma: sigma,
		Temperature: zero}, q.logPosterior)
	sgd := optim.SGD{LR: infer.Constant(eps * eps * rho), Momentum: 1 - eps*rho*alpha}
	// its gradient is the batch's
	given := build(t, sgd, func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return torch.Of(p.Flat.Mul(b.Get("g")).T().MustSum(gotch.Double, false)), nil
	})
	own := build(t, sgd, q.logPosterior)

	start, batch := params(q.layout, spread(q.layout.Dim()), 0), q.batch()
	s := begin[sgmcmc.SGHMCState](t, sghmc, start, 3)
	theta := values(s.Params.Flat.T()) // θₜ
	s, _ = update(t, sghmc, s, batch)  // θ₁ = θ₀, because the momenta start at 0
	identical(t, theta, values(s.Params.Flat.T()), "the first update")
	phi, free := begin[optim.SGDState](t, given, s.Params, 0), begin[optim.SGDState](t, own, s.Params, 0)
	farthest := 0.0
	for step := range 100 {
		_, g := q.value(theta)
		theta = values(s.Params.Flat.T())
		phi, _ = update(t, given, phi, infer.Batch{"g": torch.Of(vector(g))})
		free, _ = update(t, own, free, batch)
		s, _ = update(t, sghmc, s, batch)
		if !within(t, values(phi.Params.Flat.T()), values(s.Params.Flat.T()), golden, name("update %d", step)) {
			return
		}
		for i, v := range values(free.Params.Flat.T()) {
			farthest = max(farthest, math.Abs(v-values(s.Params.Flat.T())[i]))
		}
	}
	assert.Greater(t, farthest, 1e-3, "the shift makes no difference here, so that this test shows nothing")

	// The same in the form θ' = θ + γm, m' = μm + (1 − τ)g, with γ = ερ, μ = 1 − ερα and dampening τ = 1 − ε.
	gamma, mu, tau := eps*rho, 1-eps*rho*alpha, 1-eps
	theta = spread(q.layout.Dim())
	m := make([]float64, len(theta))
	s = begin[sgmcmc.SGHMCState](t, sghmc, start, 3)
	for step := range 100 {
		_, g := q.value(theta)
		for i := range theta {
			theta[i], m[i] = theta[i]+gamma*m[i], mu*m[i]+(1-tau)*g[i]
		}
		s, _ = update(t, sghmc, s, batch)
		if !within(t, theta, values(s.Params.Flat.T()), golden, name("update %d", step)) {
			return
		}
	}
}

// Once a schedule has reached T = 0 the chain is SGD from where it stands, draws nothing, and climbs to a mode.
func TestTemperatureScheduleThatReachesZero(t *testing.T) {
	q := newQuartic()
	const cooled, rows = 50, 3
	lr := infer.Constant(0.1)
	transform := build(t, sgmcmc.SGLD{LR: lr, Temperature: infer.Linear(1, 0, 0, cooled)}, q.logPosterior)
	sgd := build(t, optim.SGD{LR: lr}, q.logPosterior)
	start, batch := params(q.layout, spread(rows*q.layout.Dim()), rows), q.batch()
	s := begin[sgmcmc.SGLDState](t, transform, start, 1)
	for step := range int(cooled) {
		before := s.Streams
		var info infer.Info
		s, info = update(t, transform, s, batch)
		assert.Equal(t, 1-float64(step)/cooled, info.Temperature)
		assert.Greater(t, s.Streams.Offset, before.Offset, "update %d draws noise", step)
	}
	streams := s.Streams
	b := begin[optim.SGDState](t, sgd, s.Params, 0)
	var info infer.Info
	for step := range 1500 {
		s, info = update(t, transform, s, batch)
		b, _ = update(t, sgd, b, batch)
		if !identical(t, values(b.Params.Flat.T()), values(s.Params.Flat.T()), name("update %d after cooling", step)) {
			return
		}
	}
	assert.Equal(t, streams, s.Streams, "nothing is drawn at T = 0")
	assert.Zero(t, info.Temperature)
	// The smallest curvature at a mode is that of w[0,0], 0.25: 1500 updates leave (1 − 0.1·0.25)¹⁵⁰⁰ = 3e-17 of the way.
	for k, norm := range info.GradNorm {
		assert.Less(t, norm, 1e-12, "chain %d is not at a mode", k)
	}
}

// SGHMC whose temperature reaches 0 follows the momentum recursion from there.
func TestSGHMCScheduleThatReachesZero(t *testing.T) {
	q := newQuartic()
	const eps, cooled = 0.1, 20
	transform := build(t, sgmcmc.SGHMC{LR: infer.Constant(eps), Temperature: infer.Linear(1, 0, 0, cooled)},
		q.logPosterior)
	s, batch := begin[sgmcmc.SGHMCState](t, transform, params(q.layout, spread(q.layout.Dim()), 0), 1), q.batch()
	for range cooled {
		s, _ = update(t, transform, s, batch)
	}
	streams, theta, m := s.Streams, values(s.Params.Flat.T()), values(s.Momenta.T())
	for step := range 100 {
		_, g := q.value(theta)
		for i := range theta {
			theta[i], m[i] = theta[i]+eps*m[i], m[i]+eps*g[i]-eps*m[i]
		}
		s, _ = update(t, transform, s, batch)
		if !within(t, theta, values(s.Params.Flat.T()), golden, name("update %d after cooling", step)) {
			return
		}
	}
	assert.Equal(t, streams, s.Streams, "nothing is drawn at T = 0")
}
