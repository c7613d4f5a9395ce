package statespace

import (
	"fmt"
	"math"
	"slices"

	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Series is the distribution of a series; see [New].
type Series struct {
	sys    System
	steps  int
	p      int          // observations at each time
	noise  torch.Tensor // their standard deviations, [p] or [T, p]
	offset torch.Tensor // added to them, [p] or [T, p]
	batch  []int
}

// New is the distribution of a series of steps times, the sum of its parts and of independent normal numbers with the
// standard deviation noise, which may be 0:
//
//	y_t = signal_t + noise_t n_t,  n_t ~ N(0, I)
//
// Where each time has one observation, y has shape [steps] and noise is a number or a tensor of shape [] or [steps].
// Where it has p of them, y has shape [steps, p] and noise may also be [p] or [steps, p]. Numbers of y that are NaN
// are missing: log density and states are those given the others.
//
// The log density is exact, by the Kalman filter with one observation after the other (Durbin and Koopman 2012, Time
// Series Analysis by State Space Methods, section 6.4): with the predicted state a of covariance P, z a row of the
// Design and h the standard deviation of its noise,
//
//	v = y − z'a,  s = z'P z + h²,  log p = Σ −(log 2π + log s + v²/s)/2,  a ← a + P z v/s,  P ← P − P z z'P/s
//
// A model with a mistake in its shapes panics with a [dist.Error] that names it.
func New(steps int, noise any, parts ...Part) Series {
	s := Series{sys: sum(parts), steps: steps}
	s.checkSteps("steps", steps)
	design := s.sys.Design.Shape()
	s.p = design[len(design)-2]
	for _, m := range []struct {
		name   string
		matrix torch.Tensor
		least  int
	}{{"Design", s.sys.Design, steps}, {"Transition", s.sys.Transition, steps - 1}, {"Noise", s.sys.Noise, steps - 1}} {
		if shape := m.matrix.Shape(); len(shape) == 3 && shape[0] < m.least {
			fail(m.name, sized(shape), "its first dimension is time, of which the series has %d steps", steps)
		}
	}
	if q := s.sys.diffuse(); q > steps*s.p {
		fail("Diffuse", fmt.Sprintf("%d states", q), "the series has %d numbers, which do not determine more", steps*s.p)
	}
	s.noise = s.column("noise", noise)
	if h, ok := number("noise", noise, 0).Number(); ok && !(h >= 0 && h <= largest) {
		fail("noise", fmt.Sprint(h), "it is a standard deviation, which must be finite and at least 0")
	}
	s.offset = torch.Of(0).Expand(s.p)
	return s
}

// mostSteps is what fits into memory: each step has matrices of its own.
const mostSteps = 1 << 20

func (s Series) checkSteps(what string, steps int) {
	if steps < 1 || steps > mostSteps {
		fail(what, fmt.Sprint(steps), "there must be at least 1, and at most %d", mostSteps)
	}
}

// made refuses the zero value.
func (s Series) made() {
	if s.steps == 0 {
		fail("Series", "the zero value", "New makes one")
	}
}

// Offset is the series with an offset added to the signal: a number, or a tensor of the shapes that the noise may
// have. The product of covariates and coefficients makes it a regression whose errors are the series.
func (s Series) Offset(offset any) Series {
	s.made()
	s.offset = s.offset.Add(s.column("offset", offset))
	return s
}

// column is a number for each observation, [p] or [T, p].
func (s Series) column(what string, x any) torch.Tensor {
	v := number(what, x, 0)
	shape, p := v.Shape(), s.p
	switch n := len(shape); {
	case n == 0:
		return v.Expand(p)
	case n == 1 && shape[0] == p && (p > 1 || s.steps == 1):
		return v
	case n == 1 && p == 1 && shape[0] >= s.steps:
		return v.Unsqueeze(-1)
	case n == 2 && shape[0] >= s.steps && shape[1] == p:
		return v
	}
	fail(what, sized(shape), "the series has %d steps of %d observations: it must be %s", s.steps, p, s.columns())
	return v
}

func (s Series) columns() string {
	if s.p == 1 {
		return fmt.Sprintf("a number, or of shape [%d]", s.steps)
	}
	return fmt.Sprintf("a number, or of shape [%d] or [%d, %d]", s.p, s.steps, s.p)
}

// row is a column's numbers at a step, [p].
func row(column torch.Tensor, t int) torch.Tensor {
	if len(column.Shape()) == 2 {
		return column.At(t)
	}
	return column
}

// Name is "statespace".
func (s Series) Name() string { return "statespace" }

// BatchShape is the shape of independent series of the same law.
func (s Series) BatchShape() []int { return slices.Clone(s.batch) }

// EventShape is [steps], or [steps, p] where each time has p > 1 observations.
func (s Series) EventShape() []int {
	if s.p == 1 {
		return []int{s.steps}
	}
	return []int{s.steps, s.p}
}

// Support is all real numbers, and NaN for those that are missing.
func (s Series) Support() support.Support {
	line := support.Real.Independent(len(s.EventShape()))
	line.Missing = true
	return line
}

// LogProb is the log density of what is not missing.
func (s Series) LogProb(value torch.Tensor) torch.Tensor {
	s, value = s.shortened(value)
	logp := s.filter(value).logp()
	shape, ok := operand.Broadcast(logp.Shape(), s.batch)
	if !ok {
		fail("value", sized(value.Shape()), "it does not broadcast with the batch shape %v", s.batch)
	}
	return logp.Expand(shape...)
}

// shortened is the series of the first steps where they are all that is asked for: see [thread.Steps].
func (s Series) shortened(value torch.Tensor) (Series, torch.Tensor) {
	event, have := s.EventShape(), value.Shape()
	if len(have) < len(event) || have[len(have)-len(event)] != event[0] || s.sys.diffuse() >= event[0] {
		return s, value
	}
	if n := thread.Steps(s.steps); n < s.steps {
		s.steps = n
		return s, value.Slice(-len(event), 0, n)
	}
	return s, value
}

// Sample draws series, reparameterised. A diffuse start cannot be drawn from.
func (s Series) Sample(src *dist.Source, sample ...int) torch.Tensor {
	if s.sys.diffuse() > 0 {
		fail("Diffuse", "set", "the flat prior of the first states cannot be drawn from: give them a proper one")
	}
	_, y := s.simulate(src, append(slices.Clone(sample), s.batch...))
	return s.event(y)
}

// event takes the dimension of the observations away where there is one of them.
func (s Series) event(y torch.Tensor) torch.Tensor {
	if s.p == 1 {
		return y.Squeeze(-1)
	}
	return y
}

// simulate draws states, [..., T, m], and observations, [..., T, p].
func (s Series) simulate(src *dist.Source, lead []int) (states, y torch.Tensor) {
	s.made()
	normal := func(n ...int) torch.Tensor {
		return torch.Must(src.Normal(append(slices.Clone(lead), n...), gotch.Double, torch.CPU))
	}
	columns := s.sys.Noise.Shape()
	start := normal(s.sys.Spread.Shape()[1])
	steps := normal(s.steps, columns[len(columns)-1])
	last := normal(s.steps, s.p)
	// The root of a weight of 0 has no derivative, and needs none.
	root := s.sys.weights.Add(tiny).Sqrt()
	x := rowTimes(s.sys.Spread, start.Mul(root)).Add(s.sys.Mean)
	xs, signals := make([]torch.Tensor, s.steps), make([]torch.Tensor, s.steps)
	for t := range s.steps {
		xs[t], signals[t] = x, rowTimes(at(s.sys.Design, t), x)
		if t < s.steps-1 {
			e := steps.Slice(-2, t, t+1).Squeeze(-2)
			x = rowTimes(at(s.sys.Transition, t), x).Add(rowTimes(at(s.sys.Noise, t), e))
		}
	}
	y = torch.Stack(-2, anys(signals)...).Add(s.part(s.offset)).Add(last.Mul(s.part(s.noise)))
	return torch.Stack(-2, anys(xs)...), y
}

// part is a column for all steps: [p] or [steps, p].
func (s Series) part(column torch.Tensor) torch.Tensor {
	if len(column.Shape()) == 2 {
		return column.Slice(0, 0, s.steps)
	}
	return column
}

func anys(xs []torch.Tensor) []any {
	out := make([]any, len(xs))
	for i, x := range xs {
		out[i] = x
	}
	return out
}

// Mean is the mean of each number. Of a diffuse start it is NaN.
func (s Series) Mean() torch.Tensor { return s.moment((*filtered).mean) }

// Variance is the variance of each number. Of a diffuse start it is NaN.
func (s Series) Variance() torch.Tensor { return s.moment((*filtered).variance) }

func (s Series) moment(of func(*filtered) torch.Tensor) torch.Tensor {
	s.made()
	nothing := torch.Of(math.NaN()).Expand(s.EventShape()...)
	if s.sys.diffuse() > 0 {
		return s.spreadOut(nothing)
	}
	return s.spreadOut(s.event(of(s.filter(nothing))))
}

func (s Series) spreadOut(x torch.Tensor) torch.Tensor { return spread(x, s.batch, s.EventShape()) }

// Expand makes it the distribution of independent series of the same law.
func (s Series) Expand(batch ...int) dist.Distribution {
	shape, ok := operand.Broadcast(s.batch, batch)
	if !ok || !slices.Equal(shape, batch) && len(shape)+len(batch) > 0 {
		fail("", fmt.Sprintf("batch shape %v", s.batch), "it does not broadcast to %v", batch)
	}
	s.batch = slices.Clone(batch)
	return s
}

// Validate checks that all matrices are finite and that no noise is negative.
func (s Series) Validate() error {
	if s.steps == 0 {
		return &dist.Error{
			Distribution: "statespace", Parameter: "Series", Value: "the zero value", Allowed: "New makes one",
		}
	}
	for _, c := range []struct {
		name   string
		values torch.Tensor
		least  float64
	}{
		{"ARMA.AR", s.sys.weights, math.Inf(-1)},
		{"Design", s.sys.Design, math.Inf(-1)}, {"Transition", s.sys.Transition, math.Inf(-1)},
		{"Noise", s.sys.Noise, math.Inf(-1)}, {"Mean", s.sys.Mean.(torch.Tensor), math.Inf(-1)},
		{"Spread", s.sys.Spread, math.Inf(-1)}, {"Diffuse", s.sys.Diffuse, math.Inf(-1)},
		{"offset", s.offset, math.Inf(-1)}, {"noise", s.noise, 0},
	} {
		if c.values == (torch.Tensor{}) {
			continue // which the system has not
		}
		values, err := torch.ToSlice[float64](c.values)
		if err != nil {
			return err
		}
		for i, v := range values {
			allowed := "it must be finite"
			switch {
			case c.name == "ARMA.AR" && math.IsNaN(v):
				return &dist.Error{
					Distribution: "statespace", Parameter: c.name, Value: "not stationary, or too close to the edge for double " +
						"precision", Allowed: "it must be stationary; statespace.Stationary makes coefficients that are",
				}
			case c.least == 0:
				allowed = "it must be finite and at least 0"
			}
			if math.IsNaN(v) || math.IsInf(v, 0) || v < c.least {
				return &dist.Error{
					Distribution: "statespace", Parameter: c.name, Allowed: allowed,
					Value: fmt.Sprintf("%v at element %d of shape %v", v, i, c.values.Shape()),
				}
			}
		}
	}
	return nil
}

// Params are the matrices by name.
func (s Series) Params() map[string]any {
	return map[string]any{
		"Design": s.sys.Design, "Transition": s.sys.Transition, "Noise": s.sys.Noise, "Mean": s.sys.Mean,
		"Spread": s.sys.Spread, "Diffuse": s.sys.Diffuse, "noise": s.noise, "offset": s.offset,
	}
}
