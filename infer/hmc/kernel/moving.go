package kernel

import "math"

// moving is the warm-up of nutpie (Seyboldt, Carlson and Carpenter 2026), in which the metric follows the draws: it is
// estimated after each transition, from the draws of two windows and their gradients. When the later window has its
// length, the draws of the earlier one are forgotten and another window begins. So every draw counts at once, and one
// far from the target counts for two windows only. The first windows are short. Later ones grow, as long as one more
// ends before the last transitions, in which only the step size adapts.
//
// The step size adapts throughout, by one dual averaging. The metric starts from the gradient g, as M⁻¹ᵢᵢ = 1/|gᵢ|.
//
// With Stan's γ = 0.05 and μ = log 10ε₀ one transition still moves log ε by 0.4 after a hundred, and since the
// acceptance falls faster above the best ε than it rises below, the mean of log ε is too small for hundreds of
// transitions. NUTS has γ = 0.2 and μ = log 2ε₀ here, which on the posteriors of bench/pathfinder takes less gradients
// for an effective draw, after short warm-ups and long ones.
//
// That meets the target acceptance, where Stan's schedule stays above it. On posteriors that are nearly normal
// the larger steps are a gain. Where the curvature varies, as in hierarchical models of few groups, they diverge, and a
// chain can stand still for long. So the default target is raised once, for good, in a chain that meets such a place
// while it warms up.
type moving struct {
	Early int // transitions with short windows: 30 % of the warm-up
	Final int // the first transition with the step size alone: 15 % before the end
}

const (
	shortWindow  = 10
	firstWindow  = 80  // after the short ones
	windowGrowth = 1.5 // of each to the next
	leastDraws   = 3   // for a metric
	replacing    = 20  // the same, where the metric that there is was fitted to the target

	movingGamma, movingPull = 0.2, 2 // of the dual averaging of NUTS

	raisedTarget = 0.9
	trouble      = 1e-5 // a mean acceptance of a transition below this one is trouble, as a divergence is
)

func newMoving(warmup int) moving {
	return moving{Early: int(0.3 * float64(warmup)), Final: warmup - int(0.15*float64(warmup))}
}

// of is the warm-up of a chain. One that begins near the target has no short windows.
func (s moving) of(c *chain) (moving, int) {
	if c.Near {
		s.Early = 0
		return s, replacing
	}
	return s, leastDraws
}

// lengths are those of the window that is under way at transition i, given that it is n after the short ones, and of
// the one to follow.
func (s moving) lengths(i, n int) (length, next int) {
	if i < s.Early {
		return shortWindow, shortWindow
	}
	return n, int(math.Round(windowGrowth * float64(n)))
}

// averagesOf is the dual averaging of a chain after warm-up transition i.
func (r *runner) averagesOf(c *chain, i int, info Info) dualAveraging {
	a := r.averages
	if !r.raises {
		return a
	}
	c.Raised = c.Raised || i >= r.moving.Early && (info.Divergent || info.Accept < trouble)
	if c.Raised {
		a.Target = raisedTarget
	}
	return a
}

// startMetric makes the first metric of the gradient at the start.
func (r *runner) startMetric(c *chain) {
	v := c.tempered()
	inverse := make([]float64, r.d)
	for i, g := range v {
		inverse[i] = math.Min(math.Max(1/math.Abs(g), 1e-20), 1e20)
	}
	if lower, upper, ok := c.box(); ok { // half of whose width is more than any standard deviation in it
		for i := range inverse {
			half := 0.5 * (upper[i] - lower[i])
			inverse[i] = math.Min(inverse[i], math.Max(half*half, 1e-20))
		}
	}
	m := diagonalMetric(inverse)
	m.Kind = r.Metric
	_ = c.setMetric(m) // which is one: its numbers are positive
}

// follow takes warm-up transition i for the metric.
func (r *runner) follow(c *chain, i int, info Info) {
	s, least := r.moving.of(c)
	if i >= s.Final {
		return
	}
	if i == s.Early {
		c.Window = max(firstWindow, c.Next.X.N)
	}
	// A chain that does not move yet says nothing of the target's width.
	if info.Accepted || i >= s.Early {
		grad := c.tempered()
		c.Mass.Add(c.Point.X, grad)
		c.Next.Add(c.Point.X, grad)
	}
	length, next := s.lengths(i, c.Window)
	closed := c.Next.X.N >= length && i+next <= s.Final
	if closed {
		c.Mass, c.Next = c.Next, c.Mass
		c.Next.Reset()
		c.Window = next
	}
	// A low-rank metric is costly: it waits until there are half as many draws again.
	n := c.Mass.X.N
	if n < least || r.Metric == LowRank && !closed && 2*n < 3*c.Estimated {
		return
	}
	if !r.estimate(c) {
		return
	}
	c.Point.Momentum = nil           // it had the law of the old metric
	if c.Estimated == 0 && !c.Near { // the step size of a fitted metric is near the best already
		c.NeedStep = !r.KeepStep
	}
	c.Estimated = n
}

// estimate makes the metric of the draws so far, and reports whether there is one. A diagonal one takes no memory.
func (r *runner) estimate(c *chain) bool {
	diagonal, ok := c.metric.(*diagonalMass)
	if !ok || diagonal.unit || r.Metric != Diagonal {
		m, ok := c.Mass.Estimate(r.low())
		return ok && c.setMetric(m) == nil
	}
	fisherDiagonal(c.scaled, c.Mass.X, c.Mass.Grad)
	if !allPositive(c.scaled) {
		return false
	}
	diagonal.set(c.scaled)
	copy(c.chainState.Metric.Diag, c.scaled)
	return true
}
