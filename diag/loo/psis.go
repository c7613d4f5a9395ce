package loo

import (
	"cmp"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Weights are smoothed importance weights.
type Weights struct {
	// LogWeights are the logarithms of the smoothed weights, in the order of the ratios; the weights sum to 1.
	LogWeights []float64
	// K is the shape of the generalised Pareto distribution fitted to the largest ratios. Above [KThreshold] the
	// estimates cannot be trusted. It is +Inf where the tail is too short (fewer than 5) or tied, and -Inf where all
	// ratios are equal, so that plain averages are exact.
	K float64
	// Tail is the number of ratios that were smoothed.
	Tail int
	// ESS is the effective sample size of the weights, relativeEfficiency / Σ w².
	ESS float64
}

// PSIS is Pareto-smoothed importance sampling (Vehtari, Simpson, Gelman, Yao and Gabry 2024, Journal of Machine
// Learning Research 25). Of S log importance ratios, the M = ceil(min(S/5, 3 sqrt(S/r))) largest, r the relative
// efficiency, are replaced by quantiles of the generalised Pareto distribution fitted to them, see fitGPD. With u the
// largest ratio below the tail,
//
//	w(S-M+z) = u + F⁻¹((z - 1/2) / M),  z = 1 to M
//
// no larger than the largest raw ratio; then weights are scaled to sum 1. Ratios need no normalisation. -Inf is a ratio
// of zero.
//
// relativeEfficiency is the effective sample size over the number of draws, 1 for independent ones. [diag.ErrNotFinite]
// (a NaN, +Inf, or only -Inf), [draws.ErrSize] for no ratios, and [draws.ErrRange] for the efficiency are the errors.
func PSIS(logRatios []float64, relativeEfficiency float64) (Weights, error) {
	if len(logRatios) == 0 {
		return Weights{}, failf(draws.ErrSize, "psis: no log ratios")
	}
	if !(relativeEfficiency > 0) || math.IsInf(relativeEfficiency, 1) {
		return Weights{}, failf(draws.ErrRange,
			"psis: relative efficiency is %v, want a positive number, 1 for independent draws", relativeEfficiency)
	}
	for i, v := range logRatios {
		if math.IsNaN(v) || math.IsInf(v, 1) {
			return Weights{}, failf(diag.ErrNotFinite, "psis: log ratio %d is %v", i, v)
		}
	}
	if math.IsInf(slices.Max(logRatios), -1) {
		return Weights{}, failf(diag.ErrNotFinite, "psis: all log ratios are -Inf, so that all weights are 0")
	}
	return psis(logRatios, relativeEfficiency), nil
}

// psis is PSIS of valid arguments.
func psis(logRatios []float64, reff float64) Weights {
	n := len(logRatios)
	highest := slices.Max(logRatios)
	w := make([]float64, n)
	order := make([]int, n)
	for i, v := range logRatios {
		w[i], order[i] = v-highest, i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(w[i], w[j]) })

	r := Weights{LogWeights: w, K: math.Inf(1)}
	tail := int(math.Ceil(min(float64(n)/5, 3*math.Sqrt(float64(n)/reff))))
	switch {
	case w[order[0]] == 0: // all equal
		r.K = math.Inf(-1)
	case tail >= 5 && tail < n:
		r.Tail = tail
		smoothTail(&r, order[n-tail:], math.Exp(w[order[n-tail-1]]))
	}
	norm := sample.LogSumExp(w)
	squares := 0.0
	for i := range w {
		w[i] -= norm
		squares += math.Exp(2 * w[i])
	}
	r.ESS = reff / squares
	return r
}

// smoothTail fits and replaces the weights at the indices order, which are the largest ones in rising order, above the
// ratio cutoff.
func smoothTail(r *Weights, order []int, cutoff float64) {
	w := r.LogWeights
	if w[order[0]] > -0x1p-52/100 { // the largest is 0: all tied
		r.Tail = 0
		return
	}
	excess := make([]float64, len(order))
	for z, i := range order {
		excess[z] = math.Exp(w[i]) - cutoff
	}
	if excess[int(float64(len(order))/4+0.5)-1] <= 0 { // a quarter tied with the cutoff: no scale to start from
		r.Tail = 0
		return
	}
	k, sigma := fitGPD(excess)
	r.K = k
	if math.IsInf(k, 0) || !(sigma > 0) {
		return
	}
	for z, i := range order {
		p := (float64(z) + 0.5) / float64(len(order))
		w[i] = min(math.Log(cutoff+quantileGPD(p, k, sigma)), 0)
	}
}

// KThreshold is the largest Pareto k for which s draws give dependable estimates, min(1 - 1/log10(s), 0.7). Vehtari et
// al. (2024). It is 0.7 from 2155 draws on, and -Inf for fewer than 2.
func KThreshold(s int) float64 {
	if s < 2 {
		return math.Inf(-1)
	}
	return min(1-1/math.Log10(float64(s)), 0.7)
}
