package torch_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// normals and uniforms draw n numbers of each chain of s.
func normals(s *torch.Streams, n int) []float64 {
	return torch.Must(torch.ToSlice[float64](torch.Must(s.Normal([]int{n}, gotch.Double, gotch.CPU))))
}

func uniforms(s *torch.Streams, n int) []float64 {
	return torch.Must(torch.ToSlice[float64](torch.Must(s.Uniform([]int{n}, gotch.Double, gotch.CPU))))
}

// unit is how two words make a number of (0, 1): 52 bits and a half.
func unit(hi, lo uint32) float64 {
	return (float64(uint64(hi)<<20|uint64(lo)>>12) + 0.5) / (1 << 52)
}

// The three vectors that Random123 publishes for philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): counter, key and the
// four words. The counter is the position and the chain, the key is the seed, each with its low word first.
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		seed, chain, position uint64
		words                 [4]uint32
	}{
		{0, 0, 0, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{math.MaxUint64, math.MaxUint64, math.MaxUint64, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88,
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		inScope(t, func(*torch.Scope) {
			w := c.words
			a, b := unit(w[0], w[1]), unit(w[2], w[3])
			s := torch.Streams{Seed: c.seed, Chains: []uint64{c.chain}, Offset: c.position}
			again, single := s, s
			assert.Equal(t, []float64{a, b}, uniforms(&s, 2))
			assert.Equal(t, c.position+1, s.Offset)

			// Box and Muller's pair.
			r := math.Sqrt(-2 * math.Log(a))
			near(t, []float64{r * math.Cos(2*math.Pi*b), r * math.Sin(2*math.Pi*b)}, normals(&again, 2), 1e-15)

			// In single precision one word makes one number: 23 bits and a half, of the first and the third.
			x := torch.Must(single.Uniform([]int{2}, gotch.Float, gotch.CPU))
			assert.Equal(t, gotch.Float, x.T().DType())
			assert.Equal(t, []float64{(float64(w[0]>>9) + 0.5) / (1 << 23), (float64(w[2]>>9) + 0.5) / (1 << 23)}, floats(x))
		})
	}
}

// A stream depends on (seed, chain) alone: the numbers of chain 3 are bit for bit the same among 64 chains, among 4, by
// itself, and with the chains in another order, while no two chains, seeds or positions have a number in common.
func TestStreamsDependOnSeedAndChain(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		const n = 1001
		draw := func(seed uint64, chains []uint64, offset uint64) []float64 {
			s := torch.Streams{Seed: seed, Chains: chains, Offset: offset}
			return append(normals(&s, n), uniforms(&s, n)...)
		}
		row := func(all []float64, chains, k int) []float64 {
			half := len(all) / 2
			return append(append([]float64{}, all[k*n:(k+1)*n]...), all[half+k*n:half+(k+1)*n]...)
		}
		many, few := torch.NewStreams(7, 64).Chains, torch.NewStreams(7, 4).Chains
		assert.Equal(t, []uint64{0, 1, 2, 3}, few)
		want := draw(7, []uint64{3}, 0)
		assert.Equal(t, want, row(draw(7, many, 0), 64, 3))
		assert.Equal(t, want, row(draw(7, few, 0), 4, 3))
		assert.Equal(t, want, row(draw(7, []uint64{9, 3, 1 << 40}, 0), 3, 1))

		seen := map[float64]string{}
		for name, s := range map[string][]float64{
			"chain 3": want, "chain 4": draw(7, []uint64{4}, 0), "chain 3 + 2^32": draw(7, []uint64{3 + 1<<32}, 0),
			"seed 8": draw(8, []uint64{3}, 0), "seed 7 + 2^32": draw(7+1<<32, []uint64{3}, 0),
			"seed and chain swapped": draw(3, []uint64{7}, 0), "later": draw(7, []uint64{3}, 1<<32),
		} {
			for _, v := range s {
				require.Emptyf(t, seen[v], "%v is in %s and in %s", v, name, seen[v])
				seen[v] = name
			}
		}
	})
}

