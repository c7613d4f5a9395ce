package kernel

import "math"

// schedule are the windows of a warm-up, the same for all chains: five of ten transitions, then each half as long
// again, the last one up to where the step size adapts alone, 15 % before the end.
//
// A diagonal metric follows the draws: it is made after each transition from the draws of two windows, the one that is
// open and the one before, and their gradients (nutpie; Seyboldt, Carlson and Carpenter 2026). So every draw counts at
// once, and one far from the target not for long. Metrics with correlations are made at the ends of windows. Up to the
// first of them a chain has the diagonal one; the first of all is M⁻¹ᵢᵢ = 1/|gᵢ|, of the gradient g at the start.
//
// A chain still climbs where the mean log density of a window is higher than that of the window before by more than two
// standard deviations. Then nothing of the past is kept, the step size is found anew, and up to three times it tries
// another start; so does a chain that stands still. The step size is also found anew where three transitions in a row
// accept next to nothing, or take the deepest trees although they accept nearly everything, since dual averaging moves
// it by small factors only.
//
// With Stan's γ = 0.05 and μ = log 10ε₀ one transition still moves log ε by 0.4 after a hundred, and since the
// acceptance falls faster above the best ε than it rises below, the mean of log ε is too small for hundreds of
// transitions. NUTS has γ = 0.2 and μ = log 2ε₀ here. That meets the target acceptance, where Stan's constants stay
// above it. On posteriors that are nearly normal the larger steps are a gain. Where the curvature varies, as in
// hierarchical models of few groups, they diverge, and a chain can stand still for long. So the default target is
// raised once, for good, in a chain that meets such a place after the first 30 % of its warm-up.
type schedule struct {
	Ends  []int // the last transition of each window
	Final int   // the first transition with the step size alone
}

const (
	shortWindows, shortWindow = 5, 10
	windowGrowth              = 1.5
	leastDraws                = 3  // for a metric
	leastWarmup               = 20 // transitions; shorter ones adapt the step size alone

	followingGamma, followingPull = 0.2, 2 // of the dual averaging of NUTS

	raisedTarget = 0.9
	trouble      = 1e-5 // a mean acceptance of a transition below this one is trouble, as a divergence is

	climbing   = 2    // standard deviations
	stuck      = 0.01 // of the natural one
	lowAccept  = 0.1
	highAccept = 0.95
	patience   = 3 // transitions
)

func newSchedule(warmup int) schedule {
	s := schedule{Final: warmup - int(0.15*float64(warmup))}
	length := float64(shortWindow)
	for begin := 0; ; {
		if len(s.Ends) >= shortWindows {
			length = math.Round(windowGrowth * length)
		}
		next := length
		if len(s.Ends)+1 >= shortWindows {
			next = math.Round(windowGrowth * length)
		}
		if begin+int(length+next) > s.Final {
			s.Ends = append(s.Ends, s.Final-1)
			return s
		}
		begin += int(length)
		s.Ends = append(s.Ends, begin-1)
	}
}

// End reports whether transition i is the last of a window.
func (s schedule) End(i int) bool {
	for _, e := range s.Ends {
		if e == i {
			return true
		}
	}
	return false
}

// height are the log densities of a window.
type height struct {
	N        int
	Mean, M2 float64
}

// Add takes the log density of one transition.
func (h *height) Add(logp float64) {
	h.N++
	delta := logp - h.Mean
	h.Mean += delta / float64(h.N)
	h.M2 += delta * (logp - h.Mean)
}

// sd is the standard deviation.
func (h height) sd() float64 { return math.Sqrt(h.M2 / float64(h.N-1)) }

// natural is the standard deviation of the log density of draws of a normal target.
func (c *chain) natural() float64 { return c.Temperature * math.Sqrt(0.5*float64(len(c.Point.X))) }

// climbs reports whether a chain climbed from one window to the next by more than noise.
func (c *chain) climbs(from, to height) bool {
	return from.N >= shortWindow && to.N >= shortWindow && to.Mean-from.Mean > climbing*math.Max(to.sd(), c.natural())
}

// stuck reports whether a chain stood still: its log density hardly varied, where it has a gradient.
func (c *chain) stuck(h height) bool {
	steep := false
	for _, g := range c.Point.Grad {
		steep = steep || g != 0
	}
	return steep && h.N >= shortWindow && !(h.sd() > stuck*c.natural())
}

// Lost says of a chain that it had not arrived when its warm-up ended.
type Lost struct {
	Chain      int     // its number in the run
	Still      bool    // it stood still; else its log density still rose
	Restarts   int     // other starts that it tried
	Coordinate int     // of the largest gradient, in absolute value
	Gradient   float64 // ∂ log p there
}

