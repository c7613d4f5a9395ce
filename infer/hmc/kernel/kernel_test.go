package kernel

import (
	"errors"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/philox"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The vectors are those published with the Random123 library for philox4x32 with ten rounds.
func TestPhiloxKnownAnswers(t *testing.T) {
	f := uint32(math.MaxUint32)
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{f, f, f, f}, [2]uint32{f, f}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		w0, w1, w2, w3 := philox.Words(c.counter[0], c.counter[1], c.counter[2], c.counter[3], c.key[0], c.key[1])
		assert.Equal(t, c.want, [4]uint32{w0, w1, w2, w3})
	}
}

// A number is a function of seed, chain and position; the moments of the three laws, at 4 standard errors of n
// independent numbers: uniform 1/2 ± √(1/12n), 1/3; normal 0, 1 (variance of z² is 2), z⁴ 3 (variance 96); exponential
// 1, 2 (variance 20).
func TestStream(t *testing.T) {
	a := newStream(7, 3)
	first := make([]float64, 9)
	for i := range first {
		first[i] = a.Float64()
	}
	for i := range first {
		b := stream{Seed: 7, Chain: 3, Position: uint64(i)}
		require.Equal(t, first[i], b.Float64())
		b.Chain, b.Position = 4, uint64(i)
		require.NotEqual(t, first[i], b.Float64())
		b.Seed, b.Chain, b.Position = 8, 3, uint64(i)
		require.NotEqual(t, first[i], b.Float64())
	}
	for _, n := range []int{0, 1, 5, 16, 40} {
		one, many := stream{Seed: 7, Chain: 3, Position: 13}, stream{Seed: 7, Chain: 3, Position: 13}
		want, have := make([]float64, n), make([]float64, n)
		for i := range want {
			want[i] = one.Norm()
		}
		many.Norms(have)
		require.Equal(t, want, have)
		require.Equal(t, one.Position, many.Position)
		require.Equal(t, one.Float64(), many.Float64())
	}
	require.Equal(t, 0.5/(1<<52), philox.Unit(0, 0))
	require.Less(t, philox.Unit(math.MaxUint32, math.MaxUint32), 1.0)
	const n = 200000
	var u1, u2, z1, z2, z4, e1, e2 float64
	s := newStream(1, 0)
	for range n {
		u, z, e := s.Float64(), s.Norm(), s.Exp()
		u1, u2, z1, z2, z4, e1, e2 = u1+u, u2+u*u, z1+z, z2+z*z, z4+z*z*z*z, e1+e, e2+e*e
	}
	for _, c := range []struct{ sum, want, variance float64 }{{u1, .5, 1. / 12}, {u2, 1. / 3, 4. / 45}, {z1, 0, 1},
		{z2, 1, 2}, {z4, 3, 96}, {e1, 1, 1}, {e2, 2, 20}} {
		assert.InDelta(t, c.want, c.sum/n, 4*math.Sqrt(c.variance/n))
	}
}

// p has the covariance M: the quadratic form p·M⁻¹p is chi-squared with d degrees of freedom (mean d, variance 2d), and
// E vvᵀ = M⁻¹ M M⁻¹ = M⁻¹ for v = M⁻¹p, with variance of vᵢvⱼ = ΣᵢᵢΣⱼⱼ + Σᵢⱼ². Velocity equals the full product.
func TestMetrics(t *testing.T) {
	states, inverse := metrics()
	for k, state := range states {
		m, full := metric(t, state), inverse[k]
		require.Equal(t, state, m.State())
		require.Equal(t, 3, m.Dim())
		s := newStream(2, uint64(k))
		p, v := make([]float64, 3), make([]float64, 3)
		const n = 40000
		energy, cov := 0.0, make([]float64, 9)
		for range n {
			m.Sample(p, &s)
			m.Velocity(v, p)
			for i := range 3 {
				require.InDelta(t, dot(full[3*i:3*i+3], p), v[i], 1e-12*(1+math.Abs(v[i])))
				for j := range 3 {
					cov[3*i+j] += v[i] * v[j]
				}
			}
			energy += dot(p, v)
		}
		assert.InDelta(t, 3, energy/n, 4*math.Sqrt(6./n))
		for i := range 3 {
			for j := range 3 {
				e := full[3*i+j]
				assert.InDelta(t, e, cov[3*i+j]/n, 4*math.Sqrt((full[4*i]*full[4*j]+e*e)/n), "%s %d %d", state.Kind, i, j)
			}
		}
	}
}

