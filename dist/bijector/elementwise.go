package bijector

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// elementwise is a monotone function of one number, applied to each element.
type elementwise struct {
	name     string
	params   []named
	up, down func(v torch.Tensor) torch.Tensor
	slope    func(x torch.Tensor) torch.Tensor // log |dy/dx|
	// left and right are y at −∞ and ∞, said here because the arithmetic of infinity with a tensor would
	// hide what they are.
	left, right torch.Tensor
	falling     bool
	unsure      bool // whether it rises or falls cannot be known without reading a tensor
	validate    func() error
}

// named is a parameter that broadcasts against the value.
type named struct {
	name string
	torch.Tensor
}

func (b elementwise) Name() string                        { return b.name }
func (b elementwise) Forward(x torch.Tensor) torch.Tensor { return b.typed(b.up(x), x) }
func (b elementwise) Inverse(y torch.Tensor) torch.Tensor { return b.typed(b.down(y), y) }
func (b elementwise) DomainEventDims() int                { return 0 }
func (b elementwise) CodomainEventDims() int              { return 0 }

func (b elementwise) LogAbsDetJacobian(x, y torch.Tensor) torch.Tensor {
	l := b.slope(x)
	if operand.IsNumber(l) {
		return torch.Of(y.T().MustZerosLike(false)).Add(l)
	}
	shape := y.Shape()
	out := b.typed(l, y)
	if slices.Equal(out.Shape(), shape) {
		return out
	}
	return out.Expand(shape...)
}

// typed gives a result the type of the value where parameters that are tensors have another: float32 stays float32.
func (b elementwise) typed(t, like torch.Tensor) torch.Tensor {
	for _, p := range b.params {
		if !operand.IsNumber(p.Tensor) {
			return torch.Of(t.T().MustTotype(like.T().DType(), false))
		}
	}
	return t
}

func (b elementwise) ForwardShape(shape []int) []int {
	shapes := [][]int{shape}
	for _, p := range b.params {
		if !operand.IsNumber(p.Tensor) {
			shapes = append(shapes, p.Shape())
		}
	}
	return broadcast(b.name, shapes...)
}
func (b elementwise) InverseShape(shape []int) []int { return b.ForwardShape(shape) }

// Image takes the ends of an interval along. Of vectors and matrices it only says that they are real.
func (b elementwise) Image(s support.Support) support.Support {
	low, high := s.Low, s.High
	switch {
	case b.name == "Identity":
		return s
	case s.Kind == support.KindReal || s.Discrete() || s.EventDims() != s.Extra || s.Kind == support.KindPoint:
		low, high = minusInf, plusInf
	}
	if b.unsure {
		return support.Real.Independent(s.EventDims())
	}
	low, high = b.end(low), b.end(high)
	if b.falling {
		low, high = high, low
	}
	if low == minusInf && high == plusInf {
		return support.Real.Independent(s.EventDims())
	}
	return support.Support{Kind: support.KindInterval, Low: low, High: high, Closed: s.Closed, Extra: s.EventDims()}
}

// end is where an end of an interval goes.
func (b elementwise) end(v torch.Tensor) torch.Tensor {
	switch {
	case v == minusInf:
		return b.left
	case v == plusInf:
		return b.right
	}
	return b.up(v)
}

// Params are the parameters by name.
func (b elementwise) Params() map[string]any {
	out := map[string]any{}
	for _, p := range b.params {
		out[p.name] = p.Tensor
	}
	return out
}

func (b elementwise) Validate() error {
	if b.validate == nil {
		return nil
	}
	return b.validate()
}

var minusInf, plusInf = torch.Of(math.Inf(-1)), torch.Of(math.Inf(1))

// Identity is y = x.
func Identity() Bijector {
	same := func(v torch.Tensor) torch.Tensor { return v }
	return elementwise{
		name:  "Identity",
		up:    same,
		down:  same,
		slope: func(torch.Tensor) torch.Tensor { return torch.Of(0) },
		left:  minusInf,
		right: plusInf,
	}
}

// Exp is y = eˣ, from the real line to the positive numbers; log |dy/dx| = x.
func Exp() Bijector {
	return elementwise{
		name:  "Exp",
		up:    torch.Tensor.Exp,
		down:  torch.Tensor.Log,
		slope: func(x torch.Tensor) torch.Tensor { return x },
		left:  torch.Of(0),
		right: plusInf,
	}
}

// Softplus is y = log(1 + eˣ), from the real line to the positive numbers; log |dy/dx| = −log(1 + e⁻ˣ). Other than Exp
// it is linear for large x.
func Softplus() Bijector {
	return elementwise{
		name: "Softplus",
		up:   torch.Tensor.Softplus,
		// log(eʸ − 1) as y + log(1 − e⁻ʸ), which neither overflows nor cancels.
		down:  func(y torch.Tensor) torch.Tensor { return y.Add(y.Neg().Expm1().Neg().Log()) },
		slope: func(x torch.Tensor) torch.Tensor { return x.Neg().Softplus().Neg() },
		left:  torch.Of(0), right: plusInf,
	}
}

