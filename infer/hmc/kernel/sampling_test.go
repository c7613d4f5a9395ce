package kernel

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// All kernels leave exp(logp/T) invariant whatever the step size, so at a coarse fixed step size, where acceptance
// matters, the means are 0 and the variances T σ².
func TestGaussianAtTemperatures(t *testing.T) {
	for _, c := range []struct {
		kernel Kernel
		eps    float64
		draws  int
	}{
		{NUTS{}, 1.2, 3000},
		{HMC{Steps: 3, Jitter: 0.6}, 1.1, 4000},
		{HMC{Steps: 4}, 0.9, 4000},
		{HMC{Steps: 2, Persistence: 0.7}, 1.1, 6000},
		{HMC{Length: 2.5, Jitter: 0.3}, 0.8, 4000},
		{HMC{Steps: 1}, 1.2, 12000},
		{HMC{Steps: 1, Persistence: 0.8}, 1, 12000},
	} {
		for _, temperature := range []float64{0.5, 1, 2} {
			t.Run(fmt.Sprintf("%T%+v at %v", c.kernel, c.kernel, temperature), func(t *testing.T) {
				r := run(t, gaussian(1, 2), Options{
					Kernel: c.kernel, Temperature: temperature, Warmup: None, Draws: c.draws, Chains: 2, Seed: 3, Thin: 2,
					StepSize: c.eps * math.Sqrt(temperature), Init: [][]float64{{0, 0}, {1, -1}}, Parallel: true,
				})
				checkMoments(t, r, temperature, 2*temperature)
				energy := 0.0
				for k := range r.Chains {
					for i := range r.Chains[k].LogP {
						energy = math.Max(energy, -r.Chains[k].LogP[i]/temperature-r.Chains[k].Energy[i])
					}
				}
				assert.LessOrEqual(t, energy, 1e-12, "kinetic energies are not negative")
			})
		}
	}
}

// With adaptation of each kind, on Gaussians of condition number 1e4: variances 1e-2, 1, 1e2 along the axes, and
// turned.
func TestConditioning(t *testing.T) {
	turned := func() Density { // the same, turned by 45 degrees in the plane of the extremes
		a, b := 100., 0.01 // precisions
		return precision(3, []float64{(a + b) / 2, (a - b) / 2, 0, (a - b) / 2, (a + b) / 2, 0, 0, 0, 1})
	}()
	diagonal := gaussian(0.01, 1, 100)
	wide := (100 + 0.01) / 2
	for _, c := range []struct {
		name    string
		density Density
		want    []float64
		o       Options
	}{
		{"diagonal", diagonal, []float64{0.01, 1, 100}, Options{Metric: Diagonal}},
		{"diagonal, default", diagonal, []float64{0.01, 1, 100}, Options{}},
		{"diagonal, pooled", diagonal, []float64{0.01, 1, 100}, Options{Pooled: true}},
		{"diagonal, unit metric", diagonal, []float64{0.01, 1, 100}, Options{Metric: Unit, Draws: 500}},
		{"diagonal, HMC", diagonal, []float64{0.01, 1, 100}, Options{Kernel: HMC{Length: 1.5, Jitter: 0.5}, Draws: 2000}},
		{"diagonal, MALA", diagonal, []float64{0.01, 1, 100}, Options{Kernel: HMC{Steps: 1}, Draws: 6000, Warmup: 2000}},
		{"turned, default", turned, []float64{wide, wide, 1}, Options{}},
		{"turned, dense", turned, []float64{wide, wide, 1}, Options{Metric: Dense}},
		{"turned, low rank", turned, []float64{wide, wide, 1}, Options{Metric: LowRank}},
		{"turned, low rank, pooled", turned, []float64{wide, wide, 1}, Options{Metric: LowRank, Pooled: true}},
		{"turned, diagonal", turned, []float64{wide, wide, 1}, Options{Metric: Diagonal, Draws: 4000}},
		{"turned, HMC, dense", turned, []float64{wide, wide, 1}, Options{Metric: Dense,
			Kernel: HMC{Length: 1.5, Jitter: 0.5}, Draws: 2000}},
		{"turned, MALA, dense", turned, []float64{wide, wide, 1}, Options{Metric: Dense, Kernel: HMC{Steps: 1}, Draws: 6000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Seed, c.o.Parallel, c.o.Chains = 11, true, 2
			if c.o.Warmup == 0 {
				c.o.Warmup = 600
			}
			r := run(t, c.density, c.o)
			checkMoments(t, r, c.want...)
			for k := range r.Chains {
				t.Log("step size", r.Chains[k].StepSize[0], "gradients", r.Chains[k].Gradients)
			}
		})
	}
}

