package diag

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// structural says of each element whether it is a constant by the structure of its site: a zero or a one of square
// matrices that move elsewhere, such as the triangle above the diagonal of a Cholesky factor, whose row has a number at
// most at its start, and the diagonal of a correlation. Nothing was sampled there, and nothing is amiss.
func structural(d *draws.Draws) []bool {
	out := make([]bool, d.Dim())
	for _, s := range d.Sites() {
		n := len(s.Shape)
		if n < 2 || s.Shape[n-1] != s.Shape[n-2] || s.Shape[n-1] < 2 {
			continue
		}
		moves := false
		for i := s.Offset; i < s.Offset+s.Size; i++ {
			low, high := sample.Extremes(traces(d, i))
			out[i] = oneNumber(low, high) && (low == 0 || math.Abs(low-1) <= rounding)
			moves = moves || low < high && !out[i]
		}
		for i := s.Offset; i < s.Offset+s.Size && !moves; i++ {
			out[i] = false
		}
	}
	return out
}

// Limits of what is said of chains beside one another.
const (
	unlikeSteps = 10  // factor between the step sizes of chains: adaptation ends within a factor of 2
	unfinished  = 0.9 // part of the longest chain
)

// unlike compares chains: their step sizes, and whether each has moved at all. A chain that stands still after its
// warm-up has no draws of the posterior; points of optimisers and of fits are to do so.
func (g *diagnosis) unlike() {
	if g.cold || g.family == optimiser || g.family == fitted || g.d.MinLen() < minDraws {
		return
	}
	var steps []float64
	for _, trace := range g.traces(draws.StatStepSize) {
		x := slices.Sorted(slices.Values(trace))
		steps = append(steps, sample.Quantile(x, 0.5))
	}
	if len(steps) > 1 && g.family != gradient {
		low, high := slices.Min(steps), slices.Max(steps)
		if low > 0 && high/low >= unlikeSteps {
			g.run(codeSteps, Warning, high/low, unlikeSteps, "the step sizes of the chains differ by a factor of %.2g: %.2g in "+
				"chain %d, %.2g in chain %d", high/low, low, slices.Index(steps, low), high, slices.Index(steps, high))
		}
	}
	still := make([]bool, g.d.Chains())
	for c := range still {
		still[c] = true
		for i := 0; i < g.d.Dim() && still[c]; i++ {
			low, high := sample.Extremes([][]float64{g.d.Element(c, i)})
			still[c] = low == high
		}
	}
	known := g.family == hamiltonian || g.family == microcanonical || g.family == gradient
	for c := range still {
		// Draws from elsewhere may be of constants alone; one chain of several may not.
		if still[c] && (known || slices.Contains(still, false)) {
			g.run(codeStill, Serious, 0, 0, "chain %d never moved: all of its %d draws are the same", c, g.d.Len(c))
			g.Findings[len(g.Findings)-1].Chain = c
		}
	}
}