// Affine is y = loc + scale·x, with scale ≠ 0; log |dy/dx| = log |scale|. Numbers or tensors.
func Affine(loc, scale any) Bijector {
	l, s := param("Affine", "loc", loc), param("Affine", "scale", scale)
	const allowed = "it must be finite and not 0"
	wrong := func(v float64) bool { return v == 0 || math.IsNaN(v) || math.IsInf(v, 0) }
	if operand.IsNumber(s) && wrong(operand.Number(s)) {
		panic(&Error{"Affine", "scale", fmt.Sprint(operand.Number(s)), allowed})
	}
	left, right := minusInf, plusInf
	if operand.IsNumber(s) && operand.Number(s) < 0 {
		left, right = right, left
	}
	return elementwise{
		name:     "Affine",
		left:     left,
		right:    right,
		params:   []named{{"loc", l}, {"scale", s}},
		up:       func(x torch.Tensor) torch.Tensor { return x.Mul(s).Add(l) },
		down:     func(y torch.Tensor) torch.Tensor { return y.Sub(l).Div(s) },
		slope:    func(torch.Tensor) torch.Tensor { return s.Abs().Log() },
		falling:  operand.IsNumber(s) && operand.Number(s) < 0,
		unsure:   !operand.IsNumber(s),
		validate: func() error { return find("Affine", "scale", s, wrong, allowed) },
	}
}

// Sigmoid is y = 1/(1 + e⁻ˣ), from the real line to (0, 1).
func Sigmoid() Bijector {
	b := Interval(0, 1).(elementwise)
	b.name, b.params = "Sigmoid", nil
	return b
}

// Interval is y = low + (high − low)/(1 + e⁻ˣ), from the real line to (low, high), numbers or tensors;
//
//	log |dy/dx| = log(high − low) + x − 2 log(1 + eˣ)
//
// Far out y rounds to an end; the log-Jacobian, computed from x, stays exact.
func Interval(low, high any) Bijector {
	l, h := param("Interval", "low", low), param("Interval", "high", high)
	const allowed = "it must be finite and greater than 0"
	width := h.Sub(l)
	wrong := func(v float64) bool { return !(v > 0) || math.IsInf(v, 1) }
	if operand.IsNumber(width) && wrong(operand.Number(width)) {
		panic(&Error{"Interval", "high − low", fmt.Sprint(operand.Number(width)), allowed})
	}
	return elementwise{
		name:     "Interval",
		left:     l,
		right:    h,
		params:   []named{{"low", l}, {"high", h}},
		up:       func(x torch.Tensor) torch.Tensor { return x.Sigmoid().Mul(width).Add(l) },
		down:     func(y torch.Tensor) torch.Tensor { return y.Sub(l).Log().Sub(h.Sub(y).Log()) },
		slope:    func(x torch.Tensor) torch.Tensor { return x.Sub(x.Softplus().Mul(2)).Add(width.Log()) },
		validate: func() error { return find("Interval", "high − low", width, wrong, allowed) },
	}
}

// GreaterThan is y = low + eˣ, from the real line to (low, ∞); log |dy/dx| = x.
func GreaterThan(low any) Bijector {
	l := param("GreaterThan", "low", low)
	return elementwise{
		name:   "GreaterThan",
		left:   l,
		right:  plusInf,
		params: []named{{"low", l}},
		up:     func(x torch.Tensor) torch.Tensor { return x.Exp().Add(l) },
		down:   func(y torch.Tensor) torch.Tensor { return y.Sub(l).Log() },
		slope:  func(x torch.Tensor) torch.Tensor { return x },
	}
}

// LessThan is y = high − eˣ, from the real line to (−∞, high); log |dy/dx| = x.
func LessThan(high any) Bijector {
	h := param("LessThan", "high", high)
	return elementwise{
		name:    "LessThan",
		left:    h,
		right:   minusInf,
		params:  []named{{"high", h}},
		up:      func(x torch.Tensor) torch.Tensor { return h.Sub(x.Exp()) },
		down:    func(y torch.Tensor) torch.Tensor { return h.Sub(y).Log() },
		slope:   func(x torch.Tensor) torch.Tensor { return x },
		falling: true,
	}
}

// find is an error that names the first element of a parameter that is wrong.
func find(bijector, name string, v torch.Tensor, wrong func(float64) bool, allowed string) error {
	values := []float64{operand.Number(v)}
	if !operand.IsNumber(v) {
		var err error
		if values, err = torch.ToSlice[float64](v); err != nil {
			return err
		}
	}
	for i, x := range values {
		if wrong(x) {
			text := fmt.Sprint(x)
			if len(values) > 1 {
				text = fmt.Sprintf("%v at element %d of shape %v", x, i, v.Shape())
			}
			return &Error{bijector, name, text, allowed}
		}
	}
	return nil
}

// Direction is 1 where the function rises, and −1 where it falls: a number or a tensor.
func (b elementwise) Direction() (sign torch.Tensor, ok bool) {
	switch {
	case b.unsure:
		for _, p := range b.params {
			if p.name == "scale" {
				return torch.Of(p.T().MustSign(false)), true
			}
		}
		return torch.Tensor{}, false
	case b.falling:
		return torch.Of(-1), true
	}
	return torch.Of(1), true
}
