package infer_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

var temperatures = []float64{0.1, 0.5, 1, 1.7, 4}

// conjugate is a mean θ with prior N(0, a²) and data y_i ~ N(θ, s²). Its log posterior is a parabola of precision
// 1/a² + n/s², so that its law is read off from a few values.
type conjugate struct {
	a, s float64
	y    []float64
}

func (c conjugate) parts(p infer.Params, b infer.Batch) (logPrior, logLikelihood torch.Tensor) {
	theta := p.Get("x").T().MustReshape([]int64{}, false)
	logPrior = scaled(torch.Of(theta.MustSquare(false)), -0.5/(c.a*c.a))
	logLikelihood = scaled(sum(b.Get("y").Sub(theta).Square()), -0.5/(c.s*c.s))
	return logPrior, logLikelihood
}

// joined is the target of two functions on gotch tensors.
func joined(parts func(infer.Params, infer.Batch) (logPrior, logLikelihood torch.Tensor)) infer.Target {
	return infer.FromParts(func(p infer.Params, b infer.Batch) (torch.Tensor, torch.Tensor) {
		prior, likelihood := parts(p, b)
		return prior, likelihood
	}, 0)
}

func (c conjugate) target() infer.Target { return joined(c.parts) }

func (c conjugate) batch() infer.Batch { return infer.Batch{"y": vec(c.y)} }

func newConjugate() conjugate {
	return conjugate{a: 1.5, s: 0.8, y: []float64{0.3, 1.9, -0.4, 2.2, 1.1}}
}

// lawOf is the precision and the mean of the Gaussian exp(f): f is a parabola, so that differences of its exact
// gradient are exact.
func lawOf(t *testing.T, f infer.Target, err error, b infer.Batch) (precision, mean float64) {
	t.Helper()
	require.NoError(t, err)
	g, err := infer.NewGradient(f)
	require.NoError(t, err)
	slope := func(x float64) float64 {
		e, err := g.ValueAndGrad(pointOf(t, layoutOf(t, infer.Shapes{"x": {1}}), x), b, 0)
		require.NoError(t, err)
		return floats(e.Grad)[0]
	}
	precision = slope(0) - slope(1)
	return precision, slope(0) / precision
}

// The laws in closed form. Each is a Gaussian.
func TestTemperedConjugateGaussian(t *testing.T) {
	c := newConjugate()
	n, total := float64(len(c.y)), 0.0
	for _, y := range c.y {
		total += y
	}
	for _, temperature := range temperatures {
		full, err := infer.TemperFull(joined(c.parts), temperature)
		precision, mean := lawOf(t, full, err, c.batch())
		exact := 1/(c.a*c.a) + n/(c.s*c.s)
		assert.InEpsilon(t, exact/temperature, precision, 1e-13, "the variance is T times the posterior's")
		assert.InEpsilon(t, total/(c.s*c.s)/exact, mean, 1e-12, "the mode stays")

		partial, err := infer.TemperLikelihood(joined(c.parts), temperature)
		precision, mean = lawOf(t, partial, err, c.batch())
		exact = 1/(c.a*c.a) + n/(temperature*c.s*c.s)
		assert.InEpsilon(t, exact, precision, 1e-13)
		assert.InEpsilon(t, total/(temperature*c.s*c.s)/exact, mean, 1e-12, "the mode moves towards the prior's with T")

		// Data of T times the variance, or a prior of 1/T times the variance at a full temperature: the same law.
		wider := c
		wider.s *= math.Sqrt(temperature)
		same, err := joined(wider.parts), error(nil)
		precision2, mean2 := lawOf(t, same, err, c.batch())
		assert.InEpsilon(t, precision, precision2, 1e-13)
		assert.InEpsilon(t, mean, mean2, 1e-12)
		narrower := c
		narrower.a /= math.Sqrt(temperature)
		same, err = infer.TemperFull(joined(narrower.parts), temperature)
		precision2, mean2 = lawOf(t, same, err, c.batch())
		assert.InEpsilon(t, precision, precision2, 1e-13)
		assert.InEpsilon(t, mean, mean2, 1e-12)
	}
}

// evaluated is a log posterior and its gradient.
func evaluated(t *testing.T, f infer.Target, err error, p infer.Params, b infer.Batch) []float64 {
	t.Helper()
	require.NoError(t, err)
	g, err := infer.NewGradient(f)
	require.NoError(t, err)
	e, err := g.ValueAndGrad(p, b, 0)
	require.NoError(t, err)
	return append(floats(e.Value), floats(e.Grad)...)
}

