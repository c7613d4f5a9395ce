package native

import (
	"errors"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/portable"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Portable is the function as a plan that runs without libtorch and C, with a copy of its batch.
func (f *Func) Portable() (*portable.Plan, error) {
	if f.replay != nil {
		return nil, errors.New("native: a replay is operations of libtorch, and no plan")
	}
	inputs, err := asNumbers(f.plan.Inputs, f.held.tensors)
	if err != nil {
		return nil, err
	}
	return portable.NewPlan(f.plan, inputs)
}

// asNumbers are the tensors of a batch as a plan in Go has them.
func asNumbers(slots []ir.Slot, tensors []torch.Tensor) (inputs [][]float64, err error) {
	inputs = make([][]float64, len(slots))
	err = torch.Do(func(*torch.Scope) error {
		for i, s := range slots {
			t, err := tensors[i].T().Totype(gotch.Double, false)
			if err == nil {
				inputs[i], err = torch.ToSlice[float64](torch.Of(t))
			}
			if err != nil {
				return fmt.Errorf("native: batch tensor %q: %w", s.Name, err)
			}
		}
		return nil
	})
	return inputs, err
}
