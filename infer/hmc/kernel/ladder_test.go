package kernel

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// powers is a path of likelihood powers: the prior N(0, prior² I) times exp(β l(x)).
type powers struct {
	d     int
	prior float64
	l     func(x, grad []float64) float64
}

func (p powers) Dim() int         { return p.d }
func (p powers) Concurrent() bool { return true }

func (p powers) ValueAndGrad(_, _, _ []float64) error { return errConfig }

func (p powers) ValueAndGradAt(x, beta, logp, grad []float64) error {
	for k := range logp {
		x, g := x[k*p.d:(k+1)*p.d], grad[k*p.d:(k+1)*p.d]
		logp[k] = beta[k] * p.l(x, g)
		for i, e := range x {
			g[i] = beta[k]*g[i] - e/(p.prior*p.prior)
			logp[k] -= 0.5 * e * e / (p.prior * p.prior)
		}
	}
	return nil
}

// falling is a geometric ladder of a path, from 1 to low.
func falling(low float64, n int) []float64 {
	out := geometric(1, low, n)
	out[n-1] = low
	return out
}

// normalPowers has the likelihood exp(-x²/2s²) under a prior N(0, 1): at β it is N(0, 1/τ), τ = 1 + β/s².
func normalPowers(d int, s float64) powers {
	return powers{d, 1, func(x, grad []float64) float64 {
		v := 0.0
		for i, e := range x {
			grad[i] = -e / (s * s)
			v -= e * e / (2 * s * s)
		}
		return v
	}}
}

// doubleWell is exp(-(x₀² - 5)²/2s²), with the modes ±√5, times N(0, s²) in the other coordinates.
func doubleWell(s float64) func(x, grad []float64) float64 {
	return func(x, grad []float64) float64 {
		r := x[0]*x[0] - 5
		grad[0] = -2 * x[0] * r / (s * s)
		v := -r * r / (2 * s * s)
		for i, e := range x[1:] {
			grad[i+1] = -e / (s * s)
			v -= e * e / (2 * s * s)
		}
		return v
	}
}

// twentyApart is 0.3 N(-10, I) + 0.7 N(10, I), whose modes are 20 standard deviations apart, in x₀.
func twentyApart(x, grad []float64) float64 {
	a, b := x[0]+10, x[0]-10
	la, lb := math.Log(0.3)-a*a/2, math.Log(0.7)-b*b/2
	lp := logAddExp(la, lb)
	wa, wb := math.Exp(la-lp), math.Exp(lb-lp)
	grad[0] = -wa*a - wb*b
	for i, e := range x[1:] {
		grad[i+1] = -e
		lp -= e * e / 2
	}
	return lp
}

