package lower_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/sugarme/gotch/ts"
)

// A network of two layers on 64 data of 40 numbers, 30 hidden units and 5 classes: its products are steps, its
// activations and losses loops, and the plan is as short as the network.
func TestNetwork(t *testing.T) {
	const n, in, hidden, out = 64, 40, 30, 5
	x, y := make([]float64, n*in), make([]int, n)
	for i := range x {
		x[i] = math.Sin(float64(7 * i))
	}
	for i := range y {
		y[i] = i % out
	}
	s := lower.Source{
		Dim: in*hidden + hidden + hidden*out + out,
		Batch: []lower.Named{
			{Name: "x", Tensor: torch.New(x, n, in).T()}, {Name: "y", Tensor: torch.New(y).T()},
		},
		Evaluate: func(w *ts.Tensor, b []*ts.Tensor) (values, grads []*ts.Tensor, aux []lower.Named, err error) {
			v, g, err := torch.ValueAndGrad(func(w torch.Tensor) torch.Tensor {
				at := 0
				take := func(shape ...int) torch.Tensor {
					k := 1
					for _, s := range shape {
						k *= s
					}
					at += k
					return w.Slice(0, at-k, at).Reshape(shape...)
				}
				h := torch.Of(b[0]).MatMul(take(in, hidden)).Add(take(hidden)).Tanh()
				logits := h.MatMul(take(hidden, out)).Add(take(out))
				p := logits.LogSoftmax(-1).Gather(1, torch.Of(b[1]).Unsqueeze(1))
				return p.Sum().Sub(w.Square().Sum().Mul(0.5))
			}, torch.Of(w))
			return []*ts.Tensor{v.T()}, []*ts.Tensor{g.T()}, nil, err
		},
	}
	plan := compile(t, s)
	agrees(t, s, plan, points(2, s.Dim, 0.3, 4))
	products := 0
	for _, step := range plan.Steps {
		if step.Kind == ir.MatMul {
			products++
		}
	}
	assert.GreaterOrEqual(t, products, 3, "forward, and back to weights and hidden units")
	assert.Less(t, len(plan.Steps), 40)
}
