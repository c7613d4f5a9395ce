package kernel

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// modes is 0.3 N(-4, 0.5²) + 0.7 N(4, 1²) in the first of two coordinates: the barrier at T = 1 is eight and more
// units high.
var modes = Func(2, func(x, grad []float64) float64 {
	a, b := (x[0]+4)/0.5, x[0]-4
	la, lb := math.Log(0.3/0.5)-a*a/2, math.Log(0.7)-b*b/2
	lp := logAddExp(la, lb)
	wa, wb := math.Exp(la-lp), math.Exp(lb-lp)
	grad[0] = -wa*a/0.5 - wb*b
	grad[1] = -x[1]
	return lp - x[1]*x[1]/2
})

// Replica exchange finds both modes, with weights 0.3 and 0.7, and the moments of the mixture: E x = 0.3·(-4) + 0.7·4
// = 1.6, E x² = 0.3·16.25 + 0.7·17 = 16.775. NUTS alone stays where it starts.
func TestExchangeBimodal(t *testing.T) {
	ladder := geometric(1, 20, 6)
	for _, kernel := range []Kernel{NUTS{}, HMC{Length: 2, Jitter: 0.5}, HMC{Steps: 3, Persistence: 0.5}} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%T %d", kernel, seed), func(t *testing.T) {
				r, err := sample(context.Background(), modes, Options{
					Kernel: kernel, Chains: 1, Warmup: 500, Draws: 10000, Seed: seed, Parallel: true, Init: [][]float64{{-4, 0}},
					Ladder: ladder, SwapEvery: 2,
				})
				require.NoError(t, err)
				cold := &sampled{Dim: 2, Chains: r.Chains[:1]}
				check(t, cold, "weight", 0.7, func(x []float64) float64 {
					if x[0] > 0 {
						return 1
					}
					return 0
				})
				check(t, cold, "mean", 1.6, func(x []float64) float64 { return x[0] })
				check(t, cold, "square", 16.775, func(x []float64) float64 { return x[0] * x[0] })
				for i, temperature := range ladder {
					check(t, &sampled{Dim: 2, Chains: r.Chains[i : i+1]}, "variance of x₁", temperature,
						func(x []float64) float64 { return x[1] * x[1] })
				}
				trips := 0
				for _, n := range r.Swaps[0].RoundTrips {
					trips += n
				}
				for i := range ladder[1:] {
					t.Logf("pair %d: swap rate %.3f", i, r.Swaps[0].Rate(i))
				}
				t.Log("round trips", r.Swaps[0].RoundTrips)
				assert.Greater(t, trips, 20)
			})
		}
	}
	alone := run(t, modes, Options{Warmup: 100, Draws: 1000, Chains: 1, Init: [][]float64{{-4, 0}}})
	for i := range 1000 {
		require.Negative(t, alone.Chains[0].Draw(i)[0])
	}
}

// On a d-dimensional Gaussian U/T has the law Gamma(d/2, 1), so the swap rate of two temperatures of ratio ρ < 1 (cold
// over hot) is E min(1, exp((1 - ρ)(E - H/ρ))), E, H ~ Gamma(d/2, 1) independent: it depends on ρ and d only. For d =
// 2, where both are exponential, it is 2ρ/(1 + ρ). Each pair of a geometric ladder must have it, in binomial standard
// errors: four transitions of NUTS between two tries of a pair leave them all but independent.
func TestSwapRates(t *testing.T) {
	const n = 5
	ladder := geometric(0.5, 8, n)
	rho := ladder[0] / ladder[1]
	for _, dim := range []int{2, 10} {
		want := gaussianSwapRate(dim, rho)
		if dim == 2 {
			assert.InDelta(t, 2*rho/(1+rho), want, 1e-3)
		}
		r, err := sample(context.Background(), gaussian(make1(dim)...), Options{
			Chains: 1, Warmup: 300, Draws: 8000, Seed: 3, Parallel: true, Ladder: ladder, SwapEvery: 2,
		})
		require.NoError(t, err)
		for i := range n - 1 {
			rate, tries := r.Swaps[0].Rate(i), float64(r.Swaps[0].SamplingTried[i])
			t.Logf("d = %d, pair %d: %.4f of %.0f, law %.4f", dim, i, rate, tries, want)
			assert.InDelta(t, want, rate, 4*math.Sqrt(want*(1-want)/tries))
			assert.InDelta(t, 2000, tries, 1)
		}
		for i, temperature := range ladder {
			check(t, &sampled{Dim: dim, Chains: r.Chains[i : i+1]}, "variance", temperature,
				func(x []float64) float64 { return x[0] * x[0] })
		}
	}
}

