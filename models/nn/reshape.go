package nn

import "github.com/kelvin-ppl/kelvin/torch"

// Flatten makes a vector of each input: [a, b, ...] becomes [a·b·...], in row-major order.
type Flatten struct{}

// Plan takes any shape.
func (Flatten) Plan(in []int64) (Plan, error) {
	size := int64(1)
	for _, s := range in {
		size *= s
	}
	return Plan{Out: []int64{size}, AnyType: true, Forward: func(_ Call, x torch.Tensor) torch.Tensor {
		return x.Reshape(-1, size)
	}}, nil
}

// Transpose swaps the two axes of its inputs: [a, b] becomes [b, a]. It goes between layers of sequences, [steps,
// features], and convolutions, [channels, steps].
type Transpose struct{}

// Plan checks that there are two axes.
func (Transpose) Plan(in []int64) (Plan, error) {
	if len(in) != 2 {
		return Plan{}, misfit(in, "two axes")
	}
	return Plan{Out: []int64{in[1], in[0]}, AnyType: true, Forward: func(_ Call, x torch.Tensor) torch.Tensor {
		return x.Transpose()
	}}, nil
}
