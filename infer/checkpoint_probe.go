package infer

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// probe is the log density of a run's target, per datum, at a point that depends on the layout alone, on the first
// batch: a model that was changed since a checkpoint has another. It is not told where it is not finite, or where two
// evaluations differ, as those of a network with dropout do.
type probe struct {
	density *float64
	exact   bool // all is calculated in float64
}

// probe has a point of the type and the device of like. The gradients are eager, so that the number does not depend on
// compiling.
func (g *group) probe(like torch.Tensor) (p probe, err error) {
	position := g.batches.Position()
	var values [2]float64
	g.tally.Aside(func() {
		err = guard("model", func() error {
			return torch.Do(func(*torch.Scope) error {
				p.exact, err = g.probeAt(like, values[:])
				return err
			})
		})
	})
	if back := g.batches.Seek(position); back != nil {
		return p, back
	}
	if err != nil || math.IsNaN(values[0]) || math.IsInf(values[0], 0) || !p.near(values[0], values[1]) {
		return probe{}, nil // a run says what is wrong with its model, at its own points
	}
	p.density = &values[0]
	return p, nil
}

// probeAt evaluates the density, as often as there are values.
func (g *group) probeAt(like torch.Tensor, values []float64) (exact bool, err error) {
	at := make([]float64, g.layout.Dim())
	for i := range at {
		at[i] = 0.1 * float64(i%7-3)
	}
	p, err := NewParams(g.layout, at)
	if err != nil {
		return false, err
	}
	device, err := torch.DeviceOf(like)
	if err != nil {
		return false, err
	}
	if p, err = p.To(device, like.T().DType()); err != nil {
		return false, err
	}
	if err := g.batches.Seek(Position{}); err != nil {
		return false, err
	}
	batch, err := g.batches.Next()
	if err != nil {
		return false, err
	}
	target := g.program.Target()
	if f := target.plain; f != nil {
		for i := range values {
			if values[i], err = callPlain(f, at); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	target.Program = nil // discrete sites too have a density
	gradient, err := NewGradient(target)
	if err != nil {
		return false, err
	}
	exact = like.T().DType() == gotch.Double
	for _, x := range batch {
		exact = exact && (x == (torch.Tensor{}) || x.T().DType() != gotch.Float && x.T().DType() != gotch.Half &&
			x.T().DType() != gotch.BFloat16)
	}
	for i := range values {
		e, err := gradient.ValueAndGrad(p, batch, 0)
		if err != nil {
			return false, err
		}
		values[i] = e.Values[0]
	}
	return exact, nil
}

// near says whether two densities are one but for rounding, which may differ on another machine.
func (p probe) near(a, b float64) bool {
	tolerance := 1e-3
	if p.exact {
		tolerance = 1e-8
	}
	return math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b), 1e-3)
}

// sameModel compares the density of a checkpoint. Noise of few values, as of dropout, may agree twice by chance: so it
// looks again before it refuses.
func (f *checkpointer) sameModel(old *float64) error {
	p := f.probe
	for range 20 {
		if old == nil || p.density == nil || p.near(*old, *p.density) || !p.near(*f.probe.density, *p.density) {
			return nil
		}
		var err error
		if p, err = f.look(); err != nil {
			return err
		}
	}
	return fmt.Errorf("it is of another model: at one point its log density for a datum is %.9g, this run's %.9g: go "+
		"back to that model, or remove the folder to start again: %w", *old, *f.probe.density, ErrCheckpoint)
}
