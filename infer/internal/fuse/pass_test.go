package fuse

import (
	"math"
	"testing"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// The noise of single precision is that of torch.Streams, bit for bit, by vectors of any instruction set.
func TestSingleNormalIsThatOfTheStreams(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 8, 33, 63, 64, 65, 1024, 20001} {
		streams := torch.Streams{Seed: 0xfedcba9876543210, Chains: []uint64{0, 5, 1 << 40}, Offset: 1<<32 - 3}
		want, err := streams.Normal([]int{n}, gotch.Float, torch.CPU)
		require.NoError(t, err)
		numbers, err := torch.ToSlice[float32](want)
		require.NoError(t, err)
		torch.Free(want)
		for k, stream := range streams.Chains {
			for _, width := range []int{1, 8, 16} {
				got := make([]float32, n)
				floats(width, streams.Seed, stream, 1<<32-3, got)
				assert.Equal(t, numbers[k*n:][:n], got, "stream %d, %d numbers, width %d", stream, n, width)
			}
		}
	}
}

// passOf runs a program of one chain on θ, in memory of C, and gives what it makes.
func passOf[T float32 | float64](theta []T, threads int, write func(*Program)) ([]T, map[string][]float64) {
	m := &memory{}
	defer m.free()
	n := len(theta)
	from, to := m.block(8*n), m.block(8*n)
	copy(unsafe.Slice((*T)(from), n), theta)
	p := &Pass{Dim: n, Single: unsafe.Sizeof(theta[0]) == 4, Streams: torch.NewStreams(1, 1), Threads: threads}
	p.Rows(Theta, from, to)
	p.Rows(Part(0), from, nil)
	program := &Program{}
	program.Begin(0, false, false)
	write(program)
	stats := p.Run(program)
	return append([]T(nil), unsafe.Slice((*T)(to), n)...), stats
}

// tensorsOf is passOf with tensors.
func tensorsOf[T float32 | float64](t *testing.T, theta []T, write func(*Program)) []float64 {
	var made []float64
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		x, err := torch.FromSlice(theta)
		if err != nil {
			return err
		}
		streams := torch.NewStreams(1, 1)
		update := Tensors{Normal: func() *ts.Tensor { return torch.Must(streams.NormalLike(x)).T() }}
		update.Set(Theta, x.T())
		update.Set(Part(0), x.T())
		program := &Program{}
		program.Begin(0, false, false)
		write(program)
		update.Run(program)
		made, err = torch.ToSlice[float64](torch.Of(update.Get(Theta)))
		return err
	}))
	return made
}

// A kick of momenta 0 by gradient 1 without noise is (1 − exp(−hξ))/ξ, here against the C library's in double
// precision, to four roundings of the type, alone and in blocks where all are short.
func TestDecay(t *testing.T) {
	decay := func(h float64) func(*Program) {
		return func(p *Program) {
			p.Combine(Grad)
			p.Shift(Grad, Grad, 1)
			p.Combine(A)
			p.Combine(B, Term{C: 1, X: Theta})
			p.ATMC(A, B, ATMC{H: h, Friction: 1e-6})
			p.Combine(Theta, Term{C: 1, X: A})
		}
	}
	x := []float64{1e-6}
	for v := 1.1e-6; v < 800; v *= 1.003 {
		x = append(x, v)
	}
	double, _ := passOf(x, 1, decay(0.5))
	floats := make([]float32, len(x))
	for i := range x {
		floats[i] = float32(x[i])
	}
	single, _ := passOf(floats, 1, decay(0.5))
	for i := range x {
		want := -math.Expm1(-0.5*x[i]) / x[i]
		assert.InDelta(t, want, double[i], 4*0x1p-53*math.Abs(want), "x = %g", x[i])
		want = -math.Expm1(-0.5*float64(floats[i])) / float64(floats[i])
		assert.InDelta(t, want, float64(single[i]), 4*0x1p-24*math.Abs(want), "x = %g", x[i])
	}
	double, _ = passOf([]float64{math.NaN(), math.Inf(1)}, 1, decay(1))
	assert.True(t, math.IsNaN(double[0]))
	assert.Equal(t, 0.0, double[1])
}

