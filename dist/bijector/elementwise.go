package bijector

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// elementwise is a monotone function of one number, applied to each element.
type elementwise struct {
	name     string
	params   []named
	up, down func(v val) val
	slope    func(x val) val // log |dy/dx|
	// left and right are y at −∞ and ∞, said here because the arithmetic of infinity with a tensor would hide what they are.
	left, right val
	falling     bool
	unsure      bool // whether it rises or falls cannot be known without reading a tensor
	validate    func() error
}

// named is a parameter that broadcasts against the value.
type named struct {
	name string
	val
}

func (b elementwise) Name() string                    { return b.name }
func (b elementwise) Forward(x *ts.Tensor) *ts.Tensor { return b.typed(b.up(ten(x)).t, x) }
func (b elementwise) Inverse(y *ts.Tensor) *ts.Tensor { return b.typed(b.down(ten(y)).t, y) }
func (b elementwise) DomainEventDims() int            { return 0 }
func (b elementwise) CodomainEventDims() int          { return 0 }

func (b elementwise) LogAbsDetJacobian(x, y *ts.Tensor) *ts.Tensor {
	l := b.slope(ten(x))
	if l.isNum() {
		return ten(y.MustZerosLike(false)).add(l).t
	}
	shape := shapeOf(y)
	out := b.typed(l.t, y)
	if slices.Equal(shapeOf(out), shape) {
		return out
	}
	return out.MustExpand(shape, true, false)
}

// typed gives a result the type of the value where parameters that are tensors have another: float32 stays float32.
func (b elementwise) typed(t, like *ts.Tensor) *ts.Tensor {
	for _, p := range b.params {
		if !p.isNum() {
			return t.MustTotype(like.DType(), false)
		}
	}
	return t
}

func (b elementwise) ForwardShape(shape []int64) []int64 {
	shapes := [][]int64{shape}
	for _, p := range b.params {
		if !p.isNum() {
			shapes = append(shapes, p.shape())
		}
	}
	return broadcast(b.name, shapes...)
}
func (b elementwise) InverseShape(shape []int64) []int64 { return b.ForwardShape(shape) }

// Image takes the ends of an interval along. Of vectors and matrices it only says that they are real.
func (b elementwise) Image(s support.Support) support.Support {
	low, high := num(s.Low), num(s.High)
	switch {
	case b.name == "Identity":
		return s
	case s.Kind == support.KindReal || s.Discrete() || s.EventDims() != s.Extra || s.Kind == support.KindPoint:
		low, high = minusInf, plusInf
	default:
		if s.LowT != nil {
			low = ten(s.LowT)
		}
		if s.HighT != nil {
			high = ten(s.HighT)
		}
	}
	if b.unsure {
		return support.Real.Independent(s.EventDims())
	}
	low, high = b.end(low), b.end(high)
	if b.falling {
		low, high = high, low
	}
	out := support.Support{Kind: support.KindInterval, Low: low.c, High: high.c, LowT: low.t, HighT: high.t, Closed: s.Closed, Extra: s.EventDims()}
	if out.LowT == nil && out.HighT == nil && math.IsInf(out.Low, -1) && math.IsInf(out.High, 1) {
		return support.Real.Independent(s.EventDims())
	}
	return out
}

// end is where an end of an interval goes.
func (b elementwise) end(v val) val {
	switch {
	case v.isNum() && math.IsInf(v.c, -1):
		return b.left
	case v.isNum() && math.IsInf(v.c, 1):
		return b.right
	}
	return b.up(v)
}

// Params are the parameters by name.
func (b elementwise) Params() map[string]any {
	out := map[string]any{}
	for _, p := range b.params {
		out[p.name] = p.any()
	}
	return out
}

func (b elementwise) Validate() error {
	if b.validate == nil {
		return nil
	}
	return b.validate()
}

var minusInf, plusInf = num(math.Inf(-1)), num(math.Inf(1))

// Identity is y = x.
func Identity() Bijector {
	same := func(v val) val { return v }
	return elementwise{name: "Identity", up: same, down: same, slope: func(val) val { return num(0) }, left: minusInf, right: plusInf}
}

// Exp is y = eˣ, from the real line to the positive numbers; log |dy/dx| = x.
func Exp() Bijector {
	return elementwise{name: "Exp", up: val.exp, down: val.log, slope: func(x val) val { return x }, left: num(0), right: plusInf}
}

// Softplus is y = log(1 + eˣ), from the real line to the positive numbers; log |dy/dx| = −log(1 + e⁻ˣ). Other than Exp it is
// linear for large x.
func Softplus() Bijector {
	return elementwise{
		name: "Softplus",
		up:   val.softplus,
		// log(eʸ − 1) as y + log(1 − e⁻ʸ), which neither overflows nor cancels.
		down:  func(y val) val { return y.add(y.neg().expm1().neg().log()) },
		slope: func(x val) val { return x.neg().softplus().neg() },
		left:  num(0), right: plusInf,
	}
}

// Affine is y = loc + scale·x, with scale ≠ 0; log |dy/dx| = log |scale|. Numbers or tensors.
func Affine(loc, scale any) Bijector {
	l, s := param("Affine", "loc", loc), param("Affine", "scale", scale)
	const allowed = "it must be finite and not 0"
	wrong := func(v float64) bool { return v == 0 || math.IsNaN(v) || math.IsInf(v, 0) }
	if s.isNum() && wrong(s.c) {
		panic(&Error{"Affine", "scale", fmt.Sprint(s.c), allowed})
	}
	left, right := minusInf, plusInf
	if s.isNum() && s.c < 0 {
		left, right = right, left
	}
	return elementwise{
		name:     "Affine",
		left:     left,
		right:    right,
		params:   []named{{"loc", l}, {"scale", s}},
		up:       func(x val) val { return x.mul(s).add(l) },
		down:     func(y val) val { return y.sub(l).div(s) },
		slope:    func(val) val { return s.abs().log() },
		falling:  s.isNum() && s.c < 0,
		unsure:   !s.isNum(),
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
	width := h.sub(l)
	wrong := func(v float64) bool { return !(v > 0) || math.IsInf(v, 1) }
	if width.isNum() && wrong(width.c) {
		panic(&Error{"Interval", "high − low", fmt.Sprint(width.c), allowed})
	}
	return elementwise{
		name:     "Interval",
		left:     l,
		right:    h,
		params:   []named{{"low", l}, {"high", h}},
		up:       func(x val) val { return x.sigmoid().mul(width).add(l) },
		down:     func(y val) val { return y.sub(l).log().sub(h.sub(y).log()) },
		slope:    func(x val) val { return x.sub(x.softplus().mul(num(2))).add(width.log()) },
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
		up:     func(x val) val { return x.exp().add(l) },
		down:   func(y val) val { return y.sub(l).log() },
		slope:  func(x val) val { return x },
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
		up:      func(x val) val { return h.sub(x.exp()) },
		down:    func(y val) val { return h.sub(y).log() },
		slope:   func(x val) val { return x },
		falling: true,
	}
}

// find is an error that names the first element of a parameter that is wrong.
func find(bijector, name string, v val, wrong func(float64) bool, allowed string) error {
	values := []float64{v.c}
	if !v.isNum() {
		var err error
		if values, err = torch.ToSlice[float64](v.t); err != nil {
			return err
		}
	}
	for i, x := range values {
		if wrong(x) {
			text := fmt.Sprint(x)
			if len(values) > 1 {
				text = fmt.Sprintf("%v at element %d of shape %v", x, i, v.shape())
			}
			return &Error{bijector, name, text, allowed}
		}
	}
	return nil
}
