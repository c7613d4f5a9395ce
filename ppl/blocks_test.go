package ppl_test

import (
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Many draws are predicted in blocks. Each prediction is that of the same draw among few: it depends on the seed, the
// number of the draw and its values alone. 90000 draws of 4 numbers make a first block and more than one other.
func TestPredictionsInBlocks(t *testing.T) {
	const few = 100
	slopes := make([]float64, 90000)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range slopes {
		slopes[i] = rng.NormFloat64()
	}
	q := ppl.Predictive{Model: line, Batch: infer.Batch{"x": vec(0, 1, -2, 3), "y": vec(1, 2, 3, 4)}, Seed: 4}
	many, start := slopeDraws(t, slopes...), slopeDraws(t, slopes[:few]...)
	for name, evaluate := range map[string]func(bool) (ppl.Values, error){
		"posterior": func(all bool) (ppl.Values, error) {
			if all {
				return q.Posterior(many)
			}
			return q.Posterior(start)
		},
		"log likelihood": func(all bool) (ppl.Values, error) {
			if all {
				return q.LogLikelihood(many)
			}
			return q.LogLikelihood(start)
		},
	} {
		all, err := evaluate(true)
		require.NoError(t, err)
		first, err := evaluate(false)
		require.NoError(t, err)
		got, want := floats(t, all["y"]), floats(t, first["y"])
		require.Len(t, got, 4*len(slopes), name)
		// Of two chains the first one's draws come first in both: few/2 of them are the same.
		assert.InDeltaSlice(t, want[:4*few/2], got[:4*few/2], 1e-12, name)
		unlike := map[float64]bool{}
		for _, v := range got {
			unlike[v] = true
		}
		assert.Greater(t, len(unlike), len(got)/2, "%s: draws of different blocks differ", name)
	}
}
