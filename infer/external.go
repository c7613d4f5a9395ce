package infer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// External is a part of a log posterior that Go code computes, with its gradient, from the values of the parameters.
// Inside vmap no value can be read, so a log posterior that needs such a part and does not find it in Params.External
// panics with an External. A [Gradient] then calls Evaluate outside, and the log posterior again with what it returned.
// Second derivatives are not known, so everything else that evaluates a log posterior returns it as an error.
type External struct {
	Site string // whose density it is
	// Evaluate computes the external parts of all chains at p, of shape [d] or [K, d]: named float64 tensors of shape
	// [m], or [K, m].
	Evaluate func(p Params, b Batch) (Tensors, error)
}

// Error says what can be done with such a log posterior.
func (e *External) Error() string {
	return fmt.Sprintf("model, site %q: its density is a Go function, of which only values and first derivatives "+
		"are known, and this evaluation needs more: use a method that takes gradients alone (HMC, NUTS, SGMCMC, "+
		"an optimiser, a variational fit), or write the density with tensors", e.Site)
}

// RecoverAsError makes the panic of a log posterior an error of the function that called it.
func (e *External) RecoverAsError() {}

// asked says whether an evaluation failed for want of an external part that can be had.
func (a *autograd) asked(err error) bool {
	var e *External
	if !errors.As(err, &e) || e.Evaluate == nil || a.external.Load() != nil {
		return false
	}
	a.external.Store(e)
	return true
}

// columns are the parts of a vector that a mapped evaluation sees: the point, then the external parts.
type columns struct {
	names []string
	sizes []int
}

// beside evaluates the external parts of a point, and returns the point with them beside it, of shape [d + Σ m] or
// [K, d + Σ m].
func (a *autograd) beside(p Params, b Batch, rows int) (torch.Tensor, columns, error) {
	c := columns{sizes: []int{p.Layout.Dim()}}
	parts, err := a.external.Load().Evaluate(p, b)
	if err != nil {
		return torch.Tensor{}, c, err
	}
	device, err := torch.DeviceOf(p.Flat)
	if err != nil {
		return torch.Tensor{}, c, err
	}
	dtype, err := torch.DTypeOfTensor(p.Flat)
	if err != nil {
		return torch.Tensor{}, c, err
	}
	all := []torch.Tensor{p.Flat}
	for name := range parts {
		c.names = append(c.names, name)
	}
	slices.Sort(c.names)
	for _, name := range c.names {
		shape, err := torch.Shape(parts[name])
		if err != nil {
			return torch.Tensor{}, c, err
		}
		if n := len(shape); n == 0 || n != min(rows, 1)+1 || n == 2 && shape[0] != rows {
			return torch.Tensor{}, c, fmt.Errorf("the external part %q has shape %v, expected [m], or [%d, m] for %d chains: %w",
				name, shape, rows, rows, ErrLayout)
		}
		c.sizes = append(c.sizes, shape[len(shape)-1])
		t, err := torch.To(parts[name], device, dtype)
		if err != nil {
			return torch.Tensor{}, c, err
		}
		all = append(all, t)
	}
	x, err := raw.Of(ts.Cat(raw.Pointers(all), -1))
	return x, c, err
}

// cut takes the point and the external parts of one chain apart.
func (c columns) cut(x torch.Tensor) (torch.Tensor, Tensors) {
	parts := torch.Must(x.T().SplitWithSizes(torch.Int64s(c.sizes), 0))
	external := Tensors{}
	for i, name := range c.names {
		external[name] = torch.Of(torch.Must(parts[i+1].Detach(false)))
	}
	return torch.Of(parts[0]), external
}
