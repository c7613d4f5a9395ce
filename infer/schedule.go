package infer

import (
	"fmt"
	"math"
)

// Schedule is a number that depends on the update: it gets the number of updates made before, 0 at the first. Step
// sizes and temperatures are schedules everywhere.
type Schedule func(step int) float64

// Constant is the same number at every step.
func Constant(v float64) Schedule { return func(int) float64 { return v } }

// Polynomial is a·(b + t)^(−γ), the decay of Robbins and Monro (1951); Σ ε = ∞ and Σ ε² < ∞ for ½ < γ ≤ 1. b must be
// positive. (Welling and Teh 2011, section 2.)
func Polynomial(a, b, gamma float64) Schedule {
	return func(t int) float64 { return a * math.Pow(b+float64(t), -gamma) }
}

// Cosine is the cyclical schedule peak·½(1 + cos(π·(t mod L)/L)): it starts every cycle of L updates at the peak and
// falls towards zero. (Zhang et al. 2020, equation 1; Wenzel et al. 2020, algorithm 1.)
func Cosine(peak float64, cycle int) Schedule {
	return func(t int) float64 {
		return peak * 0.5 * (1 + math.Cos(math.Pi*float64(t%max(cycle, 1))/float64(max(cycle, 1))))
	}
}

// Linear goes from one number to another in a straight line over the updates from start to end, and is constant before
// and after. A temperature ramp is Linear(0, 1, start, end).
func Linear(from, to float64, start, end int) Schedule {
	return func(t int) float64 {
		switch {
		case t <= start:
			return from
		case t >= end:
			return to
		}
		return from + (to-from)*float64(t-start)/float64(end-start)
	}
}

// Ramp is the temperature of a run that optimises first: 0 at the updates before start − length, then in a straight
// line to the target at update start, and the target from there on. With cycles from update start that is the
// temperature of Wenzel et al. (2020), who take one cycle for the way up:
//
//	T(t) = target·min(1, max(0, (t − start + length)/length))
//
// A length of 0 goes up in one step, at start.
func Ramp(target float64, start, length int) Schedule {
	return func(t int) float64 {
		switch {
		case t >= start:
			return target
		case t <= start-length:
			return 0
		}
		return target * float64(t-start+length) / float64(length)
	}
}

// Warmup is the schedule multiplied by (t+1)/n over its first n updates.
func (s Schedule) Warmup(n int) Schedule {
	return s.with(func(t int) float64 {
		if t+1 >= n {
			return s(t)
		}
		return s(t) * float64(t+1) / float64(n)
	})
}

// Then is the schedule for n updates and another after them, which gets the updates since: s(t) for t < n, next(t − n)
// from n on. Without a schedule in one of the places there is none, which the method that is given it says.
func (s Schedule) Then(n int, next Schedule) Schedule {
	if next == nil {
		return nil
	}
	return s.with(func(t int) float64 {
		if t < n {
			return s(t)
		}
		return next(t - max(n, 0))
	})
}

// Repeat starts the schedule anew after every n updates, n at least 1: s(t mod n).
func (s Schedule) Repeat(n int) Schedule {
	return s.with(func(t int) float64 { return s(t % max(n, 1)) })
}

// Times is the product with another schedule.
func (s Schedule) Times(other Schedule) Schedule {
	if other == nil {
		return nil
	}
	return s.with(func(t int) float64 { return s(t) * other(t) })
}

// Scaled is c·s(t).
func (s Schedule) Scaled(c float64) Schedule {
	return s.with(func(t int) float64 { return c * s(t) })
}

// AtLeast is max(least, s(t)): a floor under a schedule that falls to 0.
func (s Schedule) AtLeast(least float64) Schedule {
	return s.with(func(t int) float64 { return math.Max(least, s(t)) })
}

// with is f, or nil where there is no schedule that it could ask.
func (s Schedule) with(f Schedule) Schedule {
	if s == nil {
		return nil
	}
	return f
}

// Check is the check of the value at a step, for the error of a field of a method: it must be finite and not below
// least; strict excludes least itself.
func (s Schedule) Check(method, field string, step int, least float64, strict bool) error {
	v := s(step)
	if math.IsNaN(v) || math.IsInf(v, 0) || v < least || (strict && v == least) {
		allowed := fmt.Sprintf("it must be finite and at least %g", least)
		if strict {
			allowed = fmt.Sprintf("it must be finite and greater than %g", least)
		}
		return &FieldError{Type: method, Field: field, Value: v, Allowed: allowed}
	}
	return nil
}
