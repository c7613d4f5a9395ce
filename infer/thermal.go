package infer

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Thermal is a transform whose states have momenta, and momenta a temperature: a check of whether a sampler simulates
// its target, which holds site by site. (Wenzel et al. 2020, appendix I; Leimkuhler and Matthews 2015, section 6.1.5.)
type Thermal interface {
	// KineticTemperatures is m·M⁻¹m/d of each site of each chain, [K][sites], with the mass M that the method moves
	// with and d the size of the site. In equilibrium d/T times it has a χ² law with d degrees of freedom, so that it
	// is T on average.
	KineticTemperatures(s State) ([][]float64, error)
}

// SiteMeans is, for each site, the mean over its elements of values: those of K chains, one after the other.
func (l *Layout) SiteMeans(values []float64) [][]float64 {
	var out [][]float64
	for d := l.Dim(); d > 0 && len(values) >= d; values = values[d:] {
		row := make([]float64, len(l.Sites))
		for i, s := range l.Sites {
			for _, v := range values[s.Offset : s.Offset+s.Size] {
				row[i] += v
			}
			row[i] /= float64(s.Size)
		}
		out = append(out, row)
	}
	return out
}

// ConfigurationalTemperatures is −θ·∇logPosterior(θ)/d of each site of each chain, [K][sites], with the gradient
// averaged over n batches. In equilibrium at temperature T it is T on average, for a density on the whole of R^d that
// vanishes at infinity (integrate by parts); its variance depends on the target. Large readings tell of a chain that
// has not settled or of a step that is too large. (Wenzel et al. 2020, equation 43.)
func ConfigurationalTemperatures(g Gradient, p Params, next func() (Batch, error), n int) ([][]float64, error) {
	if n < 1 {
		return nil, &FieldError{Type: "infer.ConfigurationalTemperatures", Field: "n", Value: n,
			Allowed: "it must be at least 1"}
	}
	if g == nil || next == nil {
		return nil, fmt.Errorf("infer.ConfigurationalTemperatures: the gradient or the batches are nil: %w", ErrConfig)
	}
	var products []float64
	err := torch.Do(func(*torch.Scope) error {
		var total torch.Tensor // −Σ g/n
		for i := range n {
			err := torch.Do(func(scope *torch.Scope) error {
				b, err := next()
				if err != nil {
					return err
				}
				e, err := g.ValueAndGrad(p, b, 0)
				if err != nil {
					return err
				}
				terms := []torch.Term{{Coeff: -1 / float64(n), Tensor: e.Grad}}
				if total != (torch.Tensor{}) {
					terms = append(terms, torch.Term{Coeff: 1, Tensor: total})
				}
				last := total
				if total, err = torch.Combine(terms...); err != nil {
					return err
				}
				scope.Keep(total)
				if last != (torch.Tensor{}) {
					torch.Free(last)
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("infer.ConfigurationalTemperatures: batch %d: %w", i, err)
			}
		}
		product, err := total.T().Mul(p.Flat.T(), false)
		if err != nil {
			return err
		}
		products, err = torch.ToSlice[float64](torch.Of(product))
		return err
	})
	if err != nil {
		return nil, err
	}
	return p.Layout.SiteMeans(products), nil
}

// Reading is what a [Thermometer] read after one update.
type Reading struct {
	FirstChain      uint64      // the number of the first chain of the K: not 0 in the later groups of an ensemble
	Updates         int         // made before
	Temperature     float64     // T of the last update
	Kinetic         [][]float64 // m·M⁻¹m/d, [K][sites]; nil for a method without momenta
	Configurational [][]float64 // −θ·∇logPosterior/d, [K][sites]; nil unless asked for
}

// Thermometer is an observer that reads temperatures. Package diag judges them.
type Thermometer struct {
	// When says after how many updates to read, for example Cycles.Ends; nil is after every update.
	When func(updates int) bool
	// Gradient and Next, both or none, are for configurational temperatures: of the log posterior that the method has, and
	// the batches to evaluate it on, Batches of them each time (0 means 1). They should not be the batches of the run.
	Gradient Gradient
	Next     func() (Batch, error)
	Batches  int
	// Then is the observer to call next; nil for none.
	Then Observer

	Readings []Reading // those made so far
	Err      error     // the first that a reading failed with; there are no readings after it
}

// Observe reads the temperatures when it is time to.
func (t *Thermometer) Observe(p Progress) {
	if t.Err == nil && (t.When == nil || t.When(p.Step)) {
		reading, err := t.read(p)
		if t.Err = err; err == nil {
			t.Readings = append(t.Readings, reading)
		}
	}
	if t.Then != nil {
		t.Then.Observe(p)
	}
}

func (t *Thermometer) read(p Progress) (Reading, error) {
	r := Reading{FirstChain: p.FirstChain, Updates: p.Step, Temperature: p.Info.Temperature}
	var err error
	if thermal, ok := p.Transform.(Thermal); ok {
		if r.Kinetic, err = thermal.KineticTemperatures(p.State); err != nil {
			return r, fmt.Errorf("thermometer: %w", err)
		}
	}
	if t.Gradient != nil && t.Next != nil {
		r.Configurational, err = ConfigurationalTemperatures(t.Gradient, p.State.Position(), t.Next, max(t.Batches, 1))
		if err != nil {
			return r, fmt.Errorf("thermometer: %w", err)
		}
	}
	return r, nil
}
