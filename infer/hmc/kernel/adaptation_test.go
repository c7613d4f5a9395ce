package kernel

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

// If acceptance falls with the step size as a(ε) = e^-ε, the target is met at ε = -log δ. While x has come to rest, s̄
// = γ(μ - x)/√t, so that a - δ, the growth of -s̄(t + t₀), is -γ(μ - x)/(2√t): log ε is too high by that over |da/dlog
// ε| = εe^-ε. The average over the last updates, which were made at smaller t, adds to it, by less than a fifth.
func TestDualAveragingConverges(t *testing.T) {
	for _, target := range []float64{0.6, 0.8, 0.95} {
		c, err := dualAveraging{Target: target}.build()
		require.NoError(t, err)
		s, eps := c.Init(3), 3.0
		assert.InDelta(t, 3, s.Final(), 1e-12)
		for range 2000 {
			s, eps = c.Update(s, math.Exp(-eps))
		}
		want := math.Log(-math.Log(target))
		lag := 0.05 * (math.Log(30) - want) / (2 * math.Sqrt(2000)) / (-target * math.Log(target))
		assert.InDelta(t, 1.1*lag, math.Log(s.Final())-want, 0.1*lag)
	}
	c, err := dualAveraging{}.build()
	require.NoError(t, err)
	s := c.Init(1)
	// By hand: t = 1, η = 1/11, s̄ = 0.8/11, x = log 10 - 0.8/(11·0.05), x̄ = x.
	s, eps := c.Update(s, math.NaN())
	assert.InDelta(t, math.Log(10)-0.8/0.55, math.Log(eps), 1e-12)
	assert.Equal(t, eps, s.Final())
	for range 5000 {
		s, eps = c.Update(s, 0)
	}
	assert.Positive(t, eps)
	for _, bad := range []dualAveraging{{Target: 1}, {Target: -1}, {Gamma: -1}, {T0: math.NaN()}, {Kappa: 0.5},
		{Kappa: 1.1}} {
		_, err := bad.build()
		assert.ErrorIs(t, err, errConfig)
	}
}

// Over n updates s̄ is Σ(δ - a)/(n + t₀), and s̄ = γ(μ - x)/√n: the mean acceptance over the adaptation differs from
// the target by γ|μ - x|(n + t₀)/n^1.5, which for n = 4000 and |μ - x| < 7 is less than 0.006, whatever the noise.
func TestTargetIsMet(t *testing.T) {
	for _, kernel := range []Kernel{NUTS{}, HMC{Length: 1.5, Jitter: 0.5}, HMC{Steps: 1}} {
		for _, target := range []float64{0.6, 0.8, 0.9} {
			for seed := range uint64(3) {
				sum, n := 0.0, 0
				r := run(t, gaussian(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), Options{
					Kernel: kernel, Warmup: 4000, Draws: 1000, Seed: seed, Chains: 1, TargetAccept: target, KeepMetric: true,
					Record: func(_, _ int, _ []float64, info Info) error {
						if info.Warmup {
							sum += info.Accept
							n++
						}
						return nil
					},
				})
				assert.InDelta(t, target, sum/float64(n), 0.006, "%T %v", kernel, target)
				after := 0.0
				for _, a := range r.Chains[0].Accept {
					after += a / 1000
				}
				t.Logf("%T target %v: %.4f while adapting, %.3f with the averaged step size %.3f", kernel, target, sum/float64(n),
					after, r.Chains[0].StepSize[0])
			}
		}
	}
}