// gaussianSwapRate is E min(1, e^Δ), Δ = (1/Tc - 1/Th)(Uc - Uh) with Uc = Tc a, Uh = Th b, a and b ~ Gamma(d/2, 1), by
// the midpoint rule on a grid of quantile-like cells.
func gaussianSwapRate(d int, rho float64) float64 {
	k := float64(d) / 2
	lg, _ := math.Lgamma(k)
	const h, top = 0.02, 40.0
	sum := 0.0
	for a := h / 2; a < top; a += h {
		pa := math.Exp((k-1)*math.Log(a)-a-lg) * h
		if pa < 1e-12 {
			continue
		}
		for b := h / 2; b < top; b += h {
			pb := math.Exp((k-1)*math.Log(b)-b-lg) * h
			// (1/Tc - 1/Th)(Tc a - Th b) = (1 - ρ)(a - b/ρ), ρ = Tc/Th
			sum += pa * pb * math.Min(1, math.Exp((1-rho)*(a-b/rho)))
		}
	}
	return sum
}

// The run repeats, is resumed from checkpoints and after a cancellation to the same draws and swaps.
func TestExchangeResume(t *testing.T) {
	ladder := geometric(1, 8, 4)
	d := mixes{modes}
	var snapshots []*Snapshot
	o := Options{
		Chains: 1, Warmup: 60, Draws: 60, Seed: 4, Kernel: HMC{Steps: 5, Persistence: 0.3}, CheckpointEvery: 15,
		Ladder: ladder, SwapEvery: 5,
	}
	o.Checkpoint = func(s *Snapshot) error { snapshots = append(snapshots, s); return nil }
	full, err := sample(context.Background(), d, o)
	require.NoError(t, err)
	o.Checkpoint = func(*Snapshot) error { return nil }
	again, err := sample(context.Background(), d, o)
	require.NoError(t, err)
	sameDraws(t, full, again)
	require.Equal(t, full.Swaps, again.Swaps)
	require.Len(t, snapshots, 7)
	for i, s := range snapshots {
		rest, err := resume(d, o, carry(t, s, []string{"json", "gob"}[i%2]))
		require.NoError(t, err)
		joined(t, full, full, rest)
		require.Equal(t, counts(full.Swaps[0]), counts(rest.Swaps[0]))
	}
	o.Checkpoint = nil
	pure, err := sample(context.Background(), modes, o)
	require.NoError(t, err)
	for _, at := range []int{1, 100, 700, 1500, 2200} {
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		part, err := sample(ctx, Func(2, func(x, grad []float64) float64 {
			if n++; n == at {
				cancel()
			}
			return modes.(funcDensity).f(x, grad)
		}), o)
		cancel()
		require.ErrorIs(t, err, context.Canceled)
		rest, err := resume(modes, o, carry(t, part.Snapshot, "gob"))
		require.NoError(t, err)
		joined(t, pure, part, rest)
		require.Equal(t, counts(pure.Swaps[0]), counts(rest.Swaps[0]))
	}
	s := snapshots[0]
	s.Swaps[0].Replica[0] = 3
	_, err = resume(d, o, s)
	require.ErrorIs(t, err, errSnapshot)
}

