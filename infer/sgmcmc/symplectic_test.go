package sgmcmc_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// symplectic is the recursion of symplectic Euler with γ = α, M = σ²I, n the gradient noise and w = √(Th(2γM − Thβ)) z:
//
//	m' = (1 − hγ)m − hΛx + hn + w,  x' = x + hM⁻¹m'
func (s setting) symplectic() law {
	d := s.dim()
	mass := make([]float64, d)
	for i := range mass {
		mass[i] = s.sigma * s.sigma
	}
	return s.symplecticWith(mass)
}

// symplecticWith is the same with a mass for each coordinate.
func (s setting) symplecticWith(mass []float64) law {
	d := s.dim()
	l := law{mat.NewDense(2*d, 2*d, nil), mat.NewDense(2*d, 2*d, nil)}
	for i := range d {
		h := s.eps / mass[i]
		q := s.temperature*s.eps*(2*s.alpha*mass[i]-s.temperature*s.eps*s.beta) + s.eps*s.eps*s.noise
		for j := range d {
			kick, keep := -s.eps*s.precision.At(i, j), one(i == j)*(1-s.eps*s.alpha)
			l.a.Set(d+i, j, kick)
			l.a.Set(d+i, d+j, keep)
			l.a.Set(i, j, one(i == j)+h*kick)
			l.a.Set(i, d+j, h*keep)
		}
		l.q.Set(d+i, d+i, q)
		l.q.Set(i, d+i, h*q)
		l.q.Set(d+i, i, h*q)
		l.q.Set(i, i, h*h*q)
	}
	return l
}

func (s setting) symplecticTrial() trial {
	mass := map[string]float64{}
	for _, site := range newGaussian(s.precision, 1).layout.Names() {
		if s.sigma != 1 {
			mass[site] = s.sigma * s.sigma
		}
	}
	return trial{setting: s, what: "symplectic Euler", law: s.symplectic(), chains: 128, copies: 8, draws: 80,
		method: sgmcmc.SymplecticSGHMC{
			LR: infer.Constant(s.eps), Gamma: infer.Constant(s.alpha), Mass: mass, Beta: s.beta,
			Temperature: infer.Constant(s.temperature)}}
}

func TestReferenceConstantsOfSymplecticEuler(t *testing.T) {
	for _, c := range []struct{ h, theta, m float64 }{
		{0.5, 1.09091, 1.45455},
		{0.1, 1.00264, 1.05541},
		{0.01, 1.00003, 1.00505},
	} {
		for _, temperature := range []float64{0.25, 1, 4} {
			sigma := setting{precision: scalar(1), eps: c.h, temperature: temperature, alpha: 1,
				sigma: 1}.symplectic().covariance()
			assert.Equal(t, c.theta, digits(sigma.At(0, 0)/temperature), "variance of theta at step %g", c.h)
			assert.Equal(t, c.m, digits(sigma.At(1, 1)/temperature), "variance of the momenta at step %g", c.h)
		}
	}
}

// The order of the bias: 2 for θ and 1 for m of the symplectic scheme, where the explicit one has 1 for both.
func TestOrderOfSymplecticEuler(t *testing.T) {
	at := func(eps float64) setting {
		return setting{precision: scalar(1.7), eps: eps, temperature: 0.8, alpha: 1.3, sigma: 1.2}
	}
	bias := func(l func(setting) law, i int) func(float64) float64 {
		return func(eps float64) float64 {
			s := at(eps)
			return l(s).covariance().At(i, i) - s.ideal(true).At(i, i)
		}
	}
	// Between steps of 0.02 and 0.01 the next order in h is a part of about h of the bias.
	assert.InDelta(t, 2, slope(bias(setting.symplectic, 0)), 0.05, "theta")
	assert.InDelta(t, 1, slope(bias(setting.symplectic, 1)), 0.05, "momenta")
	assert.InDelta(t, 1, slope(bias(setting.sghmc, 0)), 0.05, "theta of the explicit scheme")
	assert.InDelta(t, 1, slope(bias(setting.sghmc, 1)), 0.05, "momenta of the explicit scheme")
}

