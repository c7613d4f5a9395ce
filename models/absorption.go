package models

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ode"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Absorption is a drug that was swallowed: the amount in the gut goes at the rate ka into one compartment of volume v,
// from which it is cleared (the one-compartment model with absorption of first order):
//
//	dG/dt = −ka G,  dA/dt = ka G − (cl/v) A,  G(0) = Dose, A(0) = 0
//	ka ~ LogNormal(0.4, 0.5²), cl ~ LogNormal(−3.2, 0.5²), v ~ LogNormal(−0.7, 0.5²), sigma ~ HalfNormal(1)
//	concentration_t ~ N(A(t)/v, sigma²)
//
// The latent variables are ka (per unit of time), cl (volume per unit of time), v (volume), and sigma; the priors are
// for hours, litres per kilogram of body weight, and concentrations of some milligrams per litre. The half-life
// log(2) v/cl is recorded. The batch has "times" and "concentration", [T]; the course is one datum, without
// minibatches.
type Absorption struct {
	Times         []float64 // since the dose, not negative, in increasing order
	Concentration []float64 // at each
	Dose          float64
}

// absorption is the right-hand side; the parameters are ka and cl/v.
func absorption(_, y torch.Tensor, p []torch.Tensor) torch.Tensor {
	absorbed := p[0].Mul(y.At(0))
	return torch.Stack(0, absorbed.Neg(), absorbed.Sub(p[1].Mul(y.At(1))))
}

// Build checks the data; an error names the field.
func (c Absorption) Build() (Model, error) {
	f := &fields{config: "models.Absorption"}
	f.times(c.Times)
	times := f.tensor(c.Times, len(c.Times))
	concentration := f.vector("Concentration", c.Concentration, len(c.Times), finite, "finite")
	if !(c.Dose > 0) || math.IsInf(c.Dose, 0) {
		f.fail("Dose", c.Dose, "it must be finite and greater than 0")
	}
	system := ode.New(absorption, ode.Options{})
	return f.model("absorption", func(m *ppl.Ctx) {
		ka := m.Sample("ka", dist.LogNormal(0.4, 0.5))
		cl := m.Sample("cl", dist.LogNormal(-3.2, 0.5))
		v := m.Sample("v", dist.LogNormal(-0.7, 0.5))
		sigma := m.Sample("sigma", dist.HalfNormal(1))
		m.Deterministic("half_life", v.Div(cl).Mul(math.Ln2))
		y := ode.Solve(system, []float64{c.Dose, 0}, 0, m.Data("times"), ka, cl.Div(v))
		m.Plate("samples", 0, func(m *ppl.Ctx) {
			m.Observe("concentration", dist.Normal(y.Transpose().At(1).Div(v), sigma), m.Data("concentration"))
		})
	}, infer.Batch{"times": times, "concentration": concentration})
}

// Theophylline is [Absorption] of the first subject of a study by Upton of theophylline against asthma: 4.02 mg per kg
// of body weight, and 11 concentrations in the serum, in mg per litre, over 25 hours (Boeckmann, Sheiner and Beal 1994,
// NONMEM Users Guide, part V; the 11 rows of subject 1 of R's data set Theoph, whose numbers these are).
func Theophylline() (Model, error) {
	m, err := Absorption{Dose: 4.02,
		Times:         []float64{0, 0.25, 0.57, 1.12, 2.02, 3.82, 5.1, 7.03, 9.05, 12.12, 24.37},
		Concentration: []float64{0.74, 2.84, 6.57, 10.5, 9.66, 8.58, 8.36, 7.47, 6.89, 5.94, 3.28}}.Build()
	m.Name = "theophylline"
	return m, err
}
