package ppl

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Trace is one run of a model: its sites in the order in which they ran.
type Trace struct {
	Sites map[string]*Site // by their names
	Order []string         // the names, in the order in which the model visits them
}

// recorder fills a trace.
type recorder struct{ *Trace }

func newRecorder() recorder { return recorder{&Trace{Sites: map[string]*Site{}}} }

func (r recorder) Process(*Site) {}

func (r recorder) Finish(s *Site) {
	if s.Kind == KindData {
		return
	}
	if _, ok := r.Sites[s.Name]; ok {
		s.fail("there are two sites of that name; names must differ within a run")
	}
	r.Sites[s.Name] = s
	r.Order = append(r.Order, s.Name)
}

// TraceModel runs a model once, drawing what has no value from the stream (seed, 0), and returns its trace. The values
// live until the garbage collector finds them; tensors that only the distributions hold do not.
func TraceModel(m Model, batch infer.Batch, seed uint64) (t *Trace, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		r := newRecorder()
		execute(m, batch, torch.NewSource(seed, 0), r)
		t = r.Trace
		for _, s := range t.Sites {
			if s.counts() {
				s.logp = s.LogProb()
			}
			scope.Keep(s.Value, s.logp)
		}
		return nil
	})
	return t, err
}

// LogProb is the log density of one site, with plates, scale, mask and Jacobian. It is 0 for a site
// that does not count.
func (s *Site) LogProb() torch.Tensor {
	if s.logp != (torch.Tensor{}) {
		return s.logp
	}
	if !s.counts() {
		return torch.Scalar(0)
	}
	logp := sumAll(s.elementwise())
	if s.Scale != 1 {
		logp = torch.Of(logp.T().MustMulScalar(ts.FloatScalar(s.Scale), false))
	}
	if s.Jacobian != (torch.Tensor{}) {
		logp = logp.Add(s.Jacobian)
	}
	return logp
}

// elementwise is the log density before it is summed, without the scale and the Jacobian.
func (s *Site) elementwise() torch.Tensor {
	if s.density != nil && s.Value == (torch.Tensor{}) {
		s.Value = s.direct()
	}
	if s.summed != nil {
		return s.summed.elementwise(s)
	}
	logp := s.Value
	if s.Kind != KindFactor {
		logp = torch.Of(s.Dist.LogProb(s.unmasked()).T())
	}
	if s.Mask != (torch.Tensor{}) {
		if mask, have := shapeOf(s.Mask), shapeOf(logp); !broadcastsTo(mask, have) {
			s.fail("the mask has shape %v, and the log density that it masks %v: it must broadcast to that", mask, have)
		}
		logp = torch.Of(logp.T().MustWhereSelf(s.Mask.T(), logp.T().MustZerosLike(false), false))
	}
	return logp
}

// unmasked is the value with a harmless number in place of data that a mask leaves out. Such data may be anything, also
// NaN; their gradient is 0 then. Events that are vectors or matrices stay as they are.
func (s *Site) unmasked() torch.Tensor {
	sup := s.Dist.Support()
	if s.Mask == (torch.Tensor{}) || !s.Observed || sup.EventDims() > sup.Extra || sup.Extra > 0 {
		return s.Value
	}
	if have := shapeOf(s.Value); !broadcastsTo(shapeOf(s.Mask), have) {
		return s.Value
	}
	instead := harmless(sup).T().MustTotype(s.Value.T().DType(), false).MustExpandAs(s.Value.T(), false)
	return torch.Of(s.Value.T().MustWhereSelf(s.Mask.T(), instead, false))
}

// harmless is a number or tensor inside a support.
func harmless(s support.Support) torch.Tensor {
	from, to := s.Low != torch.Of(math.Inf(-1)), s.High != torch.Of(math.Inf(1))
	switch {
	case s.Kind == support.KindReal || s.Kind == support.KindBoolean:
		return torch.Of(0)
	case s.Discrete() && from:
		return s.Low
	case from && to:
		return s.Low.Add(s.High).Mul(0.5)
	case from:
		return s.Low.Add(1)
	case to:
		return s.High.Sub(1)
	}
	return torch.Of(0)
}

// broadcastsTo says whether a shape broadcasts to another.
func broadcastsTo(from, to []int) bool {
	if len(from) > len(to) {
		return false
	}
	for i, n := range from {
		if n != 1 && n != to[len(to)-len(from)+i] {
			return false
		}
	}
	return true
}

// counts says whether a site is part of the log density.
func (s *Site) counts() bool {
	return !s.hidden && (s.Kind == KindSample || s.Kind == KindFactor)
}

// LogProb is the log joint density of the trace, a tensor of shape [].
func (t *Trace) LogProb() (logp torch.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		logp = t.sum()
		scope.Keep(logp)
		return nil
	})
	return logp, err
}

// sum adds the sites' densities inside the caller's scope.
func (t *Trace) sum() torch.Tensor {
	var all torch.Tensor
	for _, name := range t.Order {
		s := t.Sites[name]
		if !s.counts() {
			continue
		}
		if logp := s.LogProb(); all == (torch.Tensor{}) {
			all = logp
		} else {
			all = all.Add(logp)
		}
	}
	if all == (torch.Tensor{}) {
		panic(&SiteError{Message: "the model has no random variable and no factor"})
	}
	return all
}

// Value is the value of a site; an unknown name is an error that lists those there are.
func (t *Trace) Value(name string) (torch.Tensor, error) {
	s, ok := t.Sites[name]
	if !ok {
		return torch.Tensor{}, fmt.Errorf("ppl: the trace has no site %q; there are: %q", name, t.Order)
	}
	return s.Value, nil
}
