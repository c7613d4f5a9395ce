package infer

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Plain is a log density in plain Go as a [Program]: f gets the named numbers in the order of names, and knows nothing
// of tensors. It has no gradient, so that the samplers of package mcmc draw from it and no other method does. Where f
// is −Inf its support ends. Draws have the names.
//
// f is called from several goroutines at once, each time with numbers of its own. Chain 0 starts at start; the others
// start around it, up to a tenth of 1 + |start| away in each number.
func Plain(f func(x []float64) float64, names []string, start []float64) Program {
	p := plain{layout: &Layout{}}
	for i, name := range slices.Sorted(slices.Values(names)) {
		p.layout.Sites = append(p.layout.Sites, Site{Name: name, Shape: []int{}, Offset: i, Size: 1})
	}
	at := make([]int, len(names)) // where the layout has each number
	for i, name := range names {
		at[i] = slices.IndexFunc(p.layout.Sites, func(s Site) bool { return s.Name == name })
		if name == "" || slices.Contains(names[:i], name) {
			p.wrong = fmt.Errorf("infer.Plain: the name %q of number %d is empty or was there before: %w", name, i, ErrConfig)
		}
	}
	switch {
	case f == nil:
		p.wrong = fmt.Errorf("infer.Plain: the log density is nil: %w", ErrConfig)
	case len(names) == 0 || len(names) != len(start):
		p.wrong = fmt.Errorf("infer.Plain: %d names and %d numbers to start at: there must be one of each for each number, "+
			"and at least one: %w", len(names), len(start), ErrConfig)
	}
	if p.wrong != nil {
		return p
	}
	p.start = make([]float64, len(start))
	for i, v := range start {
		p.start[at[i]] = v
	}
	p.f = func(x []float64) float64 {
		own := make([]float64, len(x))
		for i := range own {
			own[i] = x[at[i]]
		}
		return f(own)
	}
	return p
}

type plain struct {
	f      func(x []float64) float64
	start  []float64
	layout *Layout
	wrong  error
}

// errPlain says what can be done with a log density that has no gradient.
var errPlain = &plainError{errors.New("the log density is plain Go and has no gradient, which this method needs: use " +
	"mcmc.Slice, RandomWalk, Stretch, DifferentialEvolution or Elliptical, which need none, or write the density with " +
	"tensors (infer.Handwritten, or a model)")}

// plainError is an error of the function that called the log posterior.
type plainError struct{ error }

// Unwrap makes the error an ErrConfig.
func (e *plainError) Unwrap() []error { return []error{e.error, ErrConfig} }

// RecoverAsError makes the panic of the log posterior an error.
func (e *plainError) RecoverAsError() {}

// Target is the log density, whose tensors are an error.
func (p plain) Target() Target {
	refuse := func(Params, Batch) (torch.Tensor, Aux) { panic(errPlain) }
	return Target{LogPosterior: refuse, plain: p.f, wrong: p.wrong}
}

func (p plain) Layout() *Layout { return p.layout }
func (p plain) Batch() Batch    { return nil }

// Start is a point for each chain at which the density is finite.
func (p plain) Start(_ Batch, chains int, seed uint64) (Params, error) {
	var flat []float64
	for chain := range chains {
		row, err := p.finite(chain, rand.New(rand.NewPCG(seed, uint64(chain))))
		if err != nil {
			return Params{}, err
		}
		flat = append(flat, row...)
	}
	t, err := torch.FromSlice(flat, chains, len(p.start))
	return Params{Layout: p.layout, Flat: t}, err
}

// finite is a point around the start, nearer to it with each try. Chain 0 tries the start itself first.
func (p plain) finite(chain int, source *rand.Rand) ([]float64, error) {
	width, last := 0.1, 0.0
	for try := range startTries {
		row := slices.Clone(p.start)
		for i := range row {
			if chain > 0 || try > 0 {
				row[i] += width * (1 + math.Abs(row[i])) * (2*source.Float64() - 1)
			}
		}
		var err error
		if last, err = callPlain(p.f, row); err != nil {
			return nil, err
		}
		if !math.IsNaN(last) && !math.IsInf(last, 0) {
			return row, nil
		}
		if try >= startTries/2 {
			width /= 1.5
		}
	}
	return nil, fmt.Errorf("chain %d: the log density is not finite at %d points around the start, %v at the last: start "+
		"where it is finite: %w", chain, startTries, last, ErrNonFinite)
}

// Draws are the draws.
func (p plain) Draws(unconstrained *draws.Draws, _ Batch) (*draws.Draws, error) {
	return unconstrained, nil
}

// callPlain calls a log density, whose panic is an error.
func callPlain(f func(x []float64) float64, x []float64) (v float64, err error) {
	err = guard("log density", func() error { v = f(x); return nil })
	return v, err
}
