package layers

import (
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// LayerNorm normalises the last axis of each datum (Ba et al. 2016):
//
//	y = scale (x − mean) / √(variance + Epsilon) + bias
//
// with the mean and the variance of that axis. Its sites are "scale" and "bias", of the axis's size.
type LayerNorm struct {
	Epsilon float64 // 0 means 1e-5
}

// Plan takes any shape but [].
func (l LayerNorm) Plan(in []int) (nn.Plan, error) {
	if len(in) == 0 {
		return nn.Plan{}, misfit(in, "[..., features]")
	}
	epsilon, err := positive("LayerNorm", "Epsilon", l.Epsilon, 1e-5)
	if err != nil {
		return nn.Plan{}, err
	}
	features := in[len(in)-1]
	return nn.Plan{
		Out:    in,
		Params: []nn.Param{perFeature("scale", features, false, 1), perFeature("bias", features, true, 0)},
		Forward: func(c nn.Call, x torch.Tensor) torch.Tensor {
			x = x.Sub(x.Mean(-1).Unsqueeze(-1))
			sd := x.Square().Mean(-1).Unsqueeze(-1).Add(epsilon).Sqrt()
			return x.Div(sd).Mul(c.Params[0]).Add(c.Params[1])
		},
	}, nil
}

// FRN is filter response normalisation with a thresholded linear unit (Singh and Krishnan 2020): for inputs [channels,
// ...], each channel of each datum,
//
//	y = max(scale x / √(mean(x²) + Epsilon) + bias, threshold)
//
// Unlike [BatchNorm] it is a function of one datum: the likelihood of a datum does not depend on the others. It takes
// the place of an activation too. Its sites are "scale", "bias" and "threshold", [channels].
type FRN struct {
	Epsilon float64 // 0 means 1e-6
}

// Plan takes [channels, ...].
func (l FRN) Plan(in []int) (nn.Plan, error) {
	if len(in) < 2 {
		return nn.Plan{}, misfit(in, "[channels, ...]")
	}
	epsilon, err := positive("FRN", "Epsilon", l.Epsilon, 1e-6)
	if err != nil {
		return nn.Plan{}, err
	}
	axes, shape := rest(in), along(in)
	return nn.Plan{
		Out: in,
		Params: []nn.Param{perFeature("scale", in[0], false, 1), perFeature("bias", in[0], true, 0),
			perFeature("threshold", in[0], true, 0)},
		Forward: func(c nn.Call, x torch.Tensor) torch.Tensor {
			factor := c.Params[0].Div(x.Square().Mean(axes...).Add(epsilon).Sqrt()) // [n, channels]
			for range axes {
				factor = factor.Unsqueeze(-1)
			}
			return x.Mul(factor).Add(c.Params[1].Reshape(shape...)).Max(c.Params[2].Reshape(shape...))
		},
	}, nil
}

// rest are the axes of data [n, channels, ...] after the channels.
func rest(in []int) []int {
	var axes []int
	for i := 1; i < len(in); i++ {
		axes = append(axes, i+1)
	}
	return axes
}
