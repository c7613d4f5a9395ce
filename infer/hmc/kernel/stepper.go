package kernel

import (
	"context"
	"fmt"
	"math"
	"sync"
)

// Stepper makes the transitions of a run one by one, in a loop of one's own. It keeps its machinery, so that a step
// costs little more than its gradients. The states are the snapshots, which it does not change, so that one can go
// back to any of them. Its steps are those of [Run] with the same Options. Draws, Thin, Record, Checkpoint, Resume and
// Schedule are not used, and Init is required. Several goroutines may use it; their steps wait for each other.
type Stepper struct {
	Options Options

	mu               sync.Mutex
	r                *runner
	infos            []Info
	x, t, logp, grad []float64 // of all chains
}

// endless is a number of draws that no run reaches.
const endless = 1 << 31

// Step makes one transition of each chain, from s, or from Options.Init where s is nil. The points are evaluated on
// the density first, which may be another than at the step before; density and norm of the gradient there are in the
// Infos. Where one of them is not finite no chain moves, and the snapshot is nil. A step size or temperature that is
// not 0 replaces the one of all chains.
func (p *Stepper) Step(density Density, s *Snapshot, stepSize, temperature float64) (*Snapshot, []Info, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.place(density, s); err != nil {
		return nil, nil, err
	}
	r := p.r
	for _, c := range r.chains {
		if temperature != 0 {
			c.Temperature = temperature
		}
		if stepSize != 0 {
			c.StepSize, c.NeedStep = stepSize, false
		}
	}
	whole, err := p.evaluate(density)
	if err != nil {
		return nil, nil, fmt.Errorf("kernel.Stepper: %w", err)
	}
	if !whole {
		return nil, append([]Info(nil), p.infos...), nil
	}
	r.until = r.chains[0].Done + 1
	if err := r.run(context.Background()); err != nil {
		return nil, nil, fmt.Errorf("kernel.Stepper: %w", err)
	}
	return r.snapshot(), append([]Info(nil), p.infos...), nil
}

// place puts the chains where s, or the start, has them.
func (p *Stepper) place(density Density, s *Snapshot) error {
	if p.r == nil || s == nil {
		o := p.Options
		o.Draws, o.Thin, o.Checkpoint, o.Resume, o.Schedule = endless, 1, nil, nil, nil
		o.Record = func(chain, _ int, _ []float64, info Info) error {
			i := &p.infos[chain]
			info.StartLogP, info.StartNorm = i.StartLogP, i.StartNorm
			*i = info
			return nil
		}
		r, err := newRunner(density, o)
		if err != nil {
			return err
		}
		n := len(r.chains)
		r.steps, r.batcher = true, newBatcher(density, n)
		p.r, p.infos = r, make([]Info, n)
		p.x, p.t, p.logp, p.grad = make([]float64, n*r.d), make([]float64, n), make([]float64, n), make([]float64, n*r.d)
	}
	p.r.density, p.r.batcher.density = density, density
	if s != nil {
		return p.r.restore(s)
	}
	if p.r.Init == nil {
		return &FieldError{"kernel.Options", "Init", "missing", "a Stepper needs a start for each chain"}
	}
	for _, c := range p.r.chains {
		x := append([]float64(nil), p.r.start(c)...)
		if err := p.r.boxed(c, x); err != nil {
			return err
		}
		c.Point = position{X: x, Grad: make([]float64, len(x))}
	}
	return nil
}

// evaluate sets densities and gradients of the points, and reports whether all are finite.
func (p *Stepper) evaluate(density Density) (bool, error) {
	d := p.r.d
	for k, c := range p.r.chains {
		copy(p.x[k*d:], c.Point.X)
		p.t[k] = *p.r.coordinate(c)
	}
	if err := evaluateRows(density, p.x, p.t, p.logp, p.grad); err != nil {
		return false, err
	}
	whole := true
	for k, c := range p.r.chains {
		norm := 0.0
		for _, g := range p.grad[k*d : (k+1)*d] {
			norm = math.Hypot(norm, g)
		}
		p.infos[k] = Info{StartLogP: p.logp[k], StartNorm: norm}
		whole = whole && finite(p.logp[k]+norm)
		c.Point.LogP = p.logp[k]
		copy(c.Point.Grad, p.grad[k*d:(k+1)*d])
		c.chainState.Gradients++
	}
	return whole, nil
}