// A correlation of 0.95: E x₀x₁ = 0.95.
func TestCorrelated(t *testing.T) {
	for _, kernel := range []Kernel{NUTS{}, HMC{Length: 1.5, Jitter: 0.5}, HMC{Steps: 1}} {
		for seed := range uint64(3) {
			r := run(t, pair(0.95), Options{Kernel: kernel, Warmup: 500, Draws: 2500, Seed: seed, Chains: 2, Parallel: true})
			checkMoments(t, r, 1, 1)
			check(t, r, "covariance", 0.95, func(x []float64) float64 { return x[0] * x[1] })
		}
	}
}

// The moments are those of banana's comment. At x₀ the curvature across is 1 + 16x₀², so leapfrog is stable out to
// |x₀| = 10 with a step size of 0.05; an adapted one, near 0.2, fails from |x₀| = 2.5 on, and chains that cannot enter
// the tails, or leave them, have no standard error to speak of.
func TestBanana(t *testing.T) {
	for _, c := range []struct {
		kernel Kernel
		thin   int
		draws  int
	}{{NUTS{}, 1, 20000}, {HMC{Length: 1.5, Jitter: 0.5}, 2, 4000}, {HMC{Steps: 1}, 100, 4000}} {
		kernel := c.kernel
		r := run(t, banana, Options{Kernel: kernel, Warmup: None, StepSize: 0.05, Draws: c.draws, Thin: c.thin, Seed: 5,
			Chains: 2, Parallel: true, Init: [][]float64{{0, 0}, {1, 1}}})
		check(t, r, "x0", 0, func(x []float64) float64 { return x[0] })
		check(t, r, "x0²", 1, func(x []float64) float64 { return x[0] * x[0] })
		check(t, r, "x1", 1, func(x []float64) float64 { return x[1] })
		check(t, r, "var x1", 2.25, func(x []float64) float64 { return (x[1] - 1) * (x[1] - 1) })
		check(t, r, "x0 x1", 0, func(x []float64) float64 { return x[0] * x[1] })
		check(t, r, "x0² x1", 3, func(x []float64) float64 { return x[0] * x[0] * x[1] })
	}
}

// Neal's funnel in its non-centred form is v = 3z₀, y = e^(v/2) z₁ with z standard normal: E v² = 9 and E |y| = E
// e^(v/2) E |z₁| = e^(9/8) √(2/π). The second is heavy-tailed, so log |y|, with E = E log |z| = -(γ + log 2)/2 and
// variance 9/4 + π²/8, is looked at. (E log|z| and var log|z| = π²/8 are those of half a log chi-squared of one degree
// of freedom.)
func TestFunnelNonCentred(t *testing.T) {
	for seed := range uint64(3) {
		r := run(t, gaussian(1, 1, 1, 1), Options{Warmup: 300, Draws: 2000, Seed: seed, Chains: 2, Parallel: true})
		mean := -(0.5772156649015329 + math.Ln2) / 2
		check(t, r, "v²", 9, func(x []float64) float64 { return 9 * x[0] * x[0] })
		for j := 1; j < 4; j++ {
			logY := func(x []float64) float64 { return 1.5*x[0] + math.Log(math.Abs(x[j])) }
			check(t, r, "log |y|", mean, logY)
			check(t, r, "var log |y|", 9./4+math.Pi*math.Pi/8,
				func(x []float64) float64 { return (logY(x) - mean) * (logY(x) - mean) })
		}
	}
}