// For N(0, σ²) and the unit metric the energy error of one step scales with (ε/σ), and so does the step size that is
// found: it is a power of two times the guess, on the other side of 0.8. Densities without a step size are errors.
func TestInitialStepSize(t *testing.T) {
	for _, sd := range []float64{1e-3, 1, 1e3} {
		g := gradientOf(gaussian(sd*sd, sd*sd, sd*sd))
		s, err := newState([]float64{sd, -sd, sd}, g)
		require.NoError(t, err)
		for _, guess := range []float64{sd * 1e-3, sd * 1e3} {
			rng := newStream(4, 0)
			eps, err := initialStepSize(&s, guess, 1, metric(t, unitMetric(3)), g, &rng)
			require.NoError(t, err)
			power := math.Log2(eps / guess)
			assert.InDelta(t, math.Round(power), power, 1e-9)
			assert.Greater(t, eps/sd, 0.1)
			assert.Less(t, eps/sd, 10.0)
		}
	}
	rng := newStream(4, 0)
	for _, f := range []func(x, grad []float64) float64{
		func(_, grad []float64) float64 { grad[0] = 0; return 0 },
		func(x, grad []float64) float64 {
			if grad[0] = 1; x[0] == 0 {
				return 0
			}
			return math.NaN()
		},
	} {
		g := gradientOf(Func(1, f))
		s, err := newState([]float64{0}, g)
		require.NoError(t, err)
		_, err = initialStepSize(&s, 1, 1, metric(t, unitMetric(1)), g, &rng)
		assert.ErrorIs(t, err, errStepSize)
	}
}

// cholesky draws n points of N(mean, Σ) and their gradients -Σ⁻¹(x - mean).
func cholesky(t *testing.T, n int, mean []float64, sigma *mat.SymDense, seed uint64) (x, g []float64) {
	d := len(mean)
	var chol mat.Cholesky
	require.True(t, chol.Factorize(sigma))
	var l mat.TriDense
	chol.LTo(&l)
	rng := newStream(seed, 0)
	for range n {
		z := mat.NewVecDense(d, nil)
		for i := range d {
			z.SetVec(i, rng.Norm())
		}
		var dx, grad mat.VecDense
		dx.MulVec(&l, z)
		require.NoError(t, chol.SolveVecTo(&grad, &dx))
		for i := range d {
			x = append(x, mean[i]+dx.AtVec(i))
			g = append(g, -grad.AtVec(i))
		}
	}
	return x, g
}

// spd is A = BBᵀ/d + I/10 for normal B, of condition number some tens.
func spd(d int, seed uint64) *mat.SymDense {
	rng := newStream(seed, 99)
	b := mat.NewDense(d, d, nil)
	for i := range d {
		for j := range d {
			b.Set(i, j, rng.Norm())
		}
	}
	s := mat.NewSymDense(d, nil)
	s.SymOuterK(1/float64(d), b)
	for i := range d {
		s.SetSym(i, i, s.At(i, i)+0.1)
	}
	return s
}

// moments against the two-pass formulas, in one piece and merged, to rounding; the dense metric against its formula;
// and the estimate against the known covariance, entries having the variance (ΣᵢᵢΣⱼⱼ + Σᵢⱼ²)/n.
func TestDenseMetric(t *testing.T) {
	const d, n = 4, 4000
	sigma := spd(d, 1)
	mean := []float64{10, -20, 30, 1000}
	x, g := cholesky(t, n, mean, sigma, 2)
	one := newMass(Dense, d)
	parts := make([]mass, 3)
	for k := range parts {
		parts[k] = one.clone()
	}
	for i := range n {
		one.Add(x[i*d:(i+1)*d], g[i*d:(i+1)*d])
		parts[min(2, i/1000)].Add(x[i*d:(i+1)*d], g[i*d:(i+1)*d])
	}
	joined := newMass(Dense, d)
	for _, p := range parts {
		joined.Merge(p)
	}
	a, ok := one.Correlated(lowRankFisher{})
	require.True(t, ok)
	b, ok := joined.Correlated(lowRankFisher{})
	require.True(t, ok)
	diag := one.Diagonal(fisher).Diag
	for i := range d {
		for j := range d {
			mi, mj, c := 0.0, 0.0, 0.0
			for r := range n {
				mi += x[r*d+i] / n
				mj += x[r*d+j] / n
			}
			for r := range n {
				c += (x[r*d+i] - mi) * (x[r*d+j] - mj) / (n - 1)
			}
			want := c * n / (n + 5)
			if i == j {
				want += diag[i] * 5 / (n + 5)
			}
			assert.InDelta(t, want, a.Dense[i*d+j], 1e-10)
			assert.InDelta(t, want, b.Dense[i*d+j], 1e-10)
			s := sigma.At(i, j)
			assert.InDelta(t, s, c, 4*math.Sqrt((sigma.At(i, i)*sigma.At(j, j)+s*s)/n))
		}
	}
	one.Reset()
	_, ok = one.Correlated(lowRankFisher{})
	assert.False(t, ok)
}

