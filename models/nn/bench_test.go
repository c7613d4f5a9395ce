package nn_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Values and gradients of whole networks with their priors, at one point and at several, for batches of 32.
func BenchmarkGradient(b *testing.B) {
	tokens := make([]int, 32*100)
	for i := range tokens {
		tokens[i] = (i * 7919) % 2000
	}
	for _, c := range []struct {
		name   string
		build  func() (*nn.Network, error)
		x      torch.Tensor
		chains []int
	}{
		{"MLP", nn.MLP{Sizes: []int{2, 32, 32, 32, 1}}.Build, tensor(normals(1, 64), 32, 2), []int{0, 1, 10, 100}},
		{"CNNLSTM", nn.CNNLSTM{Vocab: 2000}.Build, torch.New(tokens, 32, 100), []int{0, 1, 4}},
	} {
		n := must(c.build())
		prior := must(nn.NewPrior(n, nn.HePrior(0.05)))
		gradient := must(infer.NewGradient(infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			return n.Forward(p, b.Get("x")).Sum().Add(prior.LogDensity(p)), nil
		}, 1)))
		for _, k := range c.chains {
			b.Run(fmt.Sprintf("%s/K=%d", c.name, k), func(b *testing.B) {
				p := point(n, 1, 0.1, k)
				for b.Loop() {
					require.NoError(b, torch.Do(func(*torch.Scope) error {
						_, err := gradient.ValueAndGrad(p, infer.Batch{"x": c.x}, 0)
						return err
					}))
				}
			})
		}
	}
}
