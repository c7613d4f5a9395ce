package thermo

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// GradientNoise collects minibatch gradients at one and the same θ, to estimate the variance of their noise. The
// zero value is ready; the first gradient sets the number of elements.
type GradientNoise struct {
	batches int
	mean    []float64
	squares []float64 // Σ (g - mean)² so far
}

// Add takes the gradient of a minibatch of the log posterior that the sampler is given, with the same θ and batch size
// each time. The mean and the sum of squares are updated by the recursion of Welford (1962), Technometrics 4, 419-420.
// [draws.ErrSize] and [diag.ErrNotFinite] are the errors; then nothing is taken.
func (g *GradientNoise) Add(gradient []float64) error {
	if g.batches == 0 {
		g.mean, g.squares = make([]float64, len(gradient)), make([]float64, len(gradient))
	}
	if len(gradient) == 0 {
		return failf(draws.ErrSize, "gradient noise: a gradient of 0 elements, want at least 1")
	}
	if len(gradient) != len(g.mean) {
		return failf(draws.ErrSize, "gradient noise: a gradient of %d elements, want %d", len(gradient), len(g.mean))
	}
	for i, v := range gradient {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return failf(diag.ErrNotFinite, "gradient noise: element %d of batch %d is %v", i, g.batches, v)
		}
	}
	g.batches++
	for i, v := range gradient {
		d := v - g.mean[i]
		g.mean[i] += d / float64(g.batches)
		g.squares[i] += d * (v - g.mean[i])
	}
	return nil
}

// GradientNoiseResult is an estimate of the variance of minibatch gradients.
type GradientNoiseResult struct {
	// Batches is the number of gradients.
	Batches int
	// Mean is their mean, and Variance (divisor Batches - 1) the variance V of each element.
	Mean, Variance []float64
	// Trace is the sum of Variance, MeanVariance its mean. For normal noise the relative standard error of an element
	// of Variance is sqrt(2/(Batches - 1)).
	Trace, MeanVariance float64
}

// Result is made of all gradients so far. [draws.ErrSize] says that there are fewer than two.
func (g *GradientNoise) Result() (*GradientNoiseResult, error) {
	if g.batches < 2 {
		return nil, failf(draws.ErrSize, "gradient noise: %d gradients, want at least 2", g.batches)
	}
	r := &GradientNoiseResult{Batches: g.batches, Mean: append([]float64(nil), g.mean...),
		Variance: make([]float64, len(g.mean))}
	for i, v := range g.squares {
		r.Variance[i] = v / float64(g.batches-1)
		r.Trace += r.Variance[i]
	}
	r.MeanVariance = r.Trace / float64(len(r.Variance))
	return r, nil
}

// SiteVariances are the mean variances of the elements of each site. [draws.ErrSize] says that a site reaches over the
// end or has no elements.
func (r *GradientNoiseResult) SiteVariances(sites []draws.Site) ([]float64, error) {
	means := make([]float64, len(sites))
	for s, site := range sites {
		if site.Offset < 0 || site.Size < 1 || site.Size > len(r.Variance)-site.Offset {
			return nil, failf(draws.ErrSize, "gradient noise: site %q has elements %d to %d, want some of 0 to %d",
				site.Name, site.Offset, site.Offset+site.Size-1, len(r.Variance)-1)
		}
		for _, v := range r.Variance[site.Offset : site.Offset+site.Size] {
			means[s] += v / float64(site.Size)
		}
	}
	return means, nil
}

// Beta is the estimate β = V/T² that samplers take as the variance of the gradient noise of log posterior/T: the mean
// over elements. [draws.ErrRange] says that T is not positive.
func (r *GradientNoiseResult) Beta(temperature float64) (float64, error) {
	if err := checkPositive("gradient noise", "temperature", temperature); err != nil {
		return 0, err
	}
	return r.MeanVariance / temperature / temperature, nil
}

// NoiseShare compares the noise of minibatches with the noise that a sampler injects.
type NoiseShare struct {
	// Mean is the mean of the ratios ε²V / injected over elements, Largest the largest one, that of the element At.
	// Above 1 the minibatches bring more noise than the sampler.
	Mean, Largest float64
	At            int
	// Dominates is true if Mean is above 1, and Message says what the figures mean.
	Dominates bool
	Message   string
}

// Against compares the gradient noise of an update with the noise that it injects:
//
//	ratio = ε² V / injected
//
// with the step ε that gradients are multiplied with and the variance of the injected noise of an element: 2Tεα for
// SGHMC and 2Tε for SGLD of temperature T. Noise that nothing compensates heats the sampler by about this ratio, T(1 +
// ratio) (Chen, Fox and Guestrin 2014; Ma, Chen and Fox 2015). [draws.ErrRange] is the error.
func (r *GradientNoiseResult) Against(step, injected float64) (NoiseShare, error) {
	if err := checkSettings("gradient noise", setting{"step", step},
		setting{"injected variance", injected}); err != nil {
		return NoiseShare{}, err
	}
	scale := step * step / injected
	s := NoiseShare{Mean: scale * r.MeanVariance}
	for i, v := range r.Variance {
		if scale*v > s.Largest {
			s.Largest, s.At = scale*v, i
		}
	}
	s.Dominates = s.Mean > 1
	switch {
	case s.Dominates:
		s.Message = fmt.Sprintf("gradient noise is %.3g times the injected noise and dominates it: use a smaller "+
			"step, larger batches, more friction, or a thermostat", s.Mean)
	case s.Largest > 1:
		s.Message = fmt.Sprintf("gradient noise is %.3g times the injected noise on average, but %.3g times at "+
			"element %d: use a thermostat for each parameter, or a preconditioner", s.Mean, s.Largest, s.At)
	case s.Mean > 0.1:
		s.Message = fmt.Sprintf("gradient noise is %.3g times the injected noise: it heats the sampler by about that "+
			"share unless the sampler compensates it", s.Mean)
	default:
		s.Message = fmt.Sprintf("gradient noise is %.3g times the injected noise: it hardly matters", s.Mean)
	}
	return s, nil
}
