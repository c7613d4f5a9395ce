package kernel

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// built is a microcanonical transition at a point, with a unit velocity.
func built(t *testing.T, c Microcanonical, x []float64, d Density, m massMatrix, rng *stream) *microcanonical {
	t.Helper()
	made, err := c.build(len(x))
	require.NoError(t, err)
	mc := made.(*microcanonical)
	s, err := newState(x, gradientOf(d))
	require.NoError(t, err)
	copy(mc.z.X, s.X)
	copy(mc.z.Grad, s.Grad)
	mc.z.LogP = s.LogP
	m.Velocity(mc.z.A, mc.z.Grad)
	m.Sample(mc.z.P, rng)
	m.Velocity(mc.z.V, mc.z.P)
	mc.unit(mc.z.motion)
	return mc
}

// A kick is the flow of du/dt = (I − uuᵀ) g/(d−1) in the metric: two kicks are one of their sum, and energies add; for
// a short one the change of u is h times the right-hand side, with an error of h², and that of the energy is h g·u. The
// velocity keeps its length.
func TestKickIsTheFlow(t *testing.T) {
	states, _ := metrics()
	for _, state := range states {
		m := metric(t, state)
		rng := newStream(1, 2)
		make := func() *microcanonical {
			rng.Position = 0
			return built(t, Microcanonical{}, []float64{1, -2, 0.5}, gaussian(1, 2, 0.3), m, &rng)
		}
		one, two, short := make(), make(), make()
		whole := one.kick(0.9, 1.3)
		parts := two.kick(0.2, 1.3) + two.kick(0.7, 1.3)
		require.InDelta(t, whole, parts, 1e-12)
		for i := range one.z.P {
			require.InDelta(t, one.z.P[i], two.z.P[i], 1e-12)
		}
		require.InDelta(t, 1, dot(one.z.P, one.z.V), 1e-12)
		const h = 1e-5
		p := append([]float64(nil), short.z.P...)
		slope := dot(short.z.Grad, short.z.V)
		require.InDelta(t, h*slope, short.kick(h, 1), 1e-8)
		for i := range p {
			// uuᵀg in momenta is p (v·g).
			require.InDelta(t, h*(short.z.Grad[i]-p[i]*slope)/2, short.z.P[i]-p[i], 1e-8)
		}
	}
}

// A step goes back to where it came from, with the velocity turned, and its energy error is of third order.
func TestMicrocanonicalStep(t *testing.T) {
	g := gradientOf(banana)
	m := metric(t, diagonalMetric([]float64{0.5, 2}))
	rng := newStream(3, 4)
	n := 0
	failed := func(eps float64) float64 {
		rng.Position = 0
		mc := built(t, Microcanonical{}, []float64{0.7, 0.2}, banana, m, &rng)
		logp, x := mc.z.LogP, append([]float64(nil), mc.z.X...)
		change, err := mc.step(eps, 1, m, g, &n)
		require.NoError(t, err)
		out := change - (mc.z.LogP - logp)
		for i := range mc.z.P {
			mc.z.P[i], mc.z.V[i] = -mc.z.P[i], -mc.z.V[i]
		}
		back, err := mc.step(eps, 1, m, g, &n)
		require.NoError(t, err)
		require.InDelta(t, change, -back, 1e-12)
		require.InDeltaSlice(t, x, mc.z.X, 1e-12)
		return out
	}
	require.InEpsilon(t, 8, failed(0.02)/failed(0.01), 0.1)
	require.Equal(t, 8, n) // two gradients for each of four steps
}

// MAMS has the exact law of normal targets with long steps, at temperatures, and with each metric, and of logistic
// laws, whose variance is π²/3: within four standard errors. Of the long steps a twentieth or more is refused, so that
// a wrong rule would show: without it the variance is off by more than eight standard errors (TestMCLMCLaw).
func TestMAMSLaw(t *testing.T) {
	for _, d := range []int{2, 3, 20} {
		for _, temperature := range []float64{1, 0.25} {
			t.Run(fmt.Sprint(d, temperature), func(t *testing.T) {
				variance := make([]float64, d)
				for i := range variance {
					variance[i] = 1 + float64(i%3)
				}
				o := Options{Kernel: Microcanonical{Length: 1.3 * math.Sqrt(float64(d))}, Warmup: None, Draws: 8000, KeepStep: true,
					Temperature: temperature, StepSize: 1.8 * math.Sqrt(float64(d)*temperature), Seed: 5}
				r := run(t, gaussian(variance...), o)
				for i := range variance {
					variance[i] *= temperature
				}
				checkMoments(t, r, variance[0], variance[1])
				refused := 0.0
				for _, a := range r.Chains[0].Accept {
					refused += (1 - a) / 8000
				}
				require.Greater(t, refused, 0.05)
				require.Less(t, refused, 0.9)
			})
		}
	}
	logistic := Func(5, func(x, grad []float64) float64 {
		lp := 0.0
		for i, v := range x {
			lp -= v + 2*math.Log1p(math.Exp(-v))
			grad[i] = -math.Tanh(v / 2)
		}
		return lp
	})
	checkMoments(t, run(t, logistic, Options{Kernel: Microcanonical{}, Draws: 4000, Seed: 1}), math.Pi*math.Pi/3)
	for _, kind := range []MetricKind{Unit, Dense, LowRank} {
		checkMoments(t, run(t, pair(0.9), Options{Kernel: Microcanonical{}, Metric: kind, Draws: 4000, Seed: 2}), 1, 1)
	}
}