func TestMetricErrors(t *testing.T) {
	for _, m := range []Metric{
		{}, {Kind: "round", Dim: 2}, unitMetric(0), diagonalMetric([]float64{1, 0}), diagonalMetric([]float64{1, math.NaN()}),
		{Kind: Diagonal, Dim: 2, Diag: []float64{1}}, denseMetric(2, []float64{1, 2, 2, 1}),
		denseMetric(2, []float64{1, 0.5, 0.4, 1}),
		denseMetric(2, []float64{1, 0, 0}), denseMetric(2, []float64{1, 0, 0, -1}),
		lowRankMetric([]float64{1, 1}, []float64{1, 1}, []float64{2}),
		lowRankMetric([]float64{1, 1}, []float64{1, 0}, []float64{-2}),
		lowRankMetric([]float64{1, 1}, []float64{1}, []float64{2}),
	} {
		_, err := m.build()
		var field *FieldError
		assert.ErrorAs(t, err, &field, "%+v", m)
		assert.ErrorIs(t, err, errConfig)
	}
}

// quartic is not Gaussian, so that nothing holds by accident: logp = -Σ x⁴/4 - (x₀ - x₁)²/2.
var quartic = Func(3, func(x, grad []float64) float64 {
	lp := 0.0
	for i, e := range x {
		lp -= e * e * e * e / 4
		grad[i] = -e * e * e
	}
	r := x[0] - x[1]
	grad[0] -= r
	grad[1] += r
	return lp - r*r/2
})

func phaseAt(t testing.TB, d Density, x, p []float64, m massMatrix) phase {
	z := newPhase(len(x))
	copy(z.X, x)
	copy(z.P, p)
	var err error
	z.LogP, err = gradientOf(d)(z.X, z.Grad)
	require.NoError(t, err)
	m.Velocity(z.V, z.P)
	return z
}

// Steps forwards and then as many backwards come back, for each metric, at two temperatures, also over a long
// trajectory.
func TestLeapfrogReversible(t *testing.T) {
	states, _ := metrics()
	for _, state := range states {
		for _, temperature := range []float64{1, 0.5} {
			m := metric(t, state)
			z := phaseAt(t, quartic, []float64{0.3, -0.8, 1.1}, []float64{0.5, 0.2, -0.7}, m)
			start := newPhase(3)
			start.Copy(&z)
			g := gradientOf(quartic)
			for range 200 {
				require.NoError(t, leapfrog(&z, 0.05, temperature, m, g))
			}
			require.Greater(t, math.Abs(z.X[0]-start.X[0]), 1e-3)
			for range 200 {
				require.NoError(t, leapfrog(&z, -0.05, temperature, m, g))
			}
			for i := range 3 {
				assert.InDelta(t, start.X[i], z.X[i], 1e-10)
				assert.InDelta(t, start.P[i], z.P[i], 1e-10)
			}
		}
	}
}