// Stable for h²λ/M < 4 − 2hγ and hγ < 2.
func TestSymplecticEulerIsStableBelowItsEdge(t *testing.T) {
	for _, damp := range []float64{0.1, 1, 1.9} {
		for _, mass := range []float64{0.5, 1, 3} {
			h := 0.4
			edge := (4 - 2*damp) * mass / (h * h)
			s := setting{precision: scalar(0.99 * edge), eps: h, alpha: damp / h, sigma: math.Sqrt(mass)}
			assert.Less(t, s.symplectic().radius(), 1.0, "%+v", s)
			s.precision = scalar(1.01 * edge)
			assert.Greater(t, s.symplectic().radius(), 1.0, "%+v", s)
		}
	}
}

// symplecticForms are configurations in both parameterisations, with what they mean in plain numbers: step h, damping
// hγ, and the unit of the momenta.
type symplecticForm struct {
	name     string
	c        sgmcmc.SymplecticSGHMC
	h, damp  func(t int) float64
	unit, lr func(t int) float64
}

func symplecticForms() []symplecticForm {
	unit := infer.Constant(1)
	momentum := func(t int) float64 { return 0.9 - 0.1*float64(t) }
	return []symplecticForm{
		{"h, gamma", sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.1), Gamma: infer.Constant(0.6)},
			infer.Constant(0.1), infer.Constant(0.06), unit, infer.Constant(0.1)},
		{"h alone", sgmcmc.SymplecticSGHMC{LR: varied(0.2).f}, varied(0.2).f, varied(0.2).f, unit, varied(0.2).f},
		{"schedules of h and gamma", sgmcmc.SymplecticSGHMC{LR: varied(0.2).f, Gamma: varied(0.9).f},
			varied(0.2).f, varied(0.2).f.Times(varied(0.9).f), unit, varied(0.2).f},
		{"a cycle", sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.2), Cycle: infer.Cosine(1, 4)},
			infer.Cosine(0.2, 4), infer.Cosine(0.2, 4), unit, infer.Cosine(0.2, 4)},
		{"l, mu", sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.04), Momentum: infer.Constant(0.9)},
			infer.Constant(1), infer.Constant(0.1), infer.Constant(0.04), infer.Constant(0.04)},
		{"schedules of l and mu, with a cycle", sgmcmc.SymplecticSGHMC{LR: varied(0.09).f, Momentum: momentum,
			Cycle: infer.Cosine(1, 4)},
			func(t int) float64 { return infer.Cosine(1, 4)(t) / math.Sqrt(float64(1+t)) },
			func(t int) float64 {
				return infer.Cosine(1, 4)(t) / math.Sqrt(float64(1+t)) * (1 - momentum(t))
			},
			infer.Constant(0.09),
			func(t int) float64 { return math.Pow(infer.Cosine(1, 4)(t), 2) * 0.09 / float64(1+t) }},
	}
}

func TestSymplecticSGHMCFollowsItsEquations(t *testing.T) {
	check := func(f symplecticForm, temperature rate, beta float64, mass map[string]float64) {
		c, masses := f.c, slices.Repeat([]float64{1}, 9) // a[0] a[1] b w[0,0] ... w[1,2]
		for i := range masses {
			if mass != nil && i != 2 {
				masses[i] = mass[map[bool]string{true: "a", false: "w"}[i < 2]]
			}
		}
		c.Temperature, c.Beta, c.Mass, c.Momenta = temperature.f, beta, mass, torch.Of(vector(scaled(0.5, spread(9))))
		equation{name("%s, beta %g, mass %v", f.name, beta, mass), c, rate{"", f.lr}, temperature, nil,
			func(step int, x map[string][]float64, g, z []float64) (float64, map[string][]float64) {
				h, damp, temp := f.h(step), f.damp(step), temperature.value(step)
				theta, m := x["params"], x["momenta"]
				for i := range g {
					M := masses[i%9] / f.unit(0)
					m[i] = (1-damp)*m[i] + h*g[i] + math.Sqrt(temp*(2*damp*M-temp*h*h*beta))*z[i]
					theta[i] += h * m[i] / M
				}
				return temp * h, nil
			}}.follow(t)
	}
	for _, f := range symplecticForms() {
		for _, temperature := range []rate{fixed(0), fixed(0.5), varied(2), {"default", nil}} {
			for _, beta := range []float64{0, 0.3} {
				check(f, temperature, beta, nil)
				check(f, temperature, beta, map[string]float64{"a": 2, "w": 0.7})
			}
		}
	}
}

