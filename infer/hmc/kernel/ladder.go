package kernel

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/internal/ladder"
)

// firstRound is the number of swaps in the first round of an adapting ladder. Each next round has twice as many.
const firstRound = 8

// checkLadder checks what the ladder needs, once SwapEvery and Warmup have their defaults.
func (o *Options) checkLadder() error {
	if o.Ladder == nil {
		return nil
	}
	c := checks{typ: "kernel.Options"}
	c.require(len(o.Ladder) >= 2, "Ladder", o.Ladder, "it must have at least two temperatures")
	for i, t := range o.Ladder {
		switch {
		case o.Path != "" && (!(t >= 0) || !finite(t) || i > 0 && t >= o.Ladder[i-1]):
			c.require(false, fmt.Sprintf("Ladder[%d]", i), t, "inverse temperatures must not be negative, and fall")
		case o.Path == "" && (!(t > 0) || !finite(t) || i > 0 && t <= o.Ladder[i-1]):
			c.require(false, fmt.Sprintf("Ladder[%d]", i), t, "temperatures must be positive and rise")
		}
	}
	least := 2 * firstRound * o.SwapEvery
	c.require(!o.Adapt || o.Warmup >= least, "Warmup", o.Warmup,
		fmt.Sprintf("with Adapt and swaps every %d transitions it must be at least %d", o.SwapEvery, least))
	c.require(!o.Pooled, "Pooled", true, "the chains have different temperatures, so it must be false")
	c.require(o.Schedule == nil && o.Temperature == 1, "Temperature", o.Temperature,
		"the temperatures are those of the Ladder, so it must be left out")
	o.Ladder = slices.Clone(o.Ladder)
	return c.err
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

// equalised are the rungs at which the barrier of the round is i/(n-1) of its total; the ends stay. It is false where a
// pair was not looked at, or two rungs would be one number.
func (s *Swaps) equalised(logarithm bool) ([]float64, bool) {
	n := len(s.Ladder)
	x, refused := slices.Clone(s.Ladder), make([]float64, n-1)
	for i := range refused {
		if s.Looked[i] == 0 {
			return nil, false
		}
		refused[i] = s.Refused[i] / float64(s.Looked[i])
	}
	if logarithm {
		for i := range x {
			x[i] = math.Log(x[i])
		}
	}
	out := ladder.Equal(x, refused, n, ladder.Cubic)
	if logarithm {
		for i := range out {
			out[i] = math.Exp(out[i])
		}
	}
	out[0], out[n-1] = s.Ladder[0], s.Ladder[n-1]
	rises := out[n-1] > out[0]
	for i := range n - 1 {
		if out[i] == out[i+1] || (out[i+1] > out[i]) != rises {
			return nil, false
		}
	}
	return out, true
}
