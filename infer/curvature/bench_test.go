package curvature_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The squares of the gradients of 256 data of a network with 4,803 parameters: in blocks of rows, and datum by datum.
func BenchmarkFisherDiag(b *testing.B) {
	m := newNetwork(b, softmaxes("", 3))
	m.in, m.hidden, m.n = 20, 200, 256
	m.x, m.y = numbers(m.n*m.in, 0), make([]float64, m.n)
	m.layout = layoutOf(b, infer.Shapes{"A": {20, 200}, "B": {200, 3}, "a": {200}, "b": {3}})
	m.flat = numbers(m.layout.Dim(), 50)
	p, batch := m.point(b), m.batch()
	b.Run("blocks", func(b *testing.B) {
		for range b.N {
			x, err := curvature.FisherDiag(m.density(), p, batch, curvature.Options{})
			require.NoError(b, err)
			torch.Free(x)
		}
	})
	b.Run("loop", func(b *testing.B) {
		gradient, err := infer.NewGradient(infer.Sum(posterior(m.density()), 1))
		require.NoError(b, err)
		for range b.N {
			require.NoError(b, torch.Do(func(*torch.Scope) error {
				sum := p.Flat.T().MustZerosLike(false)
				for _, one := range split(batch, 1) {
					if err := torch.Do(func(*torch.Scope) error {
						e, err := gradient.ValueAndGrad(p, one, 0)
						addSquare(torch.Of(sum), e.Grad)
						return err
					}); err != nil {
						return err
					}
				}
				return nil
			}))
		}
	})
}

func addSquare(sum, g torch.Tensor) { sum.T().MustAddcmul_(g.T(), g.T()) }
