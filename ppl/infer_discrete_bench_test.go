package ppl_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// BenchmarkInferDiscrete is the time of a draw's marginals, with all draws in one call and with one in each.
func BenchmarkInferDiscrete(b *testing.B) {
	mixture, _ := twoMixtures()
	chain, _ := twoChains(100, 4)
	for _, c := range []struct {
		name  string
		model ppl.Model
		data  int
	}{{"mixture", mixture, 500}, {"chain", chain, 100}} {
		p, err := ppl.Compile(c.model, infer.Batch{"y": vec(uneven(c.data, 1)...)})
		require.NoError(b, err)
		for _, n := range []int{1, 10, 100, 1000} {
			unconstrained, err := draws.New(p.Layout().Sites, nil, 1)
			require.NoError(b, err)
			rng := rand.New(rand.NewPCG(1, 2))
			row := make([]float64, p.Layout().Dim())
			for range n {
				for i := range row {
					row[i] = rng.NormFloat64()
				}
				require.NoError(b, unconstrained.Append(row, nil))
			}
			posterior, err := p.Draws(unconstrained, p.Batch())
			require.NoError(b, err)
			b.Run(fmt.Sprintf("%s/draws=%d", c.name, n), func(b *testing.B) {
				for range b.N {
					_, err := ppl.InferDiscrete{Program: p}.Marginals(posterior)
					require.NoError(b, err)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/draw")
			})
		}
	}
}