// The two parameterisations are one sampler: with h = √ℓ and γ = (1 − μ)/√ℓ the points are the same, and the momenta
// are √ℓ times those in SGD's units.
func TestParameterisationsOfSymplecticSGHMCAgree(t *testing.T) {
	q := newQuartic()
	const l, mu = 0.03, 0.85
	temperature, cycle := infer.Constant(0.7), infer.Cosine(1, 9)
	h := math.Sqrt(l)
	a := build(t, sgmcmc.SymplecticSGHMC{LR: infer.Constant(l), Momentum: infer.Constant(mu), Temperature: temperature,
		Cycle: cycle, Beta: 0.2}, q.logPosterior)
	b := build(t, sgmcmc.SymplecticSGHMC{LR: infer.Constant(h), Gamma: infer.Constant((1 - mu) / h),
		Temperature: temperature, Cycle: cycle, Beta: 0.2}, q.logPosterior)
	start := params(q.layout, spread(3*q.layout.Dim()), 3)
	x, y := begin[sgmcmc.SymplecticSGHMCState](t, a, start, 4), begin[sgmcmc.SymplecticSGHMCState](t, b, start, 4)
	for step := range 50 {
		if !within(t, values(y.Params.Flat.T()), values(x.Params.Flat.T()), 1e-11, name("theta before update %d", step)) ||
			!within(t, values(y.Momenta.T()), scaled(h, values(x.Momenta.T())), 1e-11, name("momenta before update %d", step)) {
			return
		}
		x, _ = update(t, a, x, q.batch())
		y, _ = update(t, b, y, q.batch())
	}
}

// At T = 0, M = I and C = 1 it is SGD with momentum: b' = μb + g, θ' = θ + ℓb', from b = 0.
func TestSymplecticSGHMCAtZeroTemperatureIsSGDBitForBit(t *testing.T) {
	q := newQuartic()
	for _, c := range []struct{ l, mu float64 }{{0.03, 0.9}, {0.1, 0.7}, {0.07, 0}} {
		for _, chains := range shapesOfChains {
			cold := build(t, sgmcmc.SymplecticSGHMC{LR: infer.Constant(c.l), Momentum: infer.Constant(c.mu),
				Temperature: zero, Beta: 0.3}, q.logPosterior)
			sgd := build(t, optim.SGD{LR: infer.Constant(c.l), Momentum: c.mu}, q.logPosterior)
			start, batch := params(q.layout, spread(max(chains.rows, 1)*q.layout.Dim()), chains.rows), q.batch()
			a, b := begin[sgmcmc.SymplecticSGHMCState](t, cold, start, 1), begin[optim.SGDState](t, sgd, start, 1)
			streams := a.Streams
			for step := range 100 {
				before := values(a.Params.Flat.T())
				a, _ = update(t, cold, a, batch)
				b, _ = update(t, sgd, b, batch)
				require.NotEqual(t, before, values(a.Params.Flat.T()), "update %d does not move", step)
				if !identical(t, values(b.Params.Flat.T()), values(a.Params.Flat.T()), name("update %d", step)) ||
					!identical(t, values(b.Buffer.T()), values(a.Momenta.T()), name("buffer after update %d", step)) {
					return
				}
			}
			assert.Equal(t, streams, a.Streams, "nothing is drawn")
		}
	}
}

