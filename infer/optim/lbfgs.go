package optim

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/floats"
)

// LBFGS is the limited-memory BFGS method (Liu and Nocedal 1989) with a line search for the strong Wolfe conditions
// (Nocedal and Wright 2006, algorithms 3.5 and 7.4), for each chain:
//
//	θ' = θ + tHg(θ)
//
// with g the gradient, H the inverse curvature that the last moves and changes of the gradient show, and t a step that
// raises the log density by at least 1e-4 of what g promises and leaves at most Curvature of the slope. An update takes
// a gradient for each trial of t, most often one. It needs exact gradients: all data in one batch, and a run refuses
// minibatches. A chain whose gradient has a norm of at most Tolerance stays where it is.
type LBFGS struct {
	History   int     // moves that are remembered; 0 means 10
	Tolerance float64 // of the norm of the gradient of the mean log posterior; 0 means 1e-8
	Curvature float64 // the part of the slope that a step may leave, in (1e-4, 1); 0 means 0.9
}

// LBFGSState is the state of [LBFGS].
type LBFGSState struct {
	method.State
	Moves   torch.Tensor // the last moves of θ, the newest first, of shape [History, d] or [K, History, d]; 0 for none
	Changes torch.Tensor // the changes of −g that came with them, of the same shape
}

// Build checks the configuration and binds it to a target.
func (c LBFGS) Build(target infer.Target) (infer.Transform, error) {
	check := &method.Checks{Name: "optim.LBFGS"}
	if c.History == 0 {
		c.History = 10
	}
	check.Require(c.History > 0, "History", c.History, "it must be at least 1, or 0 for 10")
	check.Value("Tolerance", &c.Tolerance, 1e-8, true)
	check.Fraction("Curvature", &c.Curvature, 0.9)
	check.Require(c.Curvature > decrease, "Curvature", c.Curvature, "it must be above 1e-4")
	return method.Build(check, target, method.Algorithm[LBFGSState]{
		LR: infer.Constant(1), Step: c.step, NeedsAllData: true,
		Parts: func(s *LBFGSState) []method.Part {
			return []method.Part{{Name: "moves", Tensor: &s.Moves}, {Name: "changes", Tensor: &s.Changes}}
		},
		Start: func(s *LBFGSState, _ *method.Move) {
			shape := s.Params.Flat.T().MustSize()
			d := shape[len(shape)-1]
			shape = append(shape[:len(shape)-1:len(shape)-1], int64(c.History), d)
			s.Moves = torch.Of(torch.Must(ts.Zeros(shape, s.Params.Flat.T().DType(), torch.Must(torch.DeviceOf(s.Params.Flat)))))
			s.Changes = torch.Of(s.Moves.T().MustZerosLike(false))
		},
	})
}

func (c LBFGS) step(s, next *LBFGSState, m *method.Move) {
	theta, g := numbers(s.Params.Flat), numbers(m.Grad)
	moves, changes := numbers(s.Moves), numbers(s.Changes)
	d := s.Params.Layout.Dim()
	row := func(x []float64, k, size int) []float64 { return x[k*size : (k+1)*size] }
	searches := make([]*lineSearch, len(m.Info.GradNorm)) // nil for a chain that stays
	directions := make([]float64, len(theta))
	slack := 1e-14
	if s.Params.Flat.T().DType() == gotch.Float {
		slack = 1e-6
	}
	for k, norm := range m.Info.GradNorm {
		if !(norm > c.Tolerance) || k < len(m.Info.Diverged) && m.Info.Diverged[k] {
			continue
		}
		direction, known := row(directions, k, d), false
		copy(direction, row(g, k, d))
		known = twoLoops(direction, row(moves, k, c.History*d), row(changes, k, c.History*d))
		slope := floats.Dot(direction, row(g, k, d))
		if !known || !(slope > 0) {
			copy(direction, row(g, k, d))
			floats.Scale(min(1, 1/norm), direction)
			slope = floats.Dot(direction, row(g, k, d))
		}
		searches[k] = &lineSearch{t: 1, curvature: c.Curvature, value: -m.Info.LogPosterior[k], slope: -slope,
			lo: trial{0, -m.Info.LogPosterior[k], -slope}, slack: slack * math.Abs(m.Info.LogPosterior[k])}
	}
	trial := append([]float64(nil), theta...)
	at := append([]float64(nil), theta...) // the best points so far, and the gradients there
	gradients := append([]float64(nil), g...)
	for active := true; active; {
		active = false
		for k, l := range searches {
			if l != nil && !l.done {
				active = true
				copy(row(trial, k, d), row(theta, k, d))
				floats.AddScaled(row(trial, k, d), l.t, row(directions, k, d))
			}
		}
		if !active {
			break
		}
		values, slopes := c.evaluate(m, s.Params, trial)
		for k, l := range searches {
			if l == nil || l.done {
				continue
			}
			gk := row(slopes, k, d)
			if l.next(-values[k], -floats.Dot(gk, row(directions, k, d))) {
				copy(row(at, k, d), row(trial, k, d))
				copy(row(gradients, k, d), gk)
			}
		}
	}
	moved := make([]float64, len(theta))
	floats.SubTo(moved, at, theta)
	changed := make([]float64, len(theta))
	floats.SubTo(changed, g, gradients)
	for k, l := range searches {
		if l != nil && !l.found { // the next search goes along the gradient
			clear(row(moves, k, c.History*d))
			clear(row(changes, k, c.History*d))
		}
		if floats.Dot(row(moved, k, d), row(changed, k, d)) > 0 {
			push(row(moves, k, c.History*d), row(moved, k, d))
			push(row(changes, k, c.History*d), row(changed, k, d))
		}
	}
	next.Params.Flat, next.Moves, next.Changes = like(s.Params.Flat, at), like(s.Moves, moves), like(s.Changes, changes)
}

