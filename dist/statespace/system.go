package statespace

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Part is a part of a series: a [System], or one that is made for a purpose, such as a [LocalLevel]. The parts of a
// series are independent of each other, and it is their sum.
type Part interface {
	System() System
}

// System is the states of a series, m numbers x_t at each time, and how p observations come from them:
//
//	x_1 = Mean + Spread e_0,  x_{t+1} = Transition x_t + Noise e_t,  signal_t = Design x_t
//
// where all e are vectors of independent standard normal numbers. Each matrix may have a first dimension of time: the
// Design of step t is Design[t], and Transition[t] and Noise[t] lead from step t to step t+1.
type System struct {
	Design     torch.Tensor // [m] where p is 1, [p, m], or [T, p, m]
	Transition torch.Tensor // [m, m] or [T, m, m]
	Noise      torch.Tensor // [m, r] or [T, m, r]: Noise Noiseᵀ is the covariance of a step
	Mean       any          // of the first states: a number or [m]; nil is 0
	Spread     torch.Tensor // [m, k]: Spread Spreadᵀ is the covariance of the first states
	// Diffuse, [m, q], adds Diffuse δ to the first states, with a flat prior of density 1 for the q numbers δ, which are
	// integrated out exactly. Where it spans what Mean and Spread move, those change rounding alone; a Spread like that
	// of the noise rounds least. The zero value is no diffuse states.
	Diffuse torch.Tensor

	weights torch.Tensor // of the columns of Spread, [k]; a number is the same for all
}

// System is the system itself.
func (s System) System() System { return s }

func fail(what, value, allowed string, args ...any) {
	panic(&dist.Error{
		Distribution: "statespace", Parameter: what, Value: value, Allowed: fmt.Sprintf(allowed, args...),
	})
}

func sized(shape []int) string { return fmt.Sprintf("a tensor of shape %v", shape) }

// number is an argument that is a number or a tensor; nil is the default.
func number(what string, x any, def float64) torch.Tensor {
	if x == nil {
		return torch.Of(def)
	}
	v, found, allowed := operand.Of(x)
	if allowed != "" {
		fail(what, found, "%s", allowed)
	}
	return v
}

// scalar is an argument of shape [].
func scalar(what string, x any, def float64) torch.Tensor {
	v := number(what, x, def)
	if shape := v.Shape(); len(shape) > 0 {
		fail(what, sized(shape), "it must be a number or a tensor of shape []")
	}
	return v
}

// scale is a standard deviation of shape [].
func scale(what string, x any, def float64) torch.Tensor {
	v := scalar(what, x, def)
	if n, ok := v.Number(); ok && !(n >= 0 && n <= largest) {
		fail(what, fmt.Sprint(n), "it is a standard deviation, which must be finite and at least 0")
	}
	return v
}

const largest = 1.7976931348623157e308

// checked is a system whose matrices fit each other: Design has at least two dimensions, Mean is a vector.
func (s System) checked() System {
	design, transition, noise, spread := s.Design.Shape(), s.Transition.Shape(), s.Noise.Shape(), s.Spread.Shape()
	if len(design) == 1 {
		s.Design = s.Design.Unsqueeze(0)
		design = s.Design.Shape()
	}
	if len(design) < 2 || len(design) > 3 || slices.Contains(design, 0) {
		fail("Design", sized(design), "it must be [m], [p, m] or [T, p, m]")
	}
	m := design[len(design)-1]
	square := func(what string, shape []int, columns int, of string) {
		n := len(shape)
		if n < 2 || n > 3 || shape[n-2] != m || columns > 0 && shape[n-1] != columns || shape[n-1] == 0 {
			fail(what, sized(shape),
				"the Design has %d states, so that it must be %s, or that with a first dimension of time", m, of)
		}
	}
	square("Transition", transition, m, fmt.Sprintf("[%d, %d]", m, m))
	square("Noise", noise, 0, fmt.Sprintf("[%d, r]", m))
	if square("Spread", spread, 0, fmt.Sprintf("[%d, k]", m)); len(spread) != 2 {
		fail("Spread", sized(spread), "it must be [%d, k]", m)
	}
	mean := number("Mean", s.Mean, 0)
	if shape := mean.Shape(); len(shape) > 1 || len(shape) == 1 && shape[0] != m {
		fail("Mean", sized(shape), "it must be a number, or a vector of %d states", m)
	}
	s.Mean = mean.Expand(m)
	if n, ok := s.Diffuse.Number(); !ok || n != 0 {
		if shape := s.Diffuse.Shape(); len(shape) != 2 || shape[0] != m || shape[1] == 0 {
			fail("Diffuse", sized(shape), "it must be [%d, q], or the zero value for none", m)
		}
	}
	if w, ok := s.weights.Number(); ok && w == 0 {
		s.weights = torch.Of(1)
	}
	s.weights = s.weights.Expand(spread[1])
	return s
}