// Swaps of Gaussians N(0, 1/τ) in d dimensions are refused with a probability that depends on d and the ratio of the
// two τ only (see TestSwapRates), so that Λ is a function of log τ alone,
//
//	Λ = Γ((d+1)/2)/(√π Γ(d/2)) · log(τ₁/τ₀).
//
// The sum over n rungs falls short of it by O(1/n²). For two dimensions pair h = log ratio refuses with the
// probability tanh(h/2). An adapted ladder must have rungs at equal distances in log τ. On a path of likelihood powers
// τ = 1 + β/s², at full temperature τ = 1/T. The slope of the path is the log likelihood, with the mean -d/(2s²τ).
func TestBarrierOfGaussians(t *testing.T) {
	const n, s = 9, 0.1
	for name, c := range map[string]struct {
		dim int
		o   Options
		den Density
		tau func(rung float64) float64
	}{
		"temperatures, 2": {2, Options{Ladder: []float64{1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 16}},
			gaussian(make1(2)...), func(t float64) float64 { return 1 / t }},
		"path, 2": {2, Options{Ladder: falling(1e-5, n), Path: "powers"}, normalPowers(2, s),
			func(b float64) float64 { return 1 + b/(s*s) }},
		"path from the prior, 6, random pairs": {6, Options{Ladder: append(falling(1e-3, n-1), 0), Path: "powers",
			RandomPairs: true}, normalPowers(6, s), func(b float64) float64 { return 1 + b/(s*s) }},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.o
			o.Chains, o.Warmup, o.Draws, o.Seed, o.Parallel, o.Adapt = 2, 3000, 2000, 2, true, true
			r, err := sample(context.Background(), c.den, o)
			require.NoError(t, err)
			k := float64(c.dim) / 2
			a, _ := math.Lgamma(k + 0.5)
			b, _ := math.Lgamma(k)
			for l := range r.Swaps {
				w := &r.Swaps[l]
				require.Equal(t, o.Ladder[0], w.Ladder[0])
				require.Equal(t, o.Ladder[n-1], w.Ladder[n-1])
				top, bottom := c.tau(w.Ladder[0]), c.tau(w.Ladder[n-1])
				whole := math.Exp(a-b) / math.Sqrt(math.Pi) * math.Log(top/bottom)
				sum, variance := 0.0, 0.0
				for i := range n - 1 {
					rho := c.tau(w.Ladder[i+1]) / c.tau(w.Ladder[i])
					want := refusal(c.dim, rho)
					// The refusal is from 0 to 1, so its variance is at most that of a coin. A try of a pair comes after two
					// transitions of NUTS and more, which leave little of the energies before.
					v := want * (1 - want) / float64(w.SamplingTried[i])
					assert.InDelta(t, want, w.Rejection(i), 4*math.Sqrt(v), "ladder %d, pair %d", l, i)
					// The last round looks at more than 700 swaps. Of a refusal of 0.17 that has a standard error of a tenth.
					assert.InDelta(t, math.Log(top/bottom)/(n-1), -math.Log(rho), 0.35*math.Log(top/bottom)/(n-1),
						"ladder %d, pair %d: the rungs are not equally far apart", l, i)
					sum += want
					variance += v
				}
				total := w.Barrier()[n-1]
				t.Logf("ladder %d: Λ %.3f, sum of the law %.3f, closed form %.3f; rungs %.3g", l, total, sum, whole, w.Ladder)
				assert.InDelta(t, sum, total, 4*math.Sqrt(variance))
				assert.Less(t, sum, whole)
				// Equal rungs fall short by c/n² with the number n of pairs, so that 4/3 of twice as many less 1/3 is the
				// limit.
				equal := func(pairs float64) float64 {
					return pairs * refusal(c.dim, math.Pow(bottom/top, 1/pairs))
				}
				assert.InEpsilon(t, whole, (4*equal(2*(n-1))-equal(n-1))/3, 0.005)
				assert.InDelta(t, equal(n-1), total, 4*math.Sqrt(variance)+0.01*whole)
				for i, rung := range w.Ladder {
					tau := c.tau(rung)
					want := -k / tau / (s * s)
					if o.Path == "" {
						want = -k * rung // E log p at T
					}
					se := math.Sqrt(w.SlopeVariance(i) / float64(w.Slopes[i]) * 3) // correlated somewhat over tries
					assert.InDelta(t, want, w.SlopeMean[i], 4*se, "ladder %d, rung %d", l, i)
				}
			}
		})
	}
}

// refusal is the probability that a swap of Gaussians with the ratio rho is refused.
func refusal(dim int, rho float64) float64 {
	if dim == 2 {
		return math.Tanh(-0.5 * math.Log(rho))
	}
	return 1 - gaussianSwapRate(dim, rho)
}

