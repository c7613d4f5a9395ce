package layers

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// WeightNorm writes each row of a layer's weight, the numbers that make one feature, as a length and a direction
// (Salimans and Kingma 2016):
//
//	w_i = scale_i direction_i / ‖direction_i‖
//
// The layer is one with the parameter "weight": nn.Linear, nn.Conv1d, nn.Conv2d. In the place of its weight are the
// sites "direction", in the weight's shape, and "scale", one number for each feature. The length of a direction does
// not matter to the outputs: [Direction] is the prior that keeps it near 1.
type WeightNorm struct {
	Layer nn.Layer // the layer whose weight is written so
}

// Plan takes the weight out of the layer's.
func (l WeightNorm) Plan(in []int) (nn.Plan, error) {
	if l.Layer == nil {
		return nn.Plan{}, fieldError("WeightNorm", "Layer", "nil",
			"it must be a layer with a weight, such as nn.Linear")
	}
	inner, err := l.Layer.Plan(in)
	if err != nil {
		return nn.Plan{}, err
	}
	at := slices.IndexFunc(inner.Params,
		func(p nn.Param) bool { return p.Name == "weight" && len(p.Shape) > 1 && !p.Table })
	if at < 0 {
		return nn.Plan{}, fmt.Errorf("the layer %T has no weight of rows: expected one such as nn.Linear: %w", l.Layer,
			infer.ErrConfig)
	}
	direction := inner.Params[at]
	rows, size := direction.Shape[0], 1
	for _, n := range direction.Shape[1:] {
		size *= n
	}
	direction.Name, direction.Default = "direction", nn.Normal(1/math.Sqrt(float64(size)))
	plan := inner
	plan.Params = slices.Concat(inner.Params[:at], []nn.Param{direction, perFeature("scale", rows, false, 1)},
		inner.Params[at+1:])
	column := along(direction.Shape)
	plan.Forward = func(c nn.Call, x torch.Tensor) torch.Tensor {
		v, scale := c.Params[at], c.Params[at+1]
		factor := scale.Div(v.Reshape(rows, size).Square().Sum(1).Sqrt())
		c.Params = slices.Concat(c.Params[:at], []torch.Tensor{v.Mul(factor.Reshape(column...))}, c.Params[at+2:])
		return inner.Forward(c, x)
	}
	return plan, nil
}
