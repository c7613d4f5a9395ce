package torch

import (
	"fmt"
	"math"
	"runtime"

	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/sugarme/gotch/ts"
)

// NotMapped as a dimension of an input means that all evaluations see the whole of it.
const NotMapped = math.MinInt64

// Randomness says what libtorch's own random operations do inside a mapped function. Kelvin's [Streams]
// are drawn from outside.
type Randomness int

// The three kinds of randomness.
const (
	RandomError     Randomness = 0 // a random operation is an error
	RandomSame      Randomness = 1 // all evaluations get the same numbers
	RandomDifferent Randomness = 2 // each evaluation gets its own
)

// VmapOptions are the options of [Vmap]; nil is the zero value.
type VmapOptions struct {
	// InDims names the mapped dimension of each input: 0 for all when nil, negative counts from the end.
	InDims []int
	// OutDims names where the mapped dimension goes in each output: 0 for all when nil.
	OutDims []int
	// Randomness of libtorch's own generator; the zero value makes it an error.
	Randomness Randomness
}

// Vmap maps f over one dimension of its inputs: f is called once, with tensors that stand for all their slices, and
// sees the shapes of one. The outputs get the mapped dimension back. Gradients flow through. Calls nest.
//
// Inside f the values of a tensor cannot be read, so Go code cannot branch on them.
func Vmap(
	f func(in []Tensor) ([]Tensor, error),
	inputs []Tensor,
	o *VmapOptions,
) (outputs []Tensor, err error) {
	err = Do(func(s *Scope) error {
		outputs, err = vmap(f, inputs, o)
		s.Keep(outputs...)
		return err
	})
	return outputs, err
}

// vmap does the work inside the caller's scope, on the caller's locked thread.
func vmap(
	f func(in []Tensor) ([]Tensor, error),
	inputs []Tensor,
	o *VmapOptions,
) (outputs []Tensor, err error) {
	if f == nil {
		return nil, errNoFunction
	}
	return vmapAt(func(in []Tensor, _ int) ([]Tensor, error) { return f(in) }, inputs, o)
}

// vmapAt is vmap of a function that is told the level that it runs at.
func vmapAt(
	f func(in []Tensor, level int) ([]Tensor, error),
	inputs []Tensor,
	o *VmapOptions,
) (outputs []Tensor, err error) {
	if o == nil {
		o = &VmapOptions{}
	}
	if o.InDims != nil && len(o.InDims) != len(inputs) {
		return nil, fmt.Errorf("torch.Vmap: %d input dimensions for %d inputs", len(o.InDims), len(inputs))
	}
	batch, err := mappedSize(inputs, o)
	if err != nil {
		return nil, err
	}
	level, err := ts.KelvinVmapPush(int64(batch), int(o.Randomness))
	if err != nil {
		return nil, err
	}
	if err := thread.Push(thread.Level{Number: int64(level), Size: int64(batch)}); err != nil {
		ts.KelvinVmapPop()
		return nil, err
	}
	open := true
	pop := func() {
		if open {
			open = false
			thread.Pop()
			ts.KelvinVmapPop()
		}
	}
	defer pop()
	in := make([]Tensor, len(inputs))
	for i, x := range inputs {
		in[i] = x
		if dim := inDim(o, i); dim != NotMapped {
			if in[i], err = from(ts.KelvinVmapIn(x.T(), int64(dim), level)); err != nil {
				return nil, err
			}
		}
	}
	outputs, err = f(in, int(level))
	if err != nil {
		return nil, err
	}
	if o.OutDims != nil && len(o.OutDims) != len(outputs) {
		return nil, fmt.Errorf("torch.Vmap: %d output dimensions for %d outputs", len(o.OutDims), len(outputs))
	}
	// The level is closed first: taking the mark off must not be mapped itself.
	pop()
	for i, y := range outputs {
		var dim int
		if o.OutDims != nil {
			dim = o.OutDims[i]
		}
		if outputs[i], err = from(ts.KelvinVmapOut(y.T(), int64(dim), level, int64(batch))); err != nil {
			return nil, err
		}
	}
	runtime.KeepAlive(inputs)
	return outputs, nil
}

func inDim(o *VmapOptions, i int) int {
	if o.InDims == nil {
		return 0
	}
	return o.InDims[i]
}

// mappedSize is the common size of the mapped dimensions.
func mappedSize(inputs []Tensor, o *VmapOptions) (int, error) {
	size := int(-1)
	for i, x := range inputs {
		dim := inDim(o, i)
		if dim == NotMapped {
			continue
		}
		shape, err := Shape(x)
		if err != nil {
			return 0, err
		}
		at := dim
		if at < 0 {
			at += len(shape)
		}
		if at < 0 || at >= len(shape) {
			return 0, fmt.Errorf("torch.Vmap: input %d has shape %v, without dimension %d to map over", i, shape, dim)
		}
		if size >= 0 && shape[at] != size {
			return 0, fmt.Errorf(
				"torch.Vmap: input %d has size %d in the mapped dimension, earlier inputs %d",
				i,
				shape[at],
				size,
			)
		}
		size = shape[at]
	}
	if size < 0 {
		return 0, fmt.Errorf("torch.Vmap: no input is mapped")
	}
	if size == 0 {
		return 0, fmt.Errorf("torch.Vmap: the mapped dimension has size 0")
	}
	return size, nil
}
