package torch_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// divisions are the operations that divide integers, of tensors and of scalars.
var divisions = map[string]func(x, y torch.Tensor, a, b *ts.Scalar) error{
	"FloorDivide":  func(x, y torch.Tensor, _, _ *ts.Scalar) error { return drop2(x.T().FloorDivide(y.T(), false)) },
	"FloorDivide_": func(x, y torch.Tensor, _, _ *ts.Scalar) error { return x.T().FloorDivide_(y.T()) },
	"FloorDivideScalar": func(x, _ torch.Tensor, _, b *ts.Scalar) error {
		return drop2(x.T().FloorDivideScalar(b,
			false))
	},
	"FmodTensor": func(x, y torch.Tensor, _, _ *ts.Scalar) error { return drop2(x.T().FmodTensor(y.T(), false)) },
	"Fmod":       func(x, _ torch.Tensor, _, b *ts.Scalar) error { return drop2(x.T().Fmod(b, false)) },
	"RemainderTensor": func(x, y torch.Tensor, _, _ *ts.Scalar) error {
		return drop2(x.T().RemainderTensor(y.T(),
			false))
	},
	"Remainder_": func(x, _ torch.Tensor, _, b *ts.Scalar) error { return x.T().Remainder_(b) },
	"RemainderScalarTensor": func(_, y torch.Tensor, a, _ *ts.Scalar) error {
		return drop2(ts.RemainderScalarTensor(a, y.T()))
	},
	"DivTensorMode": func(x, y torch.Tensor, _, _ *ts.Scalar) error {
		return drop2(x.T().DivTensorMode(y.T(), "floor", false))
	},
	"DivScalarMode": func(x, _ torch.Tensor, _, b *ts.Scalar) error {
		return drop2(x.T().DivScalarMode(b, "trunc",
			false))
	},
	"DivScalarMode_": func(x, _ torch.Tensor, _, b *ts.Scalar) error { return x.T().DivScalarMode_(b, "floor") },
}

// The smallest integer divided by -1 is an error, because the quotient is no integer of its type and the processor
// stops the process. It is found in a tensor that is no contiguous one, and in a mapped one. Others are divided as
// ever.
func TestDivisionOverflows(t *testing.T) {
	int64s := func(x ...int) torch.Tensor { return torch.New(x) }
	int32s := func(x ...int32) torch.Tensor { return torch.New(x) }
	for name, divide := range divisions {
		inScope(t, func(*torch.Scope) {
			for _, x := range []torch.Tensor{
				int64s(7, math.MinInt64), torch.Of(int64s(7, 0, math.MinInt64, 0).T().MustView([]int64{2, 2}, false).MustSelect(1,
					0, false)),
				torch.Of(int64s(math.MinInt64).T().MustExpand([]int64{2}, false, false)),
			} {
				err := divide(x, int64s(-1, -1), ts.IntScalar(math.MinInt64), ts.IntScalar(-1))
				assert.ErrorContains(t, err, "the smallest integer divided by -1", name)
			}
			err := divide(int32s(math.MinInt32, 1), int32s(-1, -1), ts.IntScalar(math.MinInt32), ts.IntScalar(-1))
			assert.ErrorContains(t, err, "the smallest integer divided by -1", name)
			for _, ok := range [][2]int{{-7, -1}, {math.MinInt64, 2}, {math.MaxInt64, -1}} {
				assert.NoError(t, divide(int64s(ok[0]), int64s(ok[1]), ts.IntScalar(int64(ok[0])),
					ts.IntScalar(int64(ok[1]))), name)
			}
			// A 64-bit tensor keeps its type beside a scalar, and the smallest 32-bit integer is none of its smallest.
			assert.NoError(t, divide(int64s(math.MinInt32), int64s(-1), ts.IntScalar(math.MinInt32), ts.IntScalar(-1)), name)
		})
	}
	inScope(t, func(*torch.Scope) {
		_, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			y, err := raw.Of(in[0].T().FloorDivide(in[1].T(), false))
			return []torch.Tensor{y}, err
		}, []torch.Tensor{int64s(1, math.MinInt64), int64s(1, -1)}, nil)
		assert.ErrorContains(t, err, "the smallest integer divided by -1")
		q, err := int64s(7, -7, math.MinInt64).T().FloorDivide(int64s(2, 2, 1).T(), false)
		require.NoError(t, err)
		have, err := torch.ToSlice[int](torch.Of(q))
		require.NoError(t, err)
		assert.Equal(t, []int{3, -4, math.MinInt64}, have)
	})
}
