package approx

import (
	"errors"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// ErrNoGaussian says that a density has no mode with a curvature that a normal distribution could take over.
var ErrNoGaussian = errors.New("it has no Gaussian approximation on unconstrained space")

// mostSteps is how many steps Newton's method may take. On a concave density it takes about ten.
const mostSteps = 200

// Gaussian is the Laplace approximation of a log density f, exact where that is quadratic: its mode, of shape [d], and
// its precision there, of shape [d, d], or [d] where it is diagonal. The search starts at p, a single point, and takes
// steps of Newton's method, damped until each goes up.
func Gaussian(f infer.LogPosterior, p infer.Params, b infer.Batch, memory int, name string) (mode,
	precision torch.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		mode, precision = climb(f, p, b, memory, name)
		mode = Copy(mode)
		scope.Keep(mode, precision)
		return nil
	})
	return mode, precision, err
}

func climb(f infer.LogPosterior, at infer.Params, b infer.Batch, memory int, name string) (mode,
	precision torch.Tensor) {
	lambda := 0.0
	value, err := evaluate(f, at, b)
	Try(err)
	for range mostSteps {
		grad, _, err := curvature.HVP(f, at, b, torch.Of(at.Flat.T().MustZerosLike(false)))
		if errors.Is(err, torch.ErrNoGradient) {
			Fail("it is flat: %w", ErrNoGaussian)
		}
		Try(err)
		h, ok := diagonalOf(f, at, b)
		if !ok {
			h = Curvature(f, at, b, true, memory, name)
		}
		for try := 0; ; try++ {
			if step := solve(h, lambda, grad); step != (torch.Tensor{}) {
				gain := Item(step.Dot(grad)) // twice what a quadratic function would rise
				if lambda == 0 && gain < 1e-18*(1+math.Abs(value)) {
					return at.Flat, h
				}
				next := infer.Params{Layout: at.Layout, Flat: at.Flat.Add(step)}
				if v, err := evaluate(f, next, b); err == nil && v >= value+1e-4*gain-1e-14*math.Abs(value) {
					at, value, lambda = next, v, lambda/8
					if lambda < 1e-8 {
						lambda = 0
					}
					break
				}
			}
			if lambda = max(4*lambda, 1e-4); try > 60 {
				Fail("the search for its mode ended at %v: %w", torch.Must(torch.ToSlice[float64](at.Flat)), ErrNoGaussian)
			}
		}
	}
	Fail("the search for its mode has not ended after %d steps: %w", mostSteps, ErrNoGaussian)
	return torch.Tensor{}, torch.Tensor{}
}

// evaluate is the value of f, which must be finite.
func evaluate(f infer.LogPosterior, p infer.Params, b infer.Batch) (v float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		value, _ := f(p, b)
		if v = Item(value); math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("its value is %v: %w", v, infer.ErrNonFinite)
		}
		return nil
	})
	return v, err
}

// solve is (H + λ·diag|H|)⁻¹g; nil where that matrix is not positive definite.
func solve(h torch.Tensor, lambda float64, g torch.Tensor) torch.Tensor {
	if len(h.T().MustSize()) == 1 {
		d := h.Add(damping(h, lambda)).T()
		if !(Item(torch.Of(d.MustMin(false))) > 0) {
			return torch.Tensor{}
		}
		return g.Div(d)
	}
	m := h.Add(damping(torch.Of(h.T().MustDiagonal(0, 0, 1, false)), lambda).T().MustDiagEmbed(0, -2, -1, false)).T()
	l, err := Cholesky("the precision", torch.Of(m), "")
	if errors.Is(err, curvature.ErrIndefinite) {
		return torch.Tensor{}
	}
	return torch.Of(g.Unsqueeze(1).T().MustCholeskySolve(torch.Must(l, err).T(), false, false).MustSqueezeDim(1, false))
}

// damping is λ(|h| + 1), which makes any h positive that λ is large enough for.
func damping(h torch.Tensor, lambda float64) torch.Tensor {
	return torch.Of(h.Abs().T().MustAddScalar(ts.FloatScalar(1), false).MustMulScalar(ts.FloatScalar(lambda), false))
}
