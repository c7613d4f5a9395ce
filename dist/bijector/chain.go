package bijector

import (
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// chain is one map after the other.
type chain struct {
	parts            []Bijector
	domain, codomain int
}

// Chain applies the first bijector, then the second, and so on. Its event has as many dimensions as the parts need.
func Chain(parts ...Bijector) Bijector {
	for _, p := range parts {
		given("Chain", p)
	}
	switch len(parts) {
	case 0:
		return Identity()
	case 1:
		return parts[0]
	}
	b := chain{parts: slices.Clone(parts)}
	// A part that works on more dimensions than reach it makes the event of those before it larger.
	for _, p := range slices.Backward(parts) {
		b.domain = max(b.domain+p.DomainEventDims()-p.CodomainEventDims(), p.DomainEventDims())
	}
	b.codomain = b.domain
	for _, p := range parts {
		b.codomain += p.CodomainEventDims() - p.DomainEventDims()
	}
	return b
}

func (b chain) Name() string {
	names := make([]string, len(b.parts))
	for i, p := range b.parts {
		names[i] = p.Name()
	}
	return "Chain(" + strings.Join(names, ", ") + ")"
}
func (b chain) DomainEventDims() int   { return b.domain }
func (b chain) CodomainEventDims() int { return b.codomain }

func (b chain) Forward(x torch.Tensor) torch.Tensor {
	for _, p := range b.parts {
		x = p.Forward(x)
	}
	return x
}

func (b chain) Inverse(y torch.Tensor) torch.Tensor {
	for _, p := range slices.Backward(b.parts) {
		y = p.Inverse(y)
	}
	return y
}

// sum adds what f gives for each part, where it gives something, over the event of the chain.
func (b chain) sum(
	x torch.Tensor,
	y *torch.Tensor,
	f func(p Bijector, x, y torch.Tensor) torch.Tensor,
) (total torch.Tensor) {
	total, event := torch.Of(0), b.domain
	for i, p := range b.parts {
		var out torch.Tensor
		if y != nil && i == len(b.parts)-1 {
			out = *y
		} else {
			out = p.Forward(x)
		}
		if term := f(p, x, out); !operand.IsNumber(term) {
			total = total.Add(operand.SumLast(term, event-p.DomainEventDims()))
		}
		event += p.CodomainEventDims() - p.DomainEventDims()
		x = out
	}
	return total
}

func (b chain) LogAbsDetJacobian(x, y torch.Tensor) torch.Tensor {
	return b.sum(x, &y, func(p Bijector, x, y torch.Tensor) torch.Tensor { return p.LogAbsDetJacobian(x, y) })
}

// LogDensityTerm is the sum of those of the parts; 0 where no part has one.
func (b chain) LogDensityTerm(x torch.Tensor) torch.Tensor {
	if !slices.ContainsFunc(b.parts, Completes) {
		return torch.Of(0)
	}
	return b.sum(x, nil, func(p Bijector, x, _ torch.Tensor) torch.Tensor {
		if c, ok := p.(Completed); ok {
			return c.LogDensityTerm(x)
		}
		return torch.Of(0)
	})
}

func (b chain) ForwardShape(shape []int) []int {
	for _, p := range b.parts {
		shape = p.ForwardShape(shape)
	}
	return shape
}

func (b chain) InverseShape(shape []int) []int {
	for _, p := range slices.Backward(b.parts) {
		shape = p.InverseShape(shape)
	}
	return shape
}

func (b chain) Image(s support.Support) support.Support {
	for _, p := range b.parts {
		s = Image(p, s)
	}
	return s
}

func (b chain) Validate() error {
	for _, p := range b.parts {
		if err := Validate(p); err != nil {
			return err
		}
	}
	return nil
}

// Parts are the maps that a chain is made of, or b alone.
func Parts(b Bijector) []Bijector {
	if c, ok := b.(chain); ok {
		return slices.Clone(c.parts)
	}
	return []Bijector{b}
}

// Completes says whether b, or a part of it, is not one to one and has a LogDensityTerm.
func Completes(b Bijector) bool {
	switch b := b.(type) {
	case chain:
		return slices.ContainsFunc(b.parts, Completes)
	case inverse:
		return Completes(b.Bijector)
	case independent:
		return Completes(b.Bijector)
	}
	_, ok := b.(Completed)
	return ok
}

// inverse is a map backwards.
type inverse struct{ Bijector }

// Inverse is the map from y to x.
func Inverse(b Bijector) Bijector {
	if i, ok := b.(inverse); ok {
		return i.Bijector
	}
	return inverse{b}
}

func (b inverse) Name() string                        { return "Inverse(" + b.Bijector.Name() + ")" }
func (b inverse) Forward(x torch.Tensor) torch.Tensor { return b.Bijector.Inverse(x) }
func (b inverse) Inverse(y torch.Tensor) torch.Tensor { return b.Bijector.Forward(y) }
func (b inverse) DomainEventDims() int                { return b.Bijector.CodomainEventDims() }
func (b inverse) CodomainEventDims() int              { return b.Bijector.DomainEventDims() }
func (b inverse) ForwardShape(shape []int) []int      { return b.Bijector.InverseShape(shape) }
func (b inverse) InverseShape(shape []int) []int      { return b.Bijector.ForwardShape(shape) }
func (b inverse) Validate() error                     { return Validate(b.Bijector) }
func (b inverse) LogAbsDetJacobian(x, y torch.Tensor) torch.Tensor {
	return b.Bijector.LogAbsDetJacobian(y, x).Neg()
}

// Image is known for functions of one number.
func (b inverse) Image(s support.Support) support.Support {
	if e, ok := b.Bijector.(elementwise); ok && operand.IsNumber(s.Low) && operand.IsNumber(s.High) {
		e.up, e.down, e.left, e.right = e.down, e.up, minusInf, plusInf
		if e.falling {
			e.left, e.right = plusInf, minusInf
		}
		return e.Image(s)
	}
	return support.Real.Independent(b.CodomainEventDims() + max(0, s.EventDims()-b.DomainEventDims()))
}

// independent makes more dimensions part of the event.
type independent struct {
	Bijector
	n int
}

// Independent makes n dimensions of the batch part of the event: the log-Jacobian is summed over them.
func Independent(b Bijector, n int) Bijector {
	given("Independent", b)
	if n == 0 {
		return b
	}
	return independent{b, n}
}

func (b independent) DomainEventDims() int   { return b.Bijector.DomainEventDims() + b.n }
func (b independent) CodomainEventDims() int { return b.Bijector.CodomainEventDims() + b.n }
func (b independent) Validate() error        { return Validate(b.Bijector) }
func (b independent) LogAbsDetJacobian(x, y torch.Tensor) torch.Tensor {
	return operand.SumLast(b.Bijector.LogAbsDetJacobian(x, y), b.n)
}

// LogDensityTerm is that of the map over all of the event; 0 where it has none.
func (b independent) LogDensityTerm(x torch.Tensor) torch.Tensor {
	if c, ok := b.Bijector.(Completed); ok {
		if term := c.LogDensityTerm(x); !operand.IsNumber(term) {
			return operand.SumLast(term, b.n)
		}
	}
	return torch.Of(0)
}

func (b independent) Image(s support.Support) support.Support {
	out := Image(b.Bijector, s)
	return out.Independent(max(0, b.CodomainEventDims()-out.EventDims()))
}

// directed is a function of one number that knows where it rises.
type directed interface {
	Direction() (sign torch.Tensor, ok bool)
}

// Direction is the product of those of the parts; ok is false where one of them is no function of single numbers.
func (b chain) Direction() (sign torch.Tensor, ok bool) {
	sign = torch.Of(1)
	for _, p := range b.parts {
		d, is := p.(directed)
		if !is {
			return sign, false
		}
		s, ok := d.Direction()
		if !ok {
			return sign, false
		}
		sign = sign.Mul(s)
	}
	return sign, true
}

// Direction is that of what is inverted.
func (b inverse) Direction() (sign torch.Tensor, ok bool) {
	if d, is := b.Bijector.(directed); is {
		return d.Direction()
	}
	return torch.Of(1), false
}
