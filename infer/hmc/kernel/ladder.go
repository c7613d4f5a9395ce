package kernel

import (
	"fmt"
	"math"
	"slices"
)

// firstRound is the number of swaps in the first round of an adapting ladder. Each next round has twice as many.
const firstRound = 8

// checkLadder checks what the ladder needs, once SwapEvery and Warmup have their defaults.
func (o *Options) checkLadder() error {
	const typ = "kernel.Options"
	if o.Ladder == nil {
		return nil
	}
	if len(o.Ladder) < 2 {
		return &FieldError{Type: typ, Field: "Ladder", Value: o.Ladder, Allowed: "it must have at least two temperatures"}
	}
	for i, t := range o.Ladder {
		switch {
		case o.Path != "" && (!(t >= 0) || !finite(t) || i > 0 && t >= o.Ladder[i-1]):
			return &FieldError{Type: typ, Field: fmt.Sprintf("Ladder[%d]", i), Value: t,
				Allowed: "inverse temperatures must not be negative, and fall"}
		case o.Path == "" && (!(t > 0) || !finite(t) || i > 0 && t <= o.Ladder[i-1]):
			return &FieldError{Type: typ, Field: fmt.Sprintf("Ladder[%d]", i), Value: t,
				Allowed: "temperatures must be positive and rise"}
		}
	}
	if least := 2 * firstRound * o.SwapEvery; o.Adapt && o.Warmup < least {
		return &FieldError{Type: typ, Field: "Warmup", Value: o.Warmup,
			Allowed: fmt.Sprintf("with Adapt and swaps every %d transitions it must be at least %d", o.SwapEvery, least)}
	}
	if o.Pooled {
		return &FieldError{Type: typ, Field: "Pooled", Value: true,
			Allowed: "the chains have different temperatures, so it must be false"}
	}
	if o.Schedule != nil || o.Temperature != 1 {
		return &FieldError{Type: typ, Field: "Temperature", Value: o.Temperature,
			Allowed: "the temperatures are those of the Ladder, so it must be left out"}
	}
	o.Ladder = slices.Clone(o.Ladder)
	return nil
}

// swapEvery is the default.
func (o *Options) swapEvery() int {
	if o.Adapt {
		return 1
	}
	return 10
}

// ladderRounds are the numbers of swaps after which an adapting ladder moves: the ends of rounds of doubling length in
// the first half of the warm-up. A round that would leave too little room for the next one is stretched to the end.
func ladderRounds(o Options) (ends []int) {
	if !o.Adapt || o.Ladder == nil {
		return nil
	}
	limit := o.Warmup / 2 / o.SwapEvery
	for begin, size := 0, firstRound; begin < limit; size *= 2 {
		end := begin + size
		if end+2*size > limit {
			end = limit
		}
		ends = append(ends, end)
		begin = end
	}
	return ends
}

// adapts says whether a ladder has moves to come.
func (r *runner) adapts(s *Swaps) bool {
	return len(r.rounds) > 0 && s.Rounds < r.rounds[len(r.rounds)-1]
}

// moveLadders moves the rungs of the ladders whose round has ended.
func (r *runner) moveLadders() error {
	n := len(r.Ladder)
	var points [][]float64
	var at []float64
	var chains []*chain
	var ladders []int
	for l, s := range r.swaps {
		if !slices.Contains(r.rounds, s.Rounds) {
			continue
		}
		rungs, ok := s.equalised(r.Path == "")
		clear(s.Looked)
		clear(s.Refused)
		if !ok {
			continue
		}
		ladders = append(ladders, l)
		for i, rung := range rungs {
			c := r.chains[l*n+i]
			points, at, chains = append(points, c.Point.X), append(at, rung), append(chains, c)
		}
	}
	if len(ladders) == 0 {
		return nil
	}
	moved := make([]position, len(points))
	if r.tempered {
		var err error
		if moved, err = r.positions(points, at, chains); err != nil {
			return err
		}
	} else {
		for i, c := range chains {
			moved[i] = c.Point
		}
	}
	for k, l := range ladders {
		r.place(r.swaps[l], chains[k*n:(k+1)*n], at[k*n:(k+1)*n], moved[k*n:(k+1)*n])
	}
	return nil
}