// classifier is a softmax classifier with a normal prior; as a function so that its likelihood can be tempered by hand.
type classifier struct{ scale float64 }

func (c classifier) logits(p infer.Params, b infer.Batch) torch.Tensor {
	return scaled(b.Get("x").MatMul(p.Get("w")), c.scale)
}

func (c classifier) parts(p infer.Params, b infer.Batch) (logPrior, logLikelihood torch.Tensor) {
	picked := c.logits(p, b).T().MustLogSoftmax(-1, gotch.Double, false).MustMul(b.Get("y").T(), false)
	return scaled(sum(p.Flat.Square()), -0.5), sum(torch.Of(picked))
}

func classification(t *testing.T) (infer.Params, infer.Batch) {
	y := make([]float64, 12)
	for i := range 4 {
		y[3*i+i%3] = 1
	}
	l := layoutOf(t, infer.Shapes{"w": {2, 3}})
	return pointOf(t, l, numbers(12, 3)...), infer.Batch{"x": vec(numbers(8, 1), 4, 2), "y": vec(y, 4, 3)}
}

// Identities between the ways of tempering, of values and gradients, at two points of a model that is not Gaussian.
func TestTemperingIdentities(t *testing.T) {
	m := classifier{1}
	p, b := classification(t)
	normalizer := func(p infer.Params, b infer.Batch, temperature float64) torch.Tensor {
		return sum(infer.CategoricalNormalizer(m.logits(p, b), temperature))
	}
	joint, err := joined(m.parts), error(nil)
	untempered := evaluated(t, joint, err, p, b)
	for _, temperature := range temperatures {
		full, err := infer.TemperFull(joined(m.parts), temperature)
		atFull := evaluated(t, full, err, p, b)
		partial, err := infer.TemperLikelihood(joined(m.parts), temperature)
		atPartial := evaluated(t, partial, err, p, b)
		observed, err := infer.TemperObservation(joined(m.parts), normalizer, temperature)
		atObserved := evaluated(t, observed, err, p, b)

		// Full is the log posterior over T.
		for i, v := range untempered {
			assert.InDelta(t, v/temperature, atFull[i], 1e-13)
		}
		if temperature == 1 {
			assert.Equal(t, untempered, atFull)
			assert.Equal(t, untempered, atPartial)
			assert.InDeltaSlice(t, untempered, atObserved, 1e-13)
		}
		// The likelihood at T with the prior to the power 1/T is full.
		priorScaled := func(p infer.Params, b infer.Batch) (torch.Tensor, torch.Tensor) {
			logPrior, logLikelihood := m.parts(p, b)
			return scaled(logPrior, 1/temperature), logLikelihood
		}
		same, err := infer.TemperLikelihood(joined(priorScaled), temperature)
		assert.InDeltaSlice(t, atFull, evaluated(t, same, err, p, b), 1e-13)
		// Full at T and then the likelihood at 1/T undoes the likelihood's part and leaves the prior's.
		undone, err := infer.TemperLikelihood(joined(func(p infer.Params, b infer.Batch) (torch.Tensor, torch.Tensor) {
			logPrior, logLikelihood := m.parts(p, b)
			return logPrior, scaled(logLikelihood, 1/temperature)
		}), 1/temperature)
		assert.InDeltaSlice(t, untempered, evaluated(t, undone, err, p, b), 1e-12)
		// A classifier's observation model at T is the classifier with logits over T, constants and all.
		same, err = joined(classifier{1 / temperature}.parts), error(nil)
		assert.InDeltaSlice(t, evaluated(t, same, err, p, b), atObserved, 1e-12)
		if temperature != 1 {
			assert.Greater(t, math.Abs(atObserved[1]-atPartial[1]), 1e-3,
				"tempering the observation model is not tempering the likelihood")
			assert.Greater(t, math.Abs(atFull[1]-atPartial[1]), 1e-3, "tempering the likelihood is not full tempering")
		}
	}
}

