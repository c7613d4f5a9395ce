package models

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/gp"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// WaveGP is a Gaussian process with the squared-exponential kernel at 20 numbers y_i = sin(x_i) + 0.1·cos(i²), x_i =
// i/3, i from 0: a wave with something like noise, of standard deviation 0.07.
//
//	lengthscale ~ InverseGamma(5, 5), amplitude ~ HalfNormal(1), noise ~ HalfNormal(1)
//
// f is integrated out, so that the numbers are one datum and there are no minibatches. There may be two modes, one that
// explains the data by f and one by noise.
func WaveGP() (Model, error) {
	var x, y []float64
	for i := range 20 {
		x = append(x, float64(i)/3)
		y = append(y, math.Sin(x[i])+0.1*math.Cos(float64(i*i)))
	}
	f := &fields{config: "models.WaveGP"}
	xs, ys := f.vector("x", x, len(x), finite, "finite"), f.vector("y", y, len(x), finite, "finite")
	return f.model("wave_gp", func(m *ppl.Ctx) {
		length := m.Sample("lengthscale", dist.InverseGamma(5, 5))
		amplitude, noise := m.Sample("amplitude", dist.HalfNormal(1)), m.Sample("noise", dist.HalfNormal(1))
		kernel := gp.SquaredExponential{Scale: amplitude, Length: length}.Within(m.Data("x"))
		covariance := kernel.Add(noise.Square().Expand(20).Diag())
		m.Observe("y", dist.MultivariateNormal(0, covariance), m.Data("y"))
	}, infer.Batch{"x": xs, "y": ys})
}
