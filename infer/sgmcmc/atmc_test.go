package sgmcmc_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
)

// atmcStep is one element of an update of ATMC, from its equations. A c of 0 is no limit.
func atmcStep(theta, p, xi, g, z, h, d, m, c, temp float64) (theta1, p1, xi1 float64) {
	relative := func(p float64) float64 { // m/M(p)
		if c == 0 {
			return 1
		}
		return 1 / math.Sqrt(1+p*p/(m*m*c*c))
	}
	alpha, b := math.Max(d-xi, 0), math.Max(d, xi)*relative(p)
	p1 = math.Exp(-b*h)*p + (1-math.Exp(-b*h))/b*g + math.Sqrt(temp*m*alpha*(1-math.Exp(-2*b*h))/b)*z
	r := relative(p1)
	theta1 = theta + h*p1*r/m
	xi1 = xi + h*(p1*p1*r*r/m-temp*r*r*r)
	return theta1, p1, xi1
}

func TestATMCFollowsItsEquations(t *testing.T) {
	check := func(lr, temperature, friction rate, mass, speed float64) {
		// Thermostats below 0, from 0 to D and above D, so that every branch of α and β is taken.
		begin := func(state infer.State) infer.State {
			s := state.(sgmcmc.ATMCState)
			assert.Equal(t, slices.Repeat([]float64{0.4}, len(values(s.Xi.T()))), values(s.Xi.T()), "ξ at the start")
			require.NoError(t, torch.CopyFrom(s.Xi, scaled(1.6, spread(len(values(s.Xi.T()))))))
			return s
		}
		equation{name("D %s, m %g, c %g", friction.name, mass, speed), sgmcmc.ATMC{LR: lr.f, Temperature: temperature.f,
			Friction: friction.f, Mass: mass, Speed: speed, Xi: 0.4, Momenta: torch.Of(vector(scaled(1.5, spread(9))))}, lr,
			temperature, begin,
			func(step int, x map[string][]float64, g, z []float64) (float64, map[string][]float64) {
				h, temp := lr.value(step), temperature.value(step)
				theta, p, xi := x["params"], x["momenta"], x["xi"]
				for i, before := range theta {
					theta[i], p[i], xi[i] = atmcStep(theta[i], p[i], xi[i], g[i], z[i], h, friction.value(step),
						cmp.Or(mass, 1), speed, temp)
					assert.True(t, speed == 0 || math.Abs(theta[i]-before) < h*speed, "no element is faster than c")
				}
				return temp, nil
			}}.follow(t)
	}
	check(fixed(0.1), rate{"default", nil}, rate{"default", nil}, 0, 0)
	for _, temperature := range []float64{0, 0.5, 2} {
		for _, speed := range []float64{0, 0.4, 3} {
			check(fixed(0.1), fixed(temperature), fixed(0.7), 1.7, speed)
			check(varied(0.3), varied(temperature), varied(0.9), 0.6, speed)
		}
	}
}

// Momenta with a limit far above their speed are Gaussian ones.
func TestATMCWithALargeSpeedIsGaussian(t *testing.T) {
	q := newQuartic()
	a := build(t, sgmcmc.ATMC{LR: infer.Constant(0.1)}, q.logPosterior)
	b := build(t, sgmcmc.ATMC{LR: infer.Constant(0.1), Speed: 1e7}, q.logPosterior)
	start, batch := params(q.layout, spread(q.layout.Dim()), 0), q.batch()
	x, y := begin[sgmcmc.ATMCState](t, a, start, 3), begin[sgmcmc.ATMCState](t, b, start, 3)
	for range 30 {
		x, _ = update(t, a, x, batch)
		y, _ = update(t, b, y, batch)
	}
	within(t, values(x.Params.Flat.T()), values(y.Params.Flat.T()), 1e-9, "theta")
	within(t, values(x.Xi.T()), values(y.Xi.T()), 1e-9, "xi")
}

// At T = 0 nothing is drawn, thermostats only grow, by a bounded amount, and the chain comes to rest at the mode.
func TestATMCAtZeroTemperatureFindsTheMode(t *testing.T) {
	for _, speed := range []float64{0, 0.5} {
		g := newGaussian(correlated(), 2)
		transform := build(t, sgmcmc.ATMC{LR: infer.Constant(0.1), Temperature: zero, Speed: speed}, g.logPosterior)
		size := g.layout.Dim()
		start := params(g.layout, scaled(3, spread(size)), 0)
		s := begin[sgmcmc.ATMCState](t, transform, start, 1)
		within(t, make([]float64, size), values(s.Momenta.T()), 0, "momenta at the start")
		batch := must(g.batches(0, 0).Next())
		at := func(s infer.State) (x []float64) {
			for r := range 2 {
				point := make([]float64, 3)
				g.at(values(s.Position().Flat.T()), r, point)
				x = append(x, point...)
			}
			return x
		}
		energy := 0.0 // what there is to lose, over D and m
		for i, v := range at(s) {
			for j, w := range at(s) {
				if i/3 == j/3 {
					energy += 0.5 * (v - g.mean[i%3]) * g.precision.At(i%3, j%3) * (w - g.mean[j%3])
				}
			}
		}
		for range 1000 {
			before := values(s.Xi.T())
			s, _ = update(t, transform, s, batch)
			for i, v := range values(s.Xi.T()) {
				require.GreaterOrEqual(t, v, before[i])
			}
		}
		within(t, append(append([]float64{}, g.mean...), g.mean...), at(s), 1e-9, "theta")
		total := 0.0
		for _, v := range values(s.Xi.T()) {
			total += v
		}
		assert.Less(t, total, 1.1*energy, "Σξ is at most the energy, up to the step size")
		assert.Zero(t, s.Streams.Offset-begin[sgmcmc.ATMCState](t, transform, start, 1).Streams.Offset,
			"updates draw nothing")
	}
}

