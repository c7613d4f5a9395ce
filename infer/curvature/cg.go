package curvature

import (
	"errors"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// ErrIndefinite is wrapped by the errors of a matrix that is not positive definite.
var ErrIndefinite = errors.New("not positive definite")

// CGOptions are the options of [CG]; the zero value is fine.
type CGOptions struct {
	Start   *ts.Tensor // x₀, [d]; nil means 0
	MaxIter int        // most iterations; 0 means 10·d
	// CG stops where |b − Ax| ≤ max(Tol·|b|, Atol). Tol 0 means 1e-5, or none where Atol is set.
	Tol, Atol float64
	Damping   float64 // λ ≥ 0: solves (A + λI)x = b
	// Preconditioner returns M r for a symmetric positive definite M ≈ (A + λI)⁻¹; nil means r itself.
	Preconditioner func(r *ts.Tensor) (*ts.Tensor, error)
}

// CGResult is where [CG] stopped.
type CGResult struct {
	X          *ts.Tensor // [d]
	Iterations int        // products with A, apart from those that check the residual
	Residual   float64    // |b − (A + λI)X|, computed anew from X
	Converged  bool       // whether the residual is small enough
}

// CG solves (A + λI)x = b for a symmetric positive definite A that is known by its products with vectors of shape [d],
// by preconditioned conjugate gradients (Hestenes and Stiefel 1952; Golub and Van Loan 2013, algorithm 11.5.1):
//
//	r = b − Ax    s = M r    p = s
//	α = rᵀs / pᵀAp    x' = x + αp    r' = r − αAp    s' = M r'    p' = s' + (r'ᵀs' / rᵀs) p
//
// A direction with pᵀAp ≤ 0, or rᵀMr ≤ 0, is an error that wraps [ErrIndefinite]. Running out of iterations is not an
// error: see Converged.
func CG(apply func(v *ts.Tensor) (*ts.Tensor, error), b *ts.Tensor, o CGOptions) (CGResult, error) {
	var result CGResult
	err := torch.Do(func(scope *torch.Scope) error {
		s, err := newCG(apply, b, o)
		if err != nil {
			return err
		}
		if err := torch.NoGrad(s.run); err != nil {
			return err
		}
		scope.Keep(s.X)
		result = s.CGResult
		return nil
	})
	if err != nil {
		return CGResult{}, fmt.Errorf("curvature.CG: %w", err)
	}
	return result, nil
}

// cg is a run of conjugate gradients. X, r and p are overwritten in place.
type cg struct {
	CGOptions
	CGResult
	apply   func(v *ts.Tensor) (*ts.Tensor, error)
	b, r, p *ts.Tensor
	rs      float64 // rᵀs
	goal    float64 // the residual to reach
	size    float64 // |b|
}

func newCG(apply func(v *ts.Tensor) (*ts.Tensor, error), b *ts.Tensor, o CGOptions) (*cg, error) {
	if apply == nil {
		return nil, errNil("product with the matrix")
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"MaxIter", float64(o.MaxIter)}, {"Tol", o.Tol}, {"Atol", o.Atol}, {"Damping", o.Damping}} {
		if err := method.CheckValue("curvature.CGOptions", f.name, f.value, 0, false); err != nil {
			return nil, err
		}
	}
	if b == nil {
		return nil, errors.New("the right-hand side is nil, expected shape [d]")
	}
	shape, err := torch.Shape(b)
	if err != nil {
		return nil, fmt.Errorf("the right-hand side: %w", err)
	}
	if len(shape) != 1 || shape[0] == 0 {
		return nil, fmt.Errorf("the right-hand side has shape %v, expected [d]", shape)
	}
	if o.MaxIter == 0 {
		o.MaxIter = 10 * int(shape[0])
	}
	if o.Tol == 0 && o.Atol == 0 {
		o.Tol = 1e-5
	}
	s := &cg{CGOptions: o, apply: apply, b: b.MustDetach(false)}
	if s.size, err = norm(s.b); err != nil {
		return nil, err
	}
	if math.IsNaN(s.size) || math.IsInf(s.size, 0) {
		return nil, fmt.Errorf("the right-hand side is %w", infer.ErrNonFinite)
	}
	s.goal = max(o.Tol*s.size, o.Atol)
	if o.Start == nil {
		s.X = s.b.MustZerosLike(false)
		return s, nil
	}
	if err := sameKind("Start", o.Start, s.b); err != nil {
		return nil, err
	}
	s.X = torch.Must(torch.Combine(torch.Term{Coeff: 1, Tensor: o.Start.MustDetach(false)}))
	return s, nil
}

