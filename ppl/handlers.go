package ppl

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Values are named tensors.
type Values = map[string]*ts.Tensor

// handle wraps a model in a handler that is made anew for each run.
func handle(m Model, h func(c *Ctx) Handler) Model {
	return func(c *Ctx) { m(c.With(h(c))) }
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
	return handle(m, func(*Ctx) Handler {
		return process(func(s *Site) {
			if v, ok := values[s.Name]; ok && s.Kind == KindSample {
				s.observe(v)
			}
		})
	})
}

// Substitute gives latent variables and params values, without observing them.
func Substitute(m Model, values Values) Model {
	return handle(m, func(*Ctx) Handler {
		return process(func(s *Site) {
			if v, ok := values[s.Name]; ok && (s.Kind == KindSample || s.Kind == KindParam) && !s.Observed {
				s.Value = v
				if s.Kind == KindSample {
					s.checkBroadcast()
				}
			}
		})
	})
}

// Do intervenes: the variables have the given values, and their own distributions no longer count (Pearl 2009, chapter 3).
func Do(m Model, values Values) Model {
	return handle(m, func(*Ctx) Handler {
		return process(func(s *Site) {
			if v, ok := values[s.Name]; ok && s.Kind == KindSample {
				s.observe(v)
				s.hidden = true
			}
		})
	})
}

// Block hides sites from everything outside: traces do not record them and they do not count. Without names it hides all.
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
		m(&inner)
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
func Mask(m Model, mask *ts.Tensor) Model {
	return handle(m, func(*Ctx) Handler {
		return process(func(s *Site) {
			if s.Mask == nil {
				s.Mask = mask
				return
			}
			s.Mask = s.Mask.MustLogicalAnd(mask, false)
		})
	})
}

// Lift gives params a prior: they become latent random variables.
func Lift(m Model, priors map[string]dist.Distribution) Model {
	return handle(m, func(c *Ctx) Handler {
		return process(func(s *Site) {
			if prior, ok := priors[s.Name]; ok && s.Kind == KindParam {
				s.Kind = KindSample
				want := append(s.Dist.BatchShape(), s.Dist.EventShape()...)
				s.Dist = prior
				if n := len(want) - len(prior.EventShape()); n >= 0 && len(prior.BatchShape()) < n {
					s.expand(want[:n])
				}
				s.given = s.Dist
			}
		})
	})
}

func set(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}
