package torch

import (
	"math"
	"sync"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/internal/cuda"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// kernels are those of the devices, found when a device first draws, and broken why one of them no longer draws.
var kernels, broken sync.Map

// kernelOf is the kernel of a device, or the reason why the device has no kernel.
func kernelOf(device gotch.Device) (*cuda.Kernel, error) {
	load := sync.OnceValues(func() (*cuda.Kernel, error) { return cuda.Load(deviceNumber(device)) })
	found, _ := kernels.LoadOrStore(deviceNumber(device), load)
	return found.(func() (*cuda.Kernel, error))()
}

// onDevice draws the numbers of [Streams] on their device: in one kernel, or by operations if the device has no kernel.
// The words are those of the CPU to the bit, and so are uniform numbers; normal ones are to the rounding of the
// device's logarithm, sine and cosine, but those of float32 that the kernel makes, which are to the bit too.
func (s *Streams) onDevice(kind int, shape []int, dtype gotch.DType, device gotch.Device) (*ts.Tensor, error) {
	k, err := kernelOf(device)
	if err != nil {
		return s.byOperations(kind, shape, dtype, device)
	}
	return s.byEither(k.Fill, kind, shape, dtype, device)
}

// filler fills memory of a device: see [cuda.Kernel.Fill].
type filler func(d cuda.Draw, out, chains unsafe.Pointer) error

// byEither draws by a kernel, and by operations from the first time on that it fails.
func (s *Streams) byEither(fill filler, kind int, shape []int, dtype gotch.DType, device gotch.Device) (*ts.Tensor,
	error) {
	if _, gone := broken.Load(deviceNumber(device)); !gone {
		t, err := s.byKernel(fill, kind, shape, dtype, device)
		if err == nil {
			return t, nil
		}
		broken.Store(deviceNumber(device), err)
	}
	return s.byOperations(kind, shape, dtype, device)
}

// byKernel draws by a kernel.
func (s *Streams) byKernel(fill filler, kind int, shape []int, dtype gotch.DType, device gotch.Device) (
	out *ts.Tensor, err error) {
	d := cuda.Draw{Float: dtype == gotch.Float, Normal: kind == 0, Seed: s.Seed, Offset: s.Offset,
		Rows: int64(len(s.Chains)), N: 1}
	for _, n := range shape {
		d.N *= int64(n)
	}
	d.N /= d.Rows
	err = Do(func(scope *Scope) error {
		// A copy of the chains would wait for the device.
		var chains unsafe.Pointer
		var even bool
		if d.First, d.Step, even = s.evenChains(); !even {
			copied, err := s.chainsOn(device)
			if err != nil {
				return err
			}
			chains = Must(copied.t.DataPtr())
		}
		drawn := gotch.Double
		if d.Float {
			drawn = gotch.Float
		}
		t, err := ts.Empty(Int64s(shape), drawn, device)
		if err != nil {
			return err
		}
		if err := fill(d, Must(t.DataPtr()), chains); err != nil {
			return err
		}
		out = t.MustTotype(dtype, false)
		scope.Keep(wrap(out))
		return nil
	})
	return out, err
}

// evenChains are the first chain and the distance to the next, where it is the same for all.
func (s *Streams) evenChains() (first, step uint64, even bool) {
	first = s.Chains[0]
	if len(s.Chains) > 1 {
		step = s.Chains[1] - first
	}
	for k, chain := range s.Chains {
		if chain != first+uint64(k)*step {
			return 0, 0, false
		}
	}
	return first, step, true
}

// chainsOn are the chains as a column.
func (s *Streams) chainsOn(device gotch.Device) (Tensor, error) {
	chains := make([]int, len(s.Chains))
	for i, c := range s.Chains {
		chains[i] = int(c)
	}
	return FromSliceOn(device, gotch.Int64, chains, len(chains), 1)
}

// byOperations draws by operations on tensors of 64 bits.
func (s *Streams) byOperations(kind int, shape []int, dtype gotch.DType, device gotch.Device) (out *ts.Tensor,
	err error) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	k := len(s.Chains)
	count := positions(kind, n/k, dtype)
	err = Do(func(scope *Scope) error {
		column, err := s.chainsOn(device)
		if err != nil {
			return err
		}
		chain := column.t
		// Sums and products are those of uint64, since both wrap.
		position := ts.MustArange(ts.IntScalar(int64(count)), gotch.Int64, device).
			MustAddScalar(ts.IntScalar(int64(s.Offset)), false).MustUnsqueeze(0, false).
			MustExpand([]int64{int64(k), int64(count)}, false, false)
		w := philox([4]*ts.Tensor{low(position), high(position), low(chain), high(chain)}, s.Seed)
		var numbers []*ts.Tensor
		switch {
		case kind == 1 && dtype == gotch.Float:
			// 23 bits and a half, from one word each: a double rounded to float could be 1.
			numbers = []*ts.Tensor{unitOf(right(w[0], 9), 23, gotch.Float), unitOf(right(w[2], 9), 23, gotch.Float)}
		case kind == 1:
			numbers = []*ts.Tensor{unitOf(bits52(w[0], w[1]), 52, gotch.Double),
				unitOf(bits52(w[2], w[3]), 52, gotch.Double)}
		case dtype == gotch.Float:
			for i := 0; i < 4; i += 2 {
				// The upper 31 bits and a half, as they are rounded to float; and a turn from -1/8 on, so that near each
				// right angle its bits are those of the difference.
				u := unitOf(right(w[i], 1), 31, gotch.Float).MustTotype(gotch.Double, false)
				turn := w[i+1].MustAddScalar(ts.IntScalar(1<<29), false)
				quarters := right(turn, 30)
				y := unitOf(turn.MustBitwiseAnd(ts.IntScalar(1<<30-1), false).MustSubScalar(ts.IntScalar(1<<29), false), 30,
					gotch.Float).MustTotype(gotch.Double, false)
				numbers = append(numbers, pair(u, y, quarters)...)
			}
		default:
			numbers = pair(unitOf(bits52(w[0], w[1]), 52, gotch.Double),
				unitOf(bits52(w[2], w[3]), 52, gotch.Double).MustMulScalar(ts.FloatScalar(4), false), nil)
		}
		all := ts.MustStack(numbers, 2).MustReshape([]int64{int64(k), int64(len(numbers) * count)}, false).
			MustNarrow(1, 0, int64(n/k), false)
		out = all.MustReshape(Int64s(shape), false).MustTotype(dtype, false)
		scope.Keep(wrap(out))
		return nil
	})
	return out, err
}

