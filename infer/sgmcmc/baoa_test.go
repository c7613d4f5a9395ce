package sgmcmc_test

import (
	"cmp"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// baoa is the recursion of BAOA. With n the gradient noise, w = √(T(1 − c²))σz, c = e^(−γε) and a = ½ερ:
//
//	m½ = m − εΛx + εn,  m' = c m½ + w,  x' = x + a m½ + a m' = x + a(1 + c) m½ + a w
func (s setting) baoa() law {
	d, rho := s.dim(), 1/(s.sigma*s.sigma)
	c, a := math.Exp(-s.alpha*rho*s.eps), s.eps*rho/2
	both := a * (1 + c)
	w, n := s.temperature*(1-c*c)*s.sigma*s.sigma, s.eps*s.eps*s.noise
	l := law{mat.NewDense(2*d, 2*d, nil), mat.NewDense(2*d, 2*d, nil)}
	for i := range d {
		for j := range d {
			kick := -s.eps * s.precision.At(i, j)
			l.a.Set(i, j, one(i == j)+both*kick)
			l.a.Set(i, d+j, one(i == j)*both)
			l.a.Set(d+i, j, c*kick)
			l.a.Set(d+i, d+j, one(i == j)*c)
		}
		l.q.Set(i, i, both*both*n+a*a*w)
		l.q.Set(i, d+i, both*c*n+a*w)
		l.q.Set(d+i, i, both*c*n+a*w)
		l.q.Set(d+i, d+i, c*c*n+w)
	}
	return l
}

func (s setting) baoaTrial() trial {
	return trial{setting: s, what: "BAOA", law: s.baoa(), chains: 128, copies: 8, draws: 80, method: sgmcmc.BAOA{
		LR: infer.Constant(s.eps), Alpha: infer.Constant(s.alpha), Sigma: s.sigma,
		Temperature: infer.Constant(s.temperature)}}
}

func TestBAOAFollowsItsEquations(t *testing.T) {
	check := func(lr, temperature, friction rate, sigma float64) {
		rho := 1 / math.Pow(cmp.Or(sigma, 1), 2)
		equation{name("alpha %s, sigma %g", friction.name, sigma), sgmcmc.BAOA{LR: lr.f, Temperature: temperature.f,
			Alpha: friction.f, Sigma: sigma, Momenta: torch.Of(vector(scaled(0.5, spread(9))))}, lr, temperature, nil,
			func(step int, x map[string][]float64, g, z []float64) (float64, map[string][]float64) {
				eps, temp, gamma := lr.value(step), temperature.value(step), friction.value(step)*rho
				scale := math.Sqrt(temp * (1 - math.Exp(-2*gamma*eps)) / rho)
				theta, m := x["params"], x["momenta"]
				for i := range g {
					half := m[i] + eps*g[i]
					m[i] = math.Exp(-gamma*eps)*half + scale*z[i]
					theta[i] += 0.5*eps*rho*half + 0.5*eps*rho*m[i]
				}
				return scale, nil
			}}.follow(t)
	}
	for _, temperature := range []float64{0, 0.5, 1, 2} {
		for _, sigma := range []float64{0.7, 2} {
			check(fixed(0.1), fixed(temperature), fixed(0.6), sigma)
			check(varied(0.2), varied(temperature), varied(0.9), sigma)
		}
		check(fixed(0.1), fixed(temperature), fixed(0), 1.5)
	}
	check(fixed(0.1), rate{"default", nil}, rate{"default", nil}, 0)
}

// Exact gradients on a Gaussian target: θ has the law of the target and m has N(0, Tσ²), at every stable step, with the
// covariance ½εT between them that half a kick takes away.
func TestBAOAIsExactForGaussians(t *testing.T) {
	for _, precision := range targets() {
		for _, temperature := range []float64{0.25, 1, 4} {
			for _, sigma := range []float64{1, 1.4} {
				for _, alpha := range []float64{0.3, 1, 5} {
					for _, eps := range []float64{0.01, 0.1, 0.5, 1.25} {
						s := setting{precision: precision, eps: eps, temperature: temperature, alpha: alpha,
							sigma: sigma}
						want, d := s.ideal(true), s.dim()
						for i := range d {
							want.Set(i, d+i, eps*temperature/2)
							want.Set(d+i, i, eps*temperature/2)
						}
						// The doubling rounds at the size of the law over 1 − radius², here up to about 1e3.
						assert.Truef(t, mat.EqualApprox(want, s.baoa().covariance(), 1e-11), "%+v", s)
					}
				}
			}
		}
	}
	// The constants: 1 and 1 at all steps.
	for _, eps := range []float64{0.5, 0.1, 0.01, 1.9} {
		sigma := setting{precision: scalar(1), eps: eps, temperature: 1, alpha: 1, sigma: 1}.baoa().covariance()
		assert.Equal(t, 1.0, digits(sigma.At(0, 0)), "step %g", eps)
		assert.Equal(t, 1.0, digits(sigma.At(1, 1)), "step %g", eps)
	}
}

// Of second order: half a kick later the scheme is the symmetric BAOAB, whose momenta have Tσ² − ¼ε²Tλ exactly. θ has
// no bias to measure here.
func TestOrderOfBAOA(t *testing.T) {
	bias := func(eps float64) float64 {
		s := setting{precision: scalar(1.7), eps: eps, temperature: 0.8, alpha: 1.3, sigma: 1.2}
		sigma := s.baoa().covariance()
		k := eps / 2 * 1.7 // m + ½εg(θ) = m − kx
		symmetric := sigma.At(1, 1) - 2*k*sigma.At(0, 1) + k*k*sigma.At(0, 0)
		assert.InDelta(t, 0.8*1.2*1.2-eps*eps*0.8*1.7/4, symmetric, 1e-11)
		return symmetric - 0.8*1.2*1.2
	}
	assert.InDelta(t, 2, slope(bias), 1e-6)
}

// BAOA is stable for ε²ρλ < 4 at any friction.
func TestBAOAIsStableBelowTwo(t *testing.T) {
	for _, alpha := range []float64{0.1, 1, 20} {
		for _, sigma := range []float64{0.8, 1, 2} {
			for _, lambda := range []float64{0.5, 3} {
				edge := 2 * sigma / math.Sqrt(lambda)
				s := setting{precision: scalar(lambda), eps: 0.99 * edge, alpha: alpha, sigma: sigma}
				assert.Less(t, s.baoa().radius(), 1.0, "%+v", s)
				s.eps = 1.01 * edge
				assert.Greater(t, s.baoa().radius(), 1.0, "%+v", s)
			}
		}
	}
}

func TestStationaryLawOfBAOA(t *testing.T) {
	seed := seeds()
	for _, precision := range targets() {
		for _, temperature := range []float64{0.25, 1, 4} {
			for _, c := range []struct{ eps, alpha, sigma float64 }{{0.5, 1, 1}, {1.25, 1.5, 1.4}} {
				e := setting{precision: precision, eps: c.eps, temperature: temperature, alpha: c.alpha,
					sigma: c.sigma}.baoaTrial()
				e.seed = seed()
				t.Run(e.String(), func(t *testing.T) { e.run(t).check(t, e.law.covariance()) })
			}
		}
	}
}

// Gradient noise of variance V is not made up for: with α = σ = 1 and a small step it adds about εV/(2α) to the
// temperature. The run has the law that the recursion says, and not the target's.
func TestBAOAWithGradientNoise(t *testing.T) {
	for i, precision := range targets() {
		e := setting{precision: precision, eps: 0.4, temperature: 0.5, alpha: 1.5, sigma: 1.3, noise: 1.5}.baoaTrial()
		e.chains, e.copies, e.draws, e.seed = 2, 512, 60, uint64(i+1)
		t.Run(e.String(), func(t *testing.T) {
			m := e.run(t)
			m.tells(t, e.law.covariance(), e.ideal(true), "the target's")
			m.check(t, e.law.covariance())
		})
	}
	s := setting{precision: scalar(1), eps: 0.001, temperature: 0.5, alpha: 1.5, sigma: 1.3, noise: 1.5}
	hot := s.baoa().covariance()
	assert.InEpsilon(t, 0.001*1.5/(2*1.5), hot.At(0, 0)-0.5, 1e-2)
	assert.InEpsilon(t, 0.001*1.5/(2*1.5), hot.At(1, 1)/(1.3*1.3)-0.5, 1e-2)
}

func TestBAOAAtZeroTemperature(t *testing.T) {
	for _, precision := range targets() {
		fallToMode(t, setting{precision: precision, eps: 0.4, alpha: 1.2, sigma: 0.9}.baoaTrial(), 300)
	}
	q := newQuartic()
	transform := build(t, sgmcmc.BAOA{LR: infer.Constant(0.1), Temperature: zero}, q.logPosterior)
	s := begin[sgmcmc.BAOAState](t, transform, params(q.layout, spread(q.layout.Dim()), 0), 1)
	for _, v := range values(s.Momenta.T()) {
		assert.Zero(t, v)
	}
	streams := s.Streams
	s, _ = update(t, transform, s, q.batch())
	assert.Equal(t, streams, s.Streams, "nothing is drawn at T = 0")
}

// With γε = c fixed and e^(−c) = μ it is, at T = 0, a momentum method in θ alone: θ₂ = θ₁ + μ(θ₁ − θ₀) + ½ε²ρ((1 +
// μ)g₁), by taking the difference of two updates and m½ = (θ' − θ)/(½ερ(1 + μ)).
func TestBAOAAtZeroTemperatureIsAMomentumMethod(t *testing.T) {
	q := newQuartic()
	const eps, alpha, sigma = 0.2, 1.3, 1.2
	rho := 1 / (sigma * sigma)
	mu := math.Exp(-alpha * rho * eps)
	transform := build(t, sgmcmc.BAOA{LR: infer.Constant(eps), Alpha: infer.Constant(alpha), Sigma: sigma,
		Temperature: zero}, q.logPosterior)
	s, batch := begin[sgmcmc.BAOAState](t, transform, params(q.layout, spread(q.layout.Dim()), 0), 3), q.batch()
	before := values(s.Params.Flat.T())
	s, _ = update(t, transform, s, batch)
	now := values(s.Params.Flat.T())
	for step := range 100 {
		_, g := q.value(now)
		want := make([]float64, len(now))
		for i := range now {
			want[i] = now[i] + mu*(now[i]-before[i]) + eps*eps*rho*(1+mu)/2*g[i]
		}
		s, _ = update(t, transform, s, batch)
		before, now = now, values(s.Params.Flat.T())
		if !within(t, want, now, golden, name("update %d", step)) {
			return
		}
	}
}

func TestConfigurationErrorsOfBAOA(t *testing.T) {
	c := infer.Constant
	refused(t, []mistake{
		{sgmcmc.BAOA{}, "LR", "sgmcmc.BAOA: LR is missing: a schedule is required, for example infer.Constant(0.01): " +
			"below 2σ/√λ, with λ the largest curvature of the mean log posterior"},
		{sgmcmc.BAOA{LR: c(0)}, "LR", "sgmcmc.BAOA: LR is 0: it must be finite and greater than 0"},
		{sgmcmc.BAOA{LR: c(nan)}, "LR", "sgmcmc.BAOA: LR is NaN: it must be finite and greater than 0"},
		{sgmcmc.BAOA{LR: c(1), Alpha: c(-1)}, "Alpha", "sgmcmc.BAOA: Alpha is -1: it must be finite and at least 0"},
		{sgmcmc.BAOA{LR: c(1), Temperature: c(-1)}, "Temperature",
			"sgmcmc.BAOA: Temperature is -1: it must be finite and at least 0"},
		{sgmcmc.BAOA{LR: c(1), Sigma: -1}, "Sigma", "sgmcmc.BAOA: Sigma is -1: it must be finite and greater than 0"},
	}...)
	goWrong(t, []mistake{
		{sgmcmc.BAOA{LR: from(2, 0.1, -0.1)}, "LR at update 2",
			"sgmcmc.BAOA: LR at update 2 is -0.1: it must be finite and at least 0"},
		{sgmcmc.BAOA{LR: c(0.1), Temperature: from(2, 1, nan)}, "Temperature at update 2",
			"sgmcmc.BAOA: Temperature at update 2 is NaN: it must be finite and at least 0"},
		{sgmcmc.BAOA{LR: c(0.1), Alpha: from(2, 1, -1)}, "Alpha at update 2",
			"sgmcmc.BAOA: Alpha at update 2 is -1: it must be finite and at least 0"},
	}...)
}