// MCLMC has the law of a normal target as far as its steps are short: within four standard errors at a variance of the
// energy error of 1e-6. With long steps the mean variance of the coordinates is off by more than eight. It comes back
// from a start that is 1000 standard deviations away. The step size that the warm-up finds is within a quarter of that
// with the variance that was asked for, which grows with its sixth power.
func TestMCLMCLaw(t *testing.T) {
	variance := make([]float64, 20)
	for i := range variance {
		variance[i] = 1
	}
	normal := gaussian(variance...)
	start := make([]float64, 20)
	start[0] = 1000
	r := run(t, normal, Options{Kernel: Microcanonical{Unadjusted: true, Variance: 1e-6}, Draws: 4000, Seed: 3,
		Init: [][]float64{start, start, start, start}})
	checkMoments(t, r, 1, 1)
	mean := 0.0
	for _, c := range r.Chains {
		for _, a := range c.Accept {
			mean += (1/a - 1) / float64(4*len(c.Accept)) // mean error² over the one that is aimed at
		}
	}
	require.InDelta(t, 0, math.Log(mean), 6*math.Log(1.25))
	long := run(t, normal, Options{Kernel: Microcanonical{Unadjusted: true}, Draws: 4000, Seed: 3, Warmup: None,
		KeepStep: true, StepSize: 1.6 * math.Sqrt(20)})
	var all [][]float64
	for k := range long.Chains {
		c := &long.Chains[k]
		var v []float64
		for i := range c.Len() {
			v = append(v, dot(c.Draw(i), c.Draw(i))/20)
		}
		all = append(all, v)
	}
	mean, se := estimate(all)
	require.Greater(t, math.Abs(mean-1), 8*se)
}

// Of a standard normal target in 30 dimensions the warm-up keeps L at √d: the autocorrelation time is at most 1/0.375.
// Where half of the coordinates are five times as wide and the metric may not help, L grows.
func TestLengthIsFound(t *testing.T) {
	variance := make([]float64, 30)
	for i := range variance {
		variance[i] = 1
	}
	length := func(o Options) float64 {
		o.Warmup, o.Draws = 1000, 1
		r := run(t, gaussian(variance...), o)
		sum := 0.0
		for _, c := range r.Snapshot.Chains {
			sum += c.Point.Length / 4
			require.Empty(t, c.Track)
		}
		return sum
	}
	normal := length(Options{Kernel: Microcanonical{}, Metric: Unit})
	require.InDelta(t, math.Sqrt(30), normal, 0.05*math.Sqrt(30)) // 350 draws of it scatter around less
	for i := range variance[:15] {
		variance[i] = 25
	}
	require.Greater(t, length(Options{Kernel: Microcanonical{}, Metric: Unit}), 1.5*normal)
	require.Zero(t, length(Options{Kernel: Microcanonical{Length: 3}}))
}

// MCLMC goes on from the last finite point where a step meets one that is not: a half line of NaN is never entered.
func TestMicrocanonicalNaN(t *testing.T) {
	wall := Func(2, func(x, grad []float64) float64 {
		grad[0], grad[1] = -x[0], -x[1]
		if x[0] > 0.5 {
			return math.NaN()
		}
		return -0.5 * (x[0]*x[0] + x[1]*x[1])
	})
	for _, c := range []Microcanonical{{}, {Unadjusted: true}} {
		r := run(t, wall, Options{Kernel: c, Draws: 500, Warmup: 200, Init: [][]float64{{0, 0}}, Chains: 1})
		met := false
		for i := range r.Chains[0].Len() {
			require.LessOrEqual(t, r.Chains[0].Draw(i)[0], 0.5)
			met = met || r.Chains[0].Divergent[i]
		}
		require.True(t, met)
	}
}

func TestMicrocanonicalErrors(t *testing.T) {
	for want, c := range map[string]Microcanonical{
		"Length is -1": {Length: -1}, "MaxSteps is -1": {MaxSteps: -1}, "Variance is -1": {Variance: -1},
		"MaxDeltaH is -1": {MaxDeltaH: -1},
	} {
		require.ErrorContains(t, Options{Kernel: c}.Check(0), want)
	}
	require.ErrorContains(t, Options{Kernel: Microcanonical{}}.Check(1), "must be at least 2")
	require.NoError(t, Options{Kernel: Microcanonical{}}.Check(0))
}
