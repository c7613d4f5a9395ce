package dist_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// BenchmarkMixture is value and gradient of a mixture of two normals on 1000 data, for four chains, beside the same
// written out.
func BenchmarkMixture(b *testing.B) {
	data := make([]float64, 1000)
	for i := range data {
		data[i] = float64(i%17) - 8
	}
	y := torch.New(data)
	at := torch.New([]float64{-2, 2, 0.4, 0.6, -1, 3, 0.2, 0.8, -3, 1, 0.5, 0.5, -2, 4, 0.9, 0.1}, 4, 4)
	for name, f := range map[string]func(x *ts.Tensor) *ts.Tensor{
		"MixtureSameFamily": func(x *ts.Tensor) *ts.Tensor {
			d := dist.MixtureSameFamily(dist.Categorical(x.MustNarrow(0, 2, 2, false)),
				dist.Normal(x.MustNarrow(0, 0, 2, false), 1))
			return d.LogProb(y).T().MustSum(gotch.Double, false)
		},
		"written out": func(x *ts.Tensor) *ts.Tensor {
			l := dist.Normal(x.MustNarrow(0, 0, 2, false), 1).LogProb(torch.Of(y.T().MustUnsqueeze(-1, false))).T()
			return l.MustAdd(x.MustNarrow(0, 2, 2, false).MustLog(false), false).MustLogsumexp([]int64{-1}, false,
				false).MustSum(gotch.Double, false)
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := torch.Do(func(*torch.Scope) error {
					_, _, err := torch.VmapValueAndGrad(func(x torch.Tensor) torch.Tensor { return torch.Of(f(x.T())) }, at)
					return err
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
