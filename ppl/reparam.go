package ppl

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Reparameterisation says how a latent variable is written in terms of another.
type Reparameterisation int

const (
	// NonCentred writes x ~ F(loc, scale) of a location-scale family as loc + scale·z with z ~ F(0, 1): a latent
	// variable named x_decentred takes the place of x (Papaspiliopoulos, Roberts and Sköld 2007).
	NonCentred Reparameterisation = iota
	// ThroughBijector writes a transformed distribution as the transform of its base: a latent variable named x_base
	// takes the place of x.
	ThroughBijector
)

// Reparam writes latent variables differently. Their values are still there under their names, as deterministic sites.
// A run fails where the model has no such variable, or observes it. The posterior is the same; at a temperature other
// than 1, and for its mode, the density is that of the new variables.
func Reparam(m Model, sites map[string]Reparameterisation) Model {
	return strict("Reparam", m, sites, func(c *Ctx, s *Site, how Reparameterisation) bool {
		if s.Kind != KindSample {
			return false
		}
		if s.Observed {
			s.fail("Reparam names it, and it is observed: there is no latent variable to write differently")
		}
		if s.Value == (torch.Tensor{}) {
			(&reparam{outer: c}).write(s, how)
		}
		return true
	})
}

type reparam struct{ outer *Ctx }

func (r *reparam) write(s *Site, how Reparameterisation) {
	if how == ThroughBijector {
		r.throughBijector(s)
		return
	}
	r.nonCentred(s)
}

// replace declares the new variable, in the plates and with the scale of the old one, outside this handler.
func (r *reparam) replace(s *Site, suffix string, d dist.Distribution) torch.Tensor {
	z := &Site{Kind: KindSample, Name: s.Name + suffix, Dist: d, Plates: s.Plates, Scale: s.Scale, Mask: s.Mask,
		ctx: s.ctx, given: d, weight: s.weight, instead: s.Name}
	for _, p := range s.ctx.plates {
		z.before = append(z.before, *p)
	}
	z.Value = r.outer.run.given(z) // handlers see what is known, as of any other variable
	r.outer.show(z)
	s.Kind, s.Observed, s.Scale, s.written = KindDeterministic, true, 1, true
	return z.Value
}

func (r *reparam) nonCentred(s *Site) {
	standard := map[string]func(p map[string]any) dist.Distribution{
		"Normal":   func(map[string]any) dist.Distribution { return dist.Normal(0, 1) },
		"StudentT": func(p map[string]any) dist.Distribution { return dist.StudentT(p["df"], 0, 1) },
		"Cauchy":   func(map[string]any) dist.Distribution { return dist.Cauchy(0, 1) },
		"Laplace":  func(map[string]any) dist.Distribution { return dist.Laplace(0, 1) },
		"Logistic": func(map[string]any) dist.Distribution { return dist.Logistic(0, 1) },
		"Gumbel":   func(map[string]any) dist.Distribution { return dist.Gumbel(0, 1) },
	}
	family, dims := s.Dist, 0
	if i, ok := family.(interface {
		Base() dist.Distribution
		N() int
	}); ok {
		family, dims = i.Base(), i.N()
	}
	with, ok := family.(dist.Parameterised)
	unit := standard[family.Name()]
	if !ok || unit == nil || len(family.EventShape()) > 0 {
		s.fail("NonCentred needs a location-scale family (Normal, StudentT, Cauchy, Laplace, Logistic, Gumbel)")
	}
	p := with.Params()
	z := r.replace(s, "_decentred", dist.Independent(unit(p).Expand(family.BatchShape()...), dims))
	s.Value = z.Mul(p["scale"]).Add(p["loc"])
}

func (r *reparam) throughBijector(s *Site) {
	d, ok := s.Dist.(interface {
		Base() dist.Distribution
		Bijector() bijector.Bijector
	})
	if !ok {
		s.fail("ThroughBijector needs a transformed distribution (dist.Transformed)")
	}
	s.Value = d.Bijector().Forward(r.replace(s, "_base", d.Base()))
}
