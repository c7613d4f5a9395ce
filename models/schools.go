package models

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Schools is a meta-analysis: effects measured with known errors in each of J places, and the true effects drawn from
// one population.
//
//	mu ~ N(0, LocScale²), tau ~ HalfCauchy(SpreadScale)
//	theta_j ~ N(mu, tau²),  y_j ~ N(theta_j, sigma_j²)
//
// The latent variables are "mu" and "tau", of shape [], and the effects, [J]: centred "theta" itself, else
// "theta_decentred", standard normal numbers z with theta = mu + tau·z, which is there as a deterministic site.
// The batch has "y" and "sigma", [J]. (Rubin 1981, Journal of Educational Statistics 6, 377–401; Gelman et al.
// 2013, Bayesian Data Analysis, section 5.5; the two forms: Papaspiliopoulos, Roberts and Sköld 2007,
// Statistical Science 22, 59–73.)
//
// The two forms are the same posterior. Centred, it is a funnel: as tau goes to 0, theta is squeezed to mu, the density
// grows without bound, and there is no mode. The other form has one.
type Schools struct {
	Effects     []float64 // J measured effects
	Errors      []float64 // their J standard errors, greater than 0
	LocScale    float64   // standard deviation of mu; 0 means 5
	SpreadScale float64   // scale of the prior of tau; 0 means 5
	Centred     bool      // samples theta itself
}

// Build checks the data and scales; an error names the field.
func (c Schools) Build() (Model, error) {
	f := &fields{config: "models.Schools"}
	y := f.vector("Effects", c.Effects, -1, finite, "finite")
	sigma := f.vector(
		"Errors",
		c.Errors,
		len(c.Effects),
		func(v float64) bool { return v > 0 && finite(v) },
		"finite and greater than 0",
	)
	locs := f.scale("LocScale", c.LocScale, 5)
	spreads := f.scale("SpreadScale", c.SpreadScale, 5)
	m, err := f.model("schools", func(m *ppl.Ctx) {
		mu := m.Sample("mu", dist.Normal(0, locs))
		tau := m.Sample("tau", dist.HalfCauchy(spreads))
		m.Plate("schools", len(c.Effects), func(m *ppl.Ctx) {
			var theta torch.Tensor
			if c.Centred {
				theta = m.Sample("theta", dist.Normal(mu, tau))
			} else {
				z := m.Sample("theta_decentred", dist.Normal(0, 1))
				theta = m.Deterministic("theta", z.Mul(tau).Add(mu))
			}
			m.Observe("y", dist.Normal(theta, m.Data("sigma")), m.Data("y"))
		})
	}, infer.Batch{"y": y, "sigma": sigma})
	m.Modeless = c.Centred
	return m, err
}

// rubin is the data of Rubin (1981): estimated effects of coaching on a verbal test in eight
// schools, with standard errors.
func rubin() Schools {
	return Schools{Effects: []float64{28, 8, -3, 7, -1, 1, 18, 12}, Errors: []float64{15, 10, 16, 11, 9, 11, 10, 18}}
}

// EightSchools is [Schools], not centred, of the data of Rubin (1981), with the default priors.
//
// By quadrature over mu and tau, which the effects leave in closed form, the posterior has E[mu] = 4.40, SD[mu] = 3.32,
// E[tau] = 3.60 and SD[tau] = 3.22.
func EightSchools() (Model, error) {
	m, err := rubin().Build()
	return named("eight_schools", m, err)
}

// EightSchoolsCentred is [EightSchools], centred.
func EightSchoolsCentred() (Model, error) {
	c := rubin()
	c.Centred = true
	m, err := c.Build()
	return named("eight_schools_centred", m, err)
}