// place puts the chains of a ladder on new rungs. Where a point is not finite on its new one, the ladder stays.
func (r *runner) place(s *Swaps, chains []*chain, at []float64, moved []position) {
	for _, p := range moved {
		if math.IsNaN(p.LogP) {
			return
		}
	}
	for i, c := range chains {
		if at[i] == s.Ladder[i] {
			continue
		}
		*r.coordinate(c) = at[i]
		c.Point.X, c.Point.Grad, c.Point.LogP = moved[i].X, moved[i].Grad, moved[i].LogP
		c.NeedStep = !r.KeepStep
	}
	copy(s.Ladder, at)
}

// leastRefused keeps a pair that never refuses from having no place on the ladder.
const leastRefused = 1e-3

// equalised are the rungs at which the barrier of the round is i/(n-1) of its total; the ends stay. It is false where a
// pair was not looked at, or two rungs would be one number.
func (s *Swaps) equalised(logarithm bool) ([]float64, bool) {
	n := len(s.Ladder)
	x, barrier := slices.Clone(s.Ladder), make([]float64, n)
	for i := range n - 1 {
		if s.Looked[i] == 0 {
			return nil, false
		}
		barrier[i+1] = barrier[i] + math.Max(leastRefused, s.Refused[i]/float64(s.Looked[i]))
	}
	if logarithm {
		for i := range x {
			x[i] = math.Log(x[i])
		}
	}
	curve := newMonotone(x, barrier)
	out := slices.Clone(s.Ladder)
	rises := out[n-1] > out[0]
	for i := 1; i < n-1; i++ {
		at := curve.inverse(barrier[n-1] * float64(i) / float64(n-1))
		if logarithm {
			at = math.Exp(at)
		}
		out[i] = at
	}
	for i := range n - 1 {
		if out[i] == out[i+1] || (out[i+1] > out[i]) != rises {
			return nil, false
		}
	}
	return out, true
}

// monotone is a cubic through points that rise in y, between which it rises too (Fritsch and Carlson 1980): piecewise,
// with a slope at each point that is the harmonic mean of those beside it.
type monotone struct{ x, y, slope []float64 }

// newMonotone takes x that rise or fall, and y that rise.
func newMonotone(x, y []float64) monotone {
	n := len(x)
	m := monotone{x, y, make([]float64, n)}
	secant := func(i int) float64 { return (y[i+1] - y[i]) / (x[i+1] - x[i]) }
	m.slope[0], m.slope[n-1] = secant(0), secant(n-2)
	for i := 1; i < n-1; i++ {
		a, b := secant(i-1), secant(i)
		// The weights are those of Fritsch and Butland (1984): the wider interval counts less.
		h, k := math.Abs(x[i]-x[i-1]), math.Abs(x[i+1]-x[i])
		m.slope[i] = 3 * (h + k) / ((2*k+h)/a + (k+2*h)/b)
	}
	return m
}

// at is the value at a fraction u of piece i.
func (m monotone) at(i int, u float64) float64 {
	h := m.x[i+1] - m.x[i]
	v := 1 - u
	return m.y[i]*v*v*(1+2*u) + m.y[i+1]*u*u*(3-2*u) + h*u*v*(m.slope[i]*v-m.slope[i+1]*u)
}

// inverse is the x at which the value is y, by bisection.
func (m monotone) inverse(y float64) float64 {
	i := 0
	for i < len(m.y)-2 && m.y[i+1] < y {
		i++
	}
	low, high := 0.0, 1.0
	for range 60 {
		mid := 0.5 * (low + high)
		if m.at(i, mid) < y {
			low = mid
		} else {
			high = mid
		}
	}
	return m.x[i] + 0.5*(low+high)*(m.x[i+1]-m.x[i])
}
