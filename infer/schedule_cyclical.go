package infer

import "math"

// Cycles divides the updates of a run into cycles of one length, for cyclical samplers (Zhang et al. 2020; Wenzel et
// al. 2020): a step size that starts every cycle large and falls towards zero, a temperature that is 0 while a cycle
// looks for a mode, and one sample kept at the end of each cycle. [Cycles.Check] checks the numbers.
//
// In the equations r = ((t − From) mod Length)/Length is the part of the cycle that lies behind update t, the updates
// counted from 0 as in every [Schedule]. Before From there are no cycles: r is 0 there.
type Cycles struct {
	Length  int     // updates of a cycle; at least 1
	From    int     // the first update of the first cycle; default 0
	Explore float64 // the part of each cycle, in [0, 1), that explores without noise; default 0
}

// Check is the error of a field that is out of its range.
func (c Cycles) Check() error {
	switch {
	case c.Length < 1:
		return &FieldError{Type: "infer.Cycles", Field: "Length", Value: c.Length, Allowed: "it must be at least 1"}
	case c.From < 0:
		return &FieldError{Type: "infer.Cycles", Field: "From", Value: c.From, Allowed: "it must be at least 0"}
	case !(c.Explore >= 0 && c.Explore < 1):
		return &FieldError{Type: "infer.Cycles", Field: "Explore", Value: c.Explore,
			Allowed: "it must be at least 0 and less than 1"}
	}
	return nil
}

// within is the number of updates of its cycle that lie behind update t; 0 before the first cycle.
func (c Cycles) within(t int) int { return max(t-c.From, 0) % max(c.Length, 1) }

// Cosine is the cyclical step size peak·½(1 + cos πr): the peak at the first update of a cycle and before the first
// cycle, about peak·π²/(4·Length²) at the last update of one. (Zhang et al. 2020, equation 1; Wenzel et al. 2020,
// algorithm 1, where it multiplies the time step of a scheme; [Cosine] is the same from update 0.)
func (c Cycles) Cosine(peak float64) Schedule {
	cosine := Cosine(peak, c.Length)
	return func(t int) float64 { return cosine(c.within(t)) }
}

// Glide is the cyclical step size peak·exp(−r/(1 − r)), which stays small for longer than the cosine: ½ of the peak at
// r = 0.41 instead of 0.5, 0.05 at 0.75 instead of 0.15.
func (c Cycles) Glide(peak float64) Schedule {
	return func(t int) float64 {
		r := c.within(t)
		return peak * math.Exp(-float64(r)/float64(max(c.Length, 1)-r))
	}
}

// Temperature is 0 in the part r < Explore of each cycle, and the given temperature in the rest of it; before the first
// cycle it is 0 when Explore is not. The temperature gets the number of updates of the whole run. (Zhang et al. 2020,
// algorithm 1: exploration and sampling.)
func (c Cycles) Temperature(temperature Schedule) Schedule {
	return func(t int) float64 {
		if c.Exploring(t) {
			return 0
		}
		return temperature(t)
	}
}

// Exploring says whether update t is in the exploring part of its cycle: r < Explore.
func (c Cycles) Exploring(t int) bool {
	return float64(c.within(t)) < c.Explore*float64(c.Length)
}

// Ends says whether a cycle has just ended when a number of updates has been made: From + Length, From + 2·Length and
// so on. It takes what State.Steps and Progress.Step give, so that Ends(state.Steps()) picks the last sample of each
// cycle; a run with BurnIn From and Thin Length keeps the same draws.
func (c Cycles) Ends(updates int) bool {
	return updates > c.From && c.within(updates) == 0
}

// Done is the number of cycles that have ended when a number of updates has been made.
func (c Cycles) Done(updates int) int { return max(updates-c.From, 0) / max(c.Length, 1) }

// Ramp is the temperature that repeats in every cycle: 0 while the cycle explores, then in a straight line over the
// part from r = Explore to r = full to the target, and the target in the rest of the cycle. A full that is at most
// Explore goes up in one step.
//
//	T(t) = target·min(1, max(0, (r − Explore)/(full − Explore)))
func (c Cycles) Ramp(target, full float64) Schedule {
	return func(t int) float64 {
		r := float64(c.within(t)) / float64(max(c.Length, 1))
		switch {
		case c.Exploring(t):
			return 0
		case r >= full:
			return target
		}
		return target * (r - c.Explore) / (full - c.Explore)
	}
}
