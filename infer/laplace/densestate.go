package laplace

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// DenseState is the state of [DenseFisher], [DenseGGN] and [DenseHessian]. Curvature and Prior have shape [d, d] or [K,
// d, d].
type DenseState struct{ Gaussian }

// Precision is P, of shape [d, d] or [K, d, d].
func (s DenseState) Precision() (p *ts.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		p = s.sum()
		p.MustDiagonal(0, -2, -1, false).MustAddScalar_(ts.FloatScalar(s.Damping))
		scope.Keep(p)
		return nil
	})
	return p, err
}

func (s DenseState) method() string { return "laplace.DenseState" }

func (s DenseState) chain(k int) Posterior { return DenseState{s.of(k)} }

// factor is the lower Cholesky factor L of P = L Lᵀ.
func (s DenseState) factor() (*ts.Tensor, error) {
	p, err := s.Precision()
	if err != nil {
		return nil, err
	}
	return approx.Cholesky(s.method()+": the precision", p, "give a larger PriorPrecision or Damping, "+
		"use a Gauss-Newton method in place of the Hessian, or find a better optimum with more updates "+
		"(infer.Options.Warmup)")
}

func (s DenseState) deviations(z *ts.Tensor) (*ts.Tensor, error) {
	l, err := s.factor()
	if err != nil {
		return nil, err
	}
	if !s.Params.Batched() {
		l = l.MustUnsqueeze(0, false)
	}
	return transposed(l).LinalgSolveTriangular(z, true, true, false, false)
}

func (s DenseState) logDet(handed bool) (float64, error) {
	s.Temperature = 1
	if handed {
		s.Damping = 0
	}
	l, err := s.factor()
	if err != nil {
		return 0, err
	}
	return 2 * total(l.MustDiagonal(0, -2, -1, false).MustLog(false)), nil
}

func (s DenseState) quadratic(scope *torch.Scope) (func(x *ts.Tensor) *ts.Tensor, error) {
	s.Gaussian = s.bayes()
	p, err := s.Precision()
	if err != nil {
		return nil, err
	}
	scope.Keep(p)
	return func(x *ts.Tensor) *ts.Tensor {
		return p.MustMatmul(x, false).MustMul(x, false).MustSum(p.DType(), false)
	}, nil
}

func (s DenseState) newton(g *ts.Tensor) (*ts.Tensor, error) {
	l, err := s.factor()
	if err != nil {
		return nil, err
	}
	return g.CholeskySolve(l, false, false)
}

// AsPrior is that of [Posterior].
func (s DenseState) AsPrior() (Precision, error) {
	s.Gaussian = s.bayes()
	p, err := s.Precision()
	return Matrix(p), err
}

func (s DenseState) linearized(f curvature.Forward, b infer.Batch, o curvature.LinearizedOptions) (mean, cov *ts.Tensor,
	err error) {
	l, err := s.factor()
	if err != nil {
		return nil, nil, err
	}
	// P⁻¹ = L⁻ᵀ L⁻¹
	d := int64(s.Params.Layout.Dim())
	eye := torch.Must(ts.Eye(d, l.DType(), torch.Must(torch.DeviceOf(l))))
	return curvature.LinearizedFactor(f, s.Params, b,
		transposed(l).MustLinalgSolveTriangular(eye, true, true, false, false), o)
}

func (s DenseState) withPrior(lambda Precision) (infer.State, error) {
	err := torch.Do(func(scope *torch.Scope) (err error) {
		if s.Prior, err = lambda.matrix(s.method(), s.Params); err != nil {
			return err
		}
		torch.Detach(s.Prior)
		s.own()
		scope.Keep(s.Params.Flat, s.Curvature, s.Data, s.Gradient)
		return nil
	})
	return s, err
}

func (s DenseState) search(delta []float64, perSite bool) (priorSearch, error) {
	// In float64: the rounding of a float32 curvature stays, but the search adds none of its own.
	s.Temperature = 1
	fixed := s.likelihood().MustTotype(gotch.Double, false).MustAdd(s.Curvature.MustZerosLike(false), false)
	fixed.MustDiagonal(0, 0, 1, false).MustAddScalar_(ts.FloatScalar(s.Damping))
	all := block{sites: s.Params.Layout.Names(), eps: method.Epsilon(s.Curvature)}
	all.eigen = torch.Must(torch.ToSlice[float64](fixed.MustLinalgEigvalsh("L", false)))
	if !perSite {
		for _, x := range delta {
			all.square += x * x
		}
		return separate([]block{all}, false), nil
	}
	if _, err := all.clean(); err != nil {
		return nil, err
	}
	return &coupled{layout: s.Params.Layout, fixed: fixed, prior: s.Prior, delta: delta}, nil
}

// Chain is that of [Posterior].
func (s DenseState) Chain(k int) (Posterior, error) { return pick(s, k) }

// LogEvidence is that of [Posterior].
func (s DenseState) LogEvidence(logJoint float64) (float64, error) { return logEvidence(s, logJoint) }

// LogPrior is that of [Posterior].
func (s DenseState) LogPrior(weight float64) (func(p infer.Params) torch.Tensor, error) {
	return logPrior(s, weight)
}

// Linearized is that of [Posterior].
func (s DenseState) Linearized(f curvature.Forward, b infer.Batch, o curvature.LinearizedOptions) (mean, cov *ts.Tensor,
	err error) {
	return linearized(s, f, b, o)
}
