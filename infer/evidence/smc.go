package evidence

import (
	"context"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// SMC is sequential Monte Carlo along a path (Neal 2001; Del Moral, Doucet and Jasra 2006), as an estimator of the
// evidence and as a sampler. A cloud of N particles starts at β = 0. At each stage β grows to where the effective
// sample size of the new weights is a fraction of N, the particles are drawn anew by their weights, and moved by
// Hamiltonian Monte Carlo with the cloud's own variances as inverse masses, until their slopes are no longer correlated
// with those before. log Z is the sum of the logarithms of the mean weights.
//
// Chains of the options are independent clouds, 8 by default, and Draws the particles of each, 1000 by default. The
// estimate is the mean of the clouds' Z, and its standard error that of the mean. Each particle is a draw; with the
// statistic "log_weight", in which clouds have the weight of their Z. The zero value of a field is its default.
//
// A pilot cloud of a quarter as many particles goes first, and the others take its stages, masses, step sizes and
// numbers of moves. What moves them then does not depend on them, so that the mean of Z is exact whatever the number of
// particles is. Where they set their own, log Z is low by an amount of order 1/N (Beskos, Jasra, Kantas and Thiery
// 2016).
type SMC struct {
	Path path.Path // default: from the prior, by powers of the likelihood
	// ESS is the effective sample size to which β grows, as a fraction of the particles; default 0.8.
	// Smaller ones take fewer stages, with weights that differ more.
	ESS float64
	// Conditional makes the ESS that of the step alone (Zhou, Johansen and Aston 2016), and draws particles anew only
	// where the effective size of all weights is below half; use it with an ESS near 1.
	Conditional bool
	Ladder      []float64 // the β of the stages, from 0 to 1; nil adapts
	Moves       int       // transitions of a stage at least; default 4
	MostMoves   int       // and at most; default 8 times as many
	// TargetAccept is the mean acceptance to which the step size adapts; default 0.75.
	TargetAccept float64
	// Weighted keeps the weights of the last stage instead of drawing the particles anew; see "log_weight".
	Weighted bool
}

// Defaults are 8 clouds of 1000 particles.
func (SMC) Defaults() infer.Options { return particles }

var particles = infer.Options{Chains: 8, Warmup: infer.None, Draws: 1000, Thin: 1}

// Build checks the configuration and binds it to a target.
func (c SMC) Build(target infer.Target) (infer.Transform, error) {
	const typ = "evidence.SMC"
	bad := func(field string, value any, allowed string) error {
		return &infer.FieldError{Type: typ, Field: field, Value: value, Allowed: allowed}
	}
	if c.ESS == 0 {
		c.ESS = 0.8
	}
	if !(c.ESS > 0 && c.ESS < 1) {
		return nil, bad("ESS", c.ESS, "it must be above 0 and below 1")
	}
	if c.Moves == 0 {
		c.Moves = 4
	}
	if c.Moves < 1 || c.Moves > 1<<16 {
		return nil, bad("Moves", c.Moves, "it must be at least 1")
	}
	if c.MostMoves == 0 {
		c.MostMoves = 8 * c.Moves
	}
	if c.MostMoves < c.Moves {
		return nil, bad("MostMoves", c.MostMoves, fmt.Sprintf("it must be at least Moves, %d", c.Moves))
	}
	b, err := bind(typ, target, c.Path, c.Ladder, c.TargetAccept)
	if err != nil {
		return nil, err
	}
	return &sampler{bound: b, SMC: c}, nil
}

var _ interface {
	infer.Transform
	infer.Driver
} = (*sampler)(nil)

// sampler is SMC or AIS bound to a target.
type sampler struct {
	bound
	SMC
	annealed bool
}

// logWeight is the statistic of a draw's weight.
const logWeight = "log_weight"

// Stats are the names of the statistics of a draw.
func (s *sampler) Stats() []string { return []string{draws.StatLP, logWeight} }

// clouds is what a snapshot holds.
type clouds struct {
	Pilot *pilot
	Done  []*cloud // the last one is at work where it has not Ended
}

// Drive makes the run, one cloud after the other. The detail is a *[Result].
func (s *sampler) Drive(ctx context.Context, job infer.Job) (any, error) {
	e, logZ0, err := s.open(job)
	if err != nil {
		return nil, err
	}
	if job.Draws < 2 {
		return nil, &infer.FieldError{Type: "infer.Options", Field: "Draws", Value: job.Draws,
			Allowed: "it is the number of particles of " + s.name + ", and must be at least 2"}
	}
	m := &mover{ctx: ctx, e: e, d: e.Dim()}
	var all clouds
	if job.Resume != nil {
		if err := s.resume(job, &all, "clouds"); err != nil {
			return nil, err
		}
	}
	if err := s.lead(m, job, &all, logZ0); err != nil {
		return nil, err
	}
	for k := range job.Chains {
		if k == len(all.Done) {
			c, err := s.begin(m, job.Seed, job.FirstChain+uint64(k), job.Draws, logZ0)
			if err != nil {
				return nil, fmt.Errorf("%s: cloud %d: %w", s.name, k, err)
			}
			all.Done = append(all.Done, c)
		}
		for c := all.Done[k]; !c.Ended; {
			if err := s.stage(m, c, &all.Pilot.Plan); err != nil {
				return nil, fmt.Errorf("%s: cloud %d, stage %d at β = %.3g: %w", s.name, k, c.Stage, c.Beta, err)
			}
			if err := save(job, all); err != nil {
				return nil, err
			}
		}
	}
	if err := s.record(job, all.Done, m); err != nil {
		return nil, err
	}
	r := s.result(all.Done)
	r.Gradients += all.Pilot.Cloud.Gradients
	return r, nil
}

// record hands out the particles as draws.
func (s *sampler) record(job infer.Job, done []*cloud, m *mover) error {
	d, spent := m.d, m.count // of this process
	for k, c := range done {
		for i := range c.LogW {
			stats := [2]float64{c.Rows.LogP[i], c.LogW[i] + c.LogZ}
			err := job.Record(infer.Transition{Chain: k, X: c.Rows.X[i*d : (i+1)*d], Stats: stats[:], Gradients: spent,
				StepSize: c.Eps})
			if err != nil {
				return err
			}
			spent = 0
		}
	}
	return nil
}

// result is the estimate of all clouds.
func (s *sampler) result(done []*cloud) *Result {
	r := &Result{Estimator: "sequential Monte Carlo", Trace: done[0].trace()}
	var logZ, all []float64
	within, families, particles := 0.0, 0, 0
	least, frozen := 1.0, 0.0
	for _, c := range done {
		r.Gradients += c.Gradients
		logZ = append(logZ, c.LogZ)
		within += c.Variance / float64(len(done)*len(done))
		for _, w := range c.LogW {
			all = append(all, w+c.LogZ+math.Log(float64(len(c.LogW))))
		}
		kept := map[int]bool{}
		for _, f := range c.Family {
			kept[f] = true
		}
		families, particles = families+len(kept), particles+len(c.Family)
		least, frozen = math.Min(least, c.Least), math.Max(frozen, c.Frozen)
	}
	if s.annealed {
		r.Estimator = "annealed importance sampling"
		r.LogZ, r.SE = logMeanExp(all)
		if ess := sample.Effective(all); ess < math.Max(100, 0.02*float64(len(all))) {
			r.warn("of %d particles the weights leave %.0f: the largest decide, and the error is not to be trusted: give a "+
				"longer Ladder or more Moves, or use SMC", len(all), ess)
		}
		return r
	}
	r.LogZ, r.SE = logMeanExp(logZ)
	if len(done) < few {
		r.SE = math.Sqrt(within)
		r.warn("there are %d clouds: the error is that of their weights alone, as if the moves had made all particles "+
			"independent at every stage: set infer.Options{Chains: %d} or more", len(done), few)
	} else if _, v := moments(logZ); v > 1 {
		r.warn("the log Z of the clouds differ by a standard deviation of %.2g: the mean is that of the largest, and the "+
			"error is not to be trusted: use more particles (Options.Draws), or an ESS nearer to 1", math.Sqrt(v))
	}
	if families*50 < particles {
		r.warn("all particles descend from %d of %d: what the others had found is lost: use more particles", families,
			particles)
	}
	if least < 0.2 {
		r.warn("the mean acceptance of a stage was %.2g: the particles hardly moved there: use more Moves", least)
	}
	if frozen > 0.7 {
		r.warn("after the moves of a stage the slopes still had a correlation of %.2g with those before: the particles do "+
			"not forget where they were drawn: raise MostMoves, or rewrite the model so that its scales do not depend on "+
			"each other", frozen)
	}
	return r
}

// few is how many clouds give a standard error by their spread.
const few = 4

// pilot is the cloud that goes before the others, and what they take from it.
type pilot struct {
	Cloud *cloud
	Plan  plan
}

// plan is what moves particles at each stage. It does not depend on those that it moves: with masses of their own their
// weights are too small, on a Gaussian of 100 dimensions by 0.03 to 0.11 in log Z.
type plan struct {
	Beta  []float64
	Scale [][]float64
	Eps   [][]float64 // of each transition
}

// pilotChain is the number of the pilot's random stream. No chain of a run has a number as high.
const pilotChain = 1<<30 - 1

// lead makes the pilot, or what is left of it.
func (s *sampler) lead(m *mover, job infer.Job, all *clouds, logZ0 float64) error {
	if all.Pilot == nil {
		if len(all.Done) > 0 {
			return fmt.Errorf("%s: the checkpoint is of a version without a pilot: remove it, and begin anew: %w", s.name,
				infer.ErrCheckpoint)
		}
		c, err := s.begin(m, job.Seed, pilotChain, max(job.Draws/4, min(job.Draws, 100)), logZ0)
		if err != nil {
			return fmt.Errorf("%s: the pilot: %w", s.name, err)
		}
		all.Pilot = &pilot{Cloud: c}
	}
	for c := all.Pilot.Cloud; !c.Ended; {
		if err := s.stage(m, c, nil); err != nil {
			return fmt.Errorf("%s: the pilot, stage %d at β = %.3g: %w", s.name, c.Stage, c.Beta, err)
		}
		all.Pilot.Plan.add(c)
		if err := save(job, *all); err != nil {
			return err
		}
	}
	return nil
}

// add notes the stage that the pilot has made.
func (p *plan) add(c *cloud) {
	p.Beta = append(p.Beta, c.Beta)
	p.Scale = append(p.Scale, append([]float64(nil), c.Scale...))
	p.Eps = append(p.Eps, append([]float64(nil), c.steps...))
}
