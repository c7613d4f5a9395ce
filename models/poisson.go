package models

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// PoissonRegression is the regression of counts that vary more than a Poisson distribution: each has a rate with a
// log-normal effect of its own.
//
//	w_j ~ N(0, PriorScale²), intercept ~ N(0, InterceptScale²), sigma ~ HalfNormal(SpreadScale)
//	effect_i ~ N(0, sigma²),  y_i ~ Poisson(exp(x_iᵀw + intercept + effect_i))
//
// The latent variables are "w", of shape [d], "intercept" and "sigma", [], and "effect_decentred", [n], standard normal
// numbers z with effect = sigma·z, which is there as a deterministic site. The batch has "x", [n, d], and "y", [n].
// Each count has a latent variable, so that the batch is all of them: there are no minibatches. (Breslow 1984,
// Extra-Poisson variation in log-linear models, Applied Statistics 33, 38–44.)
//
// Given sigma, the log posterior of the rest is strictly concave.
type PoissonRegression struct {
	X              [][]float64 // n rows of d features
	Y              []float64   // n counts
	PriorScale     float64     // standard deviation of the weights; 0 means 10
	InterceptScale float64     // standard deviation of the intercept; 0 means 10
	SpreadScale    float64     // scale of the prior of sigma; 0 means 1
}

// Build checks the data and scales; an error names the field.
func (c PoissonRegression) Build() (Model, error) {
	f := &fields{config: "models.PoissonRegression"}
	x, n, d := f.matrix("X", c.X)
	y := f.vector(
		"Y",
		c.Y,
		n,
		func(v float64) bool { return v >= 0 && v == math.Trunc(v) && finite(v) },
		"a whole number of at least 0",
	)
	weights := f.scale("PriorScale", c.PriorScale, 10)
	intercepts := f.scale("InterceptScale", c.InterceptScale, 10)
	spreads := f.scale("SpreadScale", c.SpreadScale, 1)
	return f.model("poisson_regression", func(m *ppl.Ctx) {
		w := m.Sample("w", dist.Normal(0, weights).Expand(d))
		b := m.Sample("intercept", dist.Normal(0, intercepts))
		sigma := m.Sample("sigma", dist.HalfNormal(spreads))
		m.Plate("data", n, func(m *ppl.Ctx) {
			z := m.Sample("effect_decentred", dist.Normal(0, 1))
			effect := m.Deterministic("effect", z.Mul(sigma))
			m.Observe("y", dist.PoissonLogGLM(m.Data("x"), w, effect.Add(b)), m.Data("y"))
		})
	}, infer.Batch{"x": x, "y": y})
}

// Salmonella is [PoissonRegression] of an Ames test: the colonies of revertant salmonella TA98 on 18 plates,
// three for each of six doses of quinoline in µg (Margolin et al. 1981, PNAS 78, 3779–3783; Breslow 1984, table
// 1). The features are log(dose + 10), as mutagens act, and dose/1000, as they kill, each less its mean; the
// priors are the default ones.
//
// Breslow's quasi-likelihood estimates are w = (0.311 ± 0.099, −0.974 ± 0.437), sigma = 0.268 and an intercept of 2.203
// where the features are not centred, hence of 3.338 here; the posterior means are near those.
func Salmonella() (Model, error) {
	c := PoissonRegression{Y: []float64{15, 21, 29, 16, 18, 21, 16, 26, 33, 27, 41, 60, 33, 38, 41, 20, 27, 42}}
	means := []float64{0, 0}
	for _, dose := range []float64{0, 10, 33, 100, 333, 1000} {
		row := []float64{math.Log(dose + 10), dose / 1000}
		for range 3 {
			c.X = append(c.X, slices.Clone(row))
		}
		for j, v := range row {
			means[j] += v / 6
		}
	}
	for _, row := range c.X {
		for j := range row {
			row[j] -= means[j]
		}
	}
	m, err := c.Build()
	return named("salmonella", m, err)
}