// pair is the Box-Muller transform of u in (0, 1) and the angle of y right angles, more by whole ones where there are
// some: so small angles keep their digits.
func pair(u, y, whole *ts.Tensor) []*ts.Tensor {
	r := u.MustLog(false).MustMulScalar(ts.FloatScalar(-2), false).MustSqrt(false)
	angle := y.MustMulScalar(ts.FloatScalar(math.Pi/2), false)
	c, s := r.MustMul(angle.MustCos(false), false), r.MustMul(angle.MustSin(false), false)
	if whole == nil {
		return []*ts.Tensor{c, s}
	}
	// A turn by q right angles is one by i^q.
	quarter := whole.MustBitwiseAnd(ts.IntScalar(3), false)
	odd := quarter.MustBitwiseAnd(ts.IntScalar(1), false).MustTotype(gotch.Bool, false)
	sign := func(plus int) *ts.Tensor {
		upper := quarter.MustAddScalar(ts.IntScalar(int64(plus)), false).MustBitwiseAnd(ts.IntScalar(2), false)
		return upper.MustMulScalar(ts.IntScalar(-1), false).MustAddScalar(ts.IntScalar(1), false)
	}
	return []*ts.Tensor{s.MustWhereSelf(odd, c, false).MustMul(sign(1), false),
		c.MustWhereSelf(odd, s, false).MustMul(sign(0), false)}
}

// philox are the four words of a counter, in 64 bits each, after the ten rounds of Philox 4x32 (Salmon et al. 2011).
func philox(c [4]*ts.Tensor, seed uint64) [4]*ts.Tensor {
	key := [2]uint32{uint32(seed), uint32(seed >> 32)}
	for range 10 {
		one := c[0].MustMulScalar(ts.IntScalar(0xD2511F53), false)
		two := c[2].MustMulScalar(ts.IntScalar(0xCD9E8D57), false)
		c = [4]*ts.Tensor{xor(high(two), c[1], key[0]), low(two), xor(high(one), c[3], key[1]), low(one)}
		key[0], key[1] = key[0]+0x9E3779B9, key[1]+0xBB67AE85
	}
	return c
}

// low and high are the words of a number of 64 bits.
func low(x *ts.Tensor) *ts.Tensor { return x.MustBitwiseAnd(ts.IntScalar(math.MaxUint32), false) }

func high(x *ts.Tensor) *ts.Tensor { return low(right(x, 32)) }

func right(x *ts.Tensor, bits int) *ts.Tensor {
	return x.MustBitwiseRightShiftTensorScalar(ts.IntScalar(int64(bits)), false)
}

func xor(x, y *ts.Tensor, key uint32) *ts.Tensor {
	return x.MustBitwiseXorTensor(y, false).MustBitwiseXor(ts.IntScalar(int64(key)), false)
}

// bits52 is 52 bits of two words.
func bits52(hi, lo *ts.Tensor) *ts.Tensor {
	return hi.MustBitwiseLeftShiftTensorScalar(ts.IntScalar(20), false).MustBitwiseOrTensor(right(lo, 12), false)
}

// unitOf makes so many bits, and a half, a number of (0, 1).
func unitOf(x *ts.Tensor, bits int, dtype gotch.DType) *ts.Tensor {
	return x.MustTotype(dtype, false).MustAddScalar(ts.FloatScalar(0.5), false).
		MustMulScalar(ts.FloatScalar(math.Ldexp(1, -bits)), false)
}