// run iterates until the residual is small enough. The r of the recursion drifts away from b − Ax by rounding, so that
// it is computed anew where it says that the goal is reached, and the search goes on from there if it is not.
func (s *cg) run() error {
	restarted := math.Inf(1)
	for {
		if err := s.begin(); err != nil {
			return err
		}
		s.Converged = s.Residual <= s.goal
		// Starting anew must help, else the goal is below what rounding allows.
		if s.Converged || s.Iterations >= s.MaxIter || s.Residual > restarted/2 {
			return nil
		}
		restarted = s.Residual
		for residual := s.Residual; residual > s.goal && s.Iterations < s.MaxIter; {
			var err error
			if residual, err = s.step(); err != nil {
				return err
			}
		}
	}
}

// begin sets r, p and the residual from X.
func (s *cg) begin() error {
	return torch.Do(func(scope *torch.Scope) error {
		ax, err := s.product(s.X)
		if err != nil {
			return err
		}
		r, err := torch.Combine(torch.Term{Coeff: 1, Tensor: s.b}, torch.Term{Coeff: -1, Tensor: ax})
		if err != nil {
			return err
		}
		if s.Residual, err = norm(r); err != nil {
			return err
		}
		precond, err := s.precondition(r)
		if err != nil {
			return err
		}
		if s.rs, err = s.positive("the preconditioner", r, precond); err != nil {
			return err
		}
		p, err := torch.Combine(torch.Term{Coeff: 1, Tensor: precond})
		torch.Free(s.r, s.p)
		s.r, s.p = r, p
		scope.Keep(r, p)
		return err
	})
}

// step is one iteration; it returns the residual of the recursion.
func (s *cg) step() (residual float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		s.Iterations++
		ap, err := s.product(s.p)
		if err != nil {
			return err
		}
		pap, err := s.positive("the matrix", s.p, ap)
		if err != nil {
			return err
		}
		alpha := s.rs / pap
		s.X.MustAdd_(s.p.MustMulScalar(ts.FloatScalar(alpha), false))
		s.r.MustSub_(ap.MustMulScalar(ts.FloatScalar(alpha), false))
		if residual, err = norm(s.r); err != nil || residual <= s.goal {
			return err
		}
		precond, err := s.precondition(s.r)
		if err != nil {
			return err
		}
		before := s.rs
		if s.rs, err = s.positive("the preconditioner", s.r, precond); err != nil {
			return err
		}
		s.p.MustMulScalar_(ts.FloatScalar(s.rs / before))
		s.p.MustAdd_(precond)
		return nil
	})
	return residual, err
}

// product is (A + λI)v.
func (s *cg) product(v *ts.Tensor) (*ts.Tensor, error) {
	av, err := s.apply(v)
	if err != nil {
		return nil, err
	}
	if err := sameKind("the product with the matrix", av, s.b); err != nil {
		return nil, err
	}
	if s.Damping == 0 {
		return av, nil
	}
	return torch.Combine(torch.Term{Coeff: 1, Tensor: av}, torch.Term{Coeff: s.Damping, Tensor: v})
}

func (s *cg) precondition(r *ts.Tensor) (*ts.Tensor, error) {
	if s.Preconditioner == nil {
		return r, nil
	}
	m, err := s.Preconditioner(r)
	if err != nil {
		return nil, err
	}
	return m, sameKind("the preconditioned residual", m, s.b)
}

// positive is vᵀAv, given v and Av. It must be positive, unless the residual is exactly zero.
func (s *cg) positive(what string, v, av *ts.Tensor) (float64, error) {
	c, err := dot(v, av)
	if err != nil {
		return 0, err
	}
	if math.IsNaN(c) || math.IsInf(c, 0) {
		return 0, fmt.Errorf("a product with %s is %w at iteration %d", what, infer.ErrNonFinite, s.Iterations)
	}
	if c <= 0 && s.Residual > 0 {
		return 0, fmt.Errorf("%s is %w: a direction v with vᵀAv = %.3g was met at iteration %d; "+
			"a larger Damping makes a matrix positive definite", what, ErrIndefinite, c, s.Iterations)
	}
	return c, nil
}

func dot(x, y *ts.Tensor) (float64, error) {
	c, err := x.Dot(y, false)
	if err != nil {
		return 0, err
	}
	return torch.Item(c)
}

func norm(x *ts.Tensor) (float64, error) {
	c, err := dot(x, x)
	return math.Sqrt(c), err
}

// sameKind checks that a tensor has the shape, type and device of b.
func sameKind(what string, t, b *ts.Tensor) error {
	want := torch.Must(torch.Shape(b))
	dtype, device := torch.Must(torch.DTypeOfTensor(b)), torch.Must(torch.DeviceOf(b))
	return like(what, t, want, "the right-hand side is", dtype, device)
}
