package evidence

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// cloud is the particles of one chain: all that the next stage depends on.
type cloud struct {
	Rows      *rows
	LogW      []float64 // log weights, whose exponentials sum to 1
	LogZ      float64   // of the target at β
	Beta, Eps float64
	Stage     int
	Seed      uint64
	Chain     uint64    // the number of its random stream
	Offset    uint64    // and the place in it
	Variance  float64   // of log Z, if the moves made all particles independent
	Settled   float64   // and what it was when the weights were last made equal
	Scale     []float64 // variance of the particles in each dimension
	Family    []int     // the particle at β = 0 from which each descends
	Least     float64   // the smallest mean acceptance of a stage
	Frozen    float64   // the largest correlation of the slopes over the moves of a stage
	Gradients int
	Ended     bool
	steps     []float64 // the step sizes of the last stage's transitions

	Betas, Means, SDs []float64 // of the slopes, for the trace
}

func (c *cloud) trace() Trace {
	return Trace{X: c.Betas, Y: c.Means, SD: c.SDs, XLabel: "β", YLabel: "mean slope"}
}

// begin draws the particles at β = 0.
func (s *sampler) begin(m *mover, seed, chain uint64, n int, logZ0 float64) (*cloud, error) {
	x, err := m.e.Start(n, seed, starts(chain))
	if err != nil {
		return nil, err
	}
	c := &cloud{Rows: newRows(n, m.d), LogW: make([]float64, n), LogZ: logZ0, Seed: seed, Chain: chain, Least: 1,
		Eps: math.Pow(float64(m.d), -0.25), Scale: make([]float64, m.d), Family: make([]int, n)}
	copy(c.Rows.X, x)
	for i := range n {
		c.Family[i] = i
		c.LogW[i] = -math.Log(float64(n))
	}
	for j := range c.Scale {
		c.Scale[j] = 1
	}
	return c, c.evaluate(m)
}

// evaluate evaluates the particles at β.
func (c *cloud) evaluate(m *mover) error {
	for i := range c.Rows.Beta {
		c.Rows.Beta[i] = c.Beta
	}
	before := m.count
	err := m.eval(c.Rows)
	c.Gradients += m.count - before
	return err
}

// stage takes the cloud to the next β, as a plan says or as its own particles do.
func (s *sampler) stage(m *mover, c *cloud, p *plan) error {
	before := m.count
	c.note()
	increments := c.increments(m)
	next, err := s.next(c, increments, p)
	if err != nil {
		return err
	}
	log, err := increments(next)
	if err != nil {
		return err
	}
	c.reweigh(log)
	if !finite(c.LogZ) {
		return fmt.Errorf("no particle has a density that is finite at β = %.3g: %w", next, infer.ErrNonFinite)
	}
	if p != nil {
		c.Scale = p.Scale[c.Stage]
	} else {
		c.measure(m.d, s.annealed)
	}
	c.Beta = next
	c.Stage++
	numbers := newNumbers(c.Seed, c.Chain, c.Offset)
	if last := next == 1 && !s.Weighted; !s.annealed && (!s.Conditional || last ||
		sample.Effective(c.LogW) < 0.5*float64(len(c.LogW))) {
		u, err := numbers.uniforms(len(c.LogW))
		if err != nil {
			return err
		}
		c.resample(u[0], m.d)
	}
	c.Gradients += m.count - before
	if err := c.evaluate(m); err != nil {
		return err
	}
	before = m.count
	err = s.moves(m, c, &numbers, p)
	c.Gradients += m.count - before
	c.Offset, c.Ended = numbers.Offset, next == 1
	if c.Ended {
		c.note()
	}
	return err
}

// note keeps mean and standard deviation of the slopes for the trace.
func (c *cloud) note() {
	mean, square := 0.0, 0.0
	for i, w := range c.LogW {
		mean += math.Exp(w) * c.Rows.Slope[i]
	}
	for i, w := range c.LogW {
		d := c.Rows.Slope[i] - mean
		square += math.Exp(w) * d * d
	}
	if finite(mean) && finite(square) {
		c.Betas, c.Means, c.SDs = append(c.Betas, c.Beta), append(c.Means, mean), append(c.SDs, math.Sqrt(square))
	}
}

// increments are the logarithms of the weights that a step to another β gives. On a path that is not linear they take
// an evaluation.
func (c *cloud) increments(m *mover) func(beta float64) ([]float64, error) {
	out := make([]float64, len(c.LogW))
	return func(beta float64) ([]float64, error) {
		if m.e.Linear() {
			for i, slope := range c.Rows.Slope {
				if out[i] = (beta - c.Beta) * slope; math.IsNaN(out[i]) {
					out[i] = math.Inf(-1)
				}
			}
			return out, nil
		}
		at := newRows(len(out), m.d)
		copy(at.X, c.Rows.X)
		for i := range at.Beta {
			at.Beta[i] = beta
		}
		err := m.eval(at)
		for i := range out {
			if out[i] = at.LogP[i] - c.Rows.LogP[i]; math.IsNaN(out[i]) {
				out[i] = math.Inf(-1)
			}
		}
		return out, err
	}
}

