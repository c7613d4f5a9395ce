package kernel

import (
	"math"
	"slices"
)

const (
	descentStep  = 0.05 // the first ε of a descent, and how much it grows
	descentBack  = 0.95
	trialFactor  = 0.9
	trialMargin  = 0.05 // around TargetAccept
	mostTrials   = 200  // a factor of 1e9 in ε
	smallestStep = 1e-300
)

// checkTrials checks how starts and step sizes are found.
func (o *Options) checkTrials() error {
	c := checks{typ: "kernel.Options"}
	every := 250
	if o.Ladder != nil {
		every = 25 * o.SwapEvery
	}
	c.optional("Minimise", &o.Minimise, 0)
	c.optional("Trials", &o.Trials, 0)
	c.require(o.Trials <= 0 || !o.Pooled, "Pooled", true, "with Trials each chain has its own step size")
	c.atLeast("TrialEvery", &o.TrialEvery, every, 1)
	return c.err
}

// averaged says whether step sizes adapt by dual averaging.
func (r *runner) averaged() bool { return !r.KeepStep && r.Trials == 0 }

// descend is the descent RMIN from a start; see [Run].
func (r *runner) descend(c *chain, s *position) error {
	if r.Minimise == 0 {
		return nil
	}
	box, boxed := c.transition.(interface{ inside(x []float64) bool })
	d := len(s.X)
	p, x, grad := make([]float64, d), make([]float64, d), make([]float64, d)
	eps := descentStep
	for range r.Minimise {
		h := 0.5 * eps
		for i, e := range s.X {
			x[i] = e + eps*(p[i]+h*s.Grad[i])
		}
		logp, err := point(c.gradient, x, grad)
		if err != nil {
			return err
		}
		if logp > s.LogP && (!boxed || box.inside(x)) {
			for i := range p {
				p[i] += h * (s.Grad[i] + grad[i])
			}
			copy(s.X, x)
			copy(s.Grad, grad)
			s.LogP = logp
			eps += descentStep
			continue
		}
		clear(p)
		eps *= descentBack
	}
	return nil
}

// tune finds the step size by trials, where they are due before the next transition; see [Run].
func (r *runner) tune(c *chain) error {
	due := c.Done%r.TrialEvery == 0 || r.follows && c.Done == r.schedule.Final
	if r.Trials == 0 || r.KeepStep || c.Done >= r.Warmup || !due || c.Tuned > c.Done {
		return nil
	}
	stream, most := c.Stream, r.widest(c)
	eps := math.Min(c.StepSize, most)
	last, distance := eps, math.Inf(1) // of the trial before
	side := 0                          // on which it was
	for range mostTrials {
		accept, err := r.trial(c, eps, &stream)
		if err != nil {
			return err
		}
		off := accept - r.TargetAccept
		now := 1
		if off < 0 {
			now = -1
		}
		if math.Abs(off) <= trialMargin {
			break
		}
		if side != 0 && now != side {
			if distance < math.Abs(off) {
				eps = last
			}
			break
		}
		next := eps * trialFactor
		if now > 0 {
			next = math.Min(eps/trialFactor, most)
		}
		if next == eps || next < smallestStep {
			break
		}
		last, distance, side, eps = eps, math.Abs(off), now, next
	}
	c.Stream, c.StepSize, c.Tuned = stream, eps, c.Done+1
	return nil
}

// trial is the mean acceptance of trajectories that are forgotten.
func (r *runner) trial(c *chain, eps float64, stream *stream) (float64, error) {
	s, sum := c.Point.clone(), 0.0
	for range r.Trials {
		info, err := c.transition.Step(&s, eps, c.Temperature, c.metric, c.gradient, stream)
		if err != nil {
			return 0, err
		}
		sum += info.Accept
	}
	return sum / float64(r.Trials), nil
}

// widest is the largest step size of trials: the median of a box's half-widths.
func (r *runner) widest(c *chain) float64 {
	lower, upper, ok := c.box()
	if !ok {
		return math.Inf(1)
	}
	var half []float64
	for i := range lower {
		half = append(half, 0.5*(upper[i]-lower[i]))
	}
	slices.Sort(half)
	return half[len(half)/2]
}