// The same without the optimiser: its documented update in Go's float64, to rounding, in
// the other parameterisation too.
func TestSymplecticSGHMCAtZeroTemperatureIsTheMomentumRecursion(t *testing.T) {
	q := newQuartic()
	const l, mu = 0.05, 0.8
	h := math.Sqrt(l)
	for _, method := range []sgmcmc.SymplecticSGHMC{
		{LR: infer.Constant(l), Momentum: infer.Constant(mu), Temperature: zero},
		{LR: infer.Constant(h), Gamma: infer.Constant((1 - mu) / h), Temperature: zero},
	} {
		transform := build(t, method, q.logPosterior)
		theta := spread(q.layout.Dim())
		buffer := make([]float64, len(theta))
		s := begin[sgmcmc.SymplecticSGHMCState](t, transform, params(q.layout, theta, 0), 3)
		for step := range 100 {
			_, g := q.value(theta)
			for i := range theta {
				buffer[i] = mu*buffer[i] + g[i]
				theta[i] += l * buffer[i]
			}
			s, _ = update(t, transform, s, q.batch())
			if !within(t, theta, values(s.Params.Flat.T()), golden, name("update %d", step)) {
				return
			}
		}
	}
}

func TestStationaryLawOfSymplecticSGHMC(t *testing.T) {
	seed := seeds()
	for _, precision := range targets() {
		for _, temperature := range []float64{0.25, 1, 4} {
			for _, c := range []struct{ eps, alpha, sigma, beta float64 }{{0.5, 1, 1, 0}, {0.6, 1.1, 1.4,
				2.4 / temperature}} {
				e := setting{precision: precision, eps: c.eps, temperature: temperature, alpha: c.alpha, sigma: c.sigma,
					beta: c.beta}.symplecticTrial()
				e.seed = seed()
				t.Run(e.String(), func(t *testing.T) {
					m := e.run(t)
					if c.beta > 0 {
						without := e.setting
						without.beta = 0
						m.tells(t, e.law.covariance(), without.symplectic().covariance(), "the one without beta")
					}
					m.check(t, e.law.covariance())
				})
			}
		}
	}
}

// A mass for each site: the preconditioned chain has the exact law of its recursion, and the momenta of
// a site its mass.
func TestStationaryLawOfSymplecticSGHMCWithMasses(t *testing.T) {
	e := setting{precision: correlated(), eps: 0.5, temperature: 1, alpha: 1, sigma: 1, beta: 0.4}.symplecticTrial()
	e.law, e.what, e.seed = e.symplecticWith([]float64{0.6, 0.6, 2.5}), "symplectic Euler with masses", 3
	e.method = sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.5), Beta: 0.4, Mass: map[string]float64{"a": 0.6, "b": 2.5}}
	m := e.run(t)
	// the momenta have variances of about 0.6 and 2.5, so that masses mixed up would show
	m.check(t, e.law.covariance())
}

// In SGD's terms, at ℓ = h², μ = 1 − hγ: θ has the law of h and γ, and the momenta that of m/h.
func TestStationaryLawOfSymplecticSGHMCInSGDsTerms(t *testing.T) {
	e := setting{precision: scalar(1), eps: 0.5, temperature: 1, alpha: 1, sigma: 1}.symplecticTrial()
	e.method, e.what, e.seed = sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.25), Momentum: infer.Constant(0.5)},
		"symplectic Euler as SGD", 5
	sigma := e.law.covariance()
	want := mat.NewDense(2, 2, []float64{sigma.At(0, 0), sigma.At(0, 1) / 0.5, sigma.At(1, 0) / 0.5, sigma.At(1,
		1) / 0.25})
	m := e.run(t)
	m.tells(t, want, mat.NewDense(2, 2, []float64{1, 0, 0, 4}), "the target's")
	m.check(t, want)
}