// An update of ATMC against its formulas, with short steps and long ones, with and without a limit, for thermostats
// above and below the friction, and with the noise of the streams.
func TestATMC(t *testing.T) {
	const n, friction, scale = 1041, 0.4, 0.7
	noise := func(dtype gotch.DType) []float64 {
		streams := torch.NewStreams(1, 1)
		z, err := streams.Normal([]int{n}, dtype, torch.CPU)
		require.NoError(t, err)
		defer torch.Free(z)
		numbers, err := torch.ToSlice[float64](z)
		require.NoError(t, err)
		return numbers
	}
	x, single := make([]float64, n), make([]float32, n)
	for i := range x {
		single[i] = float32(2 * math.Sin(float64(i+3)))
		x[i] = float64(single[i])
	}
	for _, h := range []float64{0.1, 3} {
		for _, limit := range []float64{0, 0.25} {
			write := func(which Register) func(*Program) { // p = θ + 1, ξ = θ and g = 3θ
				return func(p *Program) {
					p.Combine(Grad, Term{C: 3, X: Theta})
					p.Shift(A, Theta, 1)
					p.Combine(B, Term{C: 1, X: Theta})
					p.ATMC(A, B, ATMC{H: h, Friction: friction, Scale: scale, Velocity: 0.3, Plus: -2, Limit: limit})
					p.Combine(Theta, Term{C: 1, X: which})
				}
			}
			want := func(xi, z float64) (float64, float64, float64) {
				p := xi + 1
				b := max(xi, friction) / math.Sqrt(1+limit*p*p)
				lost := math.Exp(-b * h)
				p = lost*p + (1-lost)/b*3*xi + scale*math.Sqrt(max(friction-xi, 0)*(1-lost*lost)/b)*z
				r := 1 / math.Sqrt(1+limit*p*p)
				return p, xi + 0.3*p*r, xi + 0.3*p*p*r*r - 2*r*r*r
			}
			double, float := noise(gotch.Double), noise(gotch.Float)
			for at, which := range []Register{A, Theta, B} {
				have, _ := passOf(x, 1, write(which))
				also, _ := passOf(single, 1, write(which))
				tensors, singles := tensorsOf(t, x, write(which)), tensorsOf(t, single, write(which))
				for i, xi := range x {
					for _, c := range []struct{ have, z, tolerance float64 }{{have[i], double[i], 1e-14},
						{float64(also[i]), float[i], 4e-6}, {tensors[i], double[i], 1e-14}, {singles[i], float[i], 4e-6}} {
						p, theta, heat := want(xi, c.z)
						right := []float64{p, theta, heat}[at]
						require.InDelta(t, right, c.have, c.tolerance*(1+right*right), "h = %g, limit %g, number %d of %d",
							h, limit, i, which)
					}
				}
			}
		}
	}
}

// Each operation is what it says, in both precisions and for every remainder of a vector, in passes and with tensors.
func TestOperations(t *testing.T) {
	for name, op := range map[string]struct {
		write func(*Program)
		want  func(float64) float64
	}{
		"none":  {func(p *Program) {}, func(x float64) float64 { return x }},
		"empty": {func(p *Program) { p.Combine(Theta) }, func(float64) float64 { return 0 }},
		"one":   {func(p *Program) { p.Combine(Theta, Term{C: 3, X: Theta}) }, func(x float64) float64 { return 3 * x }},
		"product alone": {func(p *Program) { p.Combine(Theta, Product(2, Theta, Part(0))) },
			func(x float64) float64 { return 2 * x * x }},
		"and a product": {func(p *Program) { p.Combine(Theta, Term{C: 3, X: Theta}, Product(2, Theta, Part(0))) },
			func(x float64) float64 { return 3*x + 2*x*x }},
		"two and a product": {func(p *Program) {
			p.Shift(A, Theta, 5)
			p.Combine(Theta, Term{C: 3, X: Theta}, Term{C: -1, X: A}, Product(2, Theta, Part(0)))
		}, func(x float64) float64 { return 3*x - (x + 5) + 2*x*x }},
		"multiply": {func(p *Program) { p.Multiply(Theta, 2, Theta, Part(0)) }, func(x float64) float64 { return 2 * x * x }},
		"divide": {func(p *Program) { p.Shift(A, Theta, 5); p.Divide(Theta, 2, Theta, A) },
			func(x float64) float64 { return 2 * x / (x + 5) }},
		"root": {func(p *Program) { p.Multiply(A, 1, Theta, Theta); p.Root(Theta, 2, A, 1) },
			func(x float64) float64 { return 2*math.Abs(x) + 1 }},
		"inverse root": {func(p *Program) { p.InverseRoot(Theta, 2, Theta, 5) },
			func(x float64) float64 { return 2 / math.Sqrt(x+5) }},
		"clamp": {func(p *Program) { p.Clamp(Theta, Theta, -0.5, 0.25) },
			func(x float64) float64 { return min(max(x, -0.5), 0.25) }},
		"below": {func(p *Program) { p.Below(Theta, Theta) },
			func(x float64) float64 {
				if x < 0 {
					return 1
				}
				return 0
			}},
	} {
		for _, n := range []int{1, 7, 16, 1041} {
			x, single := make([]float64, n), make([]float32, n)
			for i := range x {
				single[i] = float32(math.Sin(float64(i + 3)))
				x[i] = float64(single[i])
			}
			have, _ := passOf(x, 1, op.write)
			also, _ := passOf(single, 1, op.write)
			tensors, singles := tensorsOf(t, x, op.write), tensorsOf(t, single, op.write)
			for i := range x {
				want := op.want(x[i])
				require.InDelta(t, want, tensors[i], 4e-16*(1+math.Abs(want)), "%s of %g with tensors", name, x[i])
				require.InDelta(t, want, singles[i], 3e-7*(1+math.Abs(want)), "%s of %g with tensors", name, x[i])
				require.InDelta(t, want, have[i], 4e-16*(1+math.Abs(want)), "%s of %g", name, x[i])
				require.InDelta(t, want, float64(also[i]), 3e-7*(1+math.Abs(want)), "%s of %g", name, x[i])
			}
		}
	}
}