// Ladders that move, paths, random pairs, trials of step sizes, descents and kept draws repeat and are resumed in the
// same way: from every checkpoint, the first of them before the ladder has moved.
func TestExchangeResumeAll(t *testing.T) {
	path := powers{2, 20, twentyApart}
	for name, c := range map[string]struct {
		den Density
		o   Options
	}{
		"full, adapted": {modes, Options{Ladder: geometric(1, 8, 4), Adapt: true, SwapEvery: 3, KeepHot: true,
			Parallel: true}},
		"path, adapted": {path, Options{Ladder: append(falling(0.01, 3), 0), Path: "powers", Adapt: true, SwapEvery: 2,
			KeepHot: true}},
		"random pairs, trials": {path, Options{Ladder: falling(0.01, 4), Path: "powers", RandomPairs: true, SwapEvery: 2,
			Trials: 4, TrialEvery: 9, Kernel: HMC{Steps: 3, Persistence: 0.4}, Minimise: 20}},
	} {
		t.Run(name, func(t *testing.T) {
			var snapshots []*Snapshot
			o := c.o
			o.Chains, o.Warmup, o.Draws, o.Seed, o.CheckpointEvery = 2, 60, 40, 4, 10
			o.Checkpoint = func(s *Snapshot) error { snapshots = append(snapshots, s); return nil }
			full, err := sample(context.Background(), c.den, o)
			require.NoError(t, err)
			require.Len(t, snapshots, 9)
			o.Checkpoint = func(*Snapshot) error { return nil }
			if o.Adapt {
				assert.Equal(t, o.Ladder, snapshots[0].Swaps[0].Ladder)
				assert.NotEqual(t, o.Ladder, full.Swaps[0].Ladder)
				assert.NotEqual(t, full.Swaps[1].Ladder, full.Swaps[0].Ladder)
			}
			for i, s := range snapshots {
				rest, err := resume(c.den, o, carry(t, s, []string{"json", "gob"}[i%2]))
				require.NoError(t, err)
				joined(t, full, full, rest)
				require.Equal(t, counts(full.Swaps[1]), counts(rest.Swaps[1]))
				require.Equal(t, full.Hot, rest.Hot)
				require.Equal(t, full.StepSizes, rest.StepSizes)
			}
			if o.KeepHot {
				require.Len(t, full.Hot, 3)
				for i, d := range full.Hot {
					for l := range 2 {
						require.Equal(t, 40, d.Len(l))
						require.Equal(t, full.Chains[l*4+i+1].Draw(7), d.Row(l, 7))
					}
				}
			} else {
				require.Nil(t, full.Hot)
			}
			for _, other := range []func(*Options){
				func(o *Options) { o.RandomPairs = !o.RandomPairs }, func(o *Options) { o.Minimise++ },
				func(o *Options) { o.Trials++ }, func(o *Options) { o.KeepHot = !o.KeepHot },
			} {
				p := o
				other(&p)
				_, err = resume(c.den, p, snapshots[3])
				require.ErrorIs(t, err, errSnapshot)
			}
			bad := carry(t, snapshots[8], "gob")
			bad.Swaps[0].Ladder[1] *= 1.5
			_, err = resume(c.den, o, bad)
			require.ErrorIs(t, err, errSnapshot)
		})
	}
}

// counts leaves out what a stream keeps besides its position.
func counts(s Swaps) Swaps {
	s.Stream = stream{Seed: s.Stream.Seed, Chain: s.Stream.Chain, Position: s.Stream.Position}
	return s
}

func TestExchangeErrors(t *testing.T) {
	for name, o := range map[string]Options{
		"Ladder": {Ladder: []float64{1}}, "Ladder[1]": {Ladder: []float64{1, 1}}, "Ladder[0]": {Ladder: []float64{0, 1}},
		"SwapEvery": {Ladder: []float64{1, 2}, SwapEvery: -1}, "Pooled": {Ladder: []float64{1, 2}, Pooled: true},
		"Ladder[2]": {Ladder: []float64{1, 0.5, 0.7}, Path: "powers"},
		"Ladder[3]": {Ladder: []float64{1, 0.5, 0.1, -0.1}, Path: "powers"},
		"Path":      {Ladder: []float64{1, 0}, Path: "powers"}, "Warmup": {Ladder: []float64{1, 2}, Adapt: true, Warmup: 15},
		"Minimise": {Minimise: -2}, "Trials": {Trials: -2}, "TrialEvery": {Trials: 1, TrialEvery: -1},
		"Draws": {Ladder: []float64{1, 2}, Draws: -1}, "Temperature": {Ladder: []float64{1, 2}, Temperature: 2},
	} {
		_, err := sample(context.Background(), modes, o)
		var field *FieldError
		require.ErrorAs(t, err, &field)
		assert.Equal(t, name, field.Field)
	}
}
