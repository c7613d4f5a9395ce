package nn

import (
	"cmp"
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Conv1d correlates sequences with learned filters: inputs [channels, steps] become [Out, steps'] with
//
//	steps' = ⌊(steps + 2 Padding − Kernel) / Stride⌋ + 1
//
// Its sites are "weight", [Out, channels/Groups, Kernel], and "bias", [Out]. The fan-in is Kernel · channels/Groups.
type Conv1d struct {
	Out     int
	Kernel  int
	In      int // channels; 0 takes what comes
	Stride  int // 0 means 1
	Padding int // zeros at either end
	Groups  int // into which channels and filters are split; 0 means 1
	NoBias  bool
}

// Plan checks the sizes.
func (l Conv1d) Plan(in []int) (Plan, error) {
	if len(in) != 2 {
		return Plan{}, misfit(in, "[channels, steps]; nn.Transpose turns [steps, channels] round")
	}
	c, err := convolution("Conv1d", in, l.Out, l.In, l.Kernel, l.Stride, l.Padding, l.Groups, !l.NoBias)
	if err != nil {
		return Plan{}, err
	}
	stride, padding, dilation := []int{or(l.Stride, 1)}, []int{l.Padding}, []int{1}
	c.Forward = func(call Call, x torch.Tensor) torch.Tensor {
		return torch.Of(ts.MustConv1d(x.T(), call.Params[0].T(), biasOf(call).T(), torch.Int64s(stride),
			torch.Int64s(padding), torch.Int64s(dilation),
			int64(or(l.Groups, 1))))
	}
	return c, nil
}

// Conv2d correlates images with learned square filters: inputs [channels, height, width] become [Out, height', width'],
// with sizes as those of [Conv1d]. Its sites are "weight", [Out, channels/Groups, Kernel, Kernel], and "bias", [Out].
// The fan-in is Kernel² · channels/Groups.
type Conv2d struct {
	Out     int
	Kernel  int
	In      int // channels; 0 takes what comes
	Stride  int // 0 means 1
	Padding int // zeros at each edge
	Groups  int // into which channels and filters are split; 0 means 1
	NoBias  bool
}

// Plan checks the sizes.
func (l Conv2d) Plan(in []int) (Plan, error) {
	if len(in) != 3 {
		return Plan{}, misfit(in, "[channels, height, width]")
	}
	c, err := convolution("Conv2d", in, l.Out, l.In, l.Kernel, l.Stride, l.Padding, l.Groups, !l.NoBias)
	if err != nil {
		return Plan{}, err
	}
	stride, padding, dilation := []int{or(l.Stride, 1), or(l.Stride, 1)}, []int{l.Padding, l.Padding}, []int{1, 1}
	c.Forward = func(call Call, x torch.Tensor) torch.Tensor {
		return torch.Of(ts.MustConv2d(x.T(), call.Params[0].T(), biasOf(call).T(), torch.Int64s(stride),
			torch.Int64s(padding), torch.Int64s(dilation),
			int64(or(l.Groups, 1))))
	}
	return c, nil
}

// biasOf is the second parameter, or none.
func biasOf(c Call) torch.Tensor {
	if len(c.Params) > 1 {
		return c.Params[1]
	}
	return torch.Of(ts.None)
}

// convolution is the plan, without Forward, of a convolution of inputs [channels, size, ...].
func convolution(
	kind string,
	in []int,
	out, channels, kernel, stride, padding, groups int,
	bias bool,
) (Plan, error) {
	groups = or(groups, 1)
	if err := cmp.Or(least(kind, "Out", out, 1), least(kind, "Groups", groups, 1),
		matches(kind, "In", channels, in[0], in),
		divides(kind, "channels of the inputs", in[0], groups), divides(kind, "filters", out, groups)); err != nil {
		return Plan{}, err
	}
	sizes, err := slide(kind, in, kernel, stride, 1, padding)
	if err != nil {
		return Plan{}, err
	}
	shape, field := []int{out, in[0] / groups}, 1
	for range sizes {
		shape, field = append(shape, kernel), field*kernel
	}
	fanIn := in[0] / groups * field
	return Plan{
		Out: append([]int{out}, sizes...),
		Params: withBias(bias, Param{Name: "weight", Shape: shape, FanIn: fanIn, FanOut: out * field,
			Default: Uniform(1 / math.Sqrt(float64(fanIn)))}),
	}, nil
}
