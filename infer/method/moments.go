package method

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// GradientMoments are, for each element, the mean of n minibatch gradients at p and the sum of their squared deviations
// from it (Welford 1962), of the shape of p. diverged names the chains that met something not finite; nil for none. The
// gradients are those of the log posterior, without Jacobian.
func GradientMoments(g infer.Gradient, p infer.Params, next func() (infer.Batch, error), n int64) (mean, square *ts.Tensor,
	diverged []bool, err error) {
	err = torch.Do(func(outer *torch.Scope) error {
		for k := int64(1); k <= n; k++ {
			err := torch.Do(func(scope *torch.Scope) error {
				b, err := next()
				if err != nil {
					return err
				}
				e, err := g.ValueAndGrad(p, b, 0)
				if err != nil {
					return err
				}
				diverged = either(diverged, e.Diverged())
				if k == 1 {
					mean, square = e.Grad, Combine(Term(0, e.Grad))
					scope.Keep(mean, square)
					return nil
				}
				old := []*ts.Tensor{mean, square}
				off := Combine(Term(1, e.Grad), Term(-1, mean))
				mean = Combine(Term(1, mean), Term(1/float64(k), off))
				square = Combine(Term(1, square), Term(float64(k-1)/float64(k), off.MustSquare(false)))
				scope.Keep(mean, square)
				torch.Free(old...)
				return nil
			})
			if err != nil {
				return fmt.Errorf("minibatch %d of %d: %w", k, n, err)
			}
		}
		outer.Keep(mean, square)
		return nil
	})
	return mean, square, diverged, err
}

// either is the union of two lists of chains, of which nil is none.
func either(a, b []bool) []bool {
	if a == nil || b == nil {
		return append(append([]bool(nil), a...), b...)
	}
	out := make([]bool, len(a))
	for k := range out {
		out[k] = a[k] || b[k]
	}
	return out
}
