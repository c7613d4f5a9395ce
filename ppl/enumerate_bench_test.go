package ppl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// BenchmarkEnumerateEager is the time of an eager gradient of a hidden Markov model of 400 steps and 4 states, with a
// discrete variable for each step, and with its sum written out.
func BenchmarkEnumerateEager(b *testing.B) {
	require.NoError(b, torch.SetThreads(1))
	discrete, written := twoChains(400, 4)
	batch := infer.Batch{"y": vec(uneven(400, 2)...)}
	for _, c := range []struct {
		name  string
		model ppl.Model
	}{{"discrete", discrete}, {"written", written}} {
		p, err := ppl.Compile(c.model, batch)
		require.NoError(b, err)
		g, err := infer.NewGradient(p.Target())
		require.NoError(b, err)
		point := must(infer.NewParams(p.Layout(), uneven(p.Layout().Dim(), 3)))
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				require.NoError(b, torch.Do(func(*torch.Scope) error {
					_, err := g.ValueAndGrad(point, batch, 1)
					return err
				}))
			}
		})
	}
}
