package sgmcmc

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Estimate says when a method looks at the gradients of several minibatches at one point. [infer.Run] does so by itself; who
// makes updates by hand calls Prepare of [infer.Preparer] when Due says so.
type Estimate struct {
	Batches int64 // K, minibatches that are looked at; 0 means 32
	// Every is the number of updates from one estimate to the next; 0 means at the beginning of each pass over the data. With
	// all the data in one batch every update begins one: give Every then.
	Every int64
}

// check checks the fields of an estimate and fills in the defaults.
func (e Estimate) check(method, field string, least int64) (Estimate, error) {
	if e.Batches == 0 {
		e.Batches = 32
	}
	if e.Batches < least {
		return e, &infer.FieldError{Type: method, Field: field + ".Batches", Value: e.Batches, Allowed: fmt.Sprintf("it must be at least %d", least)}
	}
	if e.Every < 0 {
		return e, &infer.FieldError{Type: method, Field: field + ".Every", Value: e.Every, Allowed: "it must be at least 0"}
	}
	return e, nil
}

// due says whether an estimate comes before update step, for nil never; the first one, where there is none, always.
func (e *Estimate) due(step int64, epoch, none bool) bool {
	switch {
	case e == nil:
		return false
	case e.Every > 0:
		return none || step%e.Every == 0
	}
	return none || epoch
}

// gradientMoments are, for each element, the mean of n minibatch gradients at p and the sum of their squared deviations from
// it (Welford 1962), of the shape of p. diverged names the chains that met something not finite; nil for none.
func gradientMoments(g infer.Gradient, p infer.Params, next func() (infer.Batch, error), n int64) (mean, square *ts.Tensor, diverged []bool, err error) {
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
					mean = e.Grad
					if square, err = torch.Combine(torch.Term{Coeff: 0, Tensor: e.Grad}); err != nil {
						return err
					}
					scope.Keep(mean, square)
					return nil
				}
				off, err := torch.Combine(torch.Term{Coeff: 1, Tensor: e.Grad}, torch.Term{Coeff: -1, Tensor: mean})
				if err != nil {
					return err
				}
				old := []*ts.Tensor{mean, square}
				if mean, err = torch.Combine(torch.Term{Coeff: 1, Tensor: mean}, torch.Term{Coeff: 1 / float64(k), Tensor: off}); err != nil {
					return err
				}
				if off, err = off.Square(false); err != nil {
					return err
				}
				square, err = torch.Combine(torch.Term{Coeff: 1, Tensor: square}, torch.Term{Coeff: float64(k-1) / float64(k), Tensor: off})
				if err != nil {
					return err
				}
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
