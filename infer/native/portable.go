package native

import (
	"errors"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer/native/portable"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Portable is the function as a plan that runs without libtorch and C, with a copy of its batch.
func (f *Func) Portable() (*portable.Plan, error) {
	if f.replay != nil {
		return nil, errors.New("native: a replay is operations of libtorch, and no plan")
	}
	inputs := make([][]float64, len(f.plan.Inputs))
	err := torch.Do(func(*torch.Scope) error {
		for i, s := range f.plan.Inputs {
			t, err := f.held.tensors[i].T().Totype(gotch.Double, false)
			if err == nil {
				inputs[i], err = torch.ToSlice[float64](torch.Of(t))
			}
			if err != nil {
				return fmt.Errorf("native: batch tensor %q: %w", s.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return portable.NewPlan(f.plan, inputs)
}
