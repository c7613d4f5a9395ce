package nn

import (
	"cmp"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// MaxPool1d takes the largest of every Kernel steps: inputs [channels, steps] become [channels, steps'], with steps' as
// for [Conv1d]. The padding is never the largest.
type MaxPool1d struct {
	Kernel  int
	Stride  int // 0 means Kernel
	Padding int // at either end, at most Kernel/2
}

// Plan checks the sizes.
func (l MaxPool1d) Plan(in []int) (Plan, error) {
	return maxPool("MaxPool1d", in, "[channels, steps]", 2, l.Kernel, l.Stride, l.Padding)
}

// MaxPool2d takes the largest of every square of Kernel by Kernel: inputs [channels, height, width] become
// [channels, height', width'], with sizes as for [Conv1d]. The padding is never the largest.
type MaxPool2d struct {
	Kernel  int
	Stride  int // 0 means Kernel
	Padding int // at each edge, at most Kernel/2
}

// Plan checks the sizes.
func (l MaxPool2d) Plan(in []int) (Plan, error) {
	return maxPool("MaxPool2d", in, "[channels, height, width]", 3, l.Kernel, l.Stride, l.Padding)
}

// maxPool is the plan of inputs of so many dimensions.
func maxPool(kind string, in []int, want string, dims int, kernel, stride, padding int) (Plan, error) {
	if len(in) != dims {
		return Plan{}, misfit(in, want)
	}
	sizes, err := pool(kind, in, kernel, stride, padding)
	if err != nil {
		return Plan{}, err
	}
	stride = or(stride, kernel)
	window, strides, edges := []int{kernel, kernel}, []int{stride, stride}, []int{padding, padding}
	sequence := dims == 2
	if sequence { // libtorch 1.13 maps the pooling of images, but that of sequences only in a slow loop
		window[0], strides[0], edges[0] = 1, 1, 0
	}
	return Plan{
		Out: append([]int{in[0]}, sizes...),
		Forward: func(_ Call, x torch.Tensor) torch.Tensor {
			if sequence {
				x = x.Unsqueeze(-2)
			}
			x = torch.Of(x.T().MustMaxPool2d(torch.Int64s(window), torch.Int64s(strides), torch.Int64s(edges),
				[]int64{1, 1}, false, false))
			if sequence {
				x = x.Squeeze(-2)
			}
			return x
		},
	}, nil
}

func pool(kind string, in []int, kernel, stride, padding int) ([]int, error) {
	if padding > kernel/2 && kernel > 0 {
		return nil, &infer.FieldError{Type: "nn." + kind, Field: "Padding", Value: padding,
			Allowed: fmt.Sprintf("it must be at most half of the kernel, %d", kernel/2)}
	}
	return slide(kind, in, kernel, stride, kernel, padding)
}

// slide is how often a window fits along each axis of inputs [channels, size, ...]. A stride of 0 is the default.
func slide(kind string, in []int, kernel, stride, byDefault, padding int) ([]int, error) {
	if err := cmp.Or(least(kind, "Kernel", kernel, 1), least(kind, "Stride", stride, 0),
		least(kind, "Padding", padding, 0)); err != nil {
		return nil, err
	}
	var out []int
	for _, size := range in[1:] {
		room := size + 2*padding - kernel
		if room < 0 {
			return nil, &infer.FieldError{Type: "nn." + kind, Field: "Kernel", Value: kernel,
				Allowed: fmt.Sprintf("inputs have shape %v, so it must be at most %d", in, size+2*padding)}
		}
		out = append(out, room/or(stride, byDefault)+1)
	}
	return out, nil
}

// divides is an error unless the groups split a number evenly.
func divides(kind, what string, n, groups int) error {
	if n%groups != 0 {
		return &infer.FieldError{Type: "nn." + kind, Field: "Groups", Value: groups,
			Allowed: fmt.Sprintf("it must divide the %d %s", n, what)}
	}
	return nil
}