// In a box the end points outside are refused, or trajectories bounce from the walls. A half-normal has the mean
// √(2/π) and E x² = 1; the uniform law on (0, 1), of a flat density, has the mean 1/2 and E x² = 1/3.
func TestBox(t *testing.T) {
	box := []float64{0, 0}
	d := Func(2, func(x, grad []float64) float64 {
		grad[0], grad[1] = -x[0], 0
		return -x[0] * x[0] / 2
	})
	upper := []float64{math.Inf(1), 1}
	for _, kernel := range []Kernel{HMC{Steps: 3, Jitter: 0.5, Lower: box, Upper: upper},
		HMC{Steps: 2, Persistence: 0.5, Lower: box, Upper: upper}, HMC{Steps: 1, Lower: box, Upper: upper},
		HMC{Steps: 5, Jitter: 0.5, Lower: box, Upper: upper, Bounce: true},
		HMC{Steps: 5, Persistence: 0.5, Lower: box, Upper: upper, Bounce: true}} {
		r := run(t, d, Options{Kernel: kernel, Warmup: None, StepSize: 0.3, Draws: 8000, Chains: 2,
			Init: [][]float64{{1, 0.5}, {0.1, 0.9}}, Parallel: true, Thin: 3})
		check(t, r, "half-normal", math.Sqrt(2/math.Pi), func(x []float64) float64 { return x[0] })
		check(t, r, "half-normal, square", 1, func(x []float64) float64 { return x[0] * x[0] })
		check(t, r, "uniform", 0.5, func(x []float64) float64 { return x[1] })
		check(t, r, "uniform, square", 1./3, func(x []float64) float64 { return x[1] * x[1] })
		for k := range r.Chains {
			for i := range r.Chains[k].Len() {
				x := r.Chains[k].Draw(i)
				require.True(t, x[0] >= 0 && x[1] >= 0 && x[1] <= 1)
			}
		}
		// Starts are drawn inside, and given ones must be.
		for _, x := range run(t, d, Options{Kernel: kernel, Chains: 20, Warmup: None, Draws: 1, StepSize: 1e-9,
			Parallel: true}).Snapshot.Chains {
			require.True(t, x.Point.X[0] >= 0 && x.Point.X[1] >= 0 && x.Point.X[1] <= 1)
		}
		_, err := sample(context.Background(), d, Options{Kernel: kernel, Chains: 1, Init: [][]float64{{-1, 0.5}}})
		require.ErrorIs(t, err, errConfig)
	}
}

// In a box of 400 dimensions a trajectory of the box's length ends outside of some wall, but one that bounces has the
// energy that it began with: under a flat density it is always accepted.
func TestBounceInManyDimensions(t *testing.T) {
	const d = 400
	lower, upper, start := make([]float64, d), make([]float64, d), make([]float64, d)
	for i := range upper {
		upper[i], start[i] = 1, 0.5
	}
	flat := Func(d, func(x, grad []float64) float64 {
		clear(grad)
		return 0
	})
	for _, bounce := range []bool{true, false} {
		r := run(t, flat, Options{Kernel: HMC{Steps: 10, Lower: lower, Upper: upper, Bounce: bounce}, Metric: Unit,
			Warmup: None, StepSize: 0.1, Draws: 400, Chains: 2, Parallel: true, Init: [][]float64{start, start}})
		for k := range r.Chains {
			for _, accept := range r.Chains[k].Accept {
				if bounce {
					require.InDelta(t, 1, accept, 1e-9) // rounding of the kinetic energy
				} else {
					require.Zero(t, accept)
				}
			}
		}
		if bounce {
			check(t, r, "uniform", 0.5, func(x []float64) float64 { return x[7] })
			check(t, r, "uniform, square", 1./3, func(x []float64) float64 { return x[7] * x[7] })
			// A snapshot of another box is refused in few words, though it has 800 walls.
			other := slices.Clone(upper)
			other[d-1] = 2
			_, err := sample(context.Background(), flat, Options{Kernel: HMC{Steps: 10, Lower: lower, Upper: other,
				Bounce: true}, Metric: Unit, Warmup: None, StepSize: 0.1, Draws: 400, Chains: 2, Resume: r.Snapshot})
			require.ErrorContains(t, err, "it was made with")
			require.Less(t, len(err.Error()), 3000)
		}
	}
	_, err := sample(context.Background(), flat, Options{Kernel: HMC{Lower: lower, Bounce: true}, Metric: Dense})
	require.ErrorContains(t, err, "it must be Unit or Diagonal")
	_, err = sample(context.Background(), flat, Options{Kernel: HMC{Bounce: true}})
	require.ErrorContains(t, err, "there are no walls")
}

