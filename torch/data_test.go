package torch_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/torch"
)

// roundTrip sends six numbers of one type through a tensor, in several shapes, all ways there are.
func roundTrip[T torch.Number](t *testing.T, dtype gotch.DType, data []T, other T) {
	t.Run(fmt.Sprintf("%T", other), func(t *testing.T) {
		require.Len(t, data, 6)
		assert.Equal(t, dtype, torch.DTypeOf[T]())
		inScope(t, func(*torch.Scope) {
			for _, shape := range [][]int{nil, {6}, {2, 3}, {3, 1, 2}, {1, 1, 6, 1}} {
				x, err := torch.FromSlice(data, shape...)
				require.NoError(t, err)
				if shape == nil {
					shape = []int{6}
				}
				assert.Equal(t, shape, shapeOf(x))
				assert.Equal(t, dtype, x.T().DType())
				assert.Equal(t, dtype, torch.Must(torch.DTypeOfTensor(x)))
				assert.Equal(t, torch.CPU, torch.Must(torch.DeviceOf(x)))
				assert.Equal(t, 6, x.Numel())
				assert.Equal(t, data, torch.Must(torch.ToSlice[T](x)))

				dst := make([]T, 6)
				require.NoError(t, torch.CopyTo(dst, x))
				assert.Equal(t, data, dst)

				// The tensor is a copy: neither sees a change of the other.
				require.NoError(t, torch.CopyFrom(x, []T{data[1], data[0], data[2], data[3], data[4], other}))
				assert.Equal(t, []T{data[1], data[0], data[2], data[3], data[4], other}, torch.Must(torch.ToSlice[T](x)))
				assert.Equal(t, dst, data)

				require.NoError(t, torch.View(x, func(view []T) error {
					assert.Equal(t, []T{data[1], data[0], data[2], data[3], data[4], other}, view)
					copy(view, data)
					return nil
				}))
				assert.Equal(t, data, torch.Must(torch.ToSlice[T](x)))

				borrowed := append([]T{}, data...)
				y, err := torch.Borrow(borrowed, shape...)
				require.NoError(t, err)
				assert.Equal(t, shape, shapeOf(y))
				assert.Equal(t, dtype, y.T().DType())
				assert.Equal(t, data, torch.Must(torch.ToSlice[T](y)))
			}
			for _, shape := range [][]int{{0}, {0, 3}, {2, 0}} {
				for _, none := range [][]T{nil, {}} {
					for _, make := range []func([]T, ...int) (torch.Tensor, error){torch.FromSlice[T], torch.Borrow[T]} {
						x, err := make(none, shape...)
						require.NoError(t, err)
						assert.Equal(t, shape, shapeOf(x))
						assert.Equal(t, dtype, x.T().DType())
						assert.Empty(t, torch.Must(torch.ToSlice[T](x)))
						require.NoError(t, torch.CopyTo(none, x))
						require.NoError(t, torch.CopyFrom(x, none))
						require.NoError(t, torch.View(x, func(view []T) error { assert.Empty(t, view); return nil }))
					}
				}
			}
			one, err := torch.FromSlice(data[:1], []int{}...)
			require.NoError(t, err)
			assert.Equal(t, []int{}, shapeOf(one))
			assert.Equal(t, data[:1], torch.Must(torch.ToSlice[T](one)))
		})
	})
}

// All types go there and back unchanged, at their extremes too.
func TestRoundTrips(t *testing.T) {
	roundTrip(t, gotch.Double, []float64{1, -2.5, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(-1), 0.1}, 7)
	roundTrip(
		t,
		gotch.Float,
		[]float32{1, -2.5, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1)), 0.1},
		7,
	)
	roundTrip(t, gotch.Int64, []int{1, -2, math.MaxInt64, math.MinInt64, 1<<53 + 1, 0}, 7)
	roundTrip(t, gotch.Int, []int32{1, -2, math.MaxInt32, math.MinInt32, 1<<24 + 1, 0}, 7)
	roundTrip(t, gotch.Uint8, []uint8{1, 2, 255, 128, 0, 9}, 7)
	roundTrip(t, gotch.Bool, []bool{true, false, true, true, false, true}, true)
	// NaN and the sign of zero, which do not compare.
	inScope(t, func(*torch.Scope) {
		got := floats(vec([]float64{math.NaN(), math.Copysign(0, -1)}))
		assert.True(t, math.IsNaN(got[0]))
		assert.True(t, math.Signbit(got[1]))
	})
}

