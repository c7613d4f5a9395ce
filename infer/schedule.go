package infer

import (
	"fmt"
	"math"
)

// Schedule is a number that depends on the update: it gets the number of updates made before, 0 at the first. Step sizes
// and temperatures are schedules everywhere.
type Schedule func(step int64) float64

// Constant is the same number at every step.
func Constant(v float64) Schedule { return func(int64) float64 { return v } }

// Polynomial is a·(b + t)^(−γ), the decay of Robbins and Monro (1951); Σ ε = ∞ and Σ ε² < ∞ for ½ < γ ≤ 1. b must be
// positive. (Welling and Teh 2011, section 2.)
func Polynomial(a, b, gamma float64) Schedule {
	return func(t int64) float64 { return a * math.Pow(b+float64(t), -gamma) }
}

// Cosine is the cyclical schedule peak·½(1 + cos(π·(t mod L)/L)): it starts every cycle of L updates at the peak and falls
// towards zero. (Zhang et al. 2020, equation 1; Wenzel et al. 2020, algorithm 1.)
func Cosine(peak float64, cycle int64) Schedule {
	return func(t int64) float64 {
		return peak * 0.5 * (1 + math.Cos(math.Pi*float64(t%max(cycle, 1))/float64(max(cycle, 1))))
	}
}

// Linear goes from one number to another in a straight line over the updates from start to end, and is constant before
// and after. A temperature ramp is Linear(0, 1, start, end).
func Linear(from, to float64, start, end int64) Schedule {
	return func(t int64) float64 {
		switch {
		case t <= start:
			return from
		case t >= end:
			return to
		}
		return from + (to-from)*float64(t-start)/float64(end-start)
	}
}

// Warmup multiplies a schedule by (t+1)/n over its first n updates.
func Warmup(n int64, s Schedule) Schedule {
	return func(t int64) float64 {
		if t+1 >= n {
			return s(t)
		}
		return s(t) * float64(t+1) / float64(n)
	}
}

// Piece is one part of a [Piecewise] schedule.
type Piece struct {
	From     int64    // the first update of the part
	Schedule Schedule // gets the updates since From
}

// Piecewise uses each part from its first update on. The parts must be in order, the first from 0.
func Piecewise(parts ...Piece) (Schedule, error) {
	for i, p := range parts {
		if p.Schedule == nil || (i == 0 && p.From != 0) || (i > 0 && p.From <= parts[i-1].From) {
			return nil, fmt.Errorf("infer.Piecewise: part %d starts at update %d: the first part must start at 0, the others after "+
				"the one before, and each needs a schedule: %w", i, p.From, ErrConfig)
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("infer.Piecewise: there are no parts: %w", ErrConfig)
	}
	return func(t int64) float64 {
		i := len(parts) - 1
		for i > 0 && parts[i].From > t {
			i--
		}
		return parts[i].Schedule(t - parts[i].From)
	}, nil
}

// Times is the product of two schedules.
func Times(a, b Schedule) Schedule { return func(t int64) float64 { return a(t) * b(t) } }

// Check is the check of the value at a step, for the error of a field of a method: it must be finite and not below least;
// strict excludes least itself.
func (s Schedule) Check(method, field string, step int64, least float64, strict bool) error {
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
