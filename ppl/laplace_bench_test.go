package ppl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// One gradient of a marginal density, at one point and at four.
func BenchmarkMarginalLaplace(b *testing.B) {
	for _, name := range []string{"ICAR", "process"} {
		p, err := ppl.MarginalLaplace(latentModels()[name], infer.Batch{"y": torch.New(latentCounts)}, "f")
		require.NoError(b, err)
		gradient, err := infer.NewGradient(p.Target())
		require.NoError(b, err)
		for k, what := range map[int]string{1: "one", 4: "four"} {
			b.Run(name+"/"+what, func(b *testing.B) {
				flat := make([]float64, k*p.Layout().Dim())
				for i := range flat {
					flat[i] = 0.01 * float64(i)
				}
				for b.Loop() {
					require.NoError(b, torch.Do(func(*torch.Scope) error {
						point, err := infer.NewParams(p.Layout(), flat)
						if err == nil {
							_, err = gradient.ValueAndGrad(point, p.Batch(), 1)
						}
						return err
					}))
				}
			})
		}
	}
}
