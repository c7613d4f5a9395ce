package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Windows of ten transitions, five of them, then of 15, 22, ..., each the rounded half longer, as long as there is room
// for the one after; the last goes up to 15 % before the end. Worked out by hand.
func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		warmup int
		ends   []int
	}{
		{1000, []int{10, 20, 30, 40, 50, 65, 88, 123, 176, 256, 376, 556, 850}},
		{500, []int{10, 20, 30, 40, 50, 65, 88, 123, 176, 256, 425}},
		{120, []int{10, 20, 30, 40, 50, 65, 102}},
		{20, []int{17}},
		{10, []int{9}},
	} {
		s := newSchedule(c.warmup)
		var ends []int
		for _, e := range s.Ends {
			ends = append(ends, e+1)
		}
		assert.Equal(t, c.ends, ends, "warm-up %d", c.warmup)
		assert.Equal(t, c.ends[len(c.ends)-1], s.Final)
		assert.True(t, s.End(s.Ends[0]))
		assert.False(t, s.End(s.Ends[0]-1))
	}
}

// The metric is of the draws of two windows: those of the one before are forgotten at the end of the next. A chain that
// does not move at first leaves no draws of its start.
func TestFollowing(t *testing.T) {
	r, err := newRunner(gaussian(1, 2), Options{Chains: 1})
	require.NoError(t, err)
	c := r.chains[0]
	for i := range 850 {
		c.Point = position{X: []float64{math.Sin(float64(i)), math.Cos(float64(i))}}
		c.Point.Grad, c.Point.LogP = []float64{-c.Point.X[0], -c.Point.X[1] / 2}, c.Point.X[0]
		r.follow(c, i, Info{Accepted: i >= 5})
		switch i {
		case 6:
			assert.False(t, c.Estimated)
		case 7: // the third draw
			assert.True(t, c.Estimated)
		case 9:
			assert.Equal(t, []int{5, 0}, []int{c.Mass.X.N, c.Next.X.N})
		case 555:
			assert.Equal(t, []int{180, 0}, []int{c.Mass.X.N, c.Next.X.N})
		case 848:
			assert.Equal(t, []int{180 + 293, 293}, []int{c.Mass.X.N, c.Next.X.N})
		}
	}
}

// The metric starts from the gradient: 1/|g| of logp/T, at least 1e-20, and at most 1 or the square of the number.
func TestMovingStart(t *testing.T) {
	for _, kind := range []MetricKind{Diagonal, LowRank} {
		r, err := newRunner(gaussian(1, 1, 1, 1), Options{Chains: 1, Metric: kind, Temperature: 2})
		require.NoError(t, err)
		c := r.chains[0]
		c.Point = position{X: []float64{0, -3, -10, 0}, Grad: []float64{4, -0.5, 0, 1e300}}
		r.startMetric(c)
		assert.Equal(t, []float64{0.5, 4, 100, 1e-20}, c.metric.State().Diag)
	}
	given := diagonalMetric([]float64{3})
	for _, o := range []Options{{}, {InitialMetric: &given}, {Pooled: true}} {
		o.Chains, o.Warmup, o.Draws, o.Init = 1, 20, 1, [][]float64{{10}}
		var first *Snapshot
		o.CheckpointEvery, o.Checkpoint = 1, func(s *Snapshot) error {
			if first == nil {
				first = s
			}
			return nil
		}
		run(t, gaussian(1), o)
		switch m := first.Chains[0].Metric; {
		case o.InitialMetric != nil:
			assert.Equal(t, given, m)
		default:
			assert.Equal(t, Diagonal, m.Kind)
			assert.NotEqual(t, given, m)
		}
	}
}

