package models

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// NormalMixture is a mixture of K normal distributions:
//
//	weights ~ Dirichlet(Concentration, …), loc ~ N(LocMean, LocScale²) in increasing order,
//	scale_k ~ LogNormal(0, SpreadScale²)
//	y_i ~ Σ_k weights_k N(loc_k, scale_k²)
//
// The latent variables are "weights", "loc" and "scale", of shape [K]. Which component a number came from is
// summed out, and the order of loc keeps the labels of the components from switching. The batch has "y", [n]; it
// can be split into minibatches. (Gelman et al. 2013, Bayesian Data Analysis, section 22.1; the order: Stan
// User's Guide, "Finite mixtures".)
//
// There may be several modes: one for each way to share the numbers among the components. The prior of scale goes to 0
// faster than the likelihood of a component on a single number grows.
type NormalMixture struct {
	Y             []float64 // n numbers
	Components    int       // K, at least 2
	LocMean       float64   // mean of the prior of loc
	LocScale      float64   // its standard deviation; 0 means 5
	SpreadScale   float64   // standard deviation of log scale; 0 means 1
	Concentration float64   // of the weights; 0 means 1, all weights equally likely
}

// Build checks the data and scales; an error names the field.
func (c NormalMixture) Build() (Model, error) {
	f := &fields{config: "models.NormalMixture"}
	y := f.vector("Y", c.Y, -1, finite, "finite")
	f.atLeast("Components", c.Components, 2)
	if !finite(c.LocMean) {
		f.fail("LocMean", c.LocMean, "it must be finite")
	}
	locs := f.scale("LocScale", c.LocScale, 5)
	spreads := f.scale("SpreadScale", c.SpreadScale, 1)
	concentration := f.scale("Concentration", c.Concentration, 1)
	if f.err != nil {
		return Model{}, f.err
	}
	k := c.Components
	prior := f.repeated(concentration, k)
	return f.model("normal_mixture", func(m *ppl.Ctx) {
		weights := m.Sample("weights", dist.Dirichlet(prior))
		loc := m.Sample("loc", OrderedNormal(c.LocMean, locs, c.Components))
		scale := m.Sample("scale", dist.LogNormal(0, spreads).Expand(k))
		m.Plate("data", len(c.Y), func(m *ppl.Ctx) {
			m.Observe("y", dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(loc, scale)), m.Data("y"))
		})
	}, infer.Batch{"y": y})
}

// MixtureSimulated is [NormalMixture] with two components of 40 numbers without randomness: 15 and 25 quantiles, at the
// probabilities (i + ½)/15 and (i + ½)/25, of N(−2, 0.5²) and N(1, 1).
func MixtureSimulated() (Model, error) {
	c := NormalMixture{Components: 2}
	for _, part := range []struct {
		n         int
		loc, size float64
	}{{15, -2, 0.5}, {25, 1, 1}} {
		for i := range part.n {
			p := (float64(i) + 0.5) / float64(part.n)
			c.Y = append(c.Y, part.loc+part.size*math.Sqrt2*math.Erfinv(2*p-1))
		}
	}
	m, err := c.Build()
	return named("mixture", m, err)
}