// Normal observations at T are normal with √T times the standard deviation, here with the deviation as a parameter,
// where the normalizer matters.
func TestTemperedNormalObservations(t *testing.T) {
	y := numbers(7, 2)
	type parts = func(p infer.Params, b infer.Batch) (torch.Tensor, torch.Tensor)
	normal := func(temperature float64) parts { // with the variance times T, and its constant
		return func(p infer.Params, b infer.Batch) (torch.Tensor, torch.Tensor) {
			mean, logSD := p.Get("mean").T(), p.Get("log_sd").T()
			r := b.Get("y").Sub(mean).Div(logSD.MustExp(false)).T()
			half := scaled(torch.Of(r.MustSquare(false)), -0.5/temperature).Sub(logSD).T()
			constant := ts.FloatScalar(-0.5 * math.Log(2*math.Pi*temperature))
			return scaled(sum(p.Flat.Square()), -0.5), sum(torch.Of(half.MustAddScalar(constant, false)))
		}
	}
	normalizer := func(p infer.Params, b infer.Batch, temperature float64) torch.Tensor {
		return scaled(infer.NormalNormalizer(p.Get("log_sd"), temperature), float64(len(y)))
	}
	p, b := pointOf(t, layoutOf(t, infer.Shapes{"mean": {}, "log_sd": {}}), 0.3, -0.4), infer.Batch{"y": vec(y)}
	for _, temperature := range temperatures {
		observed, err := infer.TemperObservation(joined(normal(1)), normalizer, temperature)
		got := evaluated(t, observed, err, p, b)
		want, err := joined(normal(temperature)), error(nil)
		assert.InDeltaSlice(t, evaluated(t, want, err, p, b), got, 1e-12)
	}
}

// Σ_k p_k^(1/T) and ∫ N(y; μ, σ²)^(1/T) dy by hand.
func TestNormalizers(t *testing.T) {
	z := []float64{0.2, -1, 1.5, 3, 0, -2}
	for _, temperature := range temperatures {
		got := floats(infer.CategoricalNormalizer(vec(z, 2, 3), temperature))
		for r := range 2 {
			total, tempered := 0.0, 0.0
			for _, v := range z[3*r : 3*r+3] {
				total += math.Exp(v)
			}
			for _, v := range z[3*r : 3*r+3] {
				tempered += math.Pow(math.Exp(v)/total, 1/temperature)
			}
			assert.InDelta(t, math.Log(tempered), got[r], 1e-13)
		}

		sds := []float64{0.3, 2}
		got = floats(infer.NormalNormalizer(vec([]float64{math.Log(0.3), math.Log(2)}), temperature))
		for i, sd := range sds {
			// The trapezoid rule on a Gaussian is exact to rounding when the step is below half of a standard deviation.
			wide := sd * math.Sqrt(temperature)
			step, total := wide/4, 0.0
			for j := -60; j <= 60; j++ {
				y := float64(j) * step
				density := math.Exp(-0.5*y*y/(sd*sd)) / (sd * math.Sqrt(2*math.Pi))
				total += step * math.Pow(density, 1/temperature)
			}
			assert.InDelta(t, math.Log(total), got[i], 1e-12)
		}
	}
	assert.InDeltaSlice(t, []float64{0, 0}, floats(infer.CategoricalNormalizer(vec(z, 2, 3), 1)), 1e-15,
		"densities are normalized at T = 1")
}

// A method at temperature T goes the way of the fully tempered target at temperature 1 and T times the step size.
func TestTheTemperatureOfAMethodIsFullTempering(t *testing.T) {
	m := classifier{1}
	p, b := classification(t)
	const eps, temperature = 0.05, 2.5
	joint, err := joined(m.parts), error(nil)
	require.NoError(t, err)
	full, err := infer.TemperFull(joined(m.parts), temperature)
	require.NoError(t, err)
	c := infer.Options{Warmup: infer.None, Draws: 20, Seed: 3}
	want := ran(t, build(t, sgmcmc.SGLD{LR: infer.Constant(eps), Temperature: infer.Constant(temperature)},
		joint.LogPosterior), p, infer.Full(b), c)
	got := ran(t, build(t, sgmcmc.SGLD{LR: infer.Constant(eps * temperature)}, full.LogPosterior), p, infer.Full(b), c)
	for k := range want.Draws.Chains() {
		for i := range want.Draws.Len(k) {
			assert.InDeltaSlice(t, want.Draws.Row(k, i), got.Draws.Row(k, i), 1e-12)
		}
	}
}

// The parts come back as they were before tempering, one for each chain.
func TestTemperedAux(t *testing.T) {
	c := newConjugate()
	p := pointOf(t, layoutOf(t, infer.Shapes{"x": {1}}), 0.5, -1, 2)
	for _, make := range []func() (infer.Target, error){
		func() (infer.Target, error) { return joined(c.parts), nil },
		func() (infer.Target, error) { return infer.TemperFull(joined(c.parts), 3) },
		func() (infer.Target, error) { return infer.TemperLikelihood(joined(c.parts), 3) },
	} {
		f, err := make()
		require.NoError(t, err)
		e := evaluate(t, f.LogPosterior, p, c.batch())
		for k, x := range []float64{0.5, -1, 2} {
			logLikelihood := 0.0
			for _, y := range c.y {
				logLikelihood -= 0.5 * (y - x) * (y - x) / (c.s * c.s)
			}
			assert.InDelta(t, -0.5*x*x/(c.a*c.a), floats(e.Aux["log_prior"])[k], 1e-13)
			assert.InDelta(t, logLikelihood, floats(e.Aux["log_likelihood"])[k], 1e-12)
		}
	}
}

