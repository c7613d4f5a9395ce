package infer

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// probe is the log density of the run's target, per datum, at a point that depends on the layout alone, on the first
// batch: a model that was changed since a checkpoint has another. It is nil where that is not finite. The point has the
// type and the device of like. The gradient is eager, so that the number does not depend on compiling.
func (g *group) probe(like *ts.Tensor) (*float64, error) {
	var value float64
	position := g.batches.Position()
	err := guard("model", func() error {
		return torch.Do(func(*torch.Scope) error {
			at := make([]float64, g.layout.Dim())
			for i := range at {
				at[i] = 0.1 * float64(i%7-3)
			}
			p, err := NewParams(g.layout, at)
			if err != nil {
				return err
			}
			device, err := torch.DeviceOf(like)
			if err != nil {
				return err
			}
			if p, err = p.To(device, like.DType()); err != nil {
				return err
			}
			if err := g.batches.Seek(Position{}); err != nil {
				return err
			}
			batch, err := g.batches.Next()
			if err != nil {
				return err
			}
			gradient, err := NewGradient(g.program.Target())
			if err != nil {
				return err
			}
			e, err := gradient.ValueAndGrad(p, batch, 0)
			if err == nil {
				value = e.Values[0]
			}
			return err
		})
	})
	if back := g.batches.Seek(position); back != nil {
		return nil, back
	}
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return nil, nil // a run says what is wrong with its model, at its own points
	}
	return &value, nil
}

// sameModel compares the probes of a checkpoint and of this run. Rounding may differ, on another machine.
func sameModel(old, own *float64, dtype gotch.DType) error {
	tolerance := 1e-8
	if dtype != gotch.Double {
		tolerance = 1e-3
	}
	if old == nil || own == nil || math.Abs(*old-*own) <= tolerance*max(math.Abs(*old), math.Abs(*own)) {
		return nil
	}
	return fmt.Errorf("it is of another model: at one point its log density for a datum is %.9g, this run's %.9g: go "+
		"back to that model, or remove the folder to start again: %w", *old, *own, ErrCheckpoint)
}
