package infer

import (
	"fmt"
	"math"
)

// Ramp is the temperature of a run that optimises first: 0 at the updates before start − length, then in a straight line to
// the target at update start, and the target from there on. With cycles from update start that is the temperature of
// Wenzel et al. (2020), who take one cycle for the way up:
//
//	T(t) = target·min(1, max(0, (t − start + length)/length))
//
// A length of 0 goes up in one step, at start.
func Ramp(target float64, start, length int64) Schedule {
	return func(t int64) float64 {
		switch {
		case t >= start:
			return target
		case t <= start-length:
			return 0
		}
		return target * float64(t-start+length) / float64(length)
	}
}

// Ramp is the temperature that repeats in every cycle: 0 while the cycle explores, then in a straight line over the part
// from r = Explore to r = full to the target, and the target in the rest of the cycle. A full that is at most Explore goes
// up in one step.
//
//	T(t) = target·min(1, max(0, (r − Explore)/(full − Explore)))
func (c Cycles) Ramp(target, full float64) Schedule {
	return func(t int64) float64 {
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

// Scaled is c·s(t).
func Scaled(c float64, s Schedule) Schedule { return func(t int64) float64 { return c * s(t) } }

// AtLeast is max(least, s(t)): a floor under a schedule that falls to 0.
func AtLeast(least float64, s Schedule) Schedule {
	return func(t int64) float64 { return math.Max(least, s(t)) }
}

// Then is the first schedule for n updates and the second after them, each from its own update 0: first(t) for t < n,
// second(t − n) from n on.
func Then(n int64, first, second Schedule) (Schedule, error) {
	if n < 1 || first == nil || second == nil {
		return nil, fmt.Errorf("infer.Then: the first schedule has %d updates: it must have at least 1, and both schedules are needed: %w", n, ErrConfig)
	}
	return func(t int64) float64 {
		if t < n {
			return first(t)
		}
		return second(t - n)
	}, nil
}

// Repeat starts a schedule anew after every n updates: s(t mod n).
func Repeat(n int64, s Schedule) (Schedule, error) {
	if n < 1 || s == nil {
		return nil, fmt.Errorf("infer.Repeat: the schedule is repeated after %d updates: there must be at least 1, and a schedule: %w", n, ErrConfig)
	}
	return func(t int64) float64 { return s(t % n) }, nil
}
