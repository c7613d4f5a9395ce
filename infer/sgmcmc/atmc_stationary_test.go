package sgmcmc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
)

// thermostatted is a run of ATMC on copies of a Gaussian target of one dimension and precision 1, each with gradient
// noise of its own. The copies are independent: they are the units of the standard errors.
type thermostatted struct {
	h, friction, mass, speed, temperature, noise float64
	copies                                       int
	settle, every                                float64 // time before the first draw, and between draws
	draws                                        int
	seed                                         uint64
}

func (e thermostatted) String() string {
	return name("h %g, D %g, m %g, c %g, T %g, V %g", e.h, e.friction, e.mass, e.speed, e.temperature, e.noise)
}

// run gives the averages over time of some functions of (θ − μ, p, ξ), for each copy.
func (e thermostatted) run(t testing.TB, functions ...func(x, p, xi float64) float64) *averages {
	t.Helper()
	g := newGaussian(scalar(1), e.copies)
	method := sgmcmc.ATMC{LR: infer.Constant(e.h), Friction: infer.Constant(e.friction), Mass: e.mass, Speed: e.speed,
		Temperature: infer.Constant(e.temperature)}
	settle, every := int(e.settle/e.h), int(e.every/e.h)
	a := &averages{sums: make([][]float64, len(functions))}
	for i := range a.sums {
		a.sums[i] = make([]float64, e.copies)
	}
	start := params(g.layout, make([]float64, e.copies), 0)
	run(t, build(t, method, g.logPosterior), start, g.batches(e.noise, e.seed), settle+every*e.draws, e.seed,
		func(s infer.State) {
			if s.Steps() <= settle || (s.Steps()-settle)%every != 0 {
				return
			}
			state := s.(sgmcmc.ATMCState)
			theta, p, xi := values(state.Params.Flat.T()), values(state.Momenta.T()), values(state.Xi.T())
			a.count++
			for i, f := range functions {
				for r := range theta {
					a.sums[i][r] += f(theta[r]-g.mean[0], p[r], xi[r])
				}
			}
		})
	return a
}

// averages are sums over the draws of a run, for each function and each of the independent units.
type averages struct {
	sums  [][]float64
	count float64
}

// estimate is the average of function i with its standard error: the units are independent and equally distributed.
func (a *averages) estimate(i int) (mean, se float64) {
	n := float64(len(a.sums[i]))
	for _, v := range a.sums[i] {
		mean += v / a.count / n
	}
	for _, v := range a.sums[i] {
		se += math.Pow(v/a.count-mean, 2)
	}
	return mean, math.Sqrt(se / (n - 1) / n)
}

// check compares the average of function i with what it should be.
func (a *averages) check(t testing.TB, i int, want float64, what string) {
	t.Helper()
	mean, se := a.estimate(i)
	t.Logf("%s: %.5f, expected %.5f, off by %.2f standard errors of %.5f", what, mean, want, (mean-want)/se, se)
	assert.LessOrEqualf(t, math.Abs(mean-want)/se, float64(allowed), "%s is %.5f, expected %.5f: standard error %.5f",
		what, mean, want, se)
}

// With gradient noise of variance V the thermostats take the mean hV/(2mT), up to second order in h, and everything
// else has the law of the target: θ of variance T, p of variance mT, ξ of variance T.
func TestATMCAbsorbsGradientNoise(t *testing.T) {
	for i, e := range []thermostatted{
		{h: 0.05, mass: 1, temperature: 1, noise: 20, settle: 30, every: 2, draws: 60},    // E ξ = 0.50
		{h: 0.05, mass: 11.1, temperature: 1, noise: 20, settle: 80, every: 5, draws: 40}, // 0.045
		{h: 0.05, mass: 1, temperature: 0.25, noise: 2, settle: 30, every: 2, draws: 60},  // 0.20
		{h: 0.05, mass: 1, temperature: 1, noise: 0, settle: 30, every: 2, draws: 60},     // 0
	} {
		e.friction, e.copies, e.seed = 1, 1024, uint64(i+1)
		t.Run(e.String(), func(t *testing.T) {
			mean := e.h * e.noise / (2 * e.mass * e.temperature)
			a := e.run(t,
				func(_, _, xi float64) float64 { return xi },
				func(x, _, _ float64) float64 { return x * x },
				func(_, p, _ float64) float64 { return p * p },
				func(_, _, xi float64) float64 { return (xi - mean) * (xi - mean) })
			a.check(t, 0, mean, "mean of ξ")
			a.check(t, 1, e.temperature, "variance of θ")
			a.check(t, 2, e.mass*e.temperature, "variance of p")
			a.check(t, 3, e.temperature, "variance of ξ")
		})
	}
}