// next is the β of the next stage: that of the ladder or the plan, or where the effective size falls to its target.
func (s *sampler) next(c *cloud, increments func(float64) ([]float64, error), p *plan) (float64, error) {
	switch {
	case s.Ladder != nil:
		return s.Ladder[c.Stage+1], nil
	case p != nil:
		return p.Beta[c.Stage], nil
	}
	weights := c.LogW
	if s.annealed { // all count alike: a few have nearly all of the weight by and by, and each is of the law at β
		weights = make([]float64, len(weights))
		for i := range weights {
			weights[i] = -math.Log(float64(len(weights)))
		}
	}
	size := func(beta float64) (float64, error) {
		log, err := increments(beta)
		if err != nil {
			return 0, err
		}
		once, twice := make([]float64, len(log)), make([]float64, len(log))
		for i, l := range log {
			if once[i] = weights[i] + l; s.Conditional {
				twice[i] = weights[i] + 2*l
			} else {
				twice[i] = 2 * (weights[i] + l)
			}
		}
		v := math.Exp(2*sample.LogSumExp(once) - sample.LogSumExp(twice))
		if s.Conditional {
			v *= float64(len(log))
		}
		return v, nil
	}
	// A particle that the data exclude has no weight however small the step is: the target is a fraction of the others.
	nearest := math.Nextafter(c.Beta, 2)
	all, err := size(nearest)
	if err != nil {
		return 0, err
	}
	if !(all >= 1) {
		return 0, fmt.Errorf("the likelihood is 0 at every particle of the start: use more particles (Options.Draws), or a "+
			"prior nearer to the data: %w", infer.ErrNonFinite)
	}
	target := s.ESS * all
	if v, err := size(1); err != nil || v >= target {
		return 1, err
	}
	low, high := c.Beta, 1.0
	for range 64 {
		middle := low + (high-low)/2
		v, err := size(middle)
		if err != nil {
			return 0, err
		}
		if v >= target {
			low = middle
		} else {
			high = middle
		}
	}
	if low <= nearest || c.Stage > 100000 {
		return 0, fmt.Errorf("the weights degenerate however small the step of β is: %w", infer.ErrNonFinite)
	}
	return low, nil
}

// reweigh multiplies the weights, and log Z by their mean. Stages without a resampling between them are one estimate by
// the products of their weights: the mean of n products has the relative variance 1/ess − 1/n.
func (c *cloud) reweigh(log []float64) {
	n := float64(len(log))
	for i, l := range log {
		log[i] = c.LogW[i] + l
	}
	sum := sample.LogSumExp(log)
	c.LogZ += sum
	for i, l := range log {
		c.LogW[i] = l - sum
	}
	c.Variance = c.Settled + 1/sample.Effective(c.LogW) - 1/n
}

// measure takes the variances of the weighted particles as the scales of the moves. Annealed particles are counted
// alike: their weights may be those of a few.
func (c *cloud) measure(d int, alike bool) {
	w := make([]float64, len(c.LogW))
	for i, l := range c.LogW {
		if w[i] = math.Exp(l); alike {
			w[i] = 1 / float64(len(w))
		}
	}
	for j := range d {
		mean, square := 0.0, 0.0
		for i, w := range w {
			mean += w * c.Rows.X[i*d+j]
		}
		for i, w := range w {
			delta := c.Rows.X[i*d+j] - mean
			square += w * delta * delta
		}
		if square > 0 && finite(square) {
			c.Scale[j] = square
		}
	}
}

// resample draws the particles anew by their weights, systematically with a uniform number u: a particle of weight W is
// drawn N·W times on average, and at least ⌊N·W⌋ times. Their weights are equal afterwards.
func (c *cloud) resample(u float64, d int) {
	n := len(c.LogW)
	w := make([]float64, n)
	for i, l := range c.LogW {
		w[i] = math.Exp(l)
	}
	next, family := newRows(n, d), make([]int, n)
	for i, k := range sample.Systematic(w, n, u) {
		next.copyRow(i, c.Rows, k, d)
		family[i] = c.Family[k]
	}
	c.Rows, c.Family, c.Settled = next, family, c.Variance
	for i := range c.LogW {
		c.LogW[i] = -math.Log(float64(n))
	}
}

// settled is the correlation of the slopes below which a stage has moved enough.
const settled = 0.1

// moves makes the transitions of a stage.
func (s *sampler) moves(m *mover, c *cloud, numbers *numbers, p *plan) error {
	k := len(c.LogW)
	t := trajectory{eps: make([]float64, k), steps: make([]int, k), variance: make([][]float64, k)}
	for i := range k {
		t.variance[i] = c.Scale
	}
	from := append([]float64(nil), c.Rows.Slope...)
	accepted, still := 0.0, 1.0
	n := 0
	c.steps = c.steps[:0]
	more := func() bool { return n < s.MostMoves && (n < s.Moves || still > settled) }
	if p != nil {
		more = func() bool { return n < len(p.Eps[c.Stage-1]) }
	}
	for more() {
		u, err := numbers.uniforms(2 * k)
		if err != nil {
			return err
		}
		if t.normals, err = numbers.normals(k * m.d); err != nil {
			return err
		}
		t.uniforms = u[:k]
		if p != nil {
			c.Eps = p.Eps[c.Stage-1][n]
		}
		c.steps = append(c.steps, c.Eps)
		for i := range k {
			t.eps[i], t.steps[i] = c.Eps, lengths(c.Eps, u[k+i])
		}
		accept, err := m.move(c.Rows, t)
		if err != nil {
			return err
		}
		mean, ok := meanAccept(accept)
		if ok {
			c.Eps *= math.Exp(math.Max(-1, math.Min(0.5, 2*(mean-s.accept))))
		}
		accepted += mean
		still = correlation(from, c.Rows.Slope)
		n++
	}
	c.Least, c.Frozen = math.Min(c.Least, accepted/float64(n)), math.Max(c.Frozen, still)
	return nil
}

// correlation of two samples; 0 where one is constant.
func correlation(x, y []float64) float64 {
	mx, vx := moments(x)
	my, vy := moments(y)
	sum := 0.0
	for i := range x {
		sum += (x[i] - mx) * (y[i] - my)
	}
	if c := sum / float64(len(x)-1) / math.Sqrt(vx*vy); finite(c) {
		return c
	}
	return 0
}
