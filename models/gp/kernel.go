package gp

import (
	"fmt"
	"math"

	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Kernel is a covariance function.
type Kernel interface {
	// Between are the covariances of the process at x, n inputs, and at y, m other ones: [n, m].
	Between(x, y torch.Tensor) torch.Tensor
	// Within is the covariance matrix at x, [n, n].
	Within(x torch.Tensor) torch.Tensor
	// Variance is the diagonal of Within, [n].
	Variance(x torch.Tensor) torch.Tensor
}

// SquaredExponential is k(x, y) = Scale² exp(−r²/2), r² = Σ_i (x_i − y_i)²/Length_i²: smooth functions.
type SquaredExponential struct {
	Scale  any // standard deviation of the process; nil is 1
	Length any // of shape [] or [d]; nil is 1
}

// Between are the covariances of two sets of inputs.
func (k SquaredExponential) Between(x, y torch.Tensor) torch.Tensor {
	return square("SquaredExponential.Scale", k.Scale).Mul(squares("SquaredExponential.Length", x, y, k.Length).
		Mul(-0.5).Exp())
}

// Within is the covariance matrix.
func (k SquaredExponential) Within(x torch.Tensor) torch.Tensor { return k.Between(x, x) }

// Variance is Scale².
func (k SquaredExponential) Variance(x torch.Tensor) torch.Tensor {
	return square("SquaredExponential.Scale", k.Scale).Expand(rows(x))
}

// Matern is the kernel of functions that are differentiable less than Nu times (Rasmussen and Williams 2006, section
// 4.2.1), with r as in [SquaredExponential]:
//
//	1/2  Scale² exp(−r)
//	3/2  Scale² (1 + √3 r) exp(−√3 r)
//	5/2  Scale² (1 + √5 r + 5 r²/3) exp(−√5 r)
type Matern struct {
	Nu     float64 // 0.5, 1.5 or 2.5
	Scale  any     // standard deviation of the process; nil is 1
	Length any     // of shape [] or [d]; nil is 1
}

// Between are the covariances of two sets of inputs.
func (k Matern) Between(x, y torch.Tensor) torch.Tensor {
	s := squares("Matern.Length", x, y, k.Length)
	// The root has no derivative at 0, where the kernel's is 0.
	apart := s.Gt(0)
	r := torch.Choose(apart, torch.Choose(apart, s, 1).Sqrt(), 0).Mul(math.Sqrt(2 * k.nu()))
	shape := torch.Of(1)
	switch k.Nu {
	case 1.5:
		shape = r.Add(1)
	case 2.5:
		shape = r.Add(1).Add(s.Mul(5. / 3))
	}
	return square("Matern.Scale", k.Scale).Mul(r.Neg().Exp()).Mul(shape)
}

func (k Matern) nu() float64 {
	if k.Nu != 0.5 && k.Nu != 1.5 && k.Nu != 2.5 {
		fail("Matern.Nu", fmt.Sprint(k.Nu), "it must be 0.5, 1.5 or 2.5")
	}
	return k.Nu
}

// Within is the covariance matrix.
func (k Matern) Within(x torch.Tensor) torch.Tensor { return k.Between(x, x) }

// Variance is Scale².
func (k Matern) Variance(x torch.Tensor) torch.Tensor {
	return square("Matern.Scale", k.Scale).Expand(rows(x))
}

// Periodic is k(x, y) = Scale² exp(−2 Σ_i sin²(π (x_i − y_i)/Period)/Length_i²): functions that repeat themselves
// exactly (Rasmussen and Williams 2006, equation 4.31).
type Periodic struct {
	Scale  any // standard deviation of the process; nil is 1
	Length any // of shape [] or [d], in units of the period's phase; nil is 1
	Period any // nil is 1
}

// Between are the covariances of two sets of inputs.
func (k Periodic) Between(x, y torch.Tensor) torch.Tensor {
	waves := apart(x, y).Div(positive("Periodic.Period", k.Period)).Mul(math.Pi).Sin()
	r := overLength("Periodic.Length", waves, k.Length)
	return square("Periodic.Scale", k.Scale).Mul(r.Mul(-2).Exp())
}

// Within is the covariance matrix.
func (k Periodic) Within(x torch.Tensor) torch.Tensor { return k.Between(x, x) }

// Variance is Scale².
func (k Periodic) Variance(x torch.Tensor) torch.Tensor {
	return square("Periodic.Scale", k.Scale).Expand(rows(x))
}

// Linear is k(x, y) = Scale² Σ_i (x_i − Center)(y_i − Center): straight lines through 0 at the centre, with slopes of
// standard deviation Scale.
type Linear struct {
	Scale  any // standard deviation of the slopes; nil is 1
	Center any // of shape [] or [d]; nil is 0
}

// Between are the covariances of two sets of inputs.
func (k Linear) Between(x, y torch.Tensor) torch.Tensor {
	return square("Linear.Scale", k.Scale).Mul(k.centred(x).MatMul(k.centred(y).Transpose()))
}

func (k Linear) centred(x torch.Tensor) torch.Tensor {
	x = inputs(x)
	center := parameter("Linear.Center", k.Center, 0)
	fits("Linear.Center", center, x)
	return x.Sub(center)
}

// Within is the covariance matrix.
func (k Linear) Within(x torch.Tensor) torch.Tensor { return k.Between(x, x) }

// Variance is that of a line at x.
func (k Linear) Variance(x torch.Tensor) torch.Tensor {
	return square("Linear.Scale", k.Scale).Mul(k.centred(x).Square().Sum(-1))
}

// White is a process of independent numbers: Scale² at the same input of the same data, and 0 between others, also
// between data and new inputs that are equal to them.
type White struct {
	Scale any // standard deviation; nil is 1
}

// Between is 0.
func (k White) Between(x, y torch.Tensor) torch.Tensor { return torch.Of(0).Expand(rows(x), rows(y)) }

// Within is Scale² times the identity.
func (k White) Within(x torch.Tensor) torch.Tensor { return k.Variance(x).Diag() }

// Variance is Scale².
func (k White) Variance(x torch.Tensor) torch.Tensor {
	return square("White.Scale", k.Scale).Expand(rows(x))
}

// inputs are x as [n, d].
func inputs(x torch.Tensor) torch.Tensor {
	switch shape := x.Shape(); len(shape) {
	case 1:
		return x.Unsqueeze(-1)
	case 2:
		return x
	default:
		fail("X", sized(shape), "inputs must be [n, d], or [n]")
	}
	return x
}

func rows(x torch.Tensor) int { return inputs(x).Shape()[0] }

// apart are the differences of inputs, [n, m, d].
func apart(x, y torch.Tensor) torch.Tensor {
	x, y = inputs(x), inputs(y)
	if a, b := x.Shape()[1], y.Shape()[1]; a != b {
		fail("X", fmt.Sprintf("inputs of %d and of %d coordinates", a, b), "both must have as many")
	}
	return x.Unsqueeze(1).Sub(y.Unsqueeze(0))
}

// squares are the squared distances in lengths, [n, m].
func squares(what string, x, y torch.Tensor, length any) torch.Tensor {
	return overLength(what, apart(x, y), length)
}

// overLength is Σ_i (d_i/length_i)². Sums of the data alone are made once.
func overLength(what string, d torch.Tensor, length any) torch.Tensor {
	l := positive(what, length)
	if len(l.Shape()) == 0 {
		return d.Square().Sum(-1).Div(l.Square())
	}
	fits(what, l, d)
	return d.Div(l).Square().Sum(-1)
}

func fits(what string, v, x torch.Tensor) {
	shape, of := v.Shape(), x.Shape()
	if d := of[len(of)-1]; len(shape) > 1 || len(shape) == 1 && shape[0] != d {
		fail(what, sized(shape), "the inputs have %d coordinates: it must be of shape [] or [%d]", d, d)
	}
}

func fail(what, value, allowed string, args ...any) {
	panic(&dist.Error{Distribution: "gp", Parameter: what, Value: value, Allowed: fmt.Sprintf(allowed, args...)})
}

func sized(shape []int) string { return fmt.Sprintf("a tensor of shape %v", shape) }

// parameter is a number or a tensor; nil is the default.
func parameter(what string, x any, def float64) torch.Tensor {
	switch v := x.(type) {
	case nil:
		return torch.Of(def)
	case float64, float32, int, int64, torch.Tensor:
		return torch.Of(v)
	case *ts.Tensor:
		if v != nil {
			return torch.Of(v)
		}
	}
	fail(what, fmt.Sprintf("a %T", x), "it must be a number or a tensor")
	return torch.Of(def)
}

// positive is a parameter of a number greater than 0; nil is 1.
func positive(what string, x any) torch.Tensor {
	v := parameter(what, x, 1)
	if n, ok := v.Number(); ok && !(n > 0 && !math.IsInf(n, 0)) {
		fail(what, fmt.Sprint(n), "it must be finite and greater than 0")
	}
	return v
}

// square is the square of a standard deviation of shape [].
func square(what string, x any) torch.Tensor {
	v := parameter(what, x, 1)
	if shape := v.Shape(); len(shape) > 0 {
		fail(what, sized(shape), "it must be a number or a tensor of shape []")
	}
	if n, ok := v.Number(); ok && !(n >= 0 && !math.IsInf(n, 0)) {
		fail(what, fmt.Sprint(n), "it is a standard deviation, which must be finite and at least 0")
	}
	return v.Square()
}
