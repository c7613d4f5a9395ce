// Package bijector holds differentiable one-to-one maps between sets of tensors, with the logarithms of their Jacobian
// determinants: what takes a constrained parameter to the whole of R^n and back, and one distribution to another.
//
// A map works on the last dimensions of a tensor, its event, and treats all dimensions before as a batch: an
// elementwise one has DomainEventDims 0, one of vectors 1, one of matrices 2. Numbers or tensors are parameters;
// tensors broadcast against the value.
//
// Bijectors are immutable values that any number of goroutines may share. A mistake panics with an [*Error], which the
// public functions of torch return as an error. Nothing reads the values of a tensor, so all of it works under vmap;
// gradients flow.
package bijector

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Bijector is a one-to-one map y = f(x).
type Bijector interface {
	// Name is the map's name, for messages: "Exp".
	Name() string
	// Forward is y = f(x) and Inverse is x = f⁻¹(y).
	Forward(x torch.Tensor) torch.Tensor
	Inverse(y torch.Tensor) torch.Tensor
	// LogAbsDetJacobian is log |det dy/dx| where y = f(x), summed over the event: it has the shape of x without its event.
	// Where y is constrained, its Jacobian is that of its free coordinates, which the constructor names.
	LogAbsDetJacobian(x, y torch.Tensor) torch.Tensor
	// DomainEventDims and CodomainEventDims are the numbers of dimensions of one x and of one y.
	DomainEventDims() int
	CodomainEventDims() int
	// ForwardShape is the shape of y for a shape of x, InverseShape the other way.
	ForwardShape(shape []int) []int
	InverseShape(shape []int) []int
}

// Imager is a bijector that knows where it takes a set.
type Imager interface {
	// Image is a support that holds f(x) for all x of s, and nothing else where that is a support.
	Image(s support.Support) support.Support
}

// Completed is a map that is not one to one, whose x has more freedom than y. The density of y says nothing of what y
// leaves open; LogDensityTerm is the log density of x given y that makes it whole, of the shape of x without its event.
// A composed map without such a part returns the number 0; [Completes] tells.
type Completed interface {
	LogDensityTerm(x torch.Tensor) torch.Tensor
}

// Validator is a bijector with parameters that can be out of their domain.
type Validator interface {
	// Validate reads the parameters and returns an [*Error] that names one which is wrong.
	Validate() error
}

// LogDensityChange is what the log density of x has more than that of y = f(x): the log-Jacobian, and the
// LogDensityTerm of maps that have one. It has the shape of x without its event.
func LogDensityChange(b Bijector, x, y torch.Tensor) torch.Tensor {
	given("LogDensityChange", b)
	change := b.LogAbsDetJacobian(x, y)
	if c, ok := b.(Completed); ok {
		change = change.Add(c.LogDensityTerm(x))
	}
	return change
}

// Image is b's image of a set, or all real tensors where b does not know it.
func Image(b Bijector, s support.Support) support.Support {
	given("Image", b)
	if i, ok := b.(Imager); ok {
		return i.Image(s)
	}
	return support.Real.Independent(b.CodomainEventDims() + max(0, s.EventDims()-b.DomainEventDims()))
}

// Validate checks the parameters of b, where it has some.
func Validate(b Bijector) error {
	if v, ok := b.(Validator); ok {
		return v.Validate()
	}
	return nil
}

// given panics where b is nil.
func given(who string, b Bijector) {
	if b == nil {
		panic(&Error{Bijector: who, Parameter: "b", Value: "nil", Allowed: "it must be a bijector"})
	}
}

// Error is a mistake in a bijector: a parameter or value of a wrong type, shape or value.
type Error struct {
	Bijector  string // its name
	Parameter string // empty when the mistake is not a parameter's
	Value     string // what it is
	Allowed   string // what would be right
}

// Error names the bijector, the parameter, its value and what is allowed.
func (e *Error) Error() string {
	if e.Parameter == "" {
		return fmt.Sprintf("bijector.%s: %s: %s", e.Bijector, e.Value, e.Allowed)
	}
	return fmt.Sprintf("bijector.%s: %s is %s: %s", e.Bijector, e.Parameter, e.Value, e.Allowed)
}

// RecoverAsError makes the panic of a model an error of the function that called it.
func (e *Error) RecoverAsError() {}
