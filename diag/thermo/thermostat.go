package thermo

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// SGNHT are the settings of a stochastic gradient Nosé-Hoover thermostat (Ding et al. 2014), whose ξ is
//
//	ξ' = ξ + ε (|m|²/(σ² d) - T)
//
// With exact gradients ξ is N(α, T σ²/d). Gradient noise of variance V for each element adds ε(V -
// T²β)/(2T) to its mean.
type SGNHT struct {
	// Step is the step size ε, Alpha the friction α that sets the noise; Temperature is T.
	Step, Alpha, Temperature float64
	// Beta is the sampler's estimate β of V/T²; Sigma is σ, 0 for 1.
	Beta, Sigma float64
	// Dim is d, the momenta that share a thermostat: 1 where each parameter has one of its own. 0 is 1.
	Dim int
}

// ATMC are the settings of the adaptive thermostat of Heek and Kalchbrenner (2019), one ξ for each parameter,
//
//	ξ' = ξ + h (p²/m - T)
//
// With exact gradients ξ is N(0, T). Gradient noise of variance V adds hV/(2 m T) to its mean.
type ATMC struct {
	// Step is the time step h; Temperature is T; Mass is m, 0 for 1.
	Step, Temperature, Mass float64
}

// Thermostat is what the trace of a thermostat says.
type Thermostat struct {
	// Site is for the caller to set; empty is the thermostat of a whole chain.
	Site string
	// Mean and Variance (divisor n-1) are those of all readings, MCSE the standard error of Mean, see [diag.MCSEMean].
	Mean, Variance, MCSE float64
	// ExactMean and ExactVariance are those of the target with exact gradients.
	ExactMean, ExactVariance float64
	// Z is (Mean - ExactMean)/MCSE. With minibatches it is large and positive, and below about -4 something else is wrong.
	Z float64
	// VarianceRatio is Variance/ExactVariance, about 1 also with gradient noise, and VarianceSE its standard error.
	VarianceRatio, VarianceSE float64
	// Noise is the variance of the gradient noise of an element that the mean of ξ implies, and NoiseSE its standard
	// error. It is of first order in the step size, and can be below 0 by chance where gradients are exact.
	Noise, NoiseSE float64
}

// Summarise is made of readings of ξ, [chain][reading], after warm-up. The implied gradient noise is
//
//	V = T²β + 2T (mean ξ - α) / ε
//
// [draws.ErrSize], [diag.ErrNotFinite], and [draws.ErrRange] for settings are the errors. Standard errors are NaN where
// [diag.MCSEMean] is.
func (s SGNHT) Summarise(xi [][]float64) (Thermostat, error) {
	if s.Sigma == 0 {
		s.Sigma = 1
	}
	if s.Dim == 0 {
		s.Dim = 1
	}
	const doing = "thermostat of SGNHT"
	if err := checkSettings(doing, setting{"step", s.Step}, setting{"temperature", s.Temperature},
		setting{"sigma", s.Sigma}); err != nil {
		return Thermostat{}, err
	}
	if s.Dim < 0 || math.IsNaN(s.Alpha) || s.Alpha < 0 || math.IsInf(s.Alpha, 0) || math.IsNaN(s.Beta) || s.Beta < 0 ||
		math.IsInf(s.Beta, 0) {
		return Thermostat{}, failf(draws.ErrRange, "%s: alpha is %v, beta %v and dim %d, want numbers not below 0",
			doing, s.Alpha, s.Beta, s.Dim)
	}
	return summariseXi(doing, xi, s.Alpha, s.Temperature*s.Sigma*s.Sigma/float64(s.Dim),
		s.Temperature*s.Temperature*s.Beta,
		2*s.Temperature/s.Step)
}

// Summarise is made of readings of ξ, [chain][reading], after warm-up. The implied gradient noise is
//
//	V = 2 m T mean ξ / h
//
// [draws.ErrSize], [diag.ErrNotFinite], and [draws.ErrRange] for settings are the errors. Standard errors are NaN where
// [diag.MCSEMean] is.
func (s ATMC) Summarise(xi [][]float64) (Thermostat, error) {
	if s.Mass == 0 {
		s.Mass = 1
	}
	const doing = "thermostat of ATMC"
	if err := checkSettings(doing, setting{"step", s.Step}, setting{"temperature", s.Temperature},
		setting{"mass", s.Mass}); err != nil {
		return Thermostat{}, err
	}
	return summariseXi(doing, xi, 0, s.Temperature, 0, 2*s.Mass*s.Temperature/s.Step)
}

type setting struct {
	name  string
	value float64
}

func checkSettings(doing string, settings ...setting) error {
	for _, s := range settings {
		if err := checkPositive(doing, s.name, s.value); err != nil {
			return err
		}
	}
	return nil
}

// summariseXi has V = known + slope (mean ξ - mean).
func summariseXi(doing string, xi [][]float64, mean, variance, known, slope float64) (Thermostat, error) {
	if err := checkTraces(doing, xi); err != nil {
		return Thermostat{}, err
	}
	t := Thermostat{ExactMean: mean, ExactVariance: variance, MCSE: diag.MCSEMean(xi)}
	t.Mean, t.Variance = sample.MeanVar(slices.Concat(shortest(xi)...))
	t.Z = (t.Mean - mean) / t.MCSE
	t.VarianceRatio = t.Variance / variance
	t.VarianceSE = 2 * math.Sqrt(t.Variance) * diag.MCSESD(xi) / variance // delta method
	t.Noise, t.NoiseSE = known+slope*(t.Mean-mean), slope*t.MCSE
	return t, nil
}

// String is one line.
func (t Thermostat) String() string {
	return fmt.Sprintf(
		"xi %.4g ± %.2g, with exact gradients %.4g; variance %.2f ± %.2f of the exact one; gradient noise %.3g ± %.2g",
		t.Mean, t.MCSE, t.ExactMean, t.VarianceRatio, t.VarianceSE, t.Noise, t.NoiseSE)
}