func TestTemperingErrors(t *testing.T) {
	c := newConjugate()
	for want, f := range map[string]func() (infer.Target, error){
		"infer.TemperFull: the log posterior is nil: invalid configuration": func() (infer.Target, error) {
			return infer.TemperFull(infer.Target{}, 1)
		},
		"infer.TemperLikelihood: the target cannot tell its prior and likelihood apart: make it with infer.FromParts, " +
			"or compile a model: invalid configuration": func() (infer.Target, error) {
			return infer.TemperLikelihood(infer.Mean(c.target().LogPosterior, 0), 1)
		},
		"infer.TemperFull: temperature is 0: it must be finite and greater than 0": func() (infer.Target, error) {
			return infer.TemperFull(c.target(), 0)
		},
		"infer.TemperFull: temperature is NaN: it must be finite and greater than 0": func() (infer.Target, error) {
			return infer.TemperFull(c.target(), math.NaN())
		},
		"infer.TemperLikelihood: temperature is -1: it must be finite and greater than 0": func() (infer.Target, error) {
			return infer.TemperLikelihood(c.target(), -1)
		},
		"infer.TemperObservation: temperature is +Inf: it must be finite and greater than 0": func() (infer.Target, error) {
			return infer.TemperObservation(c.target(), nil, math.Inf(1))
		},
		"infer.TemperObservation: normalizer is nil: it is needed, or use infer.TemperLikelihood": func() (infer.Target,
			error) {
			return infer.TemperObservation(c.target(), nil, 2)
		},
	} {
		_, err := f()
		assert.EqualError(t, err, want)
		assert.ErrorIs(t, err, infer.ErrConfig)
	}

	p := pointOf(t, layoutOf(t, infer.Shapes{"x": {1}}), 0.5)
	failed := func(f infer.Target, err error) error {
		require.NoError(t, err)
		g, err := infer.NewGradient(f)
		require.NoError(t, err)
		return torch.Do(func(*torch.Scope) error {
			_, err := g.ValueAndGrad(p, c.batch(), 0)
			return err
		})
	}
	assert.EqualError(t, failed(infer.TemperObservation(joined(c.parts),
		func(infer.Params, infer.Batch, float64) torch.Tensor { return torch.Tensor{} }, 2)),
		"log posterior: infer.TemperObservation: the normalizer returned nil, expected a tensor of shape []")
}

// A mean with prior N(0, 1) and four data from N(θ, 1): the posterior is N(0.8, 1/5).
func ExampleTemperLikelihood() {
	target := infer.FromParts(func(p infer.Params, b infer.Batch) (logPrior, logLikelihood torch.Tensor) {
		theta, y := p.Get("theta").T(), b.Get("y").T()
		half := ts.FloatScalar(-0.5)
		square := y.MustSub(theta, false).MustSquare(false).MustSum(gotch.Double, false)
		return torch.Of(theta.MustSquare(false).MustMulScalar(half, false)), torch.Of(square.MustMulScalar(half, false))
	}, 0)
	full, err := infer.TemperFull(target, 0.5)
	if err != nil {
		fmt.Println(err)
		return
	}
	partial, err := infer.TemperLikelihood(target, 0.5)
	if err != nil {
		fmt.Println(err)
		return
	}
	layout, err := infer.NewLayout(infer.Shapes{"theta": {}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range []infer.Target{full, partial} {
		var slopes []float64 // at 0 and 1; the log posterior is a parabola
		for _, theta := range []float64{0, 1} {
			g, err := infer.NewGradient(f)
			if err != nil {
				fmt.Println(err)
				return
			}
			p, err := infer.NewParams(layout, []float64{theta})
			if err != nil {
				fmt.Println(err)
				return
			}
			e, err := g.ValueAndGrad(p, infer.Batch{"y": vec([]float64{1, 1, 0, 2})}, 0)
			if err != nil {
				fmt.Println(err)
				return
			}
			slopes = append(slopes, floats(e.Grad)...)
		}
		precision := slopes[0] - slopes[1]
		fmt.Printf("mean %.4f, variance 1/%g\n", slopes[0]/precision, precision)
	}
	// Output:
	// mean 0.8000, variance 1/10
	// mean 0.8889, variance 1/9
}
