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
	at := torch.New([]int{2, 0})
	src := torch.New([]float64{1, 2, 3, 4, 5, 6}, 3, 2)
	wide := torch.New([]int{0, 1, 1, 0, 2, 1}, 3, 2)
	for name, f := range map[string]func(x torch.Tensor) torch.Tensor{
		"index_select -1": func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustIndexSelect(-1, at.T(), false)) },
		"index_select -2": func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustIndexSelect(-2, at.T(), false)) },
		"index_add -1": func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustIndexAdd(-1, at.T(), src.T(),
				false))
		},
		"index_copy -1": func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustIndexCopy(-1, at.T(), src.T(),
				false))
		},
		"index_fill -1": func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustIndexFill(-1, at.T(), ts.FloatScalar(7), false))
		},
		"gather -1": func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustGather(-1, wide.T(), false,
				false))
		},
		"gather -2": func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustGather(-2, wide.T(), false,
				false))
		},
		"scatter_add -1": func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustScatterAdd(-1, wide.T(), src.T(),
				false))
		},
		"scatter -1": func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustScatter(-1, wide.T(), src.T(),
				false))
		},
		"select -1": func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustSelect(-1, 2, false)) },
		"narrow -1": func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustNarrow(-1, 1, 2, false)) },
		"flip -1":   func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustFlip([]int64{-1}, false)) },
		"roll -1": func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustRoll([]int64{1}, []int64{-1},
				false))
		},
		"cumsum -1":       func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustCumsum(-1, gotch.Double, false)) },
		"cumprod -1":      func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustCumprod(-1, gotch.Double, false)) },
		"logcumsumexp -1": func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustLogcumsumexp(-1, false)) },
		"logsumexp -1": func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustLogsumexp([]int64{-1}, false,
				false))
		},
		"softmax -2":   func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustSoftmax(-2, gotch.Double, false)) },
		"unsqueeze -1": func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustUnsqueeze(-1, false)) },
		"stack -1": func(x torch.Tensor) torch.Tensor {
			return torch.Of(ts.MustStack([]*ts.Tensor{x.T(), x.T()},
				-1))
		},
		"cat -1": func(x torch.Tensor) torch.Tensor {
			return torch.Of(ts.MustCat([]*ts.Tensor{x.T(), src.T()},
				-1))
		},
		"transpose": func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustTranspose(-1, -2, false)) },
		"diagonal":  func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustDiagonal(0, -2, -1, false)) },
		"tril":      func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustTril(0, false)) },
		"amax -1":   func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustAmax([]int64{-1}, false, false)) },
		"var -1": func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustVarDim([]int64{-1}, true, false,
				false))
		},
	} {
		t.Run(name, func(t *testing.T) {
			const k = 2
			data := make([]float64, k*9)
			for i := range data {
				data[i] = float64((i*7+3)%11) + 0.5
			}
			x := torch.New(data, k, 3, 3)
			err := torch.Do(func(*torch.Scope) error {
				out, err := torch.Vmap(
					func(in []torch.Tensor) ([]torch.Tensor, error) { return []torch.Tensor{f(in[0])}, nil },
					[]torch.Tensor{x},
					nil,
				)
				if err != nil {
					return err
				}
				for i := range int(k) {
					want, err := torch.ToSlice[float64](f(torch.Of(x.T().MustSelect(0, int64(i), false))))
					require.NoError(t, err)
					have, err := torch.ToSlice[float64](torch.Of(out[0].T().MustSelect(0, int64(i), false)))
					require.NoError(t, err)
					require.InDeltaSlice(t, want, have, 1e-12)
				}
				return nil
			})
			require.NoError(t, err)
		})
	}
}
