package bijector

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// unitVector normalises vectors.
type unitVector struct{}

// UnitVector is y = x/|x|, from vectors of n numbers to those of length 1. It is not one to one, as |x| is lost, and no
// map from R^(n−1) covers a sphere without a seam. As in Stan (Reference Manual, "Unit vector") x is given the standard
// normal density, under which y is uniform and |x| independent of it: LogDensityTerm is what has to be added to the log
// density of y on the sphere,
//
//	−|x|²/2 − (n/2) log 2π + log A,  A = 2 π^(n/2)/Γ(n/2) the area of the sphere,
//
// so that a normalised density stays so. LogAbsDetJacobian is 0, Inverse gives y itself, and [UnitVector] cannot be
// part of a transformed distribution. At x = 0 there is no y.
func UnitVector() Bijector { return unitVector{} }

func (unitVector) Name() string           { return "UnitVector" }
func (unitVector) DomainEventDims() int   { return 1 }
func (unitVector) CodomainEventDims() int { return 1 }

func (b unitVector) Forward(x torch.Tensor) torch.Tensor {
	last(b.Name(), x.Shape())
	return x.Div(torch.Of(x.Square().T().MustSumDimIntlist([]int64{-1}, true, x.T().DType(), false)).Sqrt())
}

func (b unitVector) Inverse(y torch.Tensor) torch.Tensor { return y }

func (b unitVector) LogAbsDetJacobian(x, _ torch.Tensor) torch.Tensor {
	last(b.Name(), x.Shape())
	return torch.Of(x.T().MustSelect(-1, 0, false).MustZerosLike(false))
}

// LogDensityTerm is the log density of |x|, as a standard normal vector has it.
func (b unitVector) LogDensityTerm(x torch.Tensor) torch.Tensor {
	n := float64(last(b.Name(), x.Shape()))
	gamma, _ := math.Lgamma(n / 2)
	logArea := math.Ln2 + n/2*math.Log(math.Pi) - gamma
	squares := operand.SumLast(x.Square(), 1)
	return squares.Mul(-0.5).Add(logArea - n/2*math.Log(2*math.Pi))
}

func (b unitVector) ForwardShape(shape []int) []int {
	last(b.Name(), shape)
	return slices.Clone(shape)
}
func (b unitVector) InverseShape(shape []int) []int { return b.ForwardShape(shape) }

// Image is the sphere.
func (b unitVector) Image(s support.Support) support.Support {
	return support.UnitVector.Independent(max(0, s.EventDims()-1))
}

// permute changes the order of a vector's elements.
type permute struct{ order, back []int }

// Permute puts the elements of vectors in another order: yᵢ = x at order[i], counted from 0. log |det| = 0.
func Permute(order ...int) Bijector {
	b := permute{make([]int, len(order)), make([]int, len(order))}
	seen := make([]bool, len(order))
	for i, from := range order {
		if from < 0 || from >= len(order) || seen[from] {
			panic(&Error{"Permute", "order", fmt.Sprint(order), fmt.Sprintf("it must have each of 0 to %d once", len(order)-1)})
		}
		seen[from] = true
		b.order[i], b.back[from] = from, i
	}
	return b
}

func (permute) Name() string                          { return "Permute" }
func (permute) DomainEventDims() int                  { return 1 }
func (permute) CodomainEventDims() int                { return 1 }
func (b permute) Forward(x torch.Tensor) torch.Tensor { return pick(b.fits(x), b.order) }
func (b permute) Inverse(y torch.Tensor) torch.Tensor { return pick(b.fits(y), b.back) }

// fits is x, which has to have the length of the order.
func (b permute) fits(x torch.Tensor) torch.Tensor {
	b.ForwardShape(x.Shape())
	return x
}

func (b permute) LogAbsDetJacobian(x, _ torch.Tensor) torch.Tensor {
	return operand.SumLast(torch.Of(b.fits(x).T().MustZerosLike(false)), 1)
}

func (b permute) ForwardShape(shape []int) []int {
	if n := last(b.Name(), shape); n != len(b.order) {
		panic(&Error{b.Name(), "", fmt.Sprintf("a vector of length %d", n), fmt.Sprintf("the order has %d", len(b.order))})
	}
	return slices.Clone(shape)
}
func (b permute) InverseShape(shape []int) []int { return b.ForwardShape(shape) }

// Image is the same set where its elements are alike; increasing vectors lose that.
func (b permute) Image(s support.Support) support.Support {
	switch {
	case s.Kind == support.KindOrdered:
		return support.Real.Independent(s.EventDims())
	case s.Kind == support.KindPositiveOrdered:
		return support.Positive.Independent(s.EventDims())
	case !operand.IsNumber(s.Low) || !operand.IsNumber(s.High) || s.EventDims()-s.Extra == 2:
		return support.Real.Independent(max(1, s.EventDims()))
	case s.EventDims() == 0:
		return s.Independent(1)
	}
	return s
}