// The Jacobian J of a step satisfies JᵀΩJ = Ω, by central differences (error O(1e-10) with h = 1e-5), hence det J = 1.
func TestLeapfrogSymplectic(t *testing.T) {
	states, _ := metrics()
	for _, state := range states {
		m := metric(t, state)
		g := gradientOf(quartic)
		step := func(w []float64) []float64 {
			z := phaseAt(t, quartic, w[:3], w[3:], m)
			for range 3 {
				require.NoError(t, leapfrog(&z, 0.1, 0.7, m, g))
			}
			return append(append([]float64{}, z.X...), z.P...)
		}
		w := []float64{0.3, -0.8, 1.1, 0.5, 0.2, -0.7}
		var jac [6][6]float64 // jac[j][i] = ∂out_i/∂w_j
		for j := range w {
			up, down := append([]float64{}, w...), append([]float64{}, w...)
			up[j] += 1e-5
			down[j] -= 1e-5
			a, b := step(up), step(down)
			for i := range a {
				jac[j][i] = (a[i] - b[i]) / 2e-5
			}
		}
		for a := range 6 {
			for b := range 6 {
				form := 0.0
				for i := range 3 {
					form += jac[a][i]*jac[b][i+3] - jac[a][i+3]*jac[b][i]
				}
				want := 0.0
				if b == a+3 {
					want = 1
				} else if a == b+3 {
					want = -1
				}
				assert.InDelta(t, want, form, 1e-7, "%s %d %d", state.Kind, a, b)
			}
		}
	}
}

// The energy error over a fixed time falls as ε²: halving ε four times gives slopes of 2 in log-log.
func TestLeapfrogSecondOrder(t *testing.T) {
	m := metric(t, unitMetric(3))
	g := gradientOf(quartic)
	last := 0.0
	for k := range 5 {
		n := 40 << k
		z := phaseAt(t, quartic, []float64{0.3, -0.8, 1.1}, []float64{0.5, 0.2, -0.7}, m)
		h0 := z.Energy(0.7)
		for range n {
			require.NoError(t, leapfrog(&z, 2/float64(n), 0.7, m, g))
		}
		e := math.Abs(z.Energy(0.7) - h0)
		if k > 0 {
			slope := math.Log2(last / e)
			t.Logf("slope %.4f", slope)
			assert.InDelta(t, 2, slope, 0.02)
		}
		last = e
	}
}

// reference is NUTS by plain recursion, with fresh slices everywhere, written from the description in Stan's manual and
// Betancourt (2017), with the sums of momenta made anew from the list of points of each subtree.
type reference struct {
	m         massMatrix
	g         gradient
	rng       *stream
	eps, temp float64
	h0, sum   float64
	n         int
	divergent bool
	maxDeltaH float64
}

type refTree struct {
	points []phase // in the order of growth
	logW   float64
	draw   phase
	valid  bool
}

func clonePhase(z *phase) phase {
	c := newPhase(len(z.X))
	c.Copy(z)
	return c
}

func (r *reference) goesOn(points []phase) bool {
	rho := make([]float64, len(points[0].X))
	for _, z := range points {
		for i, p := range z.P {
			rho[i] += p
		}
	}
	return dot(points[0].V, rho) > 0 && dot(points[len(points)-1].V, rho) > 0
}

func (r *reference) persists(left, right []phase) bool {
	all := append(append([]phase{}, left...), right...)
	return r.goesOn(all) && r.goesOn(append(append([]phase{}, left...), right[0])) &&
		r.goesOn(append([]phase{left[len(left)-1]}, right...))
}

func (r *reference) build(z phase, depth int, eps float64) refTree {
	if depth == 0 {
		z = clonePhase(&z)
		if err := leapfrog(&z, eps, r.temp, r.m, r.g); err != nil {
			panic(err)
		}
		h := z.Energy(r.temp)
		r.n++
		r.sum += math.Min(1, math.Exp(r.h0-h))
		if h-r.h0 > r.maxDeltaH {
			r.divergent = true
			return refTree{}
		}
		return refTree{[]phase{z}, r.h0 - h, z, true}
	}
	a := r.build(z, depth-1, eps)
	if !a.valid {
		return a
	}
	b := r.build(a.points[len(a.points)-1], depth-1, eps)
	if !b.valid {
		return b
	}
	t := refTree{append(append([]phase{}, a.points...), b.points...), logAddExp(a.logW, b.logW), a.draw,
		r.persists(a.points, b.points)}
	if r.rng.Float64() < math.Exp(b.logW-t.logW) {
		t.draw = b.draw
	}
	return t
}

