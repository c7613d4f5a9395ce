package models

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// LogisticRegression is the regression of labels on features through log-odds:
//
//	w_j ~ N(0, PriorScale²), intercept ~ N(0, InterceptScale²)
//	y_i ~ Bernoulli(σ(x_iᵀw + intercept)),  σ(η) = 1/(1 + exp(−η))
//
// The latent variables are "w", of shape [d], and "intercept", of shape []. The batch has "x", [n, d], and "y", [n]; it
// can be split into minibatches. (Gelman et al. 2013, Bayesian Data Analysis, section 16.1.)
//
// The log posterior is strictly concave, so that there is one mode, also where the labels can be separated. PriorScale
// belongs to the units of the features: 1 suits features that are standardised.
type LogisticRegression struct {
	X              [][]float64 // n rows of d features
	Y              []float64   // n labels, 0 or 1
	PriorScale     float64     // standard deviation of the weights; 0 means 1
	InterceptScale float64     // standard deviation of the intercept; 0 means 10
	NoIntercept    bool        // leaves the intercept out
}

// Build checks the data and scales; an error names the field.
func (c LogisticRegression) Build() (Model, error) {
	f := &fields{config: "models.LogisticRegression"}
	x, n, d := f.matrix("X", c.X)
	y := f.vector("Y", c.Y, n, func(v float64) bool { return v == 0 || v == 1 }, "0 or 1")
	weights := f.scale("PriorScale", c.PriorScale, 1)
	intercepts := f.scale("InterceptScale", c.InterceptScale, 10)
	return f.model("logistic_regression", func(m *ppl.Ctx) {
		w := m.Sample("w", dist.Normal(0, weights).Expand(d))
		var b any = 0.0
		if !c.NoIntercept {
			b = m.Sample("intercept", dist.Normal(0, intercepts))
		}
		m.Plate("data", n, func(m *ppl.Ctx) {
			m.Observe("y", dist.BernoulliLogitGLM(m.Data("x"), w, b), m.Data("y"))
		})
	}, infer.Batch{"x": x, "y": y})
}

// Beetles is [LogisticRegression] of 481 beetles, each killed or not by one of eight doses of carbon disulphide (Bliss
// 1935, The calculation of the dosage-mortality curve, Annals of Applied Biology 22, table IV; the data are in Dobson
// 1990, An Introduction to Generalized Linear Models). The feature is 10·(dose − 1.8), the dose the decimal logarithm
// of the concentration in mg/l; both prior standard deviations are 10.
//
// The maximum of the likelihood is at a log-odds of −60.717 + 34.270·dose (Dobson), hence at w = 3.427 and an intercept
// of 0.969, with standard errors 0.291 and 0.143; the priors draw the mode only a little to 0.
func Beetles() (Model, error) {
	doses := []float64{1.6907, 1.7242, 1.7552, 1.7842, 1.8113, 1.8369, 1.8610, 1.8839}
	beetles := []int{59, 60, 62, 56, 63, 59, 62, 60}
	killed := []int{6, 13, 18, 28, 52, 53, 61, 60}
	c := LogisticRegression{PriorScale: 10, InterceptScale: 10}
	for i, dose := range doses {
		for j := range beetles[i] {
			dead := 0.0
			if j < killed[i] {
				dead = 1
			}
			c.X, c.Y = append(c.X, []float64{10 * (dose - 1.8)}), append(c.Y, dead)
		}
	}
	m, err := c.Build()
	return named("beetles", m, err)
}
