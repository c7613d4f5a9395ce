package infer

import (
	"fmt"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Handwritten is a target of your own as a [Program]. start is where the chains start, of shape [d] or [K, d], and
// gives the layout; data are handed to the target. Draws keep the names and values of the layout: a target on
// constrained parameters has to map them itself, with [Target].LogJacobian.
func Handwritten(target Target, start Params, data Batch) Program {
	return handwritten{target, start, data}
}

type handwritten struct {
	target Target
	start  Params
	data   Batch
}

// Target is the target given. It tells methods its layout, where it has no program of its own.
func (h handwritten) Target() Target {
	t := h.target
	if t.Program == nil {
		t.Program = h
	}
	return t
}

func (h handwritten) Layout() *Layout { return h.start.Layout }
func (h handwritten) Batch() Batch    { return h.data }

// Start is the start given, or a point for each chain at which density and gradient are finite.
func (h handwritten) Start(batch Batch, chains int, seed uint64) (Params, error) {
	if h.start.Flat != (torch.Tensor{}) {
		if k := h.start.Chains(); h.start.Batched() && k != chains {
			return Params{}, fmt.Errorf(
				"the start has %d chains and the run %d: set infer.Options{Chains: %d}, or start at one point: %w", k, chains, k,
				ErrLayout)
		}
		return h.start, nil
	}
	gradient, err := NewGradient(h.target)
	if err != nil {
		return Params{}, err
	}
	var flat []float64
	for chain := range chains {
		row, err := h.finite(gradient, batch, chain, rand.New(rand.NewPCG(seed, uint64(chain))))
		if err != nil {
			return Params{}, err
		}
		flat = append(flat, row...)
	}
	if chains == 1 {
		t, err := torch.FromSlice(flat, 1, len(flat))
		return Params{Layout: h.start.Layout, Flat: t}, err
	}
	return NewParams(h.start.Layout, flat)
}

// startTries is how often a start is drawn until its density is finite, as in Stan.
const startTries = 100

func (h handwritten) finite(gradient Gradient, batch Batch, chain int, source *rand.Rand) ([]float64, error) {
	for range startTries {
		row := make([]float64, h.start.Layout.Dim())
		for i := range row {
			row[i] = 4*source.Float64() - 2
		}
		ok := false
		err := torch.Do(func(*torch.Scope) error {
			p, err := NewParams(h.start.Layout, row)
			if err != nil {
				return err
			}
			e, err := gradient.ValueAndGrad(p, batch, 1/h.target.N())
			ok = err == nil && e.Diverged() == nil
			return err
		})
		if err != nil {
			return nil, err
		}
		if ok {
			return row, nil
		}
	}
	return nil, fmt.Errorf("chain %d: the log density or its gradient is not finite at %d points drawn uniformly from "+
		"(-2, 2): give a start: %w",
		chain, startTries, ErrNonFinite)
}

// Draws are the draws.
func (h handwritten) Draws(unconstrained *draws.Draws, _ Batch) (*draws.Draws, error) {
	return unconstrained, nil
}