func (r *reference) step(z phase, maxDepth int) (phase, int) {
	r.m.Sample(z.P, r.rng)
	r.m.Velocity(z.V, z.P)
	r.h0 = z.Energy(r.temp)
	t := refTree{[]phase{z}, 0, z, true}
	depth := 0
	for depth < maxDepth {
		back := r.rng.Float64() < 0.5
		end, eps := t.points[len(t.points)-1], r.eps
		if back {
			end, eps = t.points[0], -r.eps
		}
		b := r.build(end, depth, eps)
		if !b.valid {
			break
		}
		depth++
		if r.rng.Float64() < math.Exp(b.logW-t.logW) {
			t.draw = b.draw
		}
		left, right := t.points, b.points
		if back {
			left = nil
			for i := len(b.points) - 1; i >= 0; i-- {
				left = append(left, b.points[i])
			}
			right = t.points
		}
		ok := r.persists(left, right)
		t.points = append(append([]phase{}, left...), right...)
		t.logW = logAddExp(t.logW, b.logW)
		if !ok {
			break
		}
	}
	return t.draw, depth
}

// With the same random numbers the iterative NUTS makes the same trees and takes the same points as the recursion.
func TestNUTSIsTheRecursion(t *testing.T) {
	states, _ := metrics()
	depths := map[int]int{}
	divergent, deepest := 0, 0
	for k, state := range states {
		for _, eps := range []float64{0.03, 0.15, 0.6, 1.3} {
			for _, maxDepth := range []int{10, 3} {
				m := metric(t, state)
				tr, err := NUTS{MaxDepth: maxDepth, MaxDeltaH: 5}.build(3)
				require.NoError(t, err)
				rng := newStream(5, uint64(k))
				s, err := newState([]float64{0.5, 1, -0.2}, gradientOf(quartic))
				require.NoError(t, err)
				for range 40 {
					other := rng
					z := newPhase(3)
					copy(z.X, s.X)
					copy(z.Grad, s.Grad)
					z.LogP = s.LogP
					ref := reference{m: m, g: gradientOf(quartic), rng: &other, eps: eps, temp: 0.8, maxDeltaH: 5}
					want, depth := ref.step(z, maxDepth)
					info, err := tr.Step(&s, eps, 0.8, m, gradientOf(quartic), &rng)
					require.NoError(t, err)
					require.Equal(t, want.X, s.X)
					require.Equal(t, want.Grad, s.Grad)
					require.Equal(t, want.LogP, s.LogP)
					require.Equal(t, ref.n, info.Leapfrogs)
					require.Equal(t, depth, info.Depth)
					require.Equal(t, ref.divergent, info.Divergent)
					require.InDelta(t, ref.sum/float64(ref.n), info.Accept, 1e-12)
					require.InDelta(t, want.Energy(0.8), info.Energy, 1e-12)
					depths[depth]++
					if info.Divergent {
						divergent++
					}
					if info.MaxDepth {
						deepest++
					}
				}
			}
		}
	}
	t.Log("depths", depths, "divergent", divergent, "at max depth", deepest)
	require.Greater(t, len(depths), 4)
	require.Positive(t, divergent)
	require.Positive(t, deepest)
}

