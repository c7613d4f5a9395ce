package ppl

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/sugarme/gotch/ts"
)

// Reparameterisation says how a latent variable is written in terms of another.
type Reparameterisation int

const (
	// NonCentred writes x ~ F(loc, scale) of a location-scale family as loc + scale·z with z ~ F(0, 1): a latent variable
	// named x_decentred takes the place of x (Papaspiliopoulos, Roberts and Sköld 2007).
	NonCentred Reparameterisation = iota
	// ThroughBijector writes a transformed distribution as the transform of its base: a latent variable named x_base takes the
	// place of x.
	ThroughBijector
)

// Reparam writes latent variables differently. Their values are still there under their names, as deterministic sites.
func Reparam(m Model, sites map[string]Reparameterisation) Model {
	return func(c *Ctx) { m(c.With(&reparam{outer: c, sites: sites})) }
}

type reparam struct {
	outer *Ctx
	sites map[string]Reparameterisation
}

func (r *reparam) Finish(*Site) {}

func (r *reparam) Process(s *Site) {
	how, ok := r.sites[s.Name]
	if !ok || s.Kind != KindSample || s.Observed || s.Value != nil {
		return
	}
	if how == ThroughBijector {
		r.throughBijector(s)
		return
	}
	r.nonCentred(s)
}

// replace declares the new variable, in the plates and with the scale of the old one, outside this handler.
func (r *reparam) replace(s *Site, suffix string, d dist.Distribution) *ts.Tensor {
	z := &Site{Kind: KindSample, Name: s.Name + suffix, Dist: d, Plates: s.Plates, Scale: s.Scale, Mask: s.Mask,
		ctx: s.ctx, given: d, weight: s.weight}
	for _, p := range s.ctx.plates {
		z.before = append(z.before, *p)
	}
	r.outer.show(z)
	s.Kind, s.Observed, s.Scale = KindDeterministic, true, 1
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
	with, ok := s.Dist.(dist.Parameterised)
	unit := standard[s.Dist.Name()]
	if !ok || unit == nil {
		s.fail("NonCentred needs a location-scale family (Normal, StudentT, Cauchy, Laplace, Logistic, Gumbel)")
	}
	p := with.Params()
	z := r.replace(s, "_decentred", unit(p).Expand(s.Dist.BatchShape()...))
	s.Value = dist.LocScale(p["loc"], p["scale"], z)
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
