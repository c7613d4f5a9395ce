package mcmc

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
)

// Slice is slice sampling, one coordinate after the other (Neal 2003). With y = log p(x) − e, e ~ Exp(1), a coordinate
// moves to a uniform point of its slice
//
//	{x_i : log p(x) > y}
//
// An interval of width w around x_i is stepped out by w until both ends are outside of the slice, or doubled to either
// side; points of it are drawn until one is in the slice, each that is not shrinking the interval towards x_i. Nothing
// is refused. The warm-up adapts w of each coordinate to the mean size of its slices, 3·E|x_i' − x_i|.
type Slice struct {
	Width       float64        // w at the beginning; default 1
	MaxSteps    int            // intervals of stepping out, or 2 to the number of doublings; default 1024
	Doubling    bool           // double the interval: for slices of very different sizes
	Temperature infer.Schedule // T at each update; default 1. It must be positive
}

// Build checks the configuration and binds it to a target.
func (c Slice) Build(target infer.Target) (infer.Transform, error) {
	a := newAlgorithm("mcmc.Slice", c.Temperature)
	a.value("Width", &c.Width, 1)
	a.count("MaxSteps", &c.MaxSteps, 1024)
	a.step, a.learn, a.moves = c.step, c.learn, true
	return a.build(target)
}

// Defaults are 4 chains of 1000 draws after 1000 updates.
func (Slice) Defaults() infer.Options { return defaults }

func (c Slice) step(m *move) {
	if m.Width == nil {
		m.Width, m.Sum = make([]float64, len(m.X)), make([]float64, len(m.X))
		for i := range m.Width {
			m.Width[i] = c.Width
		}
	}
	x := append([]float64{}, m.X...)
	for i := range x {
		at := func(v float64) float64 {
			x[i] = v
			return m.value(x)
		}
		from, level := m.X[i], m.V-m.ExpFloat64()
		x[i], m.V = c.coordinate(m, at, from, level, m.Width[i])
		m.X = append([]float64{}, x...)
		m.Sum[i] += math.Abs(x[i] - from)
	}
}

// learn reads the widths of a window.
func (c Slice) learn(m *chain, read, forget bool) {
	m.N++
	for i, sum := range m.Sum {
		if w := 3 * sum / float64(m.N); read && w > 0 {
			m.Width[i] = w
		}
	}
	if forget {
		m.forget()
	}
}

// coordinate moves one coordinate within its slice, and returns where it is and the log density there.
func (c Slice) coordinate(m *move, at func(float64) float64, from, level, w float64) (float64, float64) {
	left := from - w*m.Float64()
	right := left + w
	inside := func(v float64) bool { return at(v) > level }
	if c.Doubling {
		l, r := inside(left), inside(right)
		for k := c.MaxSteps; k > 1 && (l || r); k /= 2 {
			if m.Float64() < 0.5 {
				left -= right - left
				l = inside(left)
			} else {
				right += right - left
				r = inside(right)
			}
		}
	} else {
		steps := m.IntN(c.MaxSteps)
		for k := steps; k > 0 && inside(left); k-- {
			left -= w
		}
		for k := c.MaxSteps - 1 - steps; k > 0 && inside(right); k-- {
			right += w
		}
	}
	for l, r := left, right; ; {
		to := l + m.Float64()*(r-l)
		v := at(to)
		if v > level && (!c.Doubling || reaches(inside, from, to, left, right, w)) {
			return to, v
		}
		if to == from || !(r-l > 0) { // numbers end here
			return from, at(from)
		}
		if to < from {
			l = to
		} else {
			r = to
		}
	}
}

// reaches says whether doubling from the point to could have made the interval (Neal 2003, figure 6): halving it
// towards the point, no half that parts it from the start has both ends outside of the slice.
func reaches(inside func(float64) bool, from, to, left, right, w float64) bool {
	parted := false
	for right-left > 1.1*w {
		middle := (left + right) / 2
		parted = parted || (from < middle) != (to < middle)
		if to < middle {
			right = middle
		} else {
			left = middle
		}
		if parted && !inside(left) && !inside(right) {
			return false
		}
	}
	return true
}