// A large step inflates the variance of θ by (Dh/2) coth(Dh/2) where thermostats move little, and leaves p's alone.
func TestATMCAtLargeSteps(t *testing.T) {
	for i, e := range []thermostatted{{h: 0.5, friction: 1}, {h: 1.2, friction: 1}, {h: 1.2, friction: 3}} {
		e.mass, e.temperature, e.settle, e.every, e.draws, e.copies, e.seed = 1, 0.05, 1000, 6, 40, 1024, uint64(i+31)
		t.Run(e.String(), func(t *testing.T) {
			a := e.run(t,
				func(x, _, _ float64) float64 { return x * x },
				func(_, p, _ float64) float64 { return p * p })
			half := e.friction * e.h / 2
			a.check(t, 0, e.temperature*half/math.Tanh(half), "variance of θ")
			a.check(t, 1, e.temperature, "variance of p")
		})
	}
}

// kinetic is the mean of a function under the law exp(−K/T) of relativistic momenta, by the trapezoid rule: the
// integrand and all its derivatives vanish at the ends, so that it converges faster than any power.
func kinetic(mass, speed, temperature float64, f func(p float64) float64) float64 {
	mc := mass * speed
	scale := math.Sqrt(mass*temperature) + temperature/speed // a normal's and an exponential's
	total, weight := 0.0, 0.0
	for i := -40000; i <= 40000; i++ {
		p := float64(i) * scale / 1000
		w := math.Exp(-p * p / mass / (math.Sqrt(1+p*p/(mc*mc)) + 1) / temperature) // K without cancellation
		total, weight = total+w*f(p), weight+w
	}
	return total / weight
}

// The constant of the paper's setting, mc² = 11.1: E[p²]/m = K₂(11.1)/K₁(11.1) = 1.138, and E[p ∇K] = T at any.
func TestRelativisticMoments(t *testing.T) {
	assert.InDelta(t, 1.138, kinetic(11.1, 1, 1, func(p float64) float64 { return p * p / 11.1 }), 5e-4)
	for _, c := range []struct{ mass, speed, temperature float64 }{{11.1, 1, 1}, {1, 0.5, 2}, {3, 10, 0.5}} {
		virial := func(p float64) float64 {
			return p * p / c.mass / math.Sqrt(1+p*p/math.Pow(c.mass*c.speed, 2))
		}
		assert.InDelta(t, c.temperature, kinetic(c.mass, c.speed, c.temperature, virial), 1e-9)
	}
	assert.InDelta(t, 2, kinetic(1, 1e6, 2, func(p float64) float64 { return p * p }), 1e-9,
		"Gaussian without a limit on the speed")
}

// Relativistic momenta have their law, with and without gradient noise, and θ the target's.
func TestATMCWithRelativisticMomenta(t *testing.T) {
	for i, e := range []thermostatted{
		{h: 0.05, mass: 11.1, speed: 1, temperature: 1, settle: 80, every: 5, draws: 40},
		{h: 0.05, mass: 11.1, speed: 1, temperature: 1, noise: 20, settle: 80, every: 5, draws: 40},
	} {
		e.friction, e.copies, e.seed = 1, 1024, uint64(i+11)
		t.Run(e.String(), func(t *testing.T) {
			mc := e.mass * e.speed
			square := func(p float64) float64 { return p * p / e.mass }
			virial := func(p float64) float64 { return p * p / e.mass / math.Sqrt(1+p*p/(mc*mc)) }
			a := e.run(t,
				func(_, p, _ float64) float64 { return square(p) },
				func(_, p, _ float64) float64 { return virial(p) },
				func(x, _, _ float64) float64 { return x * x },
				func(_, _, xi float64) float64 { return xi })
			a.check(t, 0, kinetic(e.mass, e.speed, e.temperature, square), "E[p²]/m")
			a.check(t, 1, e.temperature, "E[p ∇K]")
			a.check(t, 2, e.temperature, "variance of θ")
			a.check(t, 3, e.h*e.noise/(2*e.mass*e.temperature), "mean of ξ")
		})
	}
}
