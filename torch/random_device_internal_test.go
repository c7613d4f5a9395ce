package torch

import (
	"errors"
	"math"
	"testing"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/internal/cuda"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
)

// What a device would draw, here the CPU, is what the CPU's own code draws: uniform numbers to the bit, normal ones to
// the rounding of log, cos and sin, which is a few units in the last place of numbers up to 8.6: by operations, and by
// the code of the kernel. Normal numbers of single precision are to the bit by the kernel, and by operations to what
// their definition differs from exact functions, six units of 2^-24. Shapes are odd and even, with one stream over
// several rows too, and seeds, chains and positions have all 64 bits.
func TestDrawingOnTheDevice(t *testing.T) {
	for _, s := range []Streams{
		NewStreams(7, 3),
		{Seed: 7, Chains: []uint64{6, 3, 0}},
		{Seed: 7, Chains: []uint64{2, 3, 5}},
		{Seed: math.MaxUint64, Chains: []uint64{math.MaxUint64, 5}, Offset: 0x85a308d3243f6a88},
		{Seed: 0x299f31d0a4093822, Chains: []uint64{0x0370734413198a2e}, Offset: math.MaxUint32 - 2},
	} {
		k := len(s.Chains)
		for _, shape := range [][]int{{k, 1}, {k, 6}, {k, 5, 3}, {6, 7}} {
			for kind, types := range drawable {
				for dtype := range types {
					require.NoError(t, Do(func(*Scope) error {
						want, got := s, s
						a := Must(want.drawAt(kind, shape, int(dtype.CInt()), -1))
						unit := map[gotch.DType]float64{gotch.Double: 0x1p-52, gotch.Float: 7 * 0x1p-24, gotch.Half: 0x1p-10,
							gotch.BFloat16: 0x1p-7}[dtype]
						x := Must(ToSlice[float64](a))
						for way, b := range []Tensor{wrap(Must(got.byOperations(kind, shape, dtype, CPU))),
							wrap(Must(got.byKernel(serial, kind, shape, dtype, CPU)))} {
							require.Equal(t, a.T().DType(), b.T().DType())
							require.Equal(t, Must(Shape(a)), Must(Shape(b)))
							y := Must(ToSlice[float64](b))
							if kind == 1 || dtype == gotch.Float && way == 1 {
								require.Equal(t, x, y)
								continue
							}
							for i := range x {
								require.InDelta(t, x[i], y[i], 8*0x1p-52+unit*math.Abs(x[i]))
							}
						}
						return nil
					}))
				}
			}
		}
	}
}

// serial is the kernel in main memory.
func serial(d cuda.Draw, out, chains unsafe.Pointer) error {
	cuda.Serial(d, out, chains)
	return nil
}

// A kernel that cannot be started is not asked again: operations draw the same numbers.
func TestKernelThatFails(t *testing.T) {
	t.Cleanup(broken.Clear)
	asked := 0
	fails := func(cuda.Draw, unsafe.Pointer, unsafe.Pointer) error {
		asked++
		return errors.New("unspecified launch failure")
	}
	require.NoError(t, Do(func(*Scope) error {
		s := Streams{Seed: 3, Chains: []uint64{8, 2, 5}, Offset: 4}
		want := s
		x := Must(ToSlice[float64](Must(want.drawAt(1, []int{3, 5}, int(gotch.Double.CInt()), -1))))
		for range 2 {
			require.Equal(t, x, Must(ToSlice[float64](wrap(Must(s.byEither(fails, 1, []int{3, 5}, gotch.Double, CPU))))))
		}
		return nil
	}))
	require.Equal(t, 1, asked)
	why, _ := broken.Load(-1)
	require.ErrorContains(t, why.(error), "unspecified launch failure")
}

// Chains at equal distances are not copied to the device; the distance may be below zero, and wraps.
func TestEvenChains(t *testing.T) {
	for _, c := range []struct {
		chains      []uint64
		first, step uint64
		even        bool
	}{
		{[]uint64{0, 1, 2, 3}, 0, 1, true}, {[]uint64{9}, 9, 0, true}, {[]uint64{4, 4, 4}, 4, 0, true},
		{[]uint64{5, 3, 1}, 5, math.MaxUint64 - 1, true}, {[]uint64{math.MaxUint64, 0}, math.MaxUint64, 1, true},
		{[]uint64{0, 1, 3}, 0, 0, false},
	} {
		first, step, even := (&Streams{Chains: c.chains}).evenChains()
		require.Equal(t, c.even, even, c.chains)
		require.Equal(t, [2]uint64{c.first, c.step}, [2]uint64{first, step}, c.chains)
	}
}

// On a GPU the kernel is there, and draws what operations draw.
func TestKernelOfTheDevice(t *testing.T) {
	if Library().CudaDevices == 0 {
		t.Skip("libtorch sees no GPU")
	}
	for i := range Library().CudaDevices {
		device := gotch.CudaBuilder(uint(i))
		k, err := kernelOf(device)
		require.NoError(t, err)
		require.NoError(t, Do(func(*Scope) error {
			for _, chains := range [][]uint64{{math.MaxUint64, 5, 5}, {0, 1, 2}} {
				s := Streams{Seed: 3, Chains: chains, Offset: math.MaxUint32 - 2}
				for kind := range kinds {
					shape := []int{3, 100_001}
					x := Must(ToSlice[float64](wrap(Must(s.byKernel(k.Fill, kind, shape, gotch.Double, device)))))
					y := Must(ToSlice[float64](wrap(Must(s.byOperations(kind, shape, gotch.Double, device)))))
					copied := s
					z := Must(ToSlice[float64](Must(copied.drawAt(kind, shape, int(gotch.Double.CInt()), -1))))
					for i := range x {
						require.InDelta(t, y[i], x[i], float64(1-kind)*64*0x1p-52)
						require.InDelta(t, z[i], x[i], float64(1-kind)*64*0x1p-52)
					}
				}
			}
			return nil
		}))
	}
}