// The Fisher metric of a Gaussian is its variance from any draws, so that it is exact whenever the warm-up ends, from
// the fourth transition on; it is Tσ² at a temperature. (See TestFisherDiagonalIsExact.)
func TestMovingMetricIsExact(t *testing.T) {
	for _, kind := range []MetricKind{Diagonal, LowRank} {
		for _, temperature := range []float64{1, 0.5} {
			r := run(t, gaussian(1e-4, 1, 1e6), Options{Metric: kind, Temperature: temperature, Warmup: 50, Draws: 1, Chains: 2})
			for _, m := range r.Metrics {
				for i, v := range []float64{1e-4, 1, 1e6} {
					assert.InEpsilon(t, temperature*v, m.Diag[i], 1e-8)
				}
			}
		}
	}
}

// In the last part of the warm-up the acceptance that the step size is tuned by is symmetric: a trajectory that gains
// energy counts as one that loses as much. For one leapfrog step of NUTS it is 2 min(1, e^-Δ)/(1 + e^-Δ) = 1 - tanh
// |Δ/2|.
func TestSymmetricAcceptance(t *testing.T) {
	tr, err := NUTS{MaxDepth: 1}.build(2)
	require.NoError(t, err)
	g, m, rng := gradientOf(gaussian(1, 4)), metric(t, unitMetric(2)), newStream(3, 0)
	s, err := newState([]float64{2, 1}, g)
	require.NoError(t, err)
	up, down := 0, 0
	for range 50 {
		other, z := rng, newPhase(2)
		copy(z.X, s.X)
		copy(z.Grad, s.Grad)
		z.LogP = s.LogP
		m.Sample(z.P, &other)
		m.Velocity(z.V, z.P)
		h := z.Energy(1)
		eps := 0.9
		if other.Float64() < 0.5 {
			eps = -eps
		}
		require.NoError(t, leapfrog(&z, eps, 1, m, g))
		delta := z.Energy(1) - h
		info, err := tr.Step(&s, 0.9, 1, m, g, &rng)
		require.NoError(t, err)
		require.InDelta(t, 1-math.Tanh(math.Abs(delta)/2), info.symmetric, 1e-12)
		require.InDelta(t, math.Min(1, math.Exp(-delta)), info.Accept, 1e-12)
		if delta > 0 {
			up++
		} else {
			down++
		}
	}
	assert.Positive(t, up)
	assert.Positive(t, down)
}

// The constants of dual averaging are the options'. By default they are Stan's, but for NUTS without a ladder.
func TestDualAveragingOptions(t *testing.T) {
	r, err := newRunner(gaussian(1), Options{})
	require.NoError(t, err)
	assert.Equal(t, dualAveraging{Target: 0.8, Gamma: 0.2, T0: 10, Kappa: 0.75, Pull: 2}, r.averages)
	r, err = newRunner(gaussian(1), Options{TargetAccept: 0.9, Gamma: 0.1, T0: 5, Kappa: 0.6})
	require.NoError(t, err)
	assert.Equal(t, dualAveraging{Target: 0.9, Gamma: 0.1, T0: 5, Kappa: 0.6, Pull: 2}, r.averages)
	for _, o := range []Options{{Kernel: HMC{}}, {Ladder: []float64{1, 2}}} {
		r, err = newRunner(gaussian(1), o)
		require.NoError(t, err)
		assert.Equal(t, dualAveraging{Target: 0.8, Gamma: 0.05, T0: 10, Kappa: 0.75, Pull: 10}, r.averages)
	}
	for field, o := range map[string]Options{"Gamma": {Gamma: -1}, "T0": {T0: math.Inf(1)}, "Kappa": {Kappa: 0.5}} {
		_, err := newRunner(gaussian(1), o)
		var wrong *FieldError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, FieldError{"kernel.Options", field, wrong.Value, wrong.Allowed}, *wrong)
	}
}

