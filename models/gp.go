package models

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/mat"
)

// GaussianProcess is the regression of numbers on an unknown smooth function f of the inputs, with mean 0 and the
// squared-exponential kernel:
//
//	lengthscale ~ InverseGamma(5, 5·LengthScale), amplitude ~ HalfNormal(AmplitudeScale), noise ~ HalfNormal(NoiseScale)
//	k(x, x') = amplitude² exp(−|x − x'|²/(2 lengthscale²)),  y ~ N(0, K + (noise² + Jitter) I),  K_ij = k(x_i, x_j)
//
// The latent variables are "lengthscale", "amplitude" and "noise", of shape []; f is integrated out. The batch has "x",
// [n, d], and "y", [n]; the numbers depend on each other, so that they are one datum, there are no minibatches, and the
// temperature of the Bayes posterior is 1. (Rasmussen and Williams 2006, Gaussian Processes for Machine Learning,
// equation 2.30; the priors follow Stan User's Guide, "Gaussian processes": lengthscales below the distance of the
// inputs or beyond their range tell nothing from the data, so that the prior avoids 0.)
//
// There may be two modes, one that explains the data by f and one by noise.
type GaussianProcess struct {
	X              [][]float64 // n inputs of d coordinates
	Y              []float64   // n numbers, about 0
	LengthScale    float64     // the lengthscale's prior has mean 1.25 times this; 0 means 1
	AmplitudeScale float64     // 0 means 1
	NoiseScale     float64     // 0 means 1
	Jitter         float64     // variance added to the noise's, against rounding; 0 means 1e-9
}

// GPHyper is a point of the latent variables of a [GaussianProcess]: Lengthscale, Amplitude and Noise, the standard
// deviation of an observation.
type GPHyper struct{ Lengthscale, Amplitude, Noise float64 }

// Build checks the data and scales; an error names the field.
func (c GaussianProcess) Build() (Model, error) {
	f := &fields{config: "models.GaussianProcess"}
	x, n, _ := f.matrix("X", c.X)
	y := f.vector("Y", c.Y, n, finite, "finite")
	lengths := f.scale("LengthScale", c.LengthScale, 1)
	amplitudes := f.scale("AmplitudeScale", c.AmplitudeScale, 1)
	noises := f.scale("NoiseScale", c.NoiseScale, 1)
	jitter := f.scale("Jitter", c.Jitter, defaultJitter)
	return f.model("gaussian_process", func(m *ppl.Ctx) {
		lengthscale := m.Sample("lengthscale", dist.InverseGamma(5, 5*lengths))
		amplitude := m.Sample("amplitude", dist.HalfNormal(amplitudes))
		noise := m.Sample("noise", dist.HalfNormal(noises))
		kernel := squaredExponential(m.Data("x"), lengthscale, amplitude)
		variances := noise.Square().Add(jitter).Expand(int64(n))
		m.Observe("y", dist.MultivariateNormal(0, kernel.Add(variances.Diag())), m.Data("y"))
	}, infer.Batch{"x": x, "y": y})
}

const defaultJitter = 1e-9

// squaredExponential is the kernel's matrix for inputs x, of shape [n, d].
func squaredExponential(x, lengthscale, amplitude torch.Tensor) torch.Tensor {
	apart := x.Unsqueeze(1).Sub(x.Unsqueeze(0))
	squares := apart.Square().Sum(-1).Mul(-0.5)
	return squares.Div(lengthscale.Square()).Exp().Mul(amplitude.Square())
}

// Predict is the mean and the variance of f at new inputs, m rows of d coordinates, given the data and the latent
// variables (Rasmussen and Williams 2006, equations 2.23 and 2.24, algorithm 2.1): with k* the kernel between the data
// and the new input,
//
//	mean = k*ᵀ (K + (noise² + Jitter) I)⁻¹ y,  variance = amplitude² − k*ᵀ (K + (noise² + Jitter) I)⁻¹ k*
//
// A new observation has noise² more variance.
func (c GaussianProcess) Predict(x [][]float64, h GPHyper) (mean, variance []float64, err error) {
	f := &fields{config: "models.GaussianProcess"}
	_, n, d := f.matrix("X", c.X)
	f.numbers("Y", c.Y, n, finite, "finite")
	jitter := f.scale("Jitter", c.Jitter, defaultJitter)
	p := &fields{config: "models.GaussianProcess.Predict", err: f.err}
	if _, _, columns := p.matrix("x", x); p.err == nil && columns != d {
		p.fail("x", fmt.Sprintf("of %d columns", columns), "it must have %d, as X has", d)
	}
	for name, v := range map[string]float64{"Lengthscale": h.Lengthscale, "Amplitude": h.Amplitude} {
		if !(v > 0) || !finite(v) {
			p.fail(name, v, "it must be finite and greater than 0")
		}
	}
	if !(h.Noise >= 0) || !finite(h.Noise) {
		p.fail("Noise", h.Noise, "it must be finite and at least 0")
	}
	if p.err != nil {
		return nil, nil, p.err
	}
	kernel := func(a, b []float64) float64 {
		r := 0.0
		for i := range a {
			r += (a[i] - b[i]) * (a[i] - b[i])
		}
		return h.Amplitude * h.Amplitude * math.Exp(-r/(2*h.Lengthscale*h.Lengthscale))
	}
	cov := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			v := kernel(c.X[i], c.X[j])
			if i == j {
				v += h.Noise*h.Noise + jitter
			}
			cov.SetSym(i, j, v)
		}
	}
	var factor mat.Cholesky
	if !factor.Factorize(cov) {
		return nil, nil, fmt.Errorf(
			"models.GaussianProcess.Predict: the covariance is not positive definite to rounding at %+v: a larger Jitter helps",
			h)
	}
	across := mat.NewDense(n, len(x), nil)
	for j, new := range x {
		for i := range n {
			across.Set(i, j, kernel(c.X[i], new))
		}
	}
	var solved mat.Dense
	if err := factor.SolveTo(&solved, across); err != nil {
		return nil, nil, fmt.Errorf("models.GaussianProcess.Predict: %w", err)
	}
	mean, variance = make([]float64, len(x)), make([]float64, len(x))
	y := mat.NewVecDense(n, c.Y)
	for j := range x {
		mean[j] = mat.Dot(solved.ColView(j), y)
		variance[j] = math.Max(h.Amplitude*h.Amplitude-mat.Dot(solved.ColView(j), across.ColView(j)), 0)
	}
	return mean, variance, nil
}

// WaveGP is [GaussianProcess] of 20 numbers y_i = sin(x_i) + 0.1·cos(i²) at x_i = i/3, i from 0: a wave with something
// like noise, of standard deviation 0.07.
func WaveGP() (Model, error) {
	m, err := wave().Build()
	return named("wave_gp", m, err)
}

func wave() GaussianProcess {
	var c GaussianProcess
	for i := range 20 {
		x := float64(i) / 3
		c.X, c.Y = append(c.X, []float64{x}), append(c.Y, math.Sin(x)+0.1*math.Cos(float64(i*i)))
	}
	return c
}