// With two step sizes and one seed the persistent chain differs from the refreshed one, and the number of leapfrog
// steps is Length/ε rounded up, capped.
func TestHMCLength(t *testing.T) {
	for _, c := range []struct {
		k         HMC
		low, high int
	}{
		{HMC{}, 1, 32}, {HMC{Steps: 16}, 16, 16}, {HMC{Steps: 5}, 5, 5},
		{HMC{Length: 1}, 10, 10}, {HMC{Length: 1.01}, 11, 11},
		{HMC{Length: 1, MaxSteps: 7}, 7, 7},
		{HMC{Steps: 10, Jitter: 0.5}, 5, 15}, {HMC{Steps: 2, Jitter: 1}, 1, 4},
	} {
		r := run(t, gaussian(1), Options{Kernel: c.k, Warmup: None, StepSize: 0.1, Draws: 400, Chains: 1})
		low, high := 1<<30, 0
		for _, l := range r.Chains[0].Leapfrogs {
			low, high = min(low, l), max(high, l)
		}
		assert.Equal(t, c.low, low)
		assert.Equal(t, c.high, high)
	}
	require.Equal(t, 0.574, func() float64 { tr, _ := HMC{Steps: 1}.build(1); return tr.Target() }())
}

// A kernel keeps its target: points drawn exactly from it have the same law after some transitions, however coarse the
// step. The points are independent, so the standard errors are those of the sample, and mixing plays no part. For the
// banana at temperature T, x₀ ~ N(0, T) and x₁ | x₀ ~ N(x₀², T/4): E x₀² = T, E x₁ = T, E x₀²x₁ = E x₀⁴ = 3T², E (x₁ -
// x₀²)² = T/4. With these steps up to 70 % of the moves are refused, and up to 34 % of the trajectories diverge, which
// the log shows.
func TestInvariance(t *testing.T) {
	const n = 20000
	low := lowRankMetric([]float64{1, 2}, []float64{0.6, 0.8}, []float64{3})
	for _, c := range []struct {
		kernel Kernel
		metric Metric
		eps    float64
	}{
		{NUTS{}, unitMetric(2), 0.4}, {NUTS{MaxDepth: 2}, denseMetric(2, []float64{1, 0.5, 0.5, 2}), 0.2},
		{NUTS{MaxDeltaH: 3}, low, 0.2},
		{HMC{Steps: 3}, unitMetric(2), 0.4}, {HMC{Steps: 4, Jitter: 1, Persistence: 0.9}, low, 0.15},
		{HMC{Steps: 2, Persistence: 0.5}, unitMetric(2), 0.5},
		{HMC{Steps: 1}, diagonalMetric([]float64{1, 3}), 0.5}, {HMC{Steps: 1, Persistence: 0.9}, unitMetric(2), 0.4},
	} {
		for _, temperature := range []float64{0.5, 1, 2} {
			t.Run(fmt.Sprintf("%T%+v at %v", c.kernel, c.kernel, temperature), func(t *testing.T) {
				tr, err := c.kernel.build(2)
				require.NoError(t, err)
				m, g, rng := metric(t, c.metric), gradientOf(banana), newStream(12, 0)
				eps := c.eps * math.Sqrt(temperature)
				names := []string{"x0", "x0²", "x1", "x0² x1", "(x1 - x0²)²", "x0 (x1 - x0²)"}
				want := []float64{0, temperature, temperature, 3 * temperature * temperature, temperature / 4, 0}
				sum, square := make([]float64, 6), make([]float64, 6)
				refused, divergent := 0, 0
				for range n {
					x0 := math.Sqrt(temperature) * rng.Norm()
					s, err := newState([]float64{x0, x0*x0 + math.Sqrt(temperature/4)*rng.Norm()}, g)
					require.NoError(t, err)
					for range 4 {
						info, err := tr.Step(&s, eps, temperature, m, g, &rng)
						require.NoError(t, err)
						if !info.Accepted {
							refused++
						}
						if info.Divergent {
							divergent++
						}
					}
					a, b := s.X[0], s.X[1]
					r := b - a*a
					for i, f := range []float64{a, a * a, b, a * a * b, r * r, a * r} {
						sum[i] += f
						square[i] += f * f
					}
				}
				for i := range want {
					mean := sum[i] / n
					se := math.Sqrt((square[i]/n - mean*mean) / n)
					assert.InDelta(t, want[i], mean, 4*se, "%s: %.1f standard errors", names[i], (mean-want[i])/se)
				}
				t.Logf("refused %.2f, divergent %.3f", float64(refused)/(4*n), float64(divergent)/(4*n))
			})
		}
	}
}
