package laplace

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// DiagState is the state of [DiagFisher] and [DiagGGN]: independent normals. Curvature and Prior have the
// shape of the point.
type DiagState struct{ Gaussian }

// Precision is the diagonal of P, of shape [d] or [K, d].
func (s DiagState) Precision() (p *ts.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		p = s.sum().MustAddScalar(ts.FloatScalar(s.Damping), false)
		scope.Keep(p)
		return nil
	})
	return p, err
}

func (s DiagState) method() string { return "laplace.DiagState" }

func (s DiagState) chain(k int) Posterior { return DiagState{s.of(k)} }

// positive is P after a check that each element is positive.
func (s DiagState) positive() (*ts.Tensor, error) {
	p, err := s.Precision()
	if err != nil {
		return nil, err
	}
	if least := item(p.MustMin(false)); least > 0 {
		return p, nil // and none is NaN, which would be the minimum
	}
	v := torch.Must(torch.ToSlice[float64](p))
	d := s.Params.Layout.Dim()
	for i, x := range v {
		if math.IsNaN(x) {
			return nil, fmt.Errorf("%s: the precision of %s is %w", s.method(), s.Params.Layout.At(i%d),
				infer.ErrNonFinite)
		}
		if !(x > 0) {
			what := s.Params.Layout.At(i % d)
			if s.Params.Batched() {
				what += fmt.Sprintf(" of chain %d", i/d)
			}
			why := "the data say nothing about it, and there is no prior"
			if x < 0 {
				why = "the log likelihood is not concave in the outputs, use a Fisher method"
			}
			return nil, fmt.Errorf("%s: the precision of %s is %g: %s: give a PriorPrecision above 0, or Damping: %w",
				s.method(), what, x, why, curvature.ErrIndefinite)
		}
	}
	return p, nil
}

func (s DiagState) deviations(z *ts.Tensor) (*ts.Tensor, error) {
	p, err := s.positive()
	if err != nil {
		return nil, err
	}
	return z.Div(p.MustSqrt(false).MustReshape([]int64{int64(s.Params.Chains()), -1, 1}, false), false)
}

func (s DiagState) logDet(handed bool) (float64, error) {
	s.Temperature = 1
	if handed {
		s.Damping = 0
	}
	p, err := s.positive()
	if err != nil {
		return 0, err
	}
	return total(p.MustLog(false)), nil
}

func (s DiagState) quadratic(scope *torch.Scope) (func(x *ts.Tensor) *ts.Tensor, error) {
	s.Gaussian = s.bayes()
	p, err := s.Precision()
	if err != nil {
		return nil, err
	}
	scope.Keep(p)
	return func(x *ts.Tensor) *ts.Tensor { return x.MustSquare(false).MustMul(p, false).MustSum(p.DType(), false) }, nil
}

func (s DiagState) newton(g *ts.Tensor) (*ts.Tensor, error) {
	p, err := s.positive()
	if err != nil {
		return nil, err
	}
	return g.Div(p.MustReshape([]int64{int64(s.Params.Chains()), -1, 1}, false), false)
}

// AsPrior is that of [Posterior].
func (s DiagState) AsPrior() (Precision, error) {
	s.Gaussian = s.bayes()
	p, err := s.Precision()
	return PerElement(p), err
}

func (s DiagState) linearized(f curvature.Forward, b infer.Batch, o curvature.LinearizedOptions) (mean, cov *ts.Tensor,
	err error) {
	p, err := s.positive()
	if err != nil {
		return nil, nil, err
	}
	return curvature.Linearized(f, s.Params, b, p.MustReciprocal(false), o)
}

func (s DiagState) search(delta []float64, perSite bool) (priorSearch, error) {
	s.Temperature = 1
	curve, err := torch.ToSlice[float64](s.likelihood())
	if err != nil {
		return nil, err
	}
	blocks := make([]block, len(s.Params.Layout.Sites))
	for i, site := range s.Params.Layout.Sites {
		blocks[i].sites, blocks[i].eps = []string{site.Name}, method.Epsilon(s.Params.Flat)
		for j := site.Offset; j < site.Offset+site.Size; j++ {
			blocks[i].add(curve[j]+s.Damping, delta[j])
		}
	}
	return separate(blocks, perSite), nil
}

func (s DiagState) withPrior(lambda Precision) (infer.State, error) {
	err := torch.Do(func(scope *torch.Scope) (err error) {
		if s.Prior, err = lambda.diagonal(s.method(), s.Params); err != nil {
			return err
		}
		torch.Detach(s.Prior)
		s.own()
		scope.Keep(s.Params.Flat, s.Curvature, s.Data, s.Gradient)
		return nil
	})
	return s, err
}

// Chain is that of [Posterior].
func (s DiagState) Chain(k int) (Posterior, error) { return pick(s, k) }

// LogEvidence is that of [Posterior].
func (s DiagState) LogEvidence(logJoint float64) (float64, error) { return logEvidence(s, logJoint) }

// LogPrior is that of [Posterior].
func (s DiagState) LogPrior(weight float64) (func(p infer.Params) torch.Tensor, error) {
	return logPrior(s, weight)
}

// Linearized is that of [Posterior].
func (s DiagState) Linearized(f curvature.Forward, b infer.Batch, o curvature.LinearizedOptions) (mean, cov *ts.Tensor,
	err error) {
	return linearized(s, f, b, o)
}
