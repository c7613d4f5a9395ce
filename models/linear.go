package models

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// LinearRegression is the regression of numbers on features with normal errors:
//
//	w_j ~ N(0, PriorScale²), intercept ~ N(0, InterceptScale²), sigma ~ HalfCauchy(NoiseScale)
//	y_i ~ N(x_iᵀw + intercept, sigma²)
//
// The latent variables are "w", of shape [d], "intercept", [], and "sigma", []. The batch has "x", [n, d], and "y",
// [n]; it can be split into minibatches. (Gelman et al. 2013, Bayesian Data Analysis, chapter 14; the prior of sigma:
// Gelman 2006, Bayesian Analysis 1, 515–534.)
//
// With a known Noise the posterior of β = (intercept, w) is normal, with X with a column of ones and D the diagonal
// matrix of the prior variances:
//
//	Σ = (XᵀX/Noise² + D⁻¹)⁻¹,  μ = Σ Xᵀy/Noise²
//
// so that its mode is its mean.
type LinearRegression struct {
	X              [][]float64 // n rows of d features
	Y              []float64   // n numbers
	PriorScale     float64     // standard deviation of the weights; 0 means 10
	InterceptScale float64     // standard deviation of the intercept; 0 means 10
	NoiseScale     float64     // scale of the prior of sigma; 0 means 2.5
	Noise          float64     // a known standard deviation of the errors, instead of sigma; 0 means that it is unknown
	NoIntercept    bool        // leaves the intercept out
}

// Build checks the data and scales; an error names the field.
func (c LinearRegression) Build() (Model, error) {
	f := &fields{config: "models.LinearRegression"}
	x, n, d := f.matrix("X", c.X)
	y := f.vector("Y", c.Y, n, finite, "finite")
	weights := f.scale("PriorScale", c.PriorScale, 10)
	intercepts := f.scale("InterceptScale", c.InterceptScale, 10)
	noises := f.scale("NoiseScale", c.NoiseScale, 2.5)
	if !(c.Noise >= 0) || !finite(c.Noise) {
		f.fail("Noise", c.Noise, "it must be finite and greater than 0, or 0 where it is unknown")
	}
	return f.model("linear_regression", func(m *ppl.Ctx) {
		w := m.Sample("w", dist.Normal(0, weights).Expand(d))
		var b, sigma any = 0.0, c.Noise
		if !c.NoIntercept {
			b = m.Sample("intercept", dist.Normal(0, intercepts))
		}
		if c.Noise == 0 {
			sigma = m.Sample("sigma", dist.HalfCauchy(noises))
		}
		m.Plate("data", n, func(m *ppl.Ctx) {
			m.Observe("y", dist.NormalGLM(m.Data("x"), w, b, sigma), m.Data("y"))
		})
	}, infer.Batch{"x": x, "y": y})
}

// Anscombe is [LinearRegression] of the first of the four data sets of Anscombe (1973, Graphs in statistical analysis,
// The American Statistician 27, 17–21), with the default priors.
//
// Least squares gives y = 3.00 + 0.500 x with a residual standard deviation of 1.24 (Anscombe); the posterior is
// centred near there.
func Anscombe() (Model, error) {
	c := LinearRegression{Y: []float64{8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68}}
	for _, x := range []float64{10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5} {
		c.X = append(c.X, []float64{x})
	}
	m, err := c.Build()
	return named("anscombe", m, err)
}
