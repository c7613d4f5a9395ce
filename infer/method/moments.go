package method

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// gradientMoments are, for each element, the mean of n minibatch gradients at p and the sum of their squared deviations
// from it (Welford 1962), of the shape of p. diverged names the chains that met something not finite; nil for none. The
// gradients are those of the log posterior, without Jacobian.
func gradientMoments(g infer.Gradient, p infer.Params, next func() (infer.Batch, error), n int) (mean,
	square torch.Tensor,
	diverged []bool, err error) {
	if g == nil || next == nil {
		return torch.Tensor{}, torch.Tensor{}, nil, fmt.Errorf("the gradient or the batches are nil: %w", infer.ErrConfig)
	}
	err = torch.Do(func(outer *torch.Scope) error {
		for k := 1; k <= n; k++ {
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
				old := []torch.Tensor{mean, square}
				off := Combine(Term(1, e.Grad), Term(-1, mean))
				mean = Combine(Term(1, mean), Term(1/float64(k), off))
				square = Combine(Term(1, square), Term(float64(k-1)/float64(k), off.Square()))
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

// either is the union of two lists of chains; nil is the empty list.
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

// Estimate says when a method looks at the gradients of several minibatches at one point. [infer.Run] does so by
// itself; if you make updates yourself, call Prepare of [infer.Preparer] when Due says so.
type Estimate struct {
	Batches int // K, minibatches that are looked at; 0 means 32
	// Every is the number of updates from one estimate to the next; 0 means at the beginning of each pass over the
	// data. With all the data in one batch every update begins a pass: give Every then.
	Every int
}

// Check checks the fields of an estimate and fills in the defaults; nil stays nil.
func (e *Estimate) Check(c *Checks, field string, least int) *Estimate {
	if e == nil {
		return nil
	}
	checked := *e
	if checked.Batches == 0 {
		checked.Batches = 32
	}
	c.Require(checked.Batches >= least, field+".Batches", checked.Batches, fmt.Sprintf("it must be at least %d", least))
	c.Require(checked.Every >= 0, field+".Every", checked.Every, "it must be at least 0")
	return &checked
}

// Due says whether an estimate comes before an update. A nil e is never due; none says that no estimate was made yet,
// and then one is due.
func (e *Estimate) Due(step int, epoch, none bool) bool {
	switch {
	case e == nil:
		return false
	case e.Every > 0:
		return none || step%e.Every == 0
	}
	return none || epoch
}

// Variance is the variance of the gradient of one minibatch, for each element: that of the gradients of several
// minibatches at p. It is unbiased for independent minibatches; for B of N data without replacement it is N/(N − B)
// times as large on average. A chain that meets something not finite keeps its old estimate, or 0. It belongs to no
// scope.
func (e *Estimate) Variance(g infer.Gradient, p infer.Params, old torch.Tensor, next func() (infer.Batch,
	error)) torch.Tensor {
	_, square, diverged, err := gradientMoments(g, p, next, e.Batches)
	if err != nil {
		torch.Must(0, fmt.Errorf("estimating β: %w", err))
	}
	variance := Combine(Term(1/float64(e.Batches-1), square))
	if old == (torch.Tensor{}) {
		old = torch.Of(variance.T().MustZerosLike(false))
	}
	variance = torch.Must(Hold(old, variance, diverged))
	torch.Detach(variance)
	return variance
}

// VariancePart is the part of a state with the variance of the gradient, nil without an estimate.
func (e *Estimate) VariancePart(v *torch.Tensor) Part {
	return Part{Name: "gradient_variance", Tensor: v, Shared: true, Estimate: e, Make: e.Variance,
		Required: "EstimateBeta"}
}