// The adapted ladder makes more round trips for each gradient than a geometric one with the same ends and the same
// number of rungs: a ladder of powers has to start where the likelihood does not matter, and who does not know where
// that is starts too low and spends rungs on nothing. Here all ladders start at β = 10⁻⁶. This is when adaptation wins:
// a geometric ladder from where the likelihood begins to matter has little left to gain. A trip is a rare event of each
// ladder, so that counts of N have the standard error √N at most: the adapted one makes a quarter more at least, by
// more than four of them.
func TestAdaptedLadderTravels(t *testing.T) {
	for name, density := range map[string]powers{
		"double well": {3, 3, doubleWell(0.2)}, "mixture": {5, 20, twentyApart},
	} {
		t.Run(name, func(t *testing.T) {
			var rate, count [2]float64
			for i, adapt := range []bool{false, true} {
				o := Options{Chains: 4, Warmup: 2000, Draws: 8000, Seed: 1, Kernel: HMC{Steps: 8, Jitter: 0.5}, SwapEvery: 1,
					Ladder: falling(1e-6, 9), Path: "powers", Adapt: adapt}
				spent := 0
				o.Record = func(_, _ int, _ []float64, info Info) error {
					if !info.Warmup {
						spent += info.Gradients
					}
					return nil
				}
				r, err := Run(context.Background(), density, o)
				require.NoError(t, err)
				best := 0.0
				for l := range r.Swaps {
					count[i] += float64(r.Swaps[l].SamplingTrips)
					best += r.Swaps[l].BestRate() / float64(len(r.Swaps))
				}
				rate[i] = count[i] / float64(spent)
				t.Logf("adapt %v: %.0f round trips, %.3f for 1000 gradients, %.4f for a round of swaps (at best %.4f), Λ %.2f",
					adapt, count[i], 1000*rate[i], count[i]/4/8000, best, r.Swaps[0].Barrier()[8])
			}
			ratio := rate[1] / rate[0]
			se := ratio * math.Sqrt(1/count[0]+1/count[1])
			t.Logf("ratio %.2f, se %.2f", ratio, se)
			assert.Greater(t, ratio-4*se, 1.25)
		})
	}
}

// Replica exchange has the occupancy of the modes within three standard errors, from independent ladders that all start
// in one mode; NUTS alone stays there. The truth is 1/2 by symmetry, and 0.7 by the weights, for which the prior is too
// wide to matter: it takes N(0, 20²)'s e^(-100/800) from both modes alike.
func TestOccupancy(t *testing.T) {
	for name, c := range map[string]struct {
		den   powers
		low   float64
		start []float64
		want  float64
	}{
		"double well": {powers{1, 3, doubleWell(0.2)}, 1e-4, []float64{-math.Sqrt(5)}, 0.5},
		"mixture":     {powers{2, 20, twentyApart}, 1e-4, []float64{-10, 0}, 0.7},
	} {
		t.Run(name, func(t *testing.T) {
			const ladders = 12
			right := func(o Options) (mean, se float64) {
				for range ladders {
					o.Init = append(o.Init, c.start)
				}
				r := run(t, c.den, o)
				var each [ladders]float64
				for l := range each {
					cold := r.Chains[l*o.replicas()]
					for i := range cold.Len() {
						if cold.Draw(i)[0] > 0 {
							each[l] += 1 / float64(cold.Len())
						}
					}
					mean += each[l] / ladders
				}
				for _, e := range each {
					se += (e - mean) * (e - mean) / (ladders * (ladders - 1))
				}
				return mean, math.Sqrt(se)
			}
			o := Options{Chains: ladders, Warmup: 600, Draws: 2500, Seed: 7, Ladder: falling(c.low, 7), Path: "powers",
				Adapt: true}
			mean, se := right(o)
			t.Logf("exchange: %.4f, se %.4f, the truth %.1f: %.1f se", mean, se, c.want, (mean-c.want)/se)
			assert.InDelta(t, c.want, mean, 3*se)
			assert.Less(t, se, 0.02)
			o.Ladder, o.Path, o.Adapt = nil, "", false // at the temperature 1 a powers is the posterior
			alone, _ := right(o)
			t.Logf("NUTS alone: %.4f", alone)
			assert.Zero(t, alone)
		})
	}
}

// Rounds are of 8, 16, 32, ... swaps in the first half of the warm-up, the last stretched to its end.
func TestLadderRounds(t *testing.T) {
	rounds := func(warmup, every int) []int {
		return ladderRounds(Options{Warmup: warmup, SwapEvery: every, Adapt: true, Ladder: []float64{1, 2}})
	}
	assert.Equal(t, []int{8, 24, 56, 120, 500}, rounds(1000, 1))
	assert.Equal(t, []int{8, 50}, rounds(1000, 10))
	assert.Equal(t, []int{8}, rounds(16, 1))
	assert.Nil(t, ladderRounds(Options{Warmup: 1000, SwapEvery: 1, Ladder: []float64{1, 2}}))
}
