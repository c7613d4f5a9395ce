package dist

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Distribution is a probability distribution over tensors.
type Distribution interface {
	// Name is the family's name, for messages: "Normal".
	Name() string
	// BatchShape is the shape of the independent distributions that this is, EventShape that of one draw of one of them.
	BatchShape() []int
	EventShape() []int
	// Support is where the density is not zero.
	Support() support.Support
	// LogProb is the log density (or log mass) of a value that broadcasts against batch + event, summed over the event.
	// Outside the support it is minus infinity or unspecified; Support says which values are inside.
	LogProb(value torch.Tensor) torch.Tensor
	// Sample draws a tensor of shape sample + batch + event. Where the distribution can be reparameterised, gradients flow
	// to its parameters.
	Sample(src *Source, sample ...int) torch.Tensor
	// Mean and Variance have shape batch + event. Where one does not exist it is NaN or infinite, as the mathematics says.
	Mean() torch.Tensor
	Variance() torch.Tensor
	// Expand broadcasts the batch shape to another. The new distributions are independent.
	Expand(batch ...int) Distribution
	// Validate reads the parameters and returns an [*Error] that names one which is out of its domain.
	Validate() error
}

// Parameterised is a distribution that can tell its parameters by name, for graphs and messages.
type Parameterised interface {
	Params() map[string]any
}

// Error is a mistake in a distribution: a parameter of a wrong type, shape or value.
type Error struct {
	Distribution string // the family
	Parameter    string // empty when the mistake is not a parameter's
	Value        string // what it is
	Allowed      string // what would be right
}

// Error names the distribution, the parameter, its value and what is allowed.
func (e *Error) Error() string {
	if e.Parameter == "" {
		return fmt.Sprintf("dist.%s: %s: %s", e.Distribution, e.Value, e.Allowed)
	}
	return fmt.Sprintf("dist.%s: %s is %s: %s", e.Distribution, e.Parameter, e.Value, e.Allowed)
}

// RecoverAsError makes the panic of a model an error of the function that called it.
func (e *Error) RecoverAsError() {}

// CDFer is a distribution of real numbers whose distribution function P(X ≤ x) has a closed form. The argument
// broadcasts like that of LogProb.
type CDFer interface {
	CDF(value torch.Tensor) torch.Tensor
}

// ICDFer is a distribution with a quantile function, the inverse of the CDF, for p from 0 to 1.
type ICDFer interface {
	ICDF(p torch.Tensor) torch.Tensor
}
