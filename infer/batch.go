package infer

import (
	"fmt"
	"slices"
	"sort"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Batch is the data of one update: named tensors whose first dimension counts the data.
type Batch map[string]*ts.Tensor

// Get is a tensor of the batch. It is meant for use inside a model: an unknown name panics with an error that the
// caller of the model returns.
func (b Batch) Get(name string) torch.Tensor {
	t, ok := b[name]
	if !ok || t == nil {
		panic(&ModelError{Name: name, What: "batch tensor",
			Have: slices.DeleteFunc(b.names(), func(n string) bool { return b[n] == nil })})
	}
	return torch.Of(t)
}

// Size is the number of data: the common size of the first dimensions.
func (b Batch) Size() (int64, error) {
	size := int64(-1)
	for _, name := range b.names() {
		shape, err := torch.Shape(b[name])
		if err != nil {
			return 0, fmt.Errorf("batch tensor %q: %w", name, err)
		}
		if len(shape) == 0 {
			return 0, fmt.Errorf("batch tensor %q has shape []: its first dimension must count the data", name)
		}
		if size >= 0 && shape[0] != size {
			return 0, fmt.Errorf("batch tensor %q has %d data, others %d", name, shape[0], size)
		}
		size = shape[0]
	}
	if size <= 0 {
		return 0, fmt.Errorf("the batch is empty")
	}
	return size, nil
}

func (b Batch) names() []string {
	names := make([]string, 0, len(b))
	for name := range b {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
