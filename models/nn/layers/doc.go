// Package layers holds the layers of deep networks beside those of package nn: residual connections, normalisation,
// attention, and the laws and starts that go with them. They are plain structs that [nn.Sequential] takes. [ResNet20],
// [ResNetPlusPlus] and [Transformer] are networks of them, of the literature on Bayesian deep learning.
//
// All are functions of one datum and can be mapped by torch.Vmap over points and data, except [BatchNorm] with the
// moments of the batch, which says why.
package layers

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
)

// fieldError is the error of a field.
func fieldError(kind, field string, value any, allowed string) error {
	return &infer.FieldError{Type: "layers." + kind, Field: field, Value: value, Allowed: allowed}
}

// misfit is the error of inputs that the layer cannot take.
func misfit(in []int, expected string) error {
	return fmt.Errorf("inputs have shape %v: expected %s: %w", in, expected, infer.ErrConfig)
}

// positive is the value of a field whose zero value is its default.
func positive(kind, field string, value, byDefault float64) (float64, error) {
	if value == 0 {
		return byDefault, nil
	}
	if !(value > 0) || math.IsInf(value, 1) {
		return 0, fieldError(kind, field, value, "it must be greater than 0 and finite, or 0 for the default")
	}
	return value, nil
}

// perFeature is a parameter with an element for each feature.
func perFeature(name string, features int, bias bool, start float64) nn.Param {
	return nn.Param{Name: name, Shape: []int{features}, FanIn: 1, FanOut: 1, Bias: bias, Gain: !bias,
		Default: nn.Constant(start)}
}

// along is the shape in which a vector of features broadcasts to inputs [features, ...].
func along(in []int) []int {
	shape := slices.Repeat([]int{1}, len(in))
	shape[0] = in[0]
	return shape
}