// sum is the system of several parts: their states one after the other, and the sum of their signals.
func sum(parts []Part) System {
	if len(parts) == 0 {
		fail("parts", "empty", "a series has at least one part")
	}
	systems := make([]System, len(parts))
	for i, p := range parts {
		if p == nil {
			fail("parts", fmt.Sprintf("nil at index %d", i), "each part must be a System or one of the package's parts")
		}
		systems[i] = p.System().checked()
		rows := func(s System) int { shape := s.Design.Shape(); return shape[len(shape)-2] }
		if have, want := rows(systems[i]), rows(systems[0]); have != want {
			fail("parts", fmt.Sprintf("a part of %d observations at index %d", have, i),
				"the first part has %d, and all must have as many", want)
		}
	}
	if len(systems) == 1 {
		return systems[0]
	}
	var designs, transitions, noises, spreads, diffuse []torch.Tensor
	var means, weights []any
	q := 0
	for _, s := range systems {
		own := s.Diffuse
		if s.diffuse() == 0 {
			own = torch.Zeros(s.Spread.Shape()[0], 0)
		}
		q, diffuse = q+s.diffuse(), append(diffuse, own)
		designs, transitions = append(designs, s.Design), append(transitions, s.Transition)
		noises, spreads = append(noises, s.Noise), append(spreads, s.Spread)
		means, weights = append(means, s.Mean.(torch.Tensor)), append(weights, s.weights)
	}
	out := System{
		Design: torch.Cat(-1, inTime(designs)), Transition: diagonal(inTime(transitions)),
		Noise: diagonal(inTime(noises)), Mean: torch.Cat(0, means...), Spread: diagonal(spreads),
		weights: torch.Cat(0, weights...),
	}
	if q > 0 {
		out.Diffuse = diagonal(diffuse)
	}
	return out
}

// inTime gives all matrices a dimension of time where one has it.
func inTime(matrices []torch.Tensor) []torch.Tensor {
	var times int
	for _, m := range matrices {
		if shape := m.Shape(); len(shape) == 3 {
			if times > 0 && times != shape[0] {
				fail("parts", fmt.Sprintf("parts of %d and of %d steps", times, shape[0]), "all must have as many")
			}
			times = shape[0]
		}
	}
	out := slices.Clone(matrices)
	for i, m := range out {
		if shape := m.Shape(); times > 0 && len(shape) == 2 {
			out[i] = m.Expand(times, shape[0], shape[1])
		}
	}
	return out
}

// diagonal is the block-diagonal matrix.
func diagonal(blocks []torch.Tensor) torch.Tensor {
	var columns, before int
	for _, b := range blocks {
		shape := b.Shape()
		columns += shape[len(shape)-1]
	}
	rows := make([]torch.Tensor, len(blocks))
	for i, b := range blocks {
		shape := b.Shape()
		n := len(shape) - 1
		blank := func(k int) torch.Tensor { return torch.Zeros(append(slices.Clone(shape[:n]), k)...) }
		rows[i] = torch.Cat(-1, blank(before), b, blank(columns-before-shape[n]))
		before += shape[n]
	}
	return torch.Cat(-2, rows)
}

// at is the matrix of a step.
func at(m torch.Tensor, t int) torch.Tensor {
	if len(m.Shape()) == 3 {
		return m.At(t)
	}
	return m
}
