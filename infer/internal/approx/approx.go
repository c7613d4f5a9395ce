// Package approx is what the methods that approximate a posterior by normal distributions share: the parts of a target
// that they take, the mode that some start from, the optimisers that others climb with, and a check of how near the
// result is to the posterior. Their equations are in packages laplace, ekf, vi, svi and pathfinder.
package approx

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Start copies a point, outside any autograd graph, after a check: a state that were part of one would carry all its
// predecessors along.
func Start(name string, p infer.Params) (infer.Params, error) {
	err := p.Check()
	if err == nil {
		p.Flat, err = torch.Copy(p.Flat)
	}
	if err != nil {
		return infer.Params{}, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// Fail panics with an error that torch.Do returns as it is.
func Fail(format string, args ...any) { torch.Must(0, fmt.Errorf(format, args...)) }

// Try is [Fail] for an error that there may be.
func Try(err error) {
	if err != nil {
		Fail("%w", err)
	}
}

// Chain is chain k of a quantity with a leading chain axis. A quantity without that axis is returned as it is.
func Chain(p infer.Params, x torch.Tensor, k int) torch.Tensor {
	if !p.Batched() || x == (torch.Tensor{}) {
		return x
	}
	return x.At(k)
}

// Point is chain k of a point.
func Point(p infer.Params, k int) infer.Params {
	return infer.Params{Layout: p.Layout, Flat: Chain(p, p.Flat, k)}
}

// Stack puts one tensor for each chain together, with a chain axis where the point has one.
func Stack(p infer.Params, x []torch.Tensor) torch.Tensor {
	if !p.Batched() {
		return x[0]
	}
	return torch.Stack(0, x)
}

// Copy copies a tensor, so that freeing one state leaves the others whole.
func Copy(x torch.Tensor) torch.Tensor {
	return torch.Must(torch.Combine(torch.Term{Coeff: 1, Tensor: x}))
}

// Item is the value of a tensor with one element.
func Item(x torch.Tensor) float64 { return x.Item() }

// T swaps the last two dimensions.
func T(x torch.Tensor) torch.Tensor { return x.Transpose() }

// Eye is the identity matrix in the type and on the device of another tensor.
func Eye(n int, other torch.Tensor) torch.Tensor {
	return torch.Of(ts.MustEye(int64(n), other.T().DType(), torch.Must(torch.DeviceOf(other))))
}