// The numbers do not depend on the number of threads. The row is so long that it is shared out: a task is 4096 numbers.
func TestStreamsWithAnyNumberOfThreads(t *testing.T) {
	before := ts.KelvinLibraryInfo().Threads
	defer func() { require.NoError(t, torch.SetThreads(before)) }()
	for _, shape := range [][]int{{1 << 18}, {100003}, {3, 33333}} {
		var want, wantUniform []float64
		for _, threads := range []int{1, 2, 3, 8} {
			require.NoError(t, torch.SetThreads(threads))
			inScope(t, func(*torch.Scope) {
				assert.Equal(t, threads, ts.KelvinLibraryInfo().Threads)
				s := torch.NewStreams(11, shape[0]%7+1)
				s.Offset = 5
				x := floats(torch.Must(s.Normal(shape, gotch.Double, gotch.CPU)))
				u := floats(torch.Must(s.Uniform(shape, gotch.Float, gotch.CPU)))
				if threads == 1 {
					want, wantUniform = x, u
				}
				for i := range want {
					if math.Float64bits(want[i]) != math.Float64bits(x[i]) || wantUniform[i] != u[i] {
						t.Fatalf("number %d of shape %v differs with %d threads", i, shape, threads)
					}
				}
			})
		}
	}
}

// Successive draws go on where the last ended: for even lengths they are the pieces of one long draw; an odd one leaves
// the second number of its last pair unused. Shapes only arrange the numbers.
func TestSuccessiveDraws(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		for _, draw := range []func(*torch.Streams, int) []float64{normals, uniforms} {
			long := torch.NewStreams(3, 1)
			want := draw(&long, 40)
			assert.EqualValues(t, 20, long.Offset)
			s := torch.NewStreams(3, 1)
			var got []float64
			for _, n := range []int{2, 10, 4, 0, 24} {
				got = append(got, draw(&s, n)...)
			}
			assert.Equal(t, want, got)
			assert.Equal(t, long, s)
			odd := torch.NewStreams(3, 1)
			assert.Equal(t, want[:7], draw(&odd, 7))
			assert.EqualValues(t, 4, odd.Offset)
			assert.Equal(t, want[8:13], draw(&odd, 5))
			assert.EqualValues(t, 7, odd.Offset)
		}
		// With several chains the same holds in each row.
		long, s := torch.NewStreams(5, 3), torch.NewStreams(5, 3)
		want, first, second := normals(&long, 16), normals(&s, 6), normals(&s, 10)
		for k := range 3 {
			assert.Equal(t, want[16*k:16*k+16], append(append([]float64{}, first[6*k:6*k+6]...), second[10*k:10*k+10]...))
		}
		// Streams are a value: a copy is a position to come back to.
		saved := s
		next := normals(&s, 8)
		assert.NotEqual(t, saved.Offset, s.Offset)
		assert.Equal(t, next, normals(&saved, 8))

		flat, shaped := torch.NewStreams(5, 3), torch.NewStreams(5, 3)
		x := torch.Must(shaped.Normal([]int{2, 2, 4}, gotch.Double, gotch.CPU))
		assert.Equal(t, []int{3, 2, 2, 4}, shapeOf(x))
		assert.Equal(t, normals(&flat, 16), floats(x))
		one := torch.NewStreams(5, 3)
		assert.Equal(t, []int{3}, shapeOf(torch.Must(one.Uniform(nil, gotch.Double, gotch.CPU))),
			"one number for each chain")
		assert.EqualValues(t, 1, one.Offset)
	})
}

// NormalLike draws the numbers of Normal in the shape, type and device of a tensor.
func TestNormalLike(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		like := torch.New(make([]float32, 12), 4, 3)
		s, same, single := torch.NewStreams(1, 4), torch.NewStreams(1, 4), torch.NewStreams(1, 1)
		x := torch.Must(s.NormalLike(like))
		assert.Equal(t, []int{4, 3}, shapeOf(x))
		assert.Equal(t, gotch.Float, x.T().DType())
		assert.Equal(t, floats(torch.Must(same.Normal([]int{3}, gotch.Float, gotch.CPU))), floats(x))
		assert.Equal(t, same, s)
		y := torch.Must(single.NormalLike(like))
		assert.Equal(t, []int{4, 3}, shapeOf(y), "one stream fills any shape")
		assert.EqualValues(t, 3, single.Offset)
		assert.Equal(t, floats(x)[:3], floats(y)[:3])
		assert.Equal(t, []int{}, shapeOf(torch.Must(single.NormalLike(scalar(0)))))

		for _, wrong := range []torch.Tensor{scalar(0), vec([]float64{1, 2, 3}), vec(numbers(12, 0), 3, 4)} {
			before := s
			_, err := s.NormalLike(wrong)
			assert.ErrorContains(t, err, "4 chains cannot fill shape")
			assert.Equal(t, before, s, "a draw that failed uses nothing")
		}
		for _, c := range []struct {
			draw  func([]int, gotch.DType, gotch.Device) (torch.Tensor, error)
			dtype gotch.DType
		}{{s.Normal, gotch.Int64}, {s.Normal, gotch.Bool}, {s.Normal, gotch.Invalid}, {s.Uniform, gotch.Half},
			{s.Uniform, gotch.Uint8}} {
			before := s
			_, err := c.draw([]int{2}, c.dtype, gotch.CPU)
			assert.ErrorContains(t, err, "cannot be drawn")
			assert.Equal(t, before, s)
		}
		_, err := s.NormalLike(ints([]int{1, 2, 3, 4}))
		assert.ErrorContains(t, err, "cannot be drawn")
	})
}

