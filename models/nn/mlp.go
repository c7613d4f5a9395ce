package nn

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
)

// MLP is a perceptron: linear layers with an activation after each but the last. With Sizes 2, 32, 32, 32, 1 it has
// 2241 parameters.
//
// The layers count as in [Sequential], so that the sites are "0.weight", "2.weight", and so on, with dropout
// "0.weight", "3.weight".
type MLP struct {
	Sizes      []int   // of the input, the hidden layers and the output
	Activation Layer   // nil means ReLU
	Keep       float64 // [Dropout] after each activation, keeping elements with this probability; 0 means none
	Output     Layer   // follows the last linear layer, such as [Sigmoid]; nil means nothing
}

// Build checks the sizes.
func (c MLP) Build() (*Network, error) {
	if len(c.Sizes) < 2 {
		return nil, &infer.FieldError{Type: "nn.MLP", Field: "Sizes", Value: c.Sizes, Allowed: "it must have the sizes of " +
			"input and output at least"}
	}
	for i, size := range c.Sizes {
		if err := least("MLP", fmt.Sprintf("Sizes[%d]", i), size, 1); err != nil {
			return nil, err
		}
	}
	if c.Activation == nil {
		c.Activation = ReLU{}
	}
	var s Sequential
	for i, size := range c.Sizes[1:] {
		s = append(s, Linear{Out: size})
		if i == len(c.Sizes)-2 {
			break
		}
		if s = append(s, c.Activation); c.Keep != 0 {
			s = append(s, Dropout{Keep: c.Keep})
		}
	}
	if c.Output != nil {
		s = append(s, c.Output)
	}
	return s.Build(c.Sizes[0])
}
