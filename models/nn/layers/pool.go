package layers

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// AvgPool2d is the mean of every square of Kernel by Kernel: inputs [channels, height, width] become [channels,
// height', width'], with sizes as for nn.Conv1d, without padding.
type AvgPool2d struct {
	Kernel int
	Stride int // 0 means Kernel
}

// Plan checks the sizes.
func (l AvgPool2d) Plan(in []int) (nn.Plan, error) {
	switch {
	case len(in) != 3:
		return nn.Plan{}, misfit(in, "[channels, height, width]")
	case l.Kernel < 1 || l.Kernel > min(in[1], in[2]):
		return nn.Plan{}, fieldError("AvgPool2d", "Kernel", l.Kernel,
			fmt.Sprintf("inputs have shape %v, so it must be from 1 to %d", in, min(in[1], in[2])))
	case l.Stride < 0:
		return nn.Plan{}, fieldError("AvgPool2d", "Stride", l.Stride, "it must be at least 0")
	}
	stride := l.Stride
	if stride == 0 {
		stride = l.Kernel
	}
	size := func(n int) int { return (n-l.Kernel)/stride + 1 }
	kernel, strides, none := []int{l.Kernel, l.Kernel}, []int{stride, stride}, []int{0, 0}
	return nn.Plan{
		Out: []int{in[0], size(in[1]), size(in[2])},
		Forward: func(_ nn.Call, x torch.Tensor) torch.Tensor {
			// One divisor for all squares: the number of their elements.
			divisor := []int{l.Kernel * l.Kernel}
			return torch.Of(x.T().MustAvgPool2d(torch.Int64s(kernel), torch.Int64s(strides), torch.Int64s(none),
				false, true, torch.Int64s(divisor), false))
		},
	}, nil
}

// GlobalAvgPool is the mean of each channel: inputs [channels, ...] become [channels].
type GlobalAvgPool struct{}

// Plan takes [channels, ...].
func (GlobalAvgPool) Plan(in []int) (nn.Plan, error) {
	if len(in) < 2 {
		return nn.Plan{}, misfit(in, "[channels, ...]")
	}
	axes := rest(in)
	return nn.Plan{Out: in[:1], Forward: func(_ nn.Call, x torch.Tensor) torch.Tensor { return x.Mean(axes...) }}, nil
}