// In single precision uniform numbers differ from those of double precision by the rounding to 23 bits and a half, and
// normal ones of half precision by theirs.
func TestSinglePrecision(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		double, single := torch.NewStreams(2, 3), torch.NewStreams(2, 3)
		want := uniforms(&double, 1001)
		got := torch.Must(torch.ToSlice[float32](torch.Must(single.Uniform([]int{1001}, gotch.Float, gotch.CPU))))
		for i := range want {
			require.InDelta(t, want[i], float64(got[i]), 1.0/(1<<24))
		}
		assert.Equal(t, double, single)
		half := torch.Must(single.Normal([]int{1000}, gotch.Half, gotch.CPU))
		want = normals(&double, 1000)
		near(t, want, floats(half), 1.0/(1<<11), "half precision has 11 bits")
		assert.Equal(t, double, single)
	})
}

// Uniform numbers are strictly inside (0, 1) because they are odd multiples of 2^-53 (in single precision of 2^-24),
// which neither 0 nor 1 is; and the sum that makes them is exact.
func TestUniformsAreInsideTheInterval(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		for _, dtype := range []gotch.DType{gotch.Double, gotch.Float} {
			s := torch.NewStreams(4, 1)
			x := floats(torch.Must(s.Uniform([]int{1 << 20}, dtype, gotch.CPU)))
			grid := float64(1 << 53)
			if dtype == gotch.Float {
				grid = 1 << 24
			}
			for _, v := range x {
				k := v * grid
				if v <= 0 || v >= 1 || k != math.Trunc(k) || math.Mod(k, 2) != 1 {
					t.Fatalf("%v: %v times 2^-%v is not an odd multiple", dtype, k, math.Log2(grid))
				}
			}
		}
	})
}

// A source that asks has the numbers that it is given, of each kind, and an error where it is given none.
func TestSourceAsks(t *testing.T) {
	var kinds []string
	s := torch.NewSource(1, 2)
	own := torch.NewSource(1, 2)
	s.Ask(func(kind string, shape []int, dtype gotch.DType, params ...torch.Tensor) (torch.Tensor, error) {
		kinds = append(kinds, kind)
		if kind == "uniform" {
			return torch.Tensor{}, nil
		}
		if len(params) > 0 {
			return own.LogGamma(params[0])
		}
		return own.Normal(shape, dtype, torch.CPU)
	})
	got, err := s.Normal([]int{3}, gotch.Double, torch.CPU)
	require.NoError(t, err)
	alpha := torch.New([]float64{0.5, 2})
	gamma, err := s.LogGamma(alpha)
	require.NoError(t, err)
	other := torch.NewSource(1, 2)
	want, err := other.Normal([]int{3}, gotch.Double, torch.CPU)
	require.NoError(t, err)
	require.Equal(t, want.Values(), got.Values())
	want, err = other.LogGamma(alpha)
	require.NoError(t, err)
	require.Equal(t, want.Values(), gamma.Values())
	_, err = s.Uniform([]int{1}, gotch.Double, torch.CPU)
	require.ErrorContains(t, err, "no tensor, and no error, for uniform numbers")
	require.Equal(t, []string{"normal", "log gamma", "uniform"}, kinds)
	require.Panics(t, func() { s.Seed() })
}
