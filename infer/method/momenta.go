package method

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Momenta are the first momenta of a method: a copy of the field Momenta, or, when that is nil, momenta of law
// N(0, scale²·root²), with root of shape [d], or 1 when nil. Given momenta have the shape of θ, or [d] for all chains.
func (m *Move) Momenta(given *ts.Tensor, scale float64, root *ts.Tensor) *ts.Tensor {
	theta := m.state.Params.Flat
	if given != nil {
		return m.given(theta, given)
	}
	z := m.Normal(theta)
	if root != nil {
		z = torch.Must(z.Mul(root, false))
	}
	return Combine(Term(scale, z))
}

// given are given momenta in the form of θ; one vector becomes a row for each chain.
func (m *Move) given(theta, given *ts.Tensor) *ts.Tensor {
	shape, want := torch.Must(torch.Shape(given)), torch.Must(torch.Shape(theta))
	row := want[len(want)-1:]
	allowed := fmt.Sprintf("it must be of the params' shape, %v", want)
	if len(want) > 1 {
		allowed += fmt.Sprintf(", or of shape %v for all chains alike", row)
	}
	m.Require(slices.Equal(shape, want) || slices.Equal(shape, row), "Momenta", fmt.Sprintf("of shape %v", shape),
		allowed)
	if err := (infer.Params{Layout: m.state.Params.Layout, Flat: given}).Check(); err != nil {
		torch.Must(0, fmt.Errorf("Momenta: %w", err))
	}
	own := torch.Must(torch.To(given, torch.Must(torch.DeviceOf(theta)), torch.Must(torch.DTypeOfTensor(theta))))
	return Combine(Term(0, theta), Term(1, torch.Must(own.Detach(false))))
}
