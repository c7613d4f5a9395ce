package evidence

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
)

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
