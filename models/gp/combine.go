package gp

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/torch"
)

// combined is a sum or a product of kernels.
type combined struct {
	kernels []Kernel
	product bool
}

// Sum is the kernel of a sum of independent processes.
func Sum(kernels ...Kernel) Kernel { return combine("Sum", false, kernels) }

// Product is the product of kernels, such as a [Periodic] one whose pattern changes as a [SquaredExponential] does.
func Product(kernels ...Kernel) Kernel { return combine("Product", true, kernels) }

func combine(what string, product bool, kernels []Kernel) Kernel {
	if len(kernels) == 0 {
		fail(what, "empty", "it needs at least one kernel")
	}
	if i := slices.Index(kernels, nil); i >= 0 {
		fail(what, fmt.Sprintf("nil at index %d", i), "each must be a kernel")
	}
	return combined{slices.Clone(kernels), product}
}

func (c combined) of(part func(Kernel) torch.Tensor) torch.Tensor {
	out := part(c.kernels[0])
	for _, k := range c.kernels[1:] {
		if c.product {
			out = out.Mul(part(k))
		} else {
			out = out.Add(part(k))
		}
	}
	return out
}

// Between are the covariances of two sets of inputs.
func (c combined) Between(x, y torch.Tensor) torch.Tensor {
	return c.of(func(k Kernel) torch.Tensor { return k.Between(x, y) })
}

// Within is the covariance matrix.
func (c combined) Within(x torch.Tensor) torch.Tensor {
	return c.of(func(k Kernel) torch.Tensor { return k.Within(x) })
}

// Variance is its diagonal.
func (c combined) Variance(x torch.Tensor) torch.Tensor {
	return c.of(func(k Kernel) torch.Tensor { return k.Variance(x) })
}

// logSpectrum is that of a sum; products have none in closed form.
func (c combined) logSpectrum(w2 torch.Tensor) torch.Tensor {
	if c.product {
		fail("Kernel", "a product", "%s", stationaryOnly)
	}
	all := make([]any, len(c.kernels))
	for i, k := range c.kernels {
		all[i] = logSpectrum(k, w2)
	}
	return torch.Stack(0, all...).LogSumExp(0)
}

// on is a kernel of some coordinates.
type on struct {
	kernel  Kernel
	columns []int
}

// On is a kernel that sees some coordinates of the inputs only: sums of such kernels are additive models, and
// products of them interactions.
func On(kernel Kernel, columns ...int) Kernel {
	combine("On", false, []Kernel{kernel})
	if len(columns) == 0 || slices.Min(columns) < 0 {
		fail("On.columns", fmt.Sprint(columns), "it needs at least one column, counted from 0")
	}
	return on{kernel, slices.Clone(columns)}
}

func (o on) see(x torch.Tensor) torch.Tensor {
	x = inputs(x)
	d := int(x.Shape()[1])
	if most := slices.Max(o.columns); most >= d {
		fail("On.columns", fmt.Sprint(o.columns), "the inputs have %d coordinates, counted from 0", d)
	}
	parts := make([]any, len(o.columns))
	for i, c := range o.columns {
		parts[i] = x.Slice(1, c, c+1)
	}
	return torch.Cat(1, parts...)
}

// Between are the covariances of two sets of inputs.
func (o on) Between(x, y torch.Tensor) torch.Tensor { return o.kernel.Between(o.see(x), o.see(y)) }

// Within is the covariance matrix.
func (o on) Within(x torch.Tensor) torch.Tensor { return o.kernel.Within(o.see(x)) }

// Variance is its diagonal.
func (o on) Variance(x torch.Tensor) torch.Tensor { return o.kernel.Variance(o.see(x)) }
