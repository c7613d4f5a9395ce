package mcmc

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
)

// Elliptical is elliptical slice sampling (Murray, Adams and MacKay 2010), for a prior that is a normal distribution
// N(m, Σ) of all latent variables together, as of a latent Gaussian process, and any likelihood L. With ν ~ N(0, Σ) and
// y = log L(x) − e, e ~ Exp(1), it goes to a point of the ellipse
//
//	x' = m + (x − m) cos θ + ν sin θ
//
// with log L(x') > y. The first θ is uniform, on an interval of length 2π that ends there; each point that is not in
// the slice shrinks the interval towards θ = 0. Nothing is refused, and nothing is to be set.
//
// The prior of a model is found by itself: its gradient, at d + 2 points, must be linear, or the error names the latent
// variables that are not normal. On a density of functions, such as [infer.Plain], Mean and Covariance say what the
// prior is; any normal distribution leaves the density as it is, and one near to it mixes best. Their order is that of
// the layout, which sorts names.
type Elliptical struct {
	Mean        []float64      // m, one number for each of d; nil takes the prior of the model
	Covariance  []float64      // Σ, d·d numbers row after row; given with Mean
	Temperature infer.Schedule // T at each update; default 1. It must be positive
}

// Build checks the configuration and binds it to a target.
func (c Elliptical) Build(target infer.Target) (infer.Transform, error) {
	a := newAlgorithm("mcmc.Elliptical", c.Temperature)
	a.step, a.moves = c.step, true
	d := len(c.Mean)
	a.check.Require(len(c.Covariance) == d*d, "Covariance", len(c.Covariance),
		"it must have d·d numbers for a Mean of d, row after row")
	given, err := c.given()
	if err != nil {
		a.check.Require(false, "Covariance", "given", err.Error())
	}
	if c.Mean != nil {
		a.divides = true
		a.prior = func(_ infer.Params, _ infer.Batch, temperature float64) (*gaussian, error) {
			return given.tempered(temperature), nil
		}
		return a.build(target)
	}
	a.check.Require(target.Parts != nil, "Mean", "nil", "give Mean and Covariance, or compile a model: "+
		"the target cannot tell its prior")
	a.prior = func(at infer.Params, b infer.Batch, temperature float64) (*gaussian, error) {
		return priorOf(target, at, b, temperature)
	}
	likelihood := target
	if target.Parts != nil {
		likelihood = target.Weighted(infer.Weights{Likelihood: 1})
	}
	return a.build(likelihood)
}

// Defaults are 4 chains of 1000 draws after 1000 updates.
func (Elliptical) Defaults() infer.Options { return defaults }

func (c Elliptical) step(m *move) {
	level := m.V - m.ExpFloat64()
	mean, nu := m.prior.mean, m.prior.deviation(m.normals(len(m.X)))
	theta := 2 * math.Pi * m.Float64()
	low, high := theta-2*math.Pi, theta
	to := make([]float64, len(m.X))
	for {
		sin, cos := math.Sincos(theta)
		for i, x := range m.X {
			to[i] = mean[i] + (x-mean[i])*cos + nu[i]*sin
		}
		if v := m.value(to); v > level {
			m.X, m.V = to, v
			return
		}
		if theta < 0 {
			low = theta
		} else {
			high = theta
		}
		if !(high-low > 1e-300) { // numbers end here
			return
		}
		theta = low + (high-low)*m.Float64()
	}
}