// With β = V/T² the law under gradient noise of variance V is that of exact gradients.
func TestSymplecticSGHMCMakesUpForGradientNoise(t *testing.T) {
	seed := seeds()
	for _, precision := range targets() {
		for _, temperature := range []float64{0.25, 4} {
			s := setting{precision: precision, eps: 0.5, temperature: temperature, alpha: 1.2, sigma: 1.3}
			exact := s.symplectic().covariance()
			s.noise = 4 * temperature
			biased := s.symplectic().covariance()
			for _, beta := range []float64{0, s.noise / (temperature * temperature)} {
				c := s
				c.beta = beta
				e := c.symplecticTrial()
				e.chains, e.copies, e.draws, e.seed = 2, 512, 50, seed()
				t.Run(e.String(), func(t *testing.T) {
					m := e.run(t)
					if beta == 0 {
						m.tells(t, biased, exact, "the one of exact gradients")
						m.check(t, biased)
						return
					}
					assert.True(t, mat.EqualApprox(exact, e.law.covariance(), 1e-12),
						"the equations of the two are the same up to rounding")
					m.tells(t, exact, biased, "the one without beta")
					m.check(t, exact)
				})
			}
		}
	}
}

func TestSymplecticSGHMCAtZeroTemperature(t *testing.T) {
	for _, precision := range targets() {
		for _, sigma := range []float64{1, 0.9} {
			fallToMode(t, setting{precision: precision, eps: 0.4, alpha: 1.2, sigma: sigma, beta: 5}.symplecticTrial(),
				300)
		}
	}
}

// Momenta start from N(0, TM), each site with its mass.
func TestInitialMomentaOfMasses(t *testing.T) {
	const chains = 4096
	l := layout(infer.Shapes{"a": {2}, "b": {}})
	temperature := infer.Linear(0.25, 100, 0, 10)
	m := startedBy(t, sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.1), Mass: map[string]float64{"b": 3},
		Temperature: temperature}, l, chains, 3)
	var a, b []float64
	for i := 0; i < len(m); i += 3 {
		a, b = append(a, m[i], m[i+1]), append(b, m[i+2])
	}
	hasVariance(t, 0.25, a, "a site that is not named has mass 1")
	hasVariance(t, 0.75, b, "N(0, TM)")
}

