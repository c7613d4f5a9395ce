package torch_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Indexing with a dimension counted from the end, a tensor that is mapped and an index that is not: the rows one by
// one. Left to libtorch 1.13 some of these compute something else, and one crashes.
func TestVmapOfNegativeDimensions(t *testing.T) {
	at := torch.Must(torch.FromSlice([]int64{2, 0}))
	src := torch.Must(torch.FromSlice([]float64{1, 2, 3, 4, 5, 6}, 3, 2))
	wide := torch.Must(torch.FromSlice([]int64{0, 1, 1, 0, 2, 1}, 3, 2))
	for name, f := range map[string]func(x *ts.Tensor) *ts.Tensor{
		"index_select -1": func(x *ts.Tensor) *ts.Tensor { return x.MustIndexSelect(-1, at, false) },
		"index_select -2": func(x *ts.Tensor) *ts.Tensor { return x.MustIndexSelect(-2, at, false) },
		"index_add -1":    func(x *ts.Tensor) *ts.Tensor { return x.MustIndexAdd(-1, at, src, false) },
		"index_copy -1":   func(x *ts.Tensor) *ts.Tensor { return x.MustIndexCopy(-1, at, src, false) },
		"index_fill -1":   func(x *ts.Tensor) *ts.Tensor { return x.MustIndexFill(-1, at, ts.FloatScalar(7), false) },
		"gather -1":       func(x *ts.Tensor) *ts.Tensor { return x.MustGather(-1, wide, false, false) },
		"gather -2":       func(x *ts.Tensor) *ts.Tensor { return x.MustGather(-2, wide, false, false) },
		"scatter_add -1":  func(x *ts.Tensor) *ts.Tensor { return x.MustScatterAdd(-1, wide, src, false) },
		"scatter -1":      func(x *ts.Tensor) *ts.Tensor { return x.MustScatter(-1, wide, src, false) },
		"select -1":       func(x *ts.Tensor) *ts.Tensor { return x.MustSelect(-1, 2, false) },
		"narrow -1":       func(x *ts.Tensor) *ts.Tensor { return x.MustNarrow(-1, 1, 2, false) },
		"flip -1":         func(x *ts.Tensor) *ts.Tensor { return x.MustFlip([]int64{-1}, false) },
		"roll -1":         func(x *ts.Tensor) *ts.Tensor { return x.MustRoll([]int64{1}, []int64{-1}, false) },
		"cumsum -1":       func(x *ts.Tensor) *ts.Tensor { return x.MustCumsum(-1, gotch.Double, false) },
		"cumprod -1":      func(x *ts.Tensor) *ts.Tensor { return x.MustCumprod(-1, gotch.Double, false) },
		"logcumsumexp -1": func(x *ts.Tensor) *ts.Tensor { return x.MustLogcumsumexp(-1, false) },
		"logsumexp -1":    func(x *ts.Tensor) *ts.Tensor { return x.MustLogsumexp([]int64{-1}, false, false) },
		"softmax -2":      func(x *ts.Tensor) *ts.Tensor { return x.MustSoftmax(-2, gotch.Double, false) },
		"unsqueeze -1":    func(x *ts.Tensor) *ts.Tensor { return x.MustUnsqueeze(-1, false) },
		"stack -1":        func(x *ts.Tensor) *ts.Tensor { return ts.MustStack([]*ts.Tensor{x, x}, -1) },
		"cat -1":          func(x *ts.Tensor) *ts.Tensor { return ts.MustCat([]*ts.Tensor{x, src}, -1) },
		"transpose":       func(x *ts.Tensor) *ts.Tensor { return x.MustTranspose(-1, -2, false) },
		"diagonal":        func(x *ts.Tensor) *ts.Tensor { return x.MustDiagonal(0, -2, -1, false) },
		"tril":            func(x *ts.Tensor) *ts.Tensor { return x.MustTril(0, false) },
		"amax -1":         func(x *ts.Tensor) *ts.Tensor { return x.MustAmax([]int64{-1}, false, false) },
		"var -1":          func(x *ts.Tensor) *ts.Tensor { return x.MustVarDim([]int64{-1}, true, false, false) },
	} {
		t.Run(name, func(t *testing.T) {
			const k = 2
			data := make([]float64, k*9)
			for i := range data {
				data[i] = float64((i*7+3)%11) + 0.5
			}
			x := torch.Must(torch.FromSlice(data, k, 3, 3))
			err := torch.Do(func(*torch.Scope) error {
				out, err := torch.Vmap(
					func(in []*ts.Tensor) ([]*ts.Tensor, error) { return []*ts.Tensor{f(in[0])}, nil },
					[]*ts.Tensor{x},
					nil,
				)
				if err != nil {
					return err
				}
				for i := range int64(k) {
					want, err := torch.ToSlice[float64](f(x.MustSelect(0, i, false)))
					require.NoError(t, err)
					have, err := torch.ToSlice[float64](out[0].MustSelect(0, i, false))
					require.NoError(t, err)
					require.InDeltaSlice(t, want, have, 1e-12)
				}
				return nil
			})
			require.NoError(t, err)
		})
	}
}
