package kernel

import "math"

// Bounce folds x back between two walls, either of which may be infinite, as a particle on a straight line is that they
// reflect: it is where the line ends, and back says whether the particle comes back from there, so that its momentum
// changes its sign. A drift with Bounce keeps the volume and is reversible, so that Hamiltonian Monte Carlo with it has
// the law within the walls (Neal 2011, section 5.5.1.5). Without walls, and for an x that is not finite, x stays.
func Bounce(x, lower, upper float64) (folded float64, back bool) {
	if x >= lower && x <= upper || math.IsInf(x, 0) {
		return x, false
	}
	switch {
	case math.IsInf(upper, 1):
		return 2*lower - x, true
	case math.IsInf(lower, -1):
		return 2*upper - x, true
	}
	// Two reflections are a shift by twice the width.
	width := upper - lower
	at := math.Mod(x-lower, 2*width)
	if at < 0 {
		at += 2 * width
	}
	if at > width {
		return math.Max(lower, upper-(at-width)), true
	}
	return math.Min(upper, lower+at), false
}