// Types are converted on the way, as libtorch converts: numbers to int are cut, to bool are true unless zero.
func TestConversions(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := torch.Must(torch.FromSliceOn(torch.CPU, gotch.Double, []int{0, 1, 200}))
		assert.Equal(t, gotch.Double, x.T().DType())
		assert.Equal(t, []float64{0, 1, 200}, floats(x))
		assert.Equal(t, []bool{false, true, true}, torch.Must(torch.ToSlice[bool](x)))
		assert.Equal(t, []uint8{0, 1, 200}, torch.Must(torch.ToSlice[uint8](x)))
		y := torch.Must(torch.FromSliceOn(torch.CPU, gotch.Float, []float64{-1.75, 0.1, 3.99}, 3, 1))
		assert.Equal(t, gotch.Float, y.T().DType())
		assert.Equal(t, []int{-1, 0, 3}, torch.Must(torch.ToSlice[int](y)))
		assert.Equal(t, []float64{-1.75, float64(float32(0.1)), float64(float32(3.99))}, floats(y))
		require.NoError(t, torch.CopyFrom(y, []int32{4, 5, 6}))
		assert.Equal(t, []float32{4, 5, 6}, torch.Must(torch.ToSlice[float32](y)))
		half := torch.Must(torch.FromSliceOn(torch.CPU, gotch.Half, []float64{0.5, 65504}))
		assert.Equal(t, []float64{0.5, 65504}, floats(half), "the largest half-precision number")
	})
}

// A scalar has shape [], whatever the number.
func TestScalar(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := torch.Scalar(-0.25)
		assert.Equal(t, []int{}, shapeOf(x))
		assert.Equal(t, gotch.Double, x.T().DType())
		assert.Equal(t, -0.25, x.Item())
		assert.Equal(t, 3.0, ints([]int{3}, 1, 1).Item(), "one element of any shape and type")
		assert.Equal(t, 1.0, torch.New([]bool{true}).Item())
	})
}

// Tensors whose elements do not lie one after the other are read and written in row-major order all the same.
func TestNonContiguous(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := vec([]float64{1, 2, 3, 4, 5, 6}, 2, 3)
		turned := x.T().MustTranspose(0, 1, false)
		require.False(t, turned.MustIsContiguous())
		assert.Equal(t, []float64{1, 4, 2, 5, 3, 6}, floats(torch.Of(turned)))
		assert.Equal(t, []float64{2, 5}, floats(torch.Of(x.T().MustSelect(1, 1, false))))
		assert.Equal(t, []float64{7, 7, 7}, floats(torch.Of(scalar(7).T().MustExpand([]int64{3}, false, false))))
		require.NoError(t, torch.CopyFrom(torch.Of(turned), []float64{10, 20, 30, 40, 50, 60}))
		assert.Equal(t, []float64{10, 30, 50, 20, 40, 60}, floats(x))
		err := torch.View(torch.Of(turned), func([]float64) error { t.Error("called"); return nil })
		assert.Contains(t, asError(t, err).Message, "not contiguous")
		// A part that is contiguous is seen at its own place.
		row := x.T().MustSelect(0, 1, false)
		require.NoError(t, torch.View(torch.Of(row), func(view []float64) error {
			assert.Equal(t, []float64{20, 40, 60}, view)
			view[2] = -1
			return nil
		}))
		assert.Equal(t, []float64{10, 30, 50, 20, 40, -1}, floats(x))
	})
}

