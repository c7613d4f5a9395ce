package survival

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// LogLogistic is the law of exp(x) where x is logistic with location log scale and scale 1/shape, for scale and shape
// above 0: numbers, or tensors of times. At time t
//
//	S(t) = 1/(1 + (t/scale)^shape)
//
// so that scale is the median, and covariates that multiply it make the odds of survival proportional. It has no Mean:
// average over draws.
func LogLogistic(scale, shape any) dist.Distribution {
	return dist.Transformed(dist.Logistic(torch.Of(scale).Log(), torch.Of(shape).Reciprocal()), bijector.Exp())
}

// PiecewiseExponential is the law of a time whose hazard is constant between breaks: breaks, of shape [K − 1], rise and
// are above 0, and rates, of shape [K] or [N, K] and above 0, has the hazard before the first break, between the first
// and the second, and so on. With the cumulative hazard H
//
//	log p(t) = log rate(t) − H(t)
//
// Rates of shape [N, K] are often a baseline of shape [K] times exp(η), η of shape [N, 1]: proportional hazards. It has
// no Mean: average over draws.
func PiecewiseExponential(breaks, rates any) dist.Distribution {
	return dist.Transformed(dist.Exponential(1), hazard{torch.Of(breaks), torch.Of(rates)})
}

// hazard is the map from a cumulative hazard to the time that has it.
type hazard struct{ breaks, rates torch.Tensor }

// pieces are where each begins, and how long it is; the last has no end.
func (h hazard) pieces() (start, width torch.Tensor) {
	const endless = 1e300
	edges := torch.Cat(-1, torch.New([]float64{0}), h.breaks)
	ends := torch.Cat(-1, h.breaks, torch.New([]float64{endless}))
	return edges, ends.Sub(edges)
}

// Name is that of the map.
func (h hazard) Name() string { return "CumulativeHazard" }

// Forward is the time of a cumulative hazard.
func (h hazard) Forward(e torch.Tensor) torch.Tensor {
	_, width := h.pieces()
	n := width.Numel()
	before := torch.Of(h.rates.Mul(width).T().MustCumsum(-1, h.rates.T().DType(), false)).Slice(-1, 0, n-1)
	first := before.Slice(-1, 0, 1).Mul(0)
	if n == 1 {
		first, before = h.rates.Mul(0), h.rates.Slice(-1, 0, 0)
	}
	left := e.Unsqueeze(-1).Sub(torch.Cat(-1, first, before))
	return left.Div(h.rates).AtLeast(0).AtMost(width).Sum(-1)
}

// within is how long each piece lasts until a time, of shape [..., K].
func (h hazard) within(t torch.Tensor) torch.Tensor {
	start, width := h.pieces()
	return t.Unsqueeze(-1).Sub(start).AtLeast(0).AtMost(width)
}

// Inverse is the cumulative hazard of a time.
func (h hazard) Inverse(t torch.Tensor) torch.Tensor { return h.within(t).Mul(h.rates).Sum(-1) }

// LogAbsDetJacobian is minus the logarithm of the rate at a time.
func (h hazard) LogAbsDetJacobian(_, t torch.Tensor) torch.Tensor {
	start, width := h.pieces()
	over := t.Unsqueeze(-1).Sub(start)
	here := torch.Where(over.Ge(0), torch.Where(over.Sub(width).Lt(0), 1, 0), 0)
	return here.Mul(h.rates.Log()).Sum(-1).Neg()
}

// DomainEventDims is 0: it is a map of single numbers, as CodomainEventDims says too.
func (h hazard) DomainEventDims() int { return 0 }

// CodomainEventDims is 0.
func (h hazard) CodomainEventDims() int { return 0 }

// ForwardShape is the shape with that of the rates.
func (h hazard) ForwardShape(shape []int) []int {
	rates := h.rates.Shape()
	if len(rates) < 2 || len(shape) > 0 {
		return shape
	}
	return rates[:len(rates)-1]
}

// InverseShape is the same.
func (h hazard) InverseShape(shape []int) []int { return h.ForwardShape(shape) }

// Image is the support of an exponential number.
func (h hazard) Image(s support.Support) support.Support { return s }

// Direction is 1: it rises.
func (h hazard) Direction() (sign torch.Tensor, ok bool) { return torch.Of(1), true }

// Validate checks that breaks rise from 0, and that rates are above 0.
func (h hazard) Validate() error {
	wrong := func(parameter string, value any, allowed string) error {
		return &bijector.Error{Bijector: "survival.PiecewiseExponential", Parameter: parameter, Value: fmt.Sprint(value),
			Allowed: allowed}
	}
	shape, rates := h.breaks.Shape(), h.rates.Shape()
	if len(shape) != 1 {
		return wrong("breaks", shape, "a tensor of shape [K - 1] is required")
	}
	if len(rates) == 0 || rates[len(rates)-1] != shape[0]+1 {
		return wrong("rates", rates, fmt.Sprintf("%d breaks need a last dimension of %d", shape[0], shape[0]+1))
	}
	last := 0.0
	for _, v := range h.breaks.Values() {
		if !(v > last) {
			return wrong("breaks", v, fmt.Sprintf("it must be above %v: breaks rise, from above 0", last))
		}
		last = v
	}
	for _, v := range h.rates.Values() {
		if !(v > 0) {
			return wrong("rates", v, "it must be above 0")
		}
	}
	return nil
}
