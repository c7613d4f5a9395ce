package statespace

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Filtered are the mean of the states at each time given the numbers of y up to that time, of shape [..., T, m], and
// their covariance, [..., T, m, m]. Of a diffuse start they are NaN until the numbers determine the states; where
// rounding hides that they do not, the covariance is beyond all reason.
func (s Series) Filtered(y torch.Tensor) (mean, covariance torch.Tensor) {
	f := s.filter(y)
	means, covariances := make([]any, len(f.steps)), make([]any, len(f.steps))
	for t, n := range f.steps {
		p := n.pAfter.dense()
		if s.sys.diffuse() > 0 {
			now := &filtered{s: s, lead: f.lead, steps: f.steps[:t+1]}
			mean, root := now.posterior()
			response := matrix(n.responseAfter)
			n.after, p = n.after.Add(rowTimes(response, mean)), p.Add(squared(response.MatMul(root)))
		}
		means[t], covariances[t] = n.after, p
	}
	return torch.Stack(-2, means...), torch.Stack(-3, covariances...)
}

// Smoothed are the mean of the states at each time given all of y, of shape [..., T, m], and their covariance,
// [..., T, m, m]. With r and N summed up from the last observation to the first (de Jong 1989, Journal of the American
// Statistical Association 84, 1085–1088; Durbin and Koopman 2012, sections 4.4 and 6.4),
//
//	r ← z v/s + L'r,  N ← z z'/s + L'N L,  L = I − gain z'  for an observation,  r ← A'r,  N ← A'N A  for a step
//	mean = a + P r,  covariance = P − P N P
//
// in which nothing is inverted, so that states may be known exactly. Of a diffuse start the derivative of the mean in
// the first states, by the same recursions, times their covariance is added.
func (s Series) Smoothed(y torch.Tensor) (mean, covariance torch.Tensor) {
	f := s.filter(y)
	means, covariances := make([]any, len(f.steps)), make([]any, len(f.steps))
	f.settle()
	f.backward(true, func(t int, r, n, response torch.Tensor) {
		now := f.steps[t]
		p := now.p.dense()
		means[t] = now.a.Add(now.p.times(r))
		covariance := p.Sub(p.MatMul(n).MatMul(p))
		if s.sys.diffuse() > 0 {
			covariance = covariance.Add(squared(matrix(now.response).Add(p.MatMul(response))))
		}
		covariances[t] = covariance
	})
	return torch.Stack(-2, means...), torch.Stack(-3, covariances...)
}

// smoothedMean is the mean of [Series.Smoothed] alone.
func (s Series) smoothedMean(y torch.Tensor) torch.Tensor {
	f := s.filter(y)
	means := make([]any, len(f.steps))
	f.settle()
	f.backward(false, func(t int, r, _, _ torch.Tensor) { means[t] = f.steps[t].a.Add(f.steps[t].p.times(r)) })
	return torch.Stack(-2, means...)
}

// backward goes from the last time to the first, with r and, where asked for, N before each, and the derivative of r
// in a diffuse start.
func (f *filtered) backward(both bool, at0 func(t int, r, n, response torch.Tensor)) {
	m := f.s.sys.Spread.Shape()[0]
	r := spread(torch.Of(0), f.lead, []int{m})
	n := spread(torch.Of(0), f.lead, []int{m, m})
	q := f.s.sys.diffuse()
	var response torch.Tensor
	if q > 0 {
		response = spread(torch.Of(0), f.lead, []int{m, q})
	}
	for t := len(f.steps) - 1; t >= 0; t-- {
		for _, o := range slices.Backward(f.steps[t].seen) {
			r = r.Add(o.z.Mul(o.inverse.Mul(o.v).Sub(o.gain.Mul(r).Sum(-1)).Unsqueeze(-1)))
			if both && q > 0 {
				back := matrix(o.response).Mul(o.inverse.Unsqueeze(-1)).Add(timesColumns(o.gain, response))
				response = response.Sub(o.z.Unsqueeze(-1).Mul(back.Unsqueeze(-2)))
			}
			if both {
				along := rowTimes(n, o.gain)
				cross := along.Unsqueeze(-1).Mul(o.z)
				twice := along.Mul(o.gain).Sum(-1).Add(o.inverse).Unsqueeze(-1).Unsqueeze(-1)
				n = n.Sub(cross).Sub(cross.Transpose()).Add(o.z.Outer(o.z).Mul(twice))
			}
		}
		at0(t, r, n, response)
		if t > 0 {
			a := at(f.s.sys.Transition, t-1)
			r = timesColumns(r, a)
			if both {
				n = a.Transpose().MatMul(n).MatMul(a)
			}
			if both && q > 0 {
				response = a.Transpose().MatMul(response)
			}
		}
	}
}

// SampleStates draws the states at all times given y, [sample..., T, m]: x* + E(x | y) − E(x | y*) for states x* and a
// series y* drawn from the model (Durbin and Koopman 2002, Biometrika 89, 603–616). y* lacks the same numbers as y.
// y has no dimensions in front. Of a diffuse start x* may have any first states.
func (s Series) SampleStates(src *dist.Source, y torch.Tensor, sample ...int) torch.Tensor {
	s.made()
	if len(y.Shape()) > len(s.EventShape()) {
		fail("value", sized(y.Shape()), "states are drawn given one series, of shape %v", s.EventShape())
	}
	states, drawn := s.simulate(src, sample)
	// Both means are linear in the series, so that the difference is the mean given the difference, without constants.
	centred := s
	centred.sys.Mean = torch.Of(0).Expand(s.sys.Spread.Shape()[0])
	centred.offset = torch.Of(0).Expand(s.p)
	return states.Add(centred.smoothedMean(y.Sub(s.event(drawn))))
}