// After build no kernel allocates, at any depth.
func TestNoAllocations(t *testing.T) {
	d := gaussian(1, 2, 3, 4, 5)
	for _, state := range []Metric{unitMetric(5), diagonalMetric([]float64{1, 2, 3, 4, 5}),
		lowRankMetric([]float64{1, 2, 3, 4, 5}, []float64{1, 0, 0, 0, 0}, []float64{2})} {
		for _, c := range []Kernel{NUTS{}, HMC{Jitter: 0.5, Persistence: 0.5}, HMC{Steps: 1}} {
			tr, err := c.build(5)
			require.NoError(t, err)
			g, m, rng := gradientOf(d), metric(t, state), newStream(1, 0)
			s, err := newState([]float64{1, 1, 1, 1, 1}, g)
			require.NoError(t, err)
			step := func() {
				if _, err := tr.Step(&s, 0.02, 1, m, g, &rng); err != nil {
					panic(err)
				}
			}
			step() // a kept momentum is made once
			assert.Zero(t, testing.AllocsPerRun(20, step), "%T", c)
		}
	}
}

// A kernel that fails leaves state and stream as they were, and a recoverable error is a divergence.
func TestStepErrors(t *testing.T) {
	bad := errors.New("bad")
	for _, c := range []Kernel{NUTS{}, HMC{Persistence: 0.3}, HMC{Steps: 1}} {
		tr, err := c.build(1)
		require.NoError(t, err)
		g := gradientOf(gaussian(1))
		s, err := newState([]float64{0.5}, g)
		require.NoError(t, err)
		before, rng := s.clone(), newStream(1, 0)
		n := 0
		_, err = tr.Step(&s, 0.1, 1, metric(t, unitMetric(1)), func(x, grad []float64) (float64, error) {
			if n++; n > 3 || tr.Target() == 0.574 {
				return 0, bad
			}
			return g(x, grad)
		}, &rng)
		require.ErrorIs(t, err, bad)
		require.Equal(t, before, s)
		require.Zero(t, rng.Position)
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			for _, inGrad := range []bool{false, true} {
				info, err := tr.Step(&s, 0.1, 1, metric(t, unitMetric(1)), func(x, grad []float64) (float64, error) {
					lp, err := g(x, grad)
					if inGrad {
						grad[0] = bad
						return lp, err
					}
					return bad, err
				}, &rng)
				require.NoError(t, err)
				assert.True(t, info.Divergent)
				assert.False(t, info.Accepted)
				assert.Zero(t, info.Accept)
				assert.Equal(t, 0.5, s.X[0])
			}
		}
		info, err := tr.Step(&s, 0.1, 1, metric(t, unitMetric(1)),
			func(_, _ []float64) (float64, error) { return 0, singular{} }, &rng)
		require.NoError(t, err)
		assert.True(t, info.Divergent)
		for _, v := range [][2]float64{{0, 1}, {math.NaN(), 1}, {1, 0}, {1, -1}} {
			_, err = tr.Step(&s, v[0], v[1], metric(t, unitMetric(1)), g, &rng)
			assert.ErrorIs(t, err, errConfig)
		}
	}
}

// singular is an error of one point.
type singular struct{}

func (singular) Error() string     { return "the matrix is singular" }
func (singular) Recoverable() bool { return true }

func TestKernelConfigErrors(t *testing.T) {
	for _, c := range []Kernel{
		NUTS{MaxDepth: -1}, NUTS{MaxDepth: 31}, NUTS{MaxDeltaH: -1}, NUTS{MaxDeltaH: math.NaN()},
		HMC{Steps: -1}, HMC{Length: -1}, HMC{Length: math.NaN()}, HMC{Jitter: 2}, HMC{Persistence: 1},
		HMC{Persistence: -0.1}, HMC{MaxSteps: -1},
		HMC{Lower: []float64{0}}, HMC{Lower: []float64{0, 1}, Upper: []float64{1, 1}},
		HMC{Steps: 1, Upper: []float64{math.NaN(), 0}},
	} {
		_, err := c.build(2)
		var field *FieldError
		assert.ErrorAs(t, err, &field, "%+v", c)
	}
	for _, c := range []Kernel{NUTS{}, HMC{}, HMC{Steps: 1}} {
		_, err := c.build(0)
		assert.ErrorIs(t, err, errConfig)
	}
}
