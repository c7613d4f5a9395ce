package nn

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Dropout keeps each element of its inputs with probability Keep, times 1/Keep, and makes the others zero (Srivastava
// et al. 2014):
//
//	y = x · b / Keep,  b ~ Bernoulli(Keep)
//
// so that the mean is x. It acts where the evaluation has random numbers or a mask: see [Run]. Otherwise y = x.
// Elements are masked one by one, and each datum has a mask of its own; where a network is mapped over data by
// torch.Vmap they share one, unless the map is torch.VmapSources with a stream for each.
//
// With random numbers at prediction it is Monte-Carlo dropout (Gal & Ghahramani 2016): see [Network.Predict].
type Dropout struct {
	Keep float64 // in (0, 1]
}

// Plan checks the probability.
func (l Dropout) Plan(in []int) (Plan, error) {
	if !(l.Keep > 0 && l.Keep <= 1) {
		return Plan{}, &infer.FieldError{Type: "nn.Dropout", Field: "Keep", Value: l.Keep,
			Allowed: "it must be greater than 0 and at most 1: the probability that an element is kept"}
	}
	return Plan{Out: in, Random: true, Forward: l.forward}, nil
}

func (l Dropout) forward(c Call, x torch.Tensor) torch.Tensor {
	mask := c.Mask
	if _, none := mask.Number(); none {
		if c.Source == nil || l.Keep == 1 {
			return x
		}
		d := torch.Must(x.T().KelvinDescribe())
		dtype := gotch.CKind2DType(int32(d.DType))
		mask = torch.Must(c.Source.Uniform(torch.Ints(d.Shape), dtype, torch.Must(torch.DeviceOf(x)))).Lt(l.Keep)
	} else if shape, want := mask.Shape(), x.Shape(); !broadcasts(shape, want) {
		torch.Must(x, fmt.Errorf("the mask has shape %v: expected %v, or one that broadcasts to it: %w", shape, want,
			infer.ErrConfig))
	}
	return x.Mul(mask).Mul(1 / l.Keep)
}

// broadcasts says whether a shape broadcasts to another without changing it.
func broadcasts(shape, to []int) bool {
	if len(shape) > len(to) {
		return false
	}
	for i, s := range shape {
		if want := to[len(to)-len(shape)+i]; s != 1 && s != want {
			return false
		}
	}
	return true
}
