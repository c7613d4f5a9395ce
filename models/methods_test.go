package models_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/oldrun"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// method is an inference method as a function of N, and for how long it runs.
type method struct {
	name   string
	make   func(n float64) infer.Method
	steps  int64
	chains int
	climbs bool // it goes to the mode
}

const mapSteps = 1000

func methods() []method {
	return []method{
		{
			"MAP",
			func(float64) infer.Method { return optim.Adam{LR: infer.Linear(0.1, 0, 0, mapSteps), Beta2: 0.99} },
			mapSteps,
			1,
			true,
		},
		{"SGHMC", func(n float64) infer.Method {
			return sgmcmc.SGHMC{LR: infer.Constant(2e-3), Alpha: infer.Constant(2), Temperature: infer.Constant(1 / n)}
		}, 200, 3, false},
	}
}

// Every method runs on every model, with the same lines: the draws are finite, and an optimiser ends higher than it
// began. Where the density has a mode, the gradient there is that of a stationary point: at most 1e-4, from a start
// where it is 0.2 to 300.
func TestEveryMethodOnEveryModel(t *testing.T) {
	for _, how := range methods() {
		for _, m := range all(t) {
			t.Run(how.name+"/"+m.Name, func(t *testing.T) {
				p := compile(t, m)
				start, err := p.Init(m.Batch, ppl.FromUniform.Within(1), how.chains, 3)
				require.NoError(t, err)
				before, slopes := evaluate(t, p.MeanLogPosterior(), start, m.Batch)
				transform, err := how.make(float64(p.Data())).Build(infer.Sum(p.MeanLogPosterior(), 1))
				require.NoError(t, err)
				result, err := oldrun.Run(
					context.Background(),
					transform,
					start,
					infer.Full(m.Batch),
					oldrun.Config{Steps: how.steps, Seed: 4},
				)
				require.NoError(t, err)
				defer infer.Free(result.State)
				require.Zero(t, result.Held)
				require.NotEqual(t, result.Draws.Row(0, 0), result.Draws.Row(0, int(how.steps)-1))
				for chain := range result.Draws.Chains() {
					require.EqualValues(t, how.steps, result.Draws.Len(chain))
					for i := range result.Draws.Len(chain) {
						for _, v := range result.Draws.Row(chain, i) {
							require.False(t, math.IsNaN(v) || math.IsInf(v, 0))
						}
					}
				}
				after, grads := evaluate(t, p.MeanLogPosterior(), result.State.Position(), m.Batch)
				t.Logf(
					"log posterior over N from %.3f to %.3f, gradient from %.1e to %.1e",
					before,
					after,
					norm(slopes),
					norm(grads),
				)
				if how.climbs {
					assert.Greater(t, after[0], before[0])
				}
				if how.climbs && !m.Modeless {
					assert.LessOrEqual(t, norm(grads), 1e-4)
				}
			})
		}
	}
}

func norm(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v * v
	}
	return math.Sqrt(s)
}