// For independent Gaussians the Fisher estimate is σ² from any three draws, to rounding, where their variance is
// nowhere near.
func TestFisherDiagonalIsExact(t *testing.T) {
	m := newMass(Diagonal, 3)
	variance := []float64{1e-4, 1, 1e4}
	rng := newStream(1, 0)
	for range leastDraws {
		x, g := make([]float64, 3), make([]float64, 3)
		for i, v := range variance {
			x[i] = 5 + math.Sqrt(v)*rng.Norm()
			g[i] = -(x[i] - 5) / v
		}
		m.Add(x, g)
	}
	s := m.Diagonal(fisher)
	for i, v := range variance {
		assert.InEpsilon(t, v, s.Diag[i], 1e-9)
	}
	// A coordinate that does not move gets Stan's regularised variance, 1e-3 · 5/8 of three draws.
	still := newMass(Diagonal, 1)
	for range leastDraws {
		still.Add([]float64{1}, []float64{0})
	}
	assert.InDelta(t, 5e-3/8, still.Diagonal(fisher).Diag[0], 1e-15)
}

// inverse is M⁻¹ in full, by the velocities of the unit vectors.
func inverse(t *testing.T, s Metric) *mat.SymDense {
	m := metric(t, s)
	out := mat.NewSymDense(s.Dim, nil)
	v, p := make([]float64, s.Dim), make([]float64, s.Dim)
	for j := range s.Dim {
		clear(p)
		p[j] = 1
		m.Velocity(v, p)
		for i := range j + 1 {
			out.SetSym(i, j, v[i])
		}
	}
	return out
}

// condition is the condition number of L⁻¹ M⁻¹ L⁻ᵀ for Σ = LLᵀ: 1 when M⁻¹ = Σ.
func condition(t *testing.T, sigma, m *mat.SymDense) float64 {
	var chol mat.Cholesky
	require.True(t, chol.Factorize(sigma))
	var l mat.TriDense
	chol.LTo(&l)
	var a, b mat.Dense
	require.NoError(t, a.Solve(&l, m))
	require.NoError(t, b.Solve(&l, a.T()))
	var eig mat.EigenSym
	require.True(t, eig.Factorize(symmetric(&b), false))
	v := eig.Values(nil)
	return v[len(v)-1] / v[0]
}

// For any Gaussian, with as many centred draws as dimensions, the geometric mean is Σ: with d + 2 draws, all
// eigenvectors kept and γ small, M⁻¹ = Σ up to γ, though the sample covariance of so few is not near it.
func TestLowRankFisherIsExact(t *testing.T) {
	const d = 12
	sigma := spd(d, 3)
	x, g := cholesky(t, d+2, make([]float64, d), sigma, 4)
	m := newMass(LowRank, d)
	for i := range d + 2 {
		m.Add(x[i*d:(i+1)*d], g[i*d:(i+1)*d])
	}
	s, ok := m.Correlated(lowRankFisher{Gamma: 1e-10, Cutoff: 1})
	require.True(t, ok)
	got := inverse(t, s)
	for i := range d {
		for j := range i + 1 {
			assert.InDelta(t, sigma.At(i, j), got.At(i, j), 1e-4)
		}
	}
	assert.InDelta(t, 1, condition(t, sigma, got), 1e-3)
	// With the cutoff all eigenvalues left out are within 1/2 to 2, so the condition number is at most 4 (and a
	// trifle).
	s, ok = m.Correlated(lowRankFisher{})
	require.True(t, ok)
	c := condition(t, sigma, inverse(t, s))
	t.Log("condition numbers: unit", condition(t, sigma, inverse(t, unitMetric(d))), "cutoff 2:", c, "rank", len(s.Values))
	assert.LessOrEqual(t, c, 4.1)
	assert.Less(t, len(s.Values), d)
	s, ok = m.Correlated(lowRankFisher{MaxRank: 2})
	require.True(t, ok)
	assert.Len(t, s.Values, 2)
}