// Roots are right to a unit of the last place, also of numbers that are zero, huge, tiny, infinite, negative or none.
func TestRoots(t *testing.T) {
	usual := []float32{0, 1, 2, 3}
	for v := 1e-30; v < 1e30; v *= 1.7 {
		usual = append(usual, float32(v))
	}
	odd := append([]float32{3e-39, 1e-45, 3e38, float32(math.Inf(1)), float32(math.NaN()), -1}, usual...)
	for _, x := range [][]float32{usual, odd} {
		roots, _ := passOf(x, 1, func(p *Program) { p.Root(Theta, 1, Theta, 0) })
		inverse, _ := passOf(x, 1, func(p *Program) { p.InverseRoot(Theta, 1, Theta, 0) })
		for i, v := range x {
			for _, c := range []struct{ want, have float64 }{{math.Sqrt(float64(v)), float64(roots[i])},
				{1 / math.Sqrt(float64(v)), float64(inverse[i])}} {
				if math.IsNaN(c.want) || math.IsInf(c.want, 0) || c.want == 0 {
					assert.Equal(t, math.IsNaN(c.want), math.IsNaN(c.have), "%g", v)
					assert.Equal(t, math.IsNaN(c.want) || c.want == c.have, true, "%g: %g", v, c.have)
					continue
				}
				assert.InDelta(t, c.want, c.have, 0x1p-23*c.want, "%g", v)
			}
		}
	}
}

// So is the velocity of relativistic momenta, also of those whose square overflows.
func TestVelocity(t *testing.T) {
	usual := []float32{0, 1e-30, -1, 0.5, 3, 1e10, -1e14}
	for _, x := range [][]float32{usual, append([]float32{1e18, -1e25, float32(math.Inf(1)),
		float32(math.NaN())}, usual...)} {
		have, _ := passOf(x, 1, func(p *Program) { // of momenta that keep their values
			p.Combine(A, Term{C: 1, X: Theta})
			p.Combine(B)
			p.Combine(Theta)
			p.ATMC(A, B, ATMC{Friction: 1, Velocity: 1, Limit: 0.25})
		})
		for i, v := range x {
			if want := float64(v) / math.Sqrt(1+0.25*float64(v)*float64(v)); math.IsNaN(want) {
				assert.True(t, math.IsNaN(float64(have[i])))
			} else {
				assert.InDelta(t, want, have[i], 0x1p-22*math.Abs(want), "%g", v)
			}
		}
	}
}

// No bit depends on the number of threads, those of means included, which are those of Go's to rounding.
func TestThreadsChangeNoBit(t *testing.T) {
	x := make([]float32, 50_003)
	sum := 0.0
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
		sum += float64(x[i])
	}
	write := func(p *Program) {
		p.Tell("mean", Theta)
		p.Combine(Theta, Term{C: 0.9, X: Theta}, Term{C: 0.1, X: Noise})
	}
	want, told := passOf(x, 1, write)
	assert.InDelta(t, sum/50_003, told["mean"][0], 1e-15)
	for _, threads := range []int{0, 2, 3, 7} {
		have, also := passOf(x, threads, write)
		assert.Equal(t, want, have)
		assert.Equal(t, told, also)
	}
	streams := torch.NewStreams(1, 1)
	z, err := streams.Normal([]int{50_003}, gotch.Float, torch.CPU)
	require.NoError(t, err)
	noise, err := torch.ToSlice[float32](z)
	require.NoError(t, err)
	torch.Free(z)
	for i := range x {
		require.InDelta(t, 0.9*float64(x[i])+0.1*float64(noise[i]), float64(want[i]), 3e-7)
	}
}