// Which metric a run has, and whether it adapts.
func TestDefaultMetric(t *testing.T) {
	for _, c := range []struct {
		o       Options
		kind    MetricKind
		follows bool
	}{
		{Options{}, auto, true}, {Options{Metric: LowRank}, LowRank, true}, {Options{Kernel: HMC{}}, auto, true},
		{Options{Metric: Dense}, Dense, true}, {Options{Metric: Unit}, Unit, false}, {Options{Pooled: true}, Diagonal, true},
		{Options{Kernel: HMC{Bounce: true, Lower: []float64{0, 0}}}, Diagonal, true},
		{Options{KeepMetric: true}, auto, false}, {Options{Warmup: 19}, auto, false},
	} {
		r, err := newRunner(gaussian(1, 1), c.o)
		require.NoError(t, err)
		assert.Equal(t, c.kind, r.Metric, "%+v", c.o)
		assert.Equal(t, c.follows, r.follows, "%+v", c.o)
	}
	assert.Equal(t, Diagonal, Options{}.defaultMetric(autoDim+1))
	assert.Equal(t, Diagonal, Options{}.defaultMetric(1))
}

// funnel is Neal's: x₀ ~ N(0, 3²) and the others N(0, e^x₀). Its neck is too narrow for any step size.
func funnel(d int) Density {
	return Func(d, func(x, grad []float64) float64 {
		precision := math.Exp(-x[0])
		sum := 0.0
		for i := 1; i < d; i++ {
			sum += x[i] * x[i]
			grad[i] = -x[i] * precision
		}
		grad[0] = -x[0]/9 - float64(d-1)/2 + sum*precision/2
		return -x[0]*x[0]/18 - float64(d-1)*x[0]/2 - sum*precision/2
	})
}

// A chain that diverges while it warms up gets the raised target: its mean acceptance in the last part of the warm-up,
// where the metric stands, is the raised one's, not 0.8. It is tuned to within γ|μ - x|(n + t₀)/n^1.5, as in
// TestTargetIsMet: 0.023 for |μ - x| < 3 and n = 700, the updates since an early rise. A later rise leaves fewer, which
// 0.04 has room for; it still tells 0.9 from 0.8. With a target of the user's own, and on a normal distribution,
// nothing is raised.
func TestTargetIsRaised(t *testing.T) {
	for _, c := range []struct {
		name   string
		of     Density
		target float64
		raised bool
	}{
		{"funnel", funnel(6), 0, true},
		{"funnel, own target", funnel(6), 0.8, false},
		{"normal", gaussian(1, 4, 9, 16, 25), 0, false},
	} {
		sum, n := 0.0, 0
		r := run(t, c.of, Options{Chains: 8, Draws: 1, Seed: 5, TargetAccept: c.target,
			Record: func(_, draw int, _ []float64, info Info) error {
				if info.Warmup && draw >= 850 {
					sum += info.symmetric
					n++
				}
				return nil
			}})
		for _, s := range r.Snapshot.Chains {
			assert.Equal(t, c.raised, s.Raised, "%s, chain %d", c.name, s.Number)
		}
		want := map[bool]float64{true: raisedTarget, false: 0.8}[c.raised]
		t.Logf("%s: acceptance %.3f of %d", c.name, sum/float64(n), n)
		assert.InDelta(t, want, sum/float64(n), 0.04, c.name)
	}
}

// A raised target survives a checkpoint: the run goes on to the same draws, bit for bit.
func TestRaisedTargetResumes(t *testing.T) {
	var raised *Snapshot // the first checkpoint of the warm-up with a raised chain
	o := Options{Chains: 4, Warmup: 400, Draws: 50, Seed: 5, CheckpointEvery: 20, Checkpoint: func(s *Snapshot) error {
		if raised == nil && slices.ContainsFunc(s.Chains, func(c chainState) bool { return c.Raised }) {
			raised = s
		}
		return nil
	}}
	full := run(t, funnel(6), o)
	require.NotNil(t, raised)
	require.Less(t, raised.Chains[0].Done, 400)
	o.Checkpoint = func(*Snapshot) error { return nil }
	rest, err := resume(funnel(6), o, carry(t, raised, "json"))
	require.NoError(t, err)
	joined(t, full, full, rest)
}