// With fewer draws than dimensions the directions nobody has seen stay as they are, and the spikes of I + 99uuᵀ +
// 24wwᵀ are found: the condition number, which a diagonal cannot better, falls, the more the more draws there are.
// With more draws than dimensions only the cutoff is left, 2 on either side.
func TestLowRankFisherFewDraws(t *testing.T) {
	const d = 60
	sigma := mat.NewSymDense(d, nil)
	for i := range d {
		for j := range i + 1 {
			u, w := 1., math.Cos(math.Pi*(float64(i)+0.5)/d)*math.Cos(math.Pi*(float64(j)+0.5)/d)*2
			e := 99*u/d + 24*w/d
			if i == j {
				e++
			}
			sigma.SetSym(i, j, e)
		}
	}
	last := math.Inf(1)
	for _, n := range []int{15, 40, 100} {
		x, g := cholesky(t, n, make([]float64, d), sigma, 5)
		m := newMass(LowRank, d)
		for i := range n {
			m.Add(x[i*d:(i+1)*d], g[i*d:(i+1)*d])
		}
		s, ok := m.Correlated(lowRankFisher{})
		require.True(t, ok)
		low := condition(t, sigma, inverse(t, s))
		diag := condition(t, sigma, inverse(t, diagonalMetric(s.Diag)))
		t.Logf("%d draws: condition number %.3g, diagonal alone %.3g, rank %d", n, low, diag, len(s.Values))
		assert.Less(t, low, diag/2)
		assert.Less(t, low, last)
		last = low
	}
	assert.LessOrEqual(t, last, 4.1)
	_, err := lowRankFisher{}.Estimate([]float64{1}, []float64{1}, []float64{1})
	assert.ErrorIs(t, err, errConfig)
	_, err = lowRankFisher{}.Estimate([]float64{1}, []float64{1, math.NaN()}, []float64{1, 2})
	assert.ErrorIs(t, err, ErrNonFinite)
	for _, c := range []lowRankFisher{{Gamma: -1}, {Cutoff: 0.5}, {MaxRank: -1}} {
		_, err := c.Estimate([]float64{1}, []float64{1, 2}, []float64{1, 2})
		assert.ErrorIs(t, err, errConfig)
	}
}

// Of fewer than three draws there is no metric, nor of draws out of range, and whoever asks keeps what he has.
func TestNoMetric(t *testing.T) {
	for _, kind := range []MetricKind{Diagonal, Dense, LowRank} {
		m := newMass(kind, 1)
		for _, x := range []float64{1, 2, math.Inf(1)} {
			assert.Error(t, failed(m.Diagonal(fisher).build()))
			_, ok := m.Correlated(lowRankFisher{})
			assert.False(t, ok)
			m.Add([]float64{x}, []float64{x})
		}
		assert.Error(t, failed(m.Diagonal(fisher).build()))
		_, ok := m.Correlated(lowRankFisher{})
		assert.False(t, ok)
	}
}

func failed(_ massMatrix, err error) error { return err }

// The gradients that adaptation sees are those of logp/T, so that at any temperature the metric of a Gaussian is its
// tempered variance Tσ² to rounding. A new metric forgets a kept momentum, whose law was the old one's, and the first
// one asks for a new step size.
func TestAdaptationAtTemperature(t *testing.T) {
	for _, o := range []Options{{}, {Metric: Diagonal}, {Metric: LowRank}, {Metric: Dense}, {Pooled: true}} {
		o.Temperature, o.Warmup, o.Draws, o.Chains = 0.5, 60, 1, 2
		r := run(t, gaussian(4, 9), o)
		m := r.Chains[0].Metric
		if o.Metric == Dense {
			assert.Equal(t, Dense, m.Kind)
			continue
		}
		assert.InEpsilon(t, 2, m.Diag[0], 1e-9)
		assert.InEpsilon(t, 4.5, m.Diag[1], 1e-9)
		assert.Empty(t, m.Values)
	}
	r, err := newRunner(gaussian(1, 1), Options{})
	require.NoError(t, err)
	c := r.chains[0]
	for _, first := range []bool{true, false} {
		c.Point.Momentum, c.NeedStep = []float64{1, 2}, false
		require.True(t, r.renew(c, diagonalMetric([]float64{2, 3})))
		assert.Nil(t, c.Point.Momentum)
		assert.Equal(t, first, c.NeedStep)
		assert.Equal(t, []float64{2, 3}, c.metric.State().Diag)
	}
}
