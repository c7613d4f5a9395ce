package kernel

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shared is a density that may be called from several goroutines. In its first calls it waits until as many are inside
// as there are chains, which only chains that call it themselves can bring about.
type shared struct {
	Density
	concurrent bool
	chains     int
	calls      atomic.Int64
	together   sync.WaitGroup
	rows       atomic.Int64 // of the largest call
}

func newShared(d Density, concurrent bool, chains int) *shared {
	s := &shared{Density: d, concurrent: concurrent, chains: chains}
	s.together.Add(chains)
	return s
}

func (s *shared) Concurrent() bool { return s.concurrent }

func (s *shared) ValueAndGrad(x, logp, grad []float64) error {
	for n := s.rows.Load(); int(n) < len(logp) && !s.rows.CompareAndSwap(n, int64(len(logp))); n = s.rows.Load() {
	}
	if s.concurrent && int(s.calls.Add(1)) <= s.chains {
		s.together.Done()
		s.together.Wait()
	}
	return s.Density.ValueAndGrad(x, logp, grad)
}

// sharedAt is one that depends on the temperature: exp(logp/T) is then N(0, T I)·exp(-x₀), as if exp(-x₀) were not
// tempered.
type sharedAt struct{ *shared }

func (s sharedAt) ValueAndGradAt(x, t, logp, grad []float64) error {
	if err := s.ValueAndGrad(x, logp, grad); err != nil {
		return err
	}
	for k := range logp {
		logp[k] -= t[k] * x[k*s.Dim()]
		grad[k*s.Dim()] -= t[k]
	}
	return nil
}

// A density that says that it may be called from several goroutines is called by the chains, one point at a time; one
// that says the contrary is called in batches. The draws are the same.
func TestConcurrentDensity(t *testing.T) {
	const chains = 3
	for name, o := range map[string]Options{
		"NUTS":   {Chains: chains, Warmup: 60, Draws: 40, Temperature: 2},
		"ladder": {Chains: 1, Warmup: 60, Draws: 40, Ladder: []float64{1, 2, 4}},
	} {
		for _, at := range []bool{false, true} {
			draws := map[bool]*sampled{}
			for _, concurrent := range []bool{false, true} {
				s := newShared(gaussian(1, 2, 3), concurrent, chains)
				var d Density = s
				if at {
					d = sharedAt{s}
				}
				r := run(t, d, o)
				if concurrent {
					assert.Zero(t, r.Batches, name)
					assert.LessOrEqual(t, s.rows.Load(), int64(2), "swaps alone are evaluated together")
				} else {
					assert.Positive(t, r.Batches, name)
					assert.Equal(t, int64(chains), s.rows.Load())
				}
				draws[concurrent] = r
			}
			sameDraws(t, draws[false], draws[true])
		}
	}
}

// recoverableError says that only the point was bad.
type recoverableError struct{ error }

func (recoverableError) Recoverable() bool { return true }

type wall struct{ Density }

func (w wall) Concurrent() bool { return true }

func (w wall) ValueAndGrad(x, logp, grad []float64) error {
	if x[0] > 1 {
		return recoverableError{errors.New("wall")}
	}
	return w.Density.ValueAndGrad(x, logp, grad)
}

// Where a density that is called directly fails for the point alone, that is a divergence: the half line is never
// entered, and the run goes on. The law is the normal law cut at 1, whose mean is -φ(1)/Φ(1).
func TestDirectRecovers(t *testing.T) {
	r := run(t, wall{gaussian(1)}, Options{Kernel: HMC{Steps: 3, Jitter: 0.5}, Chains: 2, Warmup: None, StepSize: 0.4,
		Draws: 10000, Init: [][]float64{{0}, {0.5}}})
	phi := math.Exp(-0.5) / math.Sqrt(2*math.Pi)
	check(t, r, "cut normal", -phi/(0.5*math.Erfc(-1/math.Sqrt2)), func(x []float64) float64 { return x[0] })
}

// Neither a transition nor a leapfrog step allocates: a run of many more draws makes as many objects as a short one.
// HMC with a kept momentum is among them.
func TestTransitionsAllocateNothing(t *testing.T) {
	d := gaussian(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	for _, c := range []Kernel{NUTS{}, HMC{Length: 2, Jitter: 0.5, Persistence: 0.5}} {
		for _, m := range []MetricKind{Unit, Diagonal, Dense, LowRank} {
			for _, temperature := range []float64{1, 0.5} {
				allocations := func(draws int) float64 {
					return testing.AllocsPerRun(1, func() {
						_, err := Run(t.Context(), d, Options{Kernel: c, Chains: 1, Warmup: 200, Draws: draws, Metric: m,
							Temperature: temperature, Record: func(int, int, []float64, Info) error { return nil }})
						require.NoError(t, err)
					})
				}
				// Collections of garbage add some of their own; one object in ten transitions would add 290.
				assert.InDelta(t, allocations(100), allocations(3000), 290, "%T %s %v", c, m, temperature)
			}
		}
	}
}

// Warm-up transitions allocate nothing either, but for the ends of windows, where a low-rank metric may be made: there
// are 8 more in the longer warm-up, and one object in four transitions would add 725.
func TestWarmupAllocatesNothing(t *testing.T) {
	d := gaussian(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	for _, temperature := range []float64{1, 0.5} {
		for _, kind := range []MetricKind{"", Diagonal} {
			allocations := func(warmup int) float64 {
				return testing.AllocsPerRun(1, func() {
					_, err := Run(t.Context(), d, Options{Chains: 1, Warmup: warmup, Draws: 1, Temperature: temperature, Metric: kind})
					require.NoError(t, err)
				})
			}
			assert.InDelta(t, allocations(100), allocations(3000), 725, "%v %q", temperature, kind)
		}
	}
}

// stairs is a density with steps down of 900 that its gradient does not know of: a trajectory that comes down gains a
// weight that is no number.
var stairs = Func(3, func(x, grad []float64) float64 {
	lp := 0.0
	for i, e := range x {
		grad[i] = -e
		lp -= e * e / 2
	}
	return lp - 900*math.Floor(math.Abs(x[0])/2)
})

// Weights beyond the range of numbers choose the points that their logarithms choose.
func TestNUTSWeightsOverflow(t *testing.T) {
	tr, err := NUTS{MaxDeltaH: 5000}.build(3)
	require.NoError(t, err)
	rng := newStream(9, 0)
	rebased := 0
	for k := range 200 {
		m := metric(t, unitMetric(3))
		x := []float64{4.5 + 0.01*float64(k), 0.3, -0.2}
		s, err := newState(x, gradientOf(stairs))
		require.NoError(t, err)
		other := rng
		z := newPhase(3)
		copy(z.X, s.X)
		copy(z.Grad, s.Grad)
		z.LogP = s.LogP
		ref := reference{m: m, g: gradientOf(stairs), rng: &other, eps: 0.2, temp: 1, maxDeltaH: 5000}
		want, depth := ref.step(z, 10)
		info, err := tr.Step(&s, 0.2, 1, m, gradientOf(stairs), &rng)
		require.NoError(t, err)
		require.Equal(t, want.X, s.X)
		require.Equal(t, depth, info.Depth)
		require.Equal(t, ref.n, info.Leapfrogs)
		if s.LogP > z.LogP+1500 {
			rebased++
		}
	}
	assert.Positive(t, rebased)
}
