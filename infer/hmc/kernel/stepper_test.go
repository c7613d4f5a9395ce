package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The steps are those of the run, from every snapshot again; a snapshot is not changed.
func TestSteps(t *testing.T) {
	for name, o := range configurations {
		if o.Thin > 1 || o.Temperature != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			d := schools
			o = configured(o)
			o.Init = slices.Repeat([][]float64{{3, 1.2, 0.1, -0.5, 0.7, 1, -1, 0.3, 0.2, -0.9}}, o.Chains)
			want := run(t, d, o)
			p := &Stepper{Options: o}
			var s *Snapshot
			var states []*Snapshot
			for i := range o.Warmup + o.Draws {
				next, infos, err := p.Step(d, s, 0, 0)
				require.NoError(t, err)
				require.Equal(t, i < o.Warmup, infos[0].Warmup)
				states = append(states, s)
				s = next
				if i < o.Warmup {
					continue
				}
				for k, c := range s.Chains {
					require.Equal(t, want.Chains[k].Draw(i-o.Warmup), c.Point.X)
					require.Equal(t, want.Chains[k].Energy[i-o.Warmup], infos[k].Energy)
				}
			}
			for _, i := range []int{140, 17, 0, 110, 108, 109} {
				again, _, err := p.Step(d, states[i], 0, 0)
				require.NoError(t, err)
				fresh, _, err := (&Stepper{Options: o}).Step(d, carryOrNil(t, states[i]), 0, 0)
				require.NoError(t, err)
				for k := range again.Chains {
					require.Equal(t, states[i+1].Chains[k].Point, again.Chains[k].Point)
					require.Equal(t, states[i+1].Chains[k].Point, fresh.Chains[k].Point)
					require.Equal(t, states[i+1].Chains[k].Metric, again.Chains[k].Metric)
				}
			}
		})
	}
}

func carryOrNil(t *testing.T, s *Snapshot) *Snapshot {
	if s == nil {
		return nil
	}
	return carry(t, s, "gob")
}

// After the first step a step of a chain makes no machinery: what is left are the snapshot and the numbers of the
// chains.
func TestStepsAreCheap(t *testing.T) {
	d := gaussian(make1(50)...)
	for _, chains := range []int{1, 16} {
		p := &Stepper{Options: Options{Chains: chains, Warmup: None, StepSize: 0.5, KeepStep: true,
			Init: slices.Repeat([][]float64{make1(50)}, chains)}}
		s, _, err := p.Step(d, nil, 0, 0)
		require.NoError(t, err)
		machinery := p.r
		allocations := testing.AllocsPerRun(20, func() {
			if s, _, err = p.Step(d, s, 0, 0); err != nil {
				t.Error(err)
			}
		})
		assert.Same(t, machinery, p.r)
		assert.Less(t, allocations, float64(20*chains+20), "%d chains", chains)
		t.Logf("%d chains: %.0f allocations", chains, allocations)
	}
}

// warm is half a normal law of precision beta on y = e^x: logp + T log |dy/dx| = -beta y²/2 + T x, so that y has the
// density exp(-beta y²/2T) whatever T: E y² = T/beta.
type warm struct{ beta float64 }

func (warm) Dim() int { return 1 }

func (w warm) ValueAndGrad(x, logp, grad []float64) error { panic("not called") }

func (w warm) ValueAndGradAt(x, t, logp, grad []float64) error {
	for k := range logp {
		y := math.Exp(x[k])
		logp[k], grad[k] = -w.beta*y*y/2+t[k]*x[k], -w.beta*y*y+t[k]
	}
	return nil
}

// A density that depends on the temperature gets that of each row, on ladders, under a schedule and alone.
func TestTemperedDensities(t *testing.T) {
	square := func(x []float64) float64 { return math.Exp(2 * x[0]) }
	mean := func(x []float64) float64 { return math.Exp(x[0]) }
	for _, temperature := range []float64{0.25, 1, 4} {
		r := run(t, warm{2}, Options{Temperature: temperature, Warmup: 300, Draws: 2000, Seed: 1})
		check(t, r, "E y²", temperature/2, square)
		check(t, r, "E y", math.Sqrt(temperature/math.Pi), mean)
	}
	ladder := geometric(0.5, 8, 4)
	for _, kernel := range []Kernel{NUTS{}, HMC{Length: 1, Jitter: 0.5, Persistence: 0.3}} {
		r := run(t, warm{2}, Options{Kernel: kernel, Chains: 2, Warmup: 300, Draws: 4000, Seed: 2, Ladder: ladder,
			SwapEvery: 1})
		for i, temperature := range ladder {
			at := &sampled{Result: r.Result, Dim: 1, Chains: []drawn{r.Chains[i], r.Chains[4+i]}}
			check(t, at, "E y²", temperature/2, square)
			check(t, at, "E y", math.Sqrt(temperature/math.Pi), mean)
		}
		for pair := range 3 {
			assert.Greater(t, r.Swaps[0].Rate(pair), 0.2)
			assert.NotEqual(t, r.Swaps[0].Accepted, r.Swaps[1].Accepted, "ladders have numbers of their own")
		}
	}
	// Every other transition at T = 4: after many at T = 1 the draws that follow have that temperature's law.
	r := run(t, warm{2}, Options{
		Warmup: 300, Draws: 4000, Seed: 3, Thin: 12, KeepStep: true,
		Schedule: func(i int) (float64, float64) {
			if (i-300)%12 < 2 {
				return 0.5, 4
			}
			return 0.4, 1
		},
	})
	check(t, r, "E y²", 0.5, square)
}

// A run under a schedule goes on from its checkpoints, also where the temperature has just changed.
func TestSchedulesResume(t *testing.T) {
	var snapshots []*Snapshot
	o := Options{Chains: 3, Warmup: 40, Draws: 40, Seed: 5, KeepStep: true, CheckpointEvery: 9,
		Schedule: func(i int) (float64, float64) { return 0.3, 1 + float64(i/3%2) }}
	o.Checkpoint = func(s *Snapshot) error { snapshots = append(snapshots, s); return nil }
	full := run(t, warm{1}, o)
	require.Len(t, snapshots, 8)
	o.Checkpoint = func(*Snapshot) error { return nil }
	for _, s := range snapshots {
		rest, err := resume(warm{1}, o, carry(t, s, "gob"))
		require.NoError(t, err)
		joined(t, full, full, rest)
	}
	o.Schedule = func(int) (float64, float64) { return 0, -1 }
	_, err := sample(t.Context(), warm{1}, o)
	require.ErrorContains(t, err, "Temperature at transition 0 is -1")
}
