package ppl

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Values are named tensors.
type Values = map[string]torch.Tensor

// handle wraps a model in a handler that is made anew for each run.
func handle(m Model, h func(c *Ctx) Handler) Model {
	return func(c *Ctx) { m.in(c.With(h(c))) }
}

// in runs a model in a context.
func (m Model) in(c *Ctx) {
	if m == nil {
		panic(&SiteError{Message: "the model is nil"})
	}
	m(c)
}

// strict wraps a model in a handler of named sites. If the model has no such site the run fails, since a misspelt name
// would silently do nothing. visit is called for each site of these names and says whether it is of the right kind.
func strict[T any](what string, m Model, named map[string]T, visit func(c *Ctx, s *Site, v T) bool) Model {
	return func(c *Ctx) {
		found := map[string]bool{}
		var have []string
		m.in(c.With(process(func(s *Site) {
			if s.Kind != KindData {
				have = append(have, s.Name)
			}
			if v, ok := named[s.Name]; ok && s.Kind != KindData && visit(c, s, v) {
				found[s.Name] = true
			}
		})))
		for name := range named {
			if !found[name] {
				panic(&SiteError{Site: name, Message: fmt.Sprintf("%s names it, and the model has no such site of "+
					"the right kind; it has %q", what, have)})
			}
		}
	}
}

// takes makes sure that there is a value and that the site can be given one.
func (s *Site) takes(what string, v torch.Tensor) {
	if v == (torch.Tensor{}) {
		s.fail("%s gives it no value: a torch.Tensor is required", what)
	}
	if s.written {
		s.fail("%s gives it a value, and a reparameterisation computes it from another variable: use %s inside "+
			"Reparam, on the model itself", what, what)
	}
}

// notSet makes sure that no Do further in has set the variable: it has no distribution of its own any more, which a
// datum or another value could meet.
func (s *Site) notSet(what string) {
	if s.hidden {
		s.fail("%s gives it a value, and Do has set it: it has no distribution any more; put Do outside, or leave it out of "+
			"one of them", what)
	}
}

// process is a handler with only its first half, finish one with only its second.
type process func(s *Site)

func (f process) Process(s *Site) { f(s) }
func (f process) Finish(*Site)    {}

type finish func(s *Site)

func (f finish) Process(*Site)  {}
func (f finish) Finish(s *Site) { f(s) }

// Condition gives random variables observed values: their log densities become likelihoods.
func Condition(m Model, values Values) Model {
	values = Values(infer.Batch(values).Tensors())
	return strict("Condition", m, values, func(_ *Ctx, s *Site, v torch.Tensor) bool {
		s.takes("Condition", v)
		s.notSet("Condition")
		if s.Kind == KindSample {
			s.observe("Condition", v)
		}
		return s.Kind == KindSample
	})
}

// Substitute gives latent variables and params values, without observing them.
func Substitute(m Model, values Values) Model {
	values = Values(infer.Batch(values).Tensors())
	return handle(m, func(*Ctx) Handler {
		return process(func(s *Site) {
			v, ok := values[s.Name]
			if ok && s.written {
				s.takes("Substitute", v)
			}
			if ok && (s.Kind == KindSample || s.Kind == KindParam) && !s.Observed {
				s.takes("Substitute", v)
				s.Value = v
				if s.Kind == KindSample {
					s.checkBroadcast()
				}
			}
		})
	})
}

// Do intervenes: the variables have the given values, and their own distributions no longer count (Pearl 2009,
// chapter 3).
func Do(m Model, values Values) Model {
	values = Values(infer.Batch(values).Tensors())
	return strict("Do", m, values, func(_ *Ctx, s *Site, v torch.Tensor) bool {
		s.takes("Do", v)
		s.notSet("Do")
		if s.Kind == KindSample {
			s.observe("Do", v)
			s.hidden = true
		}
		return s.Kind == KindSample
	})
}

// Block hides sites from everything outside: traces do not record them and they do not count. Without names it hides
// all sites.
func Block(m Model, names ...string) Model {
	hidden := set(names)
	return handle(m, func(*Ctx) Handler {
		return process(func(s *Site) {
			if len(names) == 0 || hidden[s.Name] {
				s.stop, s.hidden = true, true
			}
		})
	})
}

// Replay gives latent variables the values that they had in a trace.
func Replay(m Model, t *Trace) Model {
	return handle(m, func(*Ctx) Handler {
		return process(func(s *Site) {
			if t == nil {
				s.fail("Replay has no trace: it is nil")
			}
			if old, ok := t.Sites[s.Name]; ok && s.Kind == KindSample && !s.Observed && !old.Observed {
				s.Value = old.Value
			}
		})
	})
}

// Seed gives a model its own random numbers: the stream (seed, 0) from its start, in each run.
func Seed(m Model, seed uint64) Model {
	return func(c *Ctx) {
		inner, run := *c, *c.run
		run.source = torch.NewSource(seed, 0)
		inner.run = &run
		m.in(&inner)
	}
}

// Scale multiplies the log densities of a model.
func Scale(m Model, factor float64) Model {
	if !(factor >= 0) {
		panic(&SiteError{Message: "Scale needs a factor of at least 0"})
	}
	return handle(m, func(*Ctx) Handler { return process(func(s *Site) { s.Scale *= factor }) })
}

// Mask counts log densities only where the mask, which broadcasts to their shape, is true.
func Mask(m Model, mask torch.Tensor) Model {
	return handle(m, func(*Ctx) Handler {
		return process(func(s *Site) {
			if mask == (torch.Tensor{}) {
				s.fail("the mask is not set: a torch.Tensor is required")
			}
			counts := torch.Of(mask.T())
			if s.Mask != (torch.Tensor{}) {
				counts = torch.Of(s.Mask.T().MustLogicalAnd(counts.T(), false))
			}
			s.Mask = counts
		})
	})
}

// Lift gives params a prior: they become latent random variables, of the params' shapes, which plates around them do
// not repeat.
func Lift(m Model, priors map[string]dist.Distribution) Model {
	return strict("Lift", m, priors, func(_ *Ctx, s *Site, prior dist.Distribution) bool {
		if s.Kind != KindParam {
			return false
		}
		if prior == nil {
			s.fail("Lift gives it the prior nil")
		}
		s.checkMade(prior)
		want := append(s.Dist.BatchShape(), s.Dist.EventShape()...)
		s.Kind, s.Dist, s.Plates, s.before = KindSample, prior, nil, nil
		if n := len(want) - len(prior.EventShape()); n >= 0 && len(prior.BatchShape()) <= n {
			s.expand(want[:n])
		}
		if have := append(s.Dist.BatchShape(), s.Dist.EventShape()...); !slices.Equal(have, want) {
			s.fail("Lift gives it a prior of shape %v, and the param has shape %v", have, want)
		}
		s.given = s.Dist
		return true
	})
}

func set(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}