// judge says whether a chain is lost at the end of its warm-up.
func (r *runner) judge(c *chain) {
	still := c.stuck(c.Height)
	if !still && !c.climbs(c.Before, c.Height) {
		return
	}
	l := Lost{Chain: c.Number, Still: still, Restarts: c.Restarts}
	for i, g := range c.Point.Grad {
		if math.Abs(g) >= math.Abs(c.Point.Grad[l.Coordinate]) {
			l.Coordinate = i
		}
	}
	l.Gradient = c.Point.Grad[l.Coordinate]
	c.Lost = &l
}

// averagesOf is the dual averaging of a chain after warm-up transition i.
func (r *runner) averagesOf(c *chain, i int, info Info) dualAveraging {
	a := r.averages
	if !r.raises {
		return a
	}
	early := int(0.3 * float64(r.Warmup))
	c.Raised = c.Raised || i >= early && (info.Divergent || info.Accept < trouble)
	if c.Raised {
		a.Target = raisedTarget
	}
	return a
}

// startMetric makes the first metric of the gradient at the start. Where that is next to nothing, as at a mode,
// standard deviations are at most 1, or the size of the number itself.
func (r *runner) startMetric(c *chain) {
	v := c.tempered()
	inverse := make([]float64, r.d)
	for i, g := range v {
		x := math.Max(1, math.Abs(c.Point.X[i]))
		inverse[i] = math.Min(math.Max(1/math.Abs(g), 1e-20), x*x)
	}
	if lower, upper, ok := c.box(); ok { // half of whose width is more than any standard deviation in it
		for i := range inverse {
			half := 0.5 * (upper[i] - lower[i])
			inverse[i] = math.Min(inverse[i], math.Max(half*half, 1e-20))
		}
	}
	_ = c.setMetric(diagonalMetric(inverse)) // which is one: its numbers are positive
}

// follow takes warm-up transition i for the metric.
func (r *runner) follow(c *chain, i int, info Info) {
	c.Height.Add(c.Point.LogP)
	if i == r.Warmup-1 && r.climbsFirst(c) {
		r.judge(c)
	}
	if i >= r.schedule.Final {
		return
	}
	r.astray(c, info)
	// A chain that does not move yet says nothing of the target's width.
	if r.follows && (info.Accepted || i >= 3*r.Warmup/10) {
		grad := c.tempered()
		c.Mass.Add(c.Point.X, grad)
		c.Next.Add(c.Point.X, grad)
	}
	switch {
	case r.schedule.End(i):
		r.close(c)
	case r.follows && !r.Pooled && c.Form != correlated && c.Mass.X.N >= leastDraws:
		r.renewDiagonal(c)
	}
}

// close ends a window of a chain.
func (r *runner) close(c *chain) {
	climbs := c.climbs(c.Before, c.Height)
	c.Restart = (climbs || c.stuck(c.Height)) && c.Restarts < mostRestarts && r.climbsFirst(c)
	c.Before, c.Height = c.Height, height{}
	if climbs {
		c.NeedStep = c.NeedStep || r.averaged()
		c.Mass.Reset()
		c.Mass.Merge(c.Next)
	}
	if r.follows && !r.Pooled {
		f, m := r.choose(c, climbs)
		r.remake(c, f, m)
	}
}

// remake takes the metric of a window's end, which has a form, and opens the next window.
func (r *runner) remake(c *chain, f form, m Metric) {
	if r.renew(c, m) && f != c.Form {
		c.Form, c.NeedStep = f, c.NeedStep || r.averaged()
	}
	c.Mass, c.Next = c.Next, c.Mass
	c.Next.Reset()
}

// renew takes a metric, if it is one.
func (r *runner) renew(c *chain, m Metric) bool {
	if c.setMetric(m) != nil {
		return false
	}
	c.Point.Momentum = nil // it had the law of the old metric
	if !c.Estimated {      // the step size of a fitted metric is near the best already
		c.NeedStep = !r.KeepStep
	}
	c.Estimated = true
	return true
}

// renewDiagonal makes a diagonal metric of the draws so far, without memory of its own.
func (r *runner) renewDiagonal(c *chain) {
	diagonal, ok := c.metric.(*diagonalMass)
	if !ok || diagonal.unit || !c.Estimated {
		r.renew(c, c.Mass.Diagonal(c.Form))
		return
	}
	c.Mass.variances(c.scaled, c.Form)
	if allPositive(c.scaled) {
		diagonal.set(c.scaled)
		copy(c.chainState.Metric.Diag, c.scaled)
		c.Point.Momentum = nil // it had the law of the old metric
	}
}

// astray finds the step size anew where transitions in a row accept next to nothing, or take the deepest trees although
// they accept nearly everything.
func (r *runner) astray(c *chain, info Info) {
	c.Off++
	if !(info.Accept < lowAccept || info.MaxDepth && info.Accept > highAccept) {
		c.Off = 0
	}
	if c.Off == patience {
		c.Off, c.NeedStep = 0, c.NeedStep || r.averaged()
	}
}