// evaluate is the log density and the gradient at the points of all chains.
func (c LBFGS) evaluate(m *method.Move, p infer.Params, points []float64) (values, gradients []float64) {
	torch.Must(0, torch.Do(func(*torch.Scope) error {
		e := m.Evaluate(infer.Params{Layout: p.Layout, Flat: like(p.Flat, points)})
		values, gradients = e.Values, numbers(e.Grad)
		return nil
	}))
	return values, gradients
}

// twoLoops multiplies a gradient by the inverse curvature of the history (Nocedal and Wright 2006, algorithm 7.4), and
// says whether there is any.
func twoLoops(q, moves, changes []float64) (known bool) {
	d, alphas := len(q), make([]float64, len(moves)/len(q))
	pair := func(i int) (s, y []float64, sy float64) {
		s, y = moves[i*d:(i+1)*d], changes[i*d:(i+1)*d]
		return s, y, floats.Dot(s, y)
	}
	for i := range alphas {
		if s, y, sy := pair(i); sy > 0 {
			alphas[i] = floats.Dot(s, q) / sy
			floats.AddScaled(q, -alphas[i], y)
		}
	}
	if _, y, sy := pair(0); sy > 0 {
		floats.Scale(sy/floats.Dot(y, y), q)
		known = true
	}
	for i := len(alphas) - 1; i >= 0; i-- {
		if s, y, sy := pair(i); sy > 0 {
			floats.AddScaled(q, alphas[i]-floats.Dot(y, q)/sy, s)
		}
	}
	return known
}

// push puts a vector at the front of a history, which forgets its last.
func push(history, v []float64) {
	copy(history[len(v):], history)
	copy(history, v)
}

func numbers(x torch.Tensor) []float64 { return torch.Must(torch.ToSlice[float64](x)) }

// like are numbers in the form of a tensor.
func like(x torch.Tensor, values []float64) torch.Tensor {
	return torch.Must(torch.FromSliceOn(torch.Must(torch.DeviceOf(x)), x.T().DType(), values, x.Shape()...))
}

// decrease is the part of the promised decrease that a step must bring.
const decrease = 1e-4

// lineSearch finds a step t for which φ(t), the negative log density along a direction, fulfils the strong Wolfe
// conditions (Nocedal and Wright 2006, algorithms 3.5 and 3.6). Values that are not finite count as too large.
type lineSearch struct {
	t, curvature float64
	slack        float64 // rounding of φ: near a mode it changes by less, and slopes tell
	value, slope float64 // φ(0) and φ'(0)
	lo, hi       trial   // the best step so far; with bracketed, a step between lo and hi fulfils the conditions
	bracketed    bool
	found, done  bool // found: there is a step that is better than none
	trials       int
}

// trial is a step with φ and φ' there.
type trial struct{ t, value, slope float64 }

// next takes φ and φ' at t and moves on. It says whether t is the best step so far.
func (l *lineSearch) next(value, slope float64) (best bool) {
	l.trials++
	at := trial{l.t, value, slope}
	switch {
	case !(value <= l.value+decrease*l.t*l.slope+l.slack) || !(value <= l.lo.value+l.slack) || math.IsNaN(slope):
		l.hi, l.bracketed = at, true
	default:
		best, l.found = true, true
		if l.done = math.Abs(slope) <= -l.curvature*l.slope; l.done {
			return best
		}
		if l.bracketed && slope*(l.hi.t-l.lo.t) >= 0 || !l.bracketed && slope >= 0 {
			l.hi, l.bracketed = l.lo, true
		}
		l.lo = at
	}
	if !l.bracketed {
		l.t *= 3
	} else {
		l.t = between(l.lo, l.hi)
	}
	l.done = l.trials >= 30 || l.t == l.lo.t
	return best
}

// between is the minimum of the cubic through two trials, at least a tenth of their distance from both, or their middle
// where there is no such cubic.
func between(lo, hi trial) float64 {
	width := hi.t - lo.t
	d1 := lo.slope + hi.slope - 3*(lo.value-hi.value)/(lo.t-hi.t)
	d2 := math.Copysign(math.Sqrt(d1*d1-lo.slope*hi.slope), width)
	t := hi.t - width*(hi.slope+d2-d1)/(hi.slope-lo.slope+2*d2)
	near := math.Abs(width) / 10
	if !(math.Abs(t-lo.t) >= near && math.Abs(t-hi.t) >= near && (t-lo.t)*(t-hi.t) < 0) {
		return lo.t + width/2
	}
	return t
}

// Defaults are those of the options of a run: one draw, the end of 300 updates.
func (c LBFGS) Defaults() infer.Options { return infer.Options{Warmup: 300, Draws: 1} }
