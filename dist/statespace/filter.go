package statespace

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
)

// filtered is a run of the filter over a series. All that it holds may have dimensions in front.
type filtered struct {
	s     Series
	lead  []int
	mask  torch.Tensor // [..., T, p]: 1 where a number is there, 0 where it is missing
	steps []step
}

// step is one time: the states predicted for it, [..., m], with their covariance, its observations, and the states
// given these too.
type step struct {
	a      torch.Tensor
	p      factored
	seen   []seen
	after  torch.Tensor
	pAfter factored
	// The derivatives of a and of after in each element of a diffuse start.
	response, responseAfter []torch.Tensor
}

// seen is one observation: its row z of the Design, the mean and variance predicted for it, what it is off, v, one
// over its variance, and what it moves the states by, gain = P z/s. Of one that is missing v, inverse and gain are 0.
// The responses are the derivatives of its mean in each element of a diffuse start.
type seen struct {
	z, mean, variance, v, s, inverse, gain torch.Tensor
	response                               []torch.Tensor
}

// filter runs the Kalman filter.
func (s Series) filter(value torch.Tensor) *filtered {
	s.made()
	event, have := s.EventShape(), value.Shape()
	shape, ok := operand.Broadcast(have, event)
	if !ok || !slices.Equal(shape[len(shape)-len(event):], event) {
		fail("value", sized(have), "the series has %d steps of %d observations: its last dimensions must be %v",
			s.steps, s.p, event)
	}
	y := value.Expand(shape...)
	if s.p == 1 {
		y, shape = y.Unsqueeze(-1), append(shape, 1)
	}
	// NaN differs from itself. What depends on the data alone is computed for all steps at once: a loop over time is
	// then compiled as one.
	there := y.Eq(y)
	y = torch.Choose(there, y, 0).Sub(s.part(s.offset))
	lead := shape[:len(shape)-2]
	f := &filtered{s: s, lead: lead, mask: torch.Choose(there, 1, 0), steps: make([]step, s.steps)}
	size := s.sys.Spread.Shape()
	now := step{
		a: spread(s.sys.Mean.(torch.Tensor), lead, size[:1]),
		p: factored{spread(s.sys.Spread, lead, size), spread(s.sys.weights, lead, size[1:])},
	}
	variances := s.noise.Square()
	for k := range s.sys.diffuse() {
		now.response = append(now.response, spread(s.sys.Diffuse.Slice(-1, k, k+1).Squeeze(-1), lead, size[:1]))
	}
	for t := range f.steps {
		now.observe(at(s.sys.Design, t), row(variances, t), inTurn(y, t), inTurn(there, t), inTurn(f.mask, t))
		f.steps[t] = now
		if t < s.steps-1 {
			now = f.ahead(t)
		}
	}
	return f
}

// ahead is the prediction for the time behind t.
func (f *filtered) ahead(t int) step {
	a, now := at(f.s.sys.Transition, t), f.steps[t]
	next := step{a: rowTimes(a, now.after), p: now.pAfter.move(a, at(f.s.sys.Noise, t))}
	for _, x := range now.responseAfter {
		next.response = append(next.response, rowTimes(a, x))
	}
	return next
}

// observe takes in the observations of a time, of shape [..., p], one after the other. The mask is 1 where there is
// one.
func (n *step) observe(design, variances, y, there, mask torch.Tensor) {
	n.after, n.pAfter, n.responseAfter, n.seen = n.a, n.p, slices.Clone(n.response), nil
	lead := y.Shape()
	lead = lead[:len(lead)-1]
	for i := range design.Shape()[0] {
		z, h := design.At(i), variances.Slice(0, i, i+1)
		one := func(x torch.Tensor) torch.Tensor { return x.Slice(-1, i, i+1).Squeeze(-1) }
		root := timesColumns(z, n.pAfter.w)
		weighted := root.Mul(n.pAfter.l)
		o := seen{z: z, mean: z.Mul(n.after).Sum(-1)}
		o.variance = root.Mul(weighted).Sum(-1).Add(h.Squeeze(0))
		o.s = torch.Choose(one(there), o.variance, 1)
		o.inverse = one(mask).Div(o.s)
		o.v = one(y).Sub(o.mean).Mul(one(mask))
		o.gain = rowTimes(n.pAfter.w, weighted).Mul(o.inverse.Unsqueeze(-1))
		n.after = n.after.Add(o.gain.Mul(o.v.Unsqueeze(-1)))
		column := o.gain.Unsqueeze(-1)
		for k, x := range n.responseAfter {
			o.response = append(o.response, z.Mul(x).Sum(-1))
			n.responseAfter[k] = x.Sub(o.gain.Mul(o.response[k].Unsqueeze(-1)))
		}
		// (I − gain z') P (I − gain z')' + h gain gain', which rounding cannot make negative.
		n.pAfter = factored{
			torch.Cat(-1, n.pAfter.w.Sub(column.Mul(root.Unsqueeze(-2))), column),
			torch.Cat(-1, n.pAfter.l, spread(h, lead, []int{1})),
		}
		n.seen = append(n.seen, o)
	}
}

// inTurn is what [..., T, p] has of a step.
func inTurn(x torch.Tensor, t int) torch.Tensor {
	if len(x.Shape()) == 2 {
		return x.At(t)
	}
	return x.Slice(-2, t, t+1).Squeeze(-2)
}

// all is a number of each observation, [..., T, p].
func (f *filtered) all(of func(seen) torch.Tensor) torch.Tensor {
	var out []any
	for _, t := range f.steps {
		for _, o := range t.seen {
			out = append(out, of(o))
		}
	}
	shape := append(slices.Clone(f.lead), len(f.steps), f.s.p)
	return torch.Stack(-1, out...).Reshape(shape...)
}

// logp is the log density.
func (f *filtered) logp() torch.Tensor {
	v := f.all(func(o seen) torch.Tensor { return o.v })
	s := f.all(func(o seen) torch.Tensor { return o.s })
	inverse := f.all(func(o seen) torch.Tensor { return o.inverse })
	more := torch.Of(0)
	if f.s.sys.diffuse() > 0 {
		v, more = f.integrated(v, inverse)
	}
	terms := v.Square().Mul(inverse).Add(s.Log()).Add(f.mask.Mul(math.Log(2 * math.Pi)))
	return terms.Sum(-1, -2).Mul(-0.5).Add(more)
}

// mean and variance are those of each number given the ones before it, [..., T, p].
func (f *filtered) mean() torch.Tensor {
	return f.all(func(o seen) torch.Tensor { return o.mean }).Add(f.s.part(f.s.offset))
}

func (f *filtered) variance() torch.Tensor {
	return f.all(func(o seen) torch.Tensor { return o.variance })
}
