package statespace

import (
	"github.com/kelvin-ppl/kelvin/torch"
)

// Forecast is the distribution of the n numbers behind y, given y: Mean and Variance are theirs, and draws of it are
// draws of their path. y has no dimensions in front, and may have fewer steps than the series. A matrix, a noise or an
// offset that depends on time must reach to the last step that is forecast. Of a diffuse start y must determine the
// states; where it does not, the forecast is NaN.
func (s Series) Forecast(y torch.Tensor, n int) Series {
	s.made()
	shape := y.Shape()
	if len(shape) != len(s.EventShape()) {
		fail("value", sized(shape), "forecasts are made from one series, of shape %v", s.EventShape())
	}
	s.checkSteps("n", n)
	past := shape[0]
	s.checkSteps("value", past)
	// later is what a tensor has for the steps to be forecast.
	later := func(what string, x torch.Tensor, constant, last int) torch.Tensor {
		have := x.Shape()
		if len(have) == constant {
			return x
		}
		if have[0] < last {
			fail(what, sized(have), "its first dimension is time, and the forecast goes to step %d", past+n)
		}
		return x.Slice(0, past, max(last, past+1))
	}
	sys := s.sys
	until := past + n
	for _, m := range []struct {
		what string
		x    *torch.Tensor
	}{{"Transition", &sys.Transition}, {"Noise", &sys.Noise}} {
		if have := m.x.Shape(); len(have) == 3 {
			if have[0] < until-1 {
				fail(m.what, sized(have), "its first dimension is time, and the forecast goes to step %d", until)
			}
			if n > 1 {
				*m.x = m.x.Slice(0, past, until-1)
			} else {
				*m.x = m.x.At(past - 1) // of a single step nothing follows
			}
		}
	}
	out := Series{
		steps: n, p: s.p, noise: later("noise", s.noise, 1, until), offset: later("offset", s.offset, 1, until),
	}
	sys.Design = later("Design", sys.Design, 2, until)
	seen := s
	seen.steps = past
	f := seen.filter(y)
	f.settle()
	next := f.ahead(past - 1)
	sys.Mean, sys.Spread, sys.weights, sys.Diffuse = next.a, next.p.w, next.p.l, torch.Tensor{}
	if q := s.sys.diffuse(); q > 0 {
		sys.Spread = torch.Cat(-1, sys.Spread, matrix(next.response))
		sys.weights = torch.Cat(-1, sys.weights, torch.Of(1).Expand(q))
	}
	out.sys = sys
	return out
}
