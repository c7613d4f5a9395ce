package kernel

import (
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
)

// How a length is found; see [Microcanonical].
const (
	mostTracked  = 32 // coordinates
	leastTracked = 20 // draws
	// (1 − ρ)/(1 + ρ) with ρ = sin(2)/2, the autocorrelation of a standard normal target in many dimensions after a time
	// that is uniform from 0 to 2√d.
	lengthFactor = 0.375
	mostLonger   = 8
)

// approach says to the kernel whether a chain is in the first half of its warm-up.
func (r *runner) approach(c *chain) {
	if t, ok := c.transition.(*microcanonical); ok {
		t.approach = c.Done < r.Warmup/2
	}
}

// lengthen takes warm-up transition i for the length of trajectories. MCLMC finds its step size anew
// for the second half.
func (r *runner) lengthen(c *chain, i int) {
	t, ok := c.transition.(*microcanonical)
	if !ok {
		return
	}
	if t.Unadjusted && i == r.Warmup/2-1 {
		c.NeedStep = !r.KeepStep
	}
	if t.Length > 0 {
		return
	}
	first, last := r.Warmup/2, r.schedule.Final
	if i < first || i >= last {
		return
	}
	n := min(r.d, mostTracked)
	for j := range n {
		c.Track = append(c.Track, c.Point.X[j*r.d/n])
	}
	rows := len(c.Track) / n
	if i < last-1 || rows < leastTracked {
		return
	}
	sum := 0.0
	x := make([]float64, rows)
	for j := range n {
		for k := range x {
			x[k] = c.Track[k*n+j]
		}
		tau := float64(rows) / diag.ESSBasic([][]float64{x})
		if math.IsNaN(tau) { // it never moved
			tau = float64(rows)
		}
		sum += tau / float64(n)
	}
	c.Point.Length = t.length(&c.Point) * math.Max(1, math.Min(lengthFactor*sum, mostLonger))
	c.Track = nil
}