// Lengths, shapes and types that do not fit.
func TestDataErrors(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		for _, c := range []struct {
			n       int
			shape   []int
			message string
		}{
			{6, []int{2, 2}, "shape [2 2] holds 4 elements, the slice has 6"},
			{6, []int{}, "shape [] holds 1 elements, the slice has 6"},
			{0, []int{1}, "shape [1] holds 1 elements, the slice has 0"},
			{6, []int{-2, -3}, "shape [-2 -3] has a negative size"},
			{6, []int{-1}, "shape [-1] has a negative size"},
			{0, []int{1 << 62, 4}, "holds more elements"}, // the product is 0 in 64 bits
			{8, []int{1<<61 + 1, 8}, "holds more elements"},
		} {
			_, err := torch.FromSlice(make([]float64, c.n), c.shape...)
			assert.ErrorContains(t, err, c.message)
			_, err = torch.Borrow(make([]float64, c.n), c.shape...)
			assert.ErrorContains(t, err, c.message)
			_, err = torch.FromSliceOn(torch.CPU, gotch.Float, make([]float64, c.n), c.shape...)
			assert.ErrorContains(t, err, c.message)
		}
		x := vec([]float64{1, 2, 3, 4, 5, 6}, 2, 3)
		for _, n := range []int{0, 5, 7} {
			e := asError(t, torch.CopyTo(make([]float64, n), x))
			assert.Contains(t, e.Message, fmt.Sprintf("the tensor has 6 elements and the slice %d", n))
			assert.Equal(t, []string{"[2 3] Double"}, e.Operands)
			assert.Contains(t, e.At, "torch/data_test.go:")
			e = asError(t, torch.CopyFrom(x, make([]float64, n)))
			assert.Contains(t, e.Message, fmt.Sprintf("the tensor has 6 elements and the slice %d", n))
		}
		assert.Equal(t, []float64{1, 2, 3, 4, 5, 6}, floats(x))
		err := torch.View(x, func([]float32) error { t.Error("called"); return nil })
		assert.Contains(t, asError(t, err).Message, "another type")
		ours := errors.New("ours")
		assert.Same(t, ours, torch.View(x, func([]float64) error { return ours }))
	})
}

// CopyFrom changes a leaf of a graph without being recorded; what was computed before is not changed.
func TestCopyFromALeaf(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		leaf := torch.Must(torch.Leaf(vec([]float64{1, 2})))
		require.NoError(t, torch.CopyFrom(leaf, []float64{5, 6}))
		assert.True(t, leaf.T().MustRequiresGrad())
		grads := torch.Must(torch.Grad([]torch.Tensor{sum(torch.Of(leaf.T().MustSquare(false)))}, []torch.Tensor{leaf}, nil))
		assert.Equal(t, []float64{10, 12}, floats(grads[0]))
		assert.Equal(t, []float64{5, 6}, floats(leaf), "reading needs no detaching")
	})
}

// To is the tensor itself where nothing has to change, else a copy, which gradients flow through.
func TestTo(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := vec([]float64{1.5, 2.5})
		assert.Same(t, x.T(), torch.Must(torch.To(x, torch.CPU, gotch.Double)).T())
		y := torch.Must(torch.To(x, torch.CPU, gotch.Float))
		assert.Equal(t, gotch.Float, y.T().DType())
		assert.Equal(t, []float64{1.5, 2.5}, floats(y))
		assert.Equal(t, []int{1, 2}, torch.Must(torch.ToSlice[int](torch.Must(torch.To(y, torch.CPU, gotch.Int64)))))
		_, grad, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
			return torch.Of(torch.Must(torch.To(x, torch.CPU, gotch.Float)).T().MustSquare(false).MustSum(gotch.Float, false))
		}, x)
		require.NoError(t, err)
		assert.Equal(t, gotch.Double, grad.T().DType())
		assert.Equal(t, []float64{3, 5}, floats(grad))

		device := torch.BestDevice()
		z := torch.Must(torch.To(x, device, gotch.Float))
		assert.Equal(t, device, torch.Must(torch.DeviceOf(z)))
		assert.Equal(t, []float64{1.5, 2.5}, floats(z))
		require.NoError(t, torch.CopyFrom(z, []float64{3, 4}))
		require.NoError(t, torch.Synchronize())
		assert.Equal(t, []float64{3, 4}, floats(z))
		if device == torch.CPU {
			_, err := torch.CUDA(0)
			assert.ErrorContains(t, err, "GPU 0 was asked for")
			assert.Zero(t, torch.Library().CudaDevices)
		} else {
			err := torch.View(z, func([]float32) error { return nil })
			assert.Contains(t, asError(t, err).Message, "not in main memory")
		}
	})
}
