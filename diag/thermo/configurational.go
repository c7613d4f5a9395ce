package thermo

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// ConfigurationalTemperature is the temperature of the parameters θ of a site, from the gradient of the energy U,
//
//	T_C = θ·∇U / d
//
// T on average over draws of exp(-U/T) (the virial theorem), for targets on all of R^d that fall off fast enough:
// integrating by parts, E[θ(i) ∂U/∂θ(i)] = T. A boundary of the support adds a term, so constrained parameters need the
// energy of their unconstrained form. The mean does not change where θ is counted from another centre c, (θ - c)·∇U,
// but the noise does: near a mode far from 0 give θ less the mode. For U = Σ (θ - μ)²/(2 s²) and c = μ it is T times a
// χ² of d degrees of freedom over d.
//
// U is minus the log posterior that the sampler was given, not divided by T. Minibatch gradients are as good, if those
// of a batch that θ has not seen yet. Wenzel et al. (2020), Proceedings of Machine Learning Research 119.
// [draws.ErrSize] and [diag.ErrNotFinite] are the errors.
func ConfigurationalTemperature(theta, gradient []float64) (float64, error) {
	if len(theta) == 0 || len(theta) != len(gradient) {
		return 0, failf(draws.ErrSize,
			"configurational temperature: %d parameters and %d gradients, want equally many and at least one", len(theta),
			len(gradient))
	}
	sum := 0.0
	for i, v := range theta {
		if p := v * gradient[i]; math.IsNaN(p) || math.IsInf(p, 0) {
			return 0, failf(diag.ErrNotFinite, "configurational temperature: parameter %d is %v and its gradient %v", i,
				v, gradient[i])
		}
		sum += v * gradient[i]
	}
	return sum / float64(len(theta)), nil
}

// Temperature compares the mean of readings of a temperature with what the sampler was set to.
type Temperature struct {
	// Site is the name of the site.
	Site string
	// Target is the temperature set, Mean that measured, MCSE the Monte-Carlo standard error of Mean, see
	// [diag.MCSEMean], and ESS the effective number of readings.
	Target, Mean, MCSE, ESS float64
	// Z is (Mean - Target)/MCSE: about standard normal in exact simulation.
	Z float64
}

// meanTemperature compares readings of a temperature, [chain][reading], with the target: those of
// [ConfigurationalTemperature], whose law is unknown, or of kineticTemperature where readings are correlated. MCSE, ESS
// and Z are NaN where [diag.MCSEMean] is. [draws.ErrSize], [diag.ErrNotFinite], and [draws.ErrRange] for the target are
// the errors.
func meanTemperature(readings [][]float64, target float64) (Temperature, error) {
	if err := checkPositive("mean temperature", "target", target); err != nil {
		return Temperature{}, err
	}
	if err := checkTraces("mean temperature", readings); err != nil {
		return Temperature{}, err
	}
	t := Temperature{Target: target, MCSE: diag.MCSEMean(readings), ESS: diag.ESSMean(readings)}
	t.Mean, _ = sample.MeanVar(slices.Concat(shortest(readings)...))
	t.Z = (t.Mean - target) / t.MCSE
	return t, nil
}

// String is one line.
func (t Temperature) String() string {
	return fmt.Sprintf("temperature %.4g ± %.2g, set to %.4g (z %.1f)", t.Mean, t.MCSE, t.Target, t.Z)
}

// checkTraces refuses traces without numbers, and with numbers that are not finite.
func checkTraces(doing string, x [][]float64) error {
	if len(x) == 0 {
		return failf(draws.ErrSize, "%s: no chains", doing)
	}
	for c, chain := range x {
		if len(chain) == 0 {
			return failf(draws.ErrSize, "%s: chain %d has no readings", doing, c)
		}
		for i, v := range chain {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return failf(diag.ErrNotFinite, "%s: reading %d of chain %d is %v", doing, i, c, v)
			}
		}
	}
	return nil
}

// shortest cuts chains to the length of the shortest, as the diagnostics of chains do.
func shortest(x [][]float64) [][]float64 {
	n := len(x[0])
	for _, c := range x {
		n = min(n, len(c))
	}
	y := make([][]float64, len(x))
	for i, c := range x {
		y[i] = c[:n:n]
	}
	return y
}
