package lower_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
)

// Generalised linear models on a matrix that does not fit in a cache go through it once, block by block; the last block
// is shorter. On a small matrix the plan stays as it is.
func TestBlocks(t *testing.T) {
	families := map[string]func(eta, y torch.Tensor) torch.Tensor{
		"logistic": func(eta, y torch.Tensor) torch.Tensor { return eta.Mul(y).LogSigmoid().Sum() },
		"poisson":  func(eta, y torch.Tensor) torch.Tensor { return eta.Mul(y).Sub(eta.Exp()).Sum() },
		"normal":   func(eta, y torch.Tensor) torch.Tensor { return eta.Sub(y).Square().Sum().Mul(-0.5) },
	}
	for name, family := range families {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{203, 1203} {
				s := linearModel(n, 120, family)
				plan := compile(t, s)
				agrees(t, s, plan, points(2, s.Dim, 0.1, 3))
				var blocks []ir.Step
				for _, step := range plan.Steps {
					if step.Kind == ir.Repeat {
						blocks = append(blocks, step)
					}
				}
				if n == 203 {
					assert.Empty(t, blocks)
					continue
				}
				require.Len(t, blocks, 1)
				assert.True(t, blocks[0].Blocks)
				assert.Greater(t, blocks[0].Times, 20)
			}
		})
	}
}

// A matrix of 64 MiB or more goes through by rows even with few columns, and nothing of its size is kept beside it.
func TestHugeMatrix(t *testing.T) {
	if testing.Short() {
		t.Skip("it evaluates nine million numbers, in Go too")
	}
	const n, d = 1 << 19, 17
	s := linearModel(n, d, func(eta, y torch.Tensor) torch.Tensor { return eta.Mul(y).LogSigmoid().Sum() })
	plan := compile(t, s)
	agrees(t, s, plan, points(1, s.Dim, 0.1, 3))
	for _, b := range plan.Buffers {
		if b.Kind != ir.Input {
			assert.LessOrEqual(t, b.Len, n)
		}
	}
}

// linearModel is a family of n numbers whose means depend on d columns, with a normal prior.
func linearModel(n, d int, family func(eta, y torch.Tensor) torch.Tensor) lower.Source {
	x, y := points(1, n*d, 0.3, 1)[0], points(1, n, 1, 2)[0]
	return lower.Source{
		Dim: d,
		Batch: []lower.Named{
			{Name: "x", Tensor: torch.New(x, n, d).T()}, {Name: "y", Tensor: torch.New(y).T()},
		},
		Evaluate: func(w *ts.Tensor, b []*ts.Tensor) (values, grads []*ts.Tensor, aux []lower.Named, err error) {
			v, g, err := torch.ValueAndGrad(func(w torch.Tensor) torch.Tensor {
				eta := torch.Of(b[0]).MatMul(w.Unsqueeze(-1)).Squeeze(-1)
				return family(eta, torch.Of(b[1])).Sub(w.Square().Sum().Mul(0.5))
			}, torch.Of(w))
			return []*ts.Tensor{v.T()}, []*ts.Tensor{g.T()}, nil, err
		},
	}
}
