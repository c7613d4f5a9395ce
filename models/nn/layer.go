package nn

import (
	"fmt"
	"reflect"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Layer is one step of a network. The layers of this package are plain structs; another layer needs only a Plan.
type Layer interface {
	// Plan checks the shape of one input, without the axis of the data, and says what the layer makes of it.
	Plan(in []int) (Plan, error)
}

// Plan is what a layer does with inputs of one shape.
type Plan struct {
	Out     []int   // shape of one output, without the axis of the data
	Params  []Param // the parameters; nil for none
	Random  bool    // Forward reads Call.Mask
	AnyType bool    // Forward takes inputs of another type than the parameters'
	// Forward goes from [n, in...] to [n, out...]; it may panic as code in torch.Do may.
	Forward func(c Call, x torch.Tensor) torch.Tensor
}

// Param is a parameter of a layer.
type Param struct {
	Name  string // of the parameter, such as "weight"
	Shape []int  // of the tensor
	// FanIn is how many numbers are summed in one output, FanOut how many outputs one input goes to. A bias has those of
	// the weight that it goes with.
	FanIn, FanOut int
	Bias          bool
	// Gain marks a factor of normalised values: initialisers leave its Default.
	Gain bool
	// Branch is the place of a weight among those of a residual branch, from 1, and their number; 0 elsewhere.
	Branch struct{ Place, Of int }
	// Layer and Kind are the inner layer's of a layer that is made of others; empty means the layer itself.
	Layer, Kind string
	// Table marks a parameter whose rows inputs pick by number: a point may have another number of them, as
	// curvature.Options.Tables makes one.
	Table   bool
	Default Law // how PyTorch starts it
}

// Call is what a layer gets besides its input.
type Call struct {
	Params []torch.Tensor // in the order of Plan.Params, in their shapes
	Source *torch.Source  // nil when the network runs without random numbers
	Mask   torch.Tensor   // the mask for this layer of [Run]; the number 0 for none
	// Observe takes what the layer computes of the batch, by the name of a parameter; nil where nobody asks.
	Observe func(param string, value torch.Tensor)
}

// Named calls a layer by a name instead of its place: Named("hidden", Linear{Out: 3}) has the
// sites "hidden.weight" and "hidden.bias".
func Named(name string, layer Layer) Layer { return named{layer, name} }

type named struct {
	Layer
	name string
}

// Plan is that of the layer.
func (n named) Plan(in []int) (Plan, error) {
	if n.Layer == nil {
		return Plan{}, fmt.Errorf("nn: the layer %q is nil: %w", n.name, infer.ErrConfig)
	}
	return n.Layer.Plan(in)
}

// kind is the name of the layer's type, and empty for no layer.
func kind(l Layer) string {
	if n, ok := l.(named); ok {
		return kind(n.Layer)
	}
	if f, ok := l.(Func); ok && f.Kind != "" {
		return f.Kind
	}
	t := reflect.TypeOf(l)
	if t == nil {
		return ""
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// least is the error of a field below its least value, or nil.
func least(kind, field string, value, min int) error {
	if value < min {
		return &infer.FieldError{Type: "nn." + kind, Field: field, Value: value,
			Allowed: fmt.Sprintf("it must be at least %d", min)}
	}
	return nil
}

// matches is an error unless a field that may be left out, 0, is what the inputs have.
func matches(kind, field string, value, have int, in []int) error {
	if value != 0 && value != have {
		return &infer.FieldError{Type: "nn." + kind, Field: field, Value: value,
			Allowed: fmt.Sprintf("inputs have shape %v, so it must be %d, or 0 to take what comes", in, have)}
	}
	return nil
}

// misfit is the error of inputs that the layer cannot take.
func misfit(in []int, expected string) error {
	return fmt.Errorf("inputs have shape %v: expected %s: %w", in, expected, infer.ErrConfig)
}

func or(v, byDefault int) int {
	if v == 0 {
		return byDefault
	}
	return v
}
