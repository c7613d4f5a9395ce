package evidence

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/path"
)

// TI is thermodynamic integration along a path (Gelman and Meng 1998; Baldock and Marzari 2019): Hamiltonian Monte
// Carlo at each rung of a ladder of β, and the integral of the mean slopes, see [Integrate]. In each round every rung
// moves, the one at β = 0 to a new draw of the start, and then neighbours swap their points with the probability of
// replica exchange, so that modes are found at small β and carried to the posterior. In the first three quarters of the
// warm-up the rungs move to where all neighbours refuse alike many swaps (Syed et al. 2022), and the masses and step
// sizes adapt.
//
// Chains of the options are independent ladders, all moved as one batch; Draws are rounds. Every round counts for the
// integral, and every Thin-th gives a draw at β = 1. The defaults are 4 chains of 1000 draws after a warm-up of
// 500. The zero value of a field is its default.
type TI struct {
	Path         path.Path // default: from the prior, by powers of the likelihood
	Ladder       []float64 // the rungs, from 0 to 1, which then stay; nil adapts
	Rungs        int       // how many; default 24. Not used with a Ladder.
	TargetAccept float64   // mean acceptance to which the step sizes adapt; default 0.75
}

// Defaults are 4 chains of 1000 draws after 500 rounds.
func (TI) Defaults() infer.Options {
	return infer.Options{Chains: 4, Warmup: 500, Draws: 1000, Thin: 1}
}

// Build checks the configuration and binds it to a target.
func (c TI) Build(target infer.Target) (infer.Transform, error) {
	const typ = "evidence.TI"
	if c.Rungs == 0 {
		c.Rungs = 24
	}
	if c.Ladder == nil && (c.Rungs < 2 || c.Rungs > 1<<12) {
		return nil, &infer.FieldError{Type: typ, Field: "Rungs", Value: c.Rungs, Allowed: "it must be from 2 to 4096"}
	}
	b, err := bind(typ, target, c.Path, c.Ladder, c.TargetAccept)
	if err != nil {
		return nil, err
	}
	adapts := c.Ladder == nil
	if adapts {
		c.Ladder = path.Power(c.Rungs, 4)
	}
	return &integrator{bound: b, TI: c, adapts: adapts}, nil
}

var _ interface {
	infer.Transform
	infer.Driver
} = (*integrator)(nil)

// integrator is TI bound to a target.
type integrator struct {
	bound
	TI
	adapts bool // the ladder
}

// Stats are the names of the statistics of a draw.
func (s *integrator) Stats() []string {
	return []string{draws.StatLP, draws.StatAccept, draws.StatStepSize}
}

// Drive makes the run. The detail is a *[Result].
func (s *integrator) Drive(ctx context.Context, job infer.Job) (any, error) {
	e, logZ0, err := s.open(job)
	if err != nil {
		return nil, err
	}
	if job.Draws < 4 {
		return nil, &infer.FieldError{Type: "infer.Options", Field: "Draws", Value: job.Draws,
			Allowed: "it must be at least 4"}
	}
	w := &walk{integrator: s, mover: &mover{ctx: ctx, e: e, d: e.Dim()}, job: job, chains: job.Chains, size: len(s.Ladder)}
	if job.Resume != nil {
		w.at = &rungs{}
		if err := s.resume(job, w.at, "rungs"); err != nil {
			return nil, err
		}
	} else if err := w.begin(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	for w.at.Round < job.Warmup+job.Draws*job.Thin {
		if err := w.round(); err != nil {
			return nil, fmt.Errorf("%s: round %d: %w", s.name, w.at.Round, err)
		}
		if job.Snapshot == nil || w.at.Round%job.Every != 0 {
			continue
		}
		if err := save(job, w.at); err != nil {
			return nil, err
		}
	}
	return w.result(logZ0)
}

// result is the integral of the slopes of the sampling rounds.
func (w *walk) result(logZ0 float64) (*Result, error) {
	a, n := w.at, w.size
	slopes := make([][][]float64, w.chains)
	for c, all := range a.Slopes {
		slopes[c] = make([][]float64, n)
		for i, v := range all {
			slopes[c][i%n] = append(slopes[c][i%n], v)
		}
	}
	r, err := Integrate(a.Ladder, slopes, logZ0)
	if err != nil {
		return nil, err
	}
	r.Gradients = a.Gradients
	rounds := float64(w.job.Draws*w.job.Thin) / 2 // of each pair
	for k, v := range a.Refusals {
		if v/rounds > 0.85 {
			r.warn("%.0f %% of the swaps between β = %.3g and %.3g were refused: what is found at the start hardly arrives at "+
				"the posterior: use more rungs", 100*v/rounds, a.Ladder[k], a.Ladder[k+1])
			break
		}
	}
	if a.Arrived < 10 {
		r.warn("%d points have come from β = 0 to the posterior: where it has several modes, their weights are not to be "+
			"trusted: use more rungs, or draw longer", a.Arrived)
	}
	return r, nil
}