func TestConfigurationErrorsOfSymplecticSGHMC(t *testing.T) {
	c := infer.Constant
	q := newQuartic()
	refused(t, []mistake{
		{sgmcmc.SymplecticSGHMC{}, "LR", "sgmcmc.SymplecticSGHMC: LR is missing: a schedule is required, for " +
			"example infer.Constant(0.01): " +
			"below 2/√λ, with λ the largest curvature of the mean log posterior"},
		{sgmcmc.SymplecticSGHMC{LR: c(0)}, "LR",
			"sgmcmc.SymplecticSGHMC: LR is 0: it must be finite and greater than 0"},
		{sgmcmc.SymplecticSGHMC{LR: c(1), Gamma: c(-1)}, "Gamma",
			"sgmcmc.SymplecticSGHMC: Gamma is -1: it must be finite and at least 0"},
		{sgmcmc.SymplecticSGHMC{LR: c(1), Gamma: c(2), Momentum: c(0.9)}, "Gamma",
			"sgmcmc.SymplecticSGHMC: Gamma is 2: it must be nil when Momentum is given, which says the friction"},
		{sgmcmc.SymplecticSGHMC{LR: c(1), Momentum: c(1)}, "Momentum",
			"sgmcmc.SymplecticSGHMC: Momentum is 1: it must be at least 0 and less than 1"},
		{sgmcmc.SymplecticSGHMC{LR: c(1), Momentum: c(nan)}, "Momentum",
			"sgmcmc.SymplecticSGHMC: Momentum is NaN: it must be at least 0 and less than 1"},
		{sgmcmc.SymplecticSGHMC{LR: c(1), Cycle: c(-1)}, "Cycle",
			"sgmcmc.SymplecticSGHMC: Cycle is -1: it must be finite and at least 0"},
		{sgmcmc.SymplecticSGHMC{LR: c(1), Temperature: c(-1)}, "Temperature",
			"sgmcmc.SymplecticSGHMC: Temperature is -1: it must be finite and at least 0"},
		{sgmcmc.SymplecticSGHMC{LR: c(1), Beta: -2}, "Beta",
			"sgmcmc.SymplecticSGHMC: Beta is -2: it must be finite and at least 0"},
		{sgmcmc.SymplecticSGHMC{LR: c(1), Mass: map[string]float64{"a": 1, "w": 0}}, `Mass of site "w"`,
			`sgmcmc.SymplecticSGHMC: Mass of site "w" is 0: it must be finite and greater than 0`},
	}...)
	goWrong(t, []mistake{
		{sgmcmc.SymplecticSGHMC{LR: from(2, 0.1, -0.1)}, "LR at update 2",
			"sgmcmc.SymplecticSGHMC: LR at update 2 is -0.1: it must be finite and at least 0"},
		{sgmcmc.SymplecticSGHMC{LR: c(0.1), Temperature: from(2, 1, nan)}, "Temperature at update 2",
			"sgmcmc.SymplecticSGHMC: Temperature at update 2 is NaN: it must be finite and at least 0"},
		{sgmcmc.SymplecticSGHMC{LR: c(0.1), Gamma: from(2, 1, -1)}, "Gamma at update 2",
			"sgmcmc.SymplecticSGHMC: Gamma at update 2 is -1: it must be finite and at least 0"},
		{sgmcmc.SymplecticSGHMC{LR: c(0.1), Momentum: from(2, 0.5, 1.5)}, "Momentum at update 2",
			"sgmcmc.SymplecticSGHMC: Momentum at update 2 is 1.5: it must be at least 0 and less than 1"},
		{sgmcmc.SymplecticSGHMC{LR: c(0.1), Cycle: from(2, 1, nan)}, "Cycle at update 2",
			"sgmcmc.SymplecticSGHMC: Cycle at update 2 is NaN: it must be finite and at least 0"},
		{sgmcmc.SymplecticSGHMC{LR: from(2, 0.25, 0.5), Beta: 6}, "",
			"sgmcmc.SymplecticSGHMC: the noise variance τε(2a − τεβ) is -0.5 at update 2, with τ = T/N = 1, step ε = " +
				"0.5, friction a = 1, β (Beta) = 6: " +
				"Beta must be at most 2a/(τε) = 4, or LR smaller: invalid configuration"},
	}...)
	// On the edge of what the friction makes up for, and beyond.
	_, err := sgmcmc.SymplecticSGHMC{LR: c(0.5), Beta: 4}.Build(infer.Sum(q.logPosterior, 1))
	require.NoError(t, err)
	_, err = sgmcmc.SymplecticSGHMC{LR: c(0.5), Beta: 5}.Build(infer.Sum(q.logPosterior, 1))
	require.EqualError(t, err, "sgmcmc.SymplecticSGHMC: the noise variance τε(2a − τεβ) is -0.25 at update 0, "+
		"with τ = T/N = 1, step ε = 0.5, friction a = 1, "+
		"β (Beta) = 5: Beta must be at most 2a/(τε) = 4, or LR smaller: invalid configuration")
	// The least mass decides, also when it is the 1 of a site that is not named.
	heavy := build(t, sgmcmc.SymplecticSGHMC{LR: c(0.5), Beta: 5, Mass: map[string]float64{"w": 2}}, q.logPosterior)
	s := begin[infer.State](t, heavy, params(q.layout, spread(q.layout.Dim()), 0), 1)
	_, _, err = heavy.Update(s, q.batch())
	require.ErrorContains(t, err, "the noise variance τε(2a − τεβ) is -0.25 at update 0")

	strange := build(t, sgmcmc.SymplecticSGHMC{LR: c(0.5), Mass: map[string]float64{"w": 2, "v": 1}}, q.logPosterior)
	_, err = strange.Init(params(q.layout, spread(q.layout.Dim()), 0))
	field(t, err, "Mass", `sgmcmc.SymplecticSGHMC: Mass is given for site "v": the sites are ["a" "b" "w"]`)
}
