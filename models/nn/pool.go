package nn

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// MaxPool1d takes the largest of every Kernel steps: inputs [channels, steps] become [channels, steps'], with steps' as
// for [Conv1d]. The padding is never the largest.
type MaxPool1d struct {
	Kernel  int64
	Stride  int64 // 0 means Kernel
	Padding int64 // at either end, at most Kernel/2
}

// Plan checks the sizes.
func (l MaxPool1d) Plan(in []int64) (Plan, error) {
	if len(in) != 2 {
		return Plan{}, misfit(in, "[channels, steps]")
	}
	sizes, err := pool("MaxPool1d", in, l.Kernel, l.Stride, l.Padding)
	if err != nil {
		return Plan{}, err
	}
	kernel, stride, padding := []int64{1, l.Kernel}, []int64{1, or(l.Stride, l.Kernel)}, []int64{0, l.Padding}
	return Plan{
		Out: append([]int64{in[0]}, sizes...),
		// libtorch 1.13 maps the pooling of images, but that of sequences only in a slow loop.
		Forward: func(_ Call, x torch.Tensor) torch.Tensor {
			rows := x.Unsqueeze(-2).T()
			return torch.Of(rows.MustMaxPool2d(kernel, stride, padding, []int64{1, 1}, false, false)).Squeeze(-2)
		},
	}, nil
}

// MaxPool2d takes the largest of every square of Kernel by Kernel: inputs [channels, height, width] become
// [channels, height', width'], with sizes as for [Conv1d]. The padding is never the largest.
type MaxPool2d struct {
	Kernel  int64
	Stride  int64 // 0 means Kernel
	Padding int64 // at each edge, at most Kernel/2
}

// Plan checks the sizes.
func (l MaxPool2d) Plan(in []int64) (Plan, error) {
	if len(in) != 3 {
		return Plan{}, misfit(in, "[channels, height, width]")
	}
	sizes, err := pool("MaxPool2d", in, l.Kernel, l.Stride, l.Padding)
	if err != nil {
		return Plan{}, err
	}
	stride := or(l.Stride, l.Kernel)
	return Plan{
		Out: append([]int64{in[0]}, sizes...),
		Forward: func(_ Call, x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustMaxPool2d(
				[]int64{l.Kernel, l.Kernel},
				[]int64{stride, stride},
				[]int64{l.Padding, l.Padding},
				[]int64{1, 1},
				false,
				false,
			))
		},
	}, nil
}

func pool(kind string, in []int64, kernel, stride, padding int64) ([]int64, error) {
	if padding > kernel/2 && kernel > 0 {
		return nil, &infer.FieldError{Type: "nn." + kind, Field: "Padding", Value: padding,
			Allowed: fmt.Sprintf("it must be at most half of the kernel, %d", kernel/2)}
	}
	return slide(kind, in, kernel, stride, kernel, padding)
}

// slide is how often a window fits along each axis of inputs [channels, size, ...]. A stride of 0 is the default.
func slide(kind string, in []int64, kernel, stride, byDefault, padding int64) ([]int64, error) {
	if err := first(least(kind, "Kernel", kernel, 1), least(kind, "Stride", stride, 0),
		least(kind, "Padding", padding, 0)); err != nil {
		return nil, err
	}
	var out []int64
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
func divides(kind, what string, n, groups int64) error {
	if n%groups != 0 {
		return &infer.FieldError{Type: "nn." + kind, Field: "Groups", Value: groups,
			Allowed: fmt.Sprintf("it must divide the %d %s", n, what)}
	}
	return nil
}
