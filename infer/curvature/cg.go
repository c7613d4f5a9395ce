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
	Start   torch.Tensor // x₀, [d]; nil means 0
	MaxIter int          // most iterations; 0 means 10·d
	// CG stops where |b − Ax| ≤ max(Tol·|b|, Atol). Tol 0 means 1e-5, or none where Atol is set.
	Tol, Atol float64
	Damping   float64 // λ ≥ 0: solves (A + λI)x = b
	// Preconditioner returns M r for a symmetric positive definite M ≈ (A + λI)⁻¹; nil means r itself.
	Preconditioner func(r torch.Tensor) (torch.Tensor, error)
}

// CGResult is where [CG] stopped.
type CGResult struct {
	X          torch.Tensor // [d]
	Iterations int          // products with A, apart from those that check the residual
	Residual   float64      // |b − (A + λI)X|, computed anew from X
	Converged  bool         // whether the residual is small enough
}

// CG solves (A + λI)x = b for a symmetric positive definite A that is known by its products with vectors of shape [d],
// by preconditioned conjugate gradients (Hestenes and Stiefel 1952; Golub and Van Loan 2013, algorithm 11.5.1):
//
//	r = b − Ax    s = M r    p = s
//	α = rᵀs / pᵀAp    x' = x + αp    r' = r − αAp    s' = M r'    p' = s' + (r'ᵀs' / rᵀs) p
//
// A direction with pᵀAp ≤ 0, or rᵀMr ≤ 0, is an error that wraps [ErrIndefinite]. Running out of iterations is not an
// error: see Converged.
func CG(apply func(v torch.Tensor) (torch.Tensor, error), b torch.Tensor, o CGOptions) (CGResult, error) {
	var result CGResult
	err := torch.Do(func(scope *torch.Scope) error {
		s := newCG(apply, b, o)
		try(torch.NoGrad(func() error {
			s.run()
			return nil
		}))
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
	apply   func(v torch.Tensor) (torch.Tensor, error)
	b, r, p torch.Tensor
	rs      float64 // rᵀs
	goal    float64 // the residual to reach
	size    float64 // |b|
}

func newCG(apply func(v torch.Tensor) (torch.Tensor, error), b torch.Tensor, o CGOptions) *cg {
	if apply == nil {
		try(errNil("product with the matrix"))
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"MaxIter", float64(o.MaxIter)}, {"Tol", o.Tol}, {"Atol", o.Atol}, {"Damping", o.Damping}} {
		try(method.CheckValue("curvature.CGOptions", f.name, f.value, 0, false))
	}
	if b == (torch.Tensor{}) {
		fail("the right-hand side is nil, expected shape [d]")
	}
	shape, err := torch.Shape(b)
	if err != nil {
		fail("the right-hand side: %w", err)
	}
	if len(shape) != 1 || shape[0] == 0 {
		fail("the right-hand side has shape %v, expected [d]", shape)
	}
	if o.MaxIter == 0 {
		o.MaxIter = 10 * int(shape[0])
	}
	if o.Tol == 0 && o.Atol == 0 {
		o.Tol = 1e-5
	}
	s := &cg{CGOptions: o, apply: apply, b: torch.Of(b.T().MustDetach(false))}
	if s.size = norm(s.b); math.IsNaN(s.size) || math.IsInf(s.size, 0) {
		fail("the right-hand side is %w", infer.ErrNonFinite)
	}
	s.goal = max(o.Tol*s.size, o.Atol)
	if o.Start == (torch.Tensor{}) {
		s.X = torch.Of(s.b.T().MustZerosLike(false))
		return s
	}
	sameKind("Start", o.Start, s.b)
	s.X = own(torch.Of(o.Start.T().MustDetach(false)))
	return s
}

// run iterates until the residual is small enough. The r of the recursion drifts away from b − Ax by rounding, so that
// it is computed anew where it says that the goal is reached, and the search goes on from there if it is not.
func (s *cg) run() {
	restarted := math.Inf(1)
	for {
		s.begin()
		s.Converged = s.Residual <= s.goal
		// Starting anew must help, else the goal is below what rounding allows.
		if s.Converged || s.Iterations >= s.MaxIter || s.Residual > restarted/2 {
			return
		}
		restarted = s.Residual
		for residual := s.Residual; residual > s.goal && s.Iterations < s.MaxIter; {
			inScope(func() { residual = s.step() })
		}
	}
}

// begin sets r, p and the residual from X.
func (s *cg) begin() {
	try(torch.Do(func(scope *torch.Scope) error {
		r := method.Combine(method.Term(1, s.b), method.Term(-1, s.product(s.X)))
		s.Residual = norm(r)
		precond := s.precondition(r)
		s.rs = s.positive("the preconditioner", r, precond)
		torch.Free(s.r, s.p)
		s.r, s.p = r, own(precond)
		scope.Keep(s.r, s.p)
		return nil
	}))
}

// step is one iteration; it returns the residual of the recursion.
func (s *cg) step() (residual float64) {
	s.Iterations++
	ap := s.product(s.p)
	alpha := s.rs / s.positive("the matrix", s.p, ap)
	s.X.T().MustAdd_(s.p.T().MustMulScalar(ts.FloatScalar(alpha), false))
	s.r.T().MustSub_(ap.T().MustMulScalar(ts.FloatScalar(alpha), false))
	if residual = norm(s.r); residual <= s.goal {
		return residual
	}
	precond, before := s.precondition(s.r), s.rs
	s.rs = s.positive("the preconditioner", s.r, precond)
	s.p.T().MustMulScalar_(ts.FloatScalar(s.rs / before))
	s.p.T().MustAdd_(precond.T())
	return residual
}

// product is (A + λI)v.
func (s *cg) product(v torch.Tensor) torch.Tensor {
	av, err := s.apply(v)
	try(err)
	sameKind("the product with the matrix", av, s.b)
	if s.Damping == 0 {
		return av
	}
	return method.Combine(method.Term(1, av), method.Term(s.Damping, v))
}

func (s *cg) precondition(r torch.Tensor) torch.Tensor {
	if s.Preconditioner == nil {
		return r
	}
	m, err := s.Preconditioner(r)
	try(err)
	sameKind("the preconditioned residual", m, s.b)
	return m
}

// positive is vᵀAv, given v and Av. It must be positive, unless the residual is exactly zero.
func (s *cg) positive(what string, v, av torch.Tensor) float64 {
	c := dot(v, av)
	if math.IsNaN(c) || math.IsInf(c, 0) {
		fail("a product with %s is %w at iteration %d", what, infer.ErrNonFinite, s.Iterations)
	}
	if c <= 0 && s.Residual > 0 {
		fail("%s is %w: a direction v with vᵀAv = %.3g was met at iteration %d; "+
			"a larger Damping makes a matrix positive definite", what, ErrIndefinite, c, s.Iterations)
	}
	return c
}

func dot(x, y torch.Tensor) float64 { return x.Dot(y).Item() }

func norm(x torch.Tensor) float64 { return math.Sqrt(dot(x, x)) }

// sameKind checks that a tensor has the shape, type and device of b.
func sameKind(what string, t, b torch.Tensor) {
	want := b.Shape()
	dtype, device := torch.Must(torch.DTypeOfTensor(b)), torch.Must(torch.DeviceOf(b))
	try(like(what, t, want, "the right-hand side is", dtype, device))
}
