package models

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ode"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// SIR is an epidemic among N people who are susceptible, infected or recovered (Kermack and McKendrick 1927), seen
// through counts of the infected:
//
//	dS/dt = −beta S I/N,  dI/dt = beta S I/N − gamma I,  dR/dt = gamma I
//	S(0) = N − Infected, I(0) = Infected, R(0) = 0
//	beta ~ N(2, 1) and gamma ~ N(0.4, 0.5²), both cut at 0, phi_inv ~ Exponential(5)
//	cases_t ~ NegativeBinomial of mean I(t) and variance I(t) + phi_inv I(t)²
//
// The latent variables are beta, gamma and phi_inv, numbers; times are days. R0 = beta/gamma and the mean time of an
// infection, 1/gamma, are recorded. The priors are those of Grinsztajn, Semenova, Margossian and Riou (2021, Statistics
// in Medicine 40, 6209–6234). The batch has "times" and "cases", [T]; the epidemic is one datum, without minibatches.
type SIR struct {
	Times      []float64 // days since the start, not negative, in increasing order
	Cases      []float64 // the infected at each
	Population float64   // N
	Infected   float64   // at the start; 0 means 1
}

// sir is the right-hand side; the parameters are beta, gamma and N.
func sir(_, y torch.Tensor, p []torch.Tensor) torch.Tensor {
	infections := p[0].Mul(y.At(0)).Mul(y.At(1)).Div(p[2])
	recoveries := p[1].Mul(y.At(1))
	return torch.Stack(0, infections.Neg(), infections.Sub(recoveries), recoveries)
}

// Build checks the data; an error names the field.
func (c SIR) Build() (Model, error) {
	f := &fields{config: "models.SIR"}
	f.times(c.Times)
	counts := func(x float64) bool { return x >= 0 && x == math.Trunc(x) && !math.IsInf(x, 0) }
	times, cases := f.tensor(c.Times, len(c.Times)), f.vector("Cases", c.Cases, len(c.Times), counts,
		"whole, not negative")
	if !(c.Population > 0) || math.IsInf(c.Population, 0) {
		f.fail("Population", c.Population, "it must be finite and greater than 0")
	}
	infected := c.Infected
	if infected == 0 {
		infected = 1
	}
	if !(infected > 0 && infected < c.Population) {
		f.fail("Infected", c.Infected, "it must be greater than 0 and less than Population, or 0 for 1")
	}
	system := ode.New(sir, ode.Options{})
	return f.model("sir", func(m *ppl.Ctx) {
		beta := m.Sample("beta", dist.Truncated(dist.Normal(2, 1), 0, math.Inf(1)))
		gamma := m.Sample("gamma", dist.Truncated(dist.Normal(0.4, 0.5), 0, math.Inf(1)))
		phi := m.Sample("phi_inv", dist.Exponential(5)).Reciprocal()
		m.Deterministic("r0", beta.Div(gamma))
		m.Deterministic("recovery", gamma.Reciprocal())
		start := []float64{c.Population - infected, infected, 0}
		y := ode.Solve(system, start, 0, m.Data("times"), beta, gamma, c.Population)
		mean := y.Transpose().At(1).AtLeast(1e-8) // what is nearly 0 may come out negative, by about ATol
		m.Plate("days", 0, func(m *ppl.Ctx) {
			m.Observe("cases", dist.NegativeBinomial(mean, phi), m.Data("cases"))
		})
	}, infer.Batch{"times": times, "cases": cases})
}

// Influenza is [SIR] of an outbreak of influenza among the 763 boys of a boarding school in the north of England: how
// many were confined to bed on each of 14 days from 22 January 1978 on (British Medical Journal 1978, volume 1, page
// 587, read off its figure; the column in_bed of the data set influenza_england_1978_school of the R package outbreaks,
// whose 14 counts and 763 boys these are).
func Influenza() (Model, error) {
	times := make([]float64, 14)
	for i := range times {
		times[i] = float64(i + 1)
	}
	m, err := SIR{Times: times, Population: 763,
		Cases: []float64{3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4}}.Build()
	m.Name = "influenza"
	return m, err
}