// The paper's numbers for CIFAR-10: a step of 1e-3 has m = 11.11, c = 1 and loses a tenth of the momentum in a step.
// The mean over n data is the same sampler in other units.
func TestATMCAt(t *testing.T) {
	c := must(sgmcmc.ATMCAt(1e-3, 1))
	assert.InDelta(t, 11.11, c.Mass, 2e-3)
	assert.InDelta(t, 1, c.Speed, 1e-12)
	assert.InDelta(t, 0.9, math.Exp(-c.LR(0)*c.Friction(0)), 1e-12)
	assert.Nil(t, c.Temperature, "T is 1")

	// For the sum over data L and for the mean L/n, with momenta of 1/√n: the same θ, and ξ of 1/√n.
	q := newQuartic()
	const n = 25
	sum := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		value, aux := q.logPosterior(p, b)
		return torch.Of(value.T().MustMulScalar(ts.FloatScalar(n), false)), aux
	}
	mean := must(sgmcmc.ATMCAt(0.01, n))
	whole := must(sgmcmc.ATMCAt(0.01, 1))
	a, b := build(t, whole, sum), must(mean.Build(infer.Mean(q.logPosterior, n)))
	start, batch := params(q.layout, spread(q.layout.Dim()), 0), q.batch()
	x, y := begin[sgmcmc.ATMCState](t, a, start, 3), begin[sgmcmc.ATMCState](t, b, start, 3)
	for range 30 {
		x, _ = update(t, a, x, batch)
		y, _ = update(t, b, y, batch)
	}
	within(t, values(x.Params.Flat.T()), values(y.Params.Flat.T()), 1e-11, "theta")
	within(t, values(x.Momenta.T()), scaled(math.Sqrt(n), values(y.Momenta.T())), 1e-9, "momenta")
	within(t, values(x.Xi.T()), scaled(math.Sqrt(n), values(y.Xi.T())), 1e-9, "xi")

	for text, err := range map[string]error{
		"sgmcmc.ATMCAt: step is 0: it must be finite and greater than 0":   last(sgmcmc.ATMCAt(0, 1)),
		"sgmcmc.ATMCAt: n is 0: it must be at least 1: the number of data": last(sgmcmc.ATMCAt(0.1, 0)),
	} {
		require.EqualError(t, err, text)
		require.ErrorIs(t, err, infer.ErrConfig)
	}
}

func last[T any](_ T, err error) error { return err }

func TestATMCErrors(t *testing.T) {
	c := infer.Constant
	refused(t, []mistake{
		{sgmcmc.ATMC{}, "LR", "sgmcmc.ATMC: LR is missing: a schedule is required, for example infer.Constant(0.01): " +
			"below 2√(m/λ), with λ the largest curvature of the mean log posterior"},
		{sgmcmc.ATMC{LR: c(0)}, "LR", "sgmcmc.ATMC: LR is 0: it must be finite and greater than 0"},
		{sgmcmc.ATMC{LR: c(nan)}, "LR", "sgmcmc.ATMC: LR is NaN: it must be finite and greater than 0"},
		{sgmcmc.ATMC{LR: c(1), Friction: c(0)}, "Friction",
			"sgmcmc.ATMC: Friction is 0: it must be finite and greater than 0"},
		{sgmcmc.ATMC{LR: c(1), Temperature: c(-1)}, "Temperature",
			"sgmcmc.ATMC: Temperature is -1: it must be finite and at least 0"},
		{sgmcmc.ATMC{LR: c(1), Mass: -1}, "Mass", "sgmcmc.ATMC: Mass is -1: it must be finite and greater than 0"},
		{sgmcmc.ATMC{LR: c(1), Mass: nan}, "Mass", "sgmcmc.ATMC: Mass is NaN: it must be finite and greater than 0"},
		{sgmcmc.ATMC{LR: c(1), Speed: -1}, "Speed", "sgmcmc.ATMC: Speed is -1: it must be finite and at least 0"},
		{sgmcmc.ATMC{LR: c(1), Speed: math.Inf(1)}, "Speed",
			"sgmcmc.ATMC: Speed is +Inf: it must be finite and at least 0"},
		{sgmcmc.ATMC{LR: c(1), Xi: nan}, "Xi", "sgmcmc.ATMC: Xi is NaN: it must be finite"},
		{sgmcmc.ATMC{LR: c(1), Xi: math.Inf(-1)}, "Xi", "sgmcmc.ATMC: Xi is -Inf: it must be finite"},
	}...)
	goWrong(t, []mistake{
		{sgmcmc.ATMC{LR: from(2, 0.1, -0.1)}, "LR at update 2",
			"sgmcmc.ATMC: LR at update 2 is -0.1: it must be finite and at least 0"},
		{sgmcmc.ATMC{LR: c(0.1), Temperature: from(2, 1, nan)}, "Temperature at update 2",
			"sgmcmc.ATMC: Temperature at update 2 is NaN: it must be finite and at least 0"},
		{sgmcmc.ATMC{LR: c(0.1), Friction: from(2, 1, 0)}, "Friction at update 2",
			"sgmcmc.ATMC: Friction at update 2 is 0: it must be finite and greater than 0"},
	}...)
}
