package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
)

// Sensitivity says how strongly the posterior of a parameter moves when its prior or likelihood is raised to a power.
type Sensitivity struct {
	Name              string  // of the parameter
	Prior, Likelihood float64 // how far the posterior moves with each of them
	// Diagnosis is "prior-data conflict" where both are at least 0.05, "strong prior / weak likelihood" where that of the
	// prior alone is, and else empty.
	Diagnosis string
}

// sensitive is the sensitivity that Kallioinen et al. suggest to look at: that of a normal law whose mean moves by 0.3
// standard deviations when the power doubles.
const sensitive = 0.05

// powerStep is how far powers are from 1.
const powerStep = 0.01

// PowerScaling is the power-scaling sensitivity of each element of draws (Kallioinen, Paananen, Bürkner and Vehtari
// 2024, Statistics and Computing 34). logPrior and logLikelihood are those of each draw, one chain after the other, the
// likelihood summed over the data. The posterior with prior^α · likelihood is reached by Pareto-smoothed importance
// weights, at α = 0.99 and 1/0.99; the sensitivity is the mean over both of
//
//	D(α) / |log2 α|
//
// with D the distance between the distribution functions P of the draws and Q of the weighted draws,
//
//	D² = Σ over (P, Q) and (Q, P) of ∫ P log2(2P/(P+Q)) dx + ∫ (Q − P) dx / (2 log 2), over ∫ (P + Q) dx
//
// the larger one of x and −x, which is their cumulative Jensen-Shannon distance (Nguyen and Vreeken 2015).
func PowerScaling(d *draws.Draws, logPrior, logLikelihood []float64) ([]Sensitivity, error) {
	if d == nil || d.Total() < 2 {
		return nil, fmt.Errorf("check: PowerScaling: there must be at least 2 draws: %w", draws.ErrSize)
	}
	var pairs [2][2][]float64
	for i, logp := range [2][]float64{logPrior, logLikelihood} {
		if len(logp) != d.Total() {
			return nil, fmt.Errorf("check: PowerScaling: %d log priors and %d log likelihoods for %d draws: %w", len(logPrior),
				len(logLikelihood), d.Total(), draws.ErrSize)
		}
		for j, alpha := range powers {
			w, err := scaled(logp, alpha)
			if err != nil {
				return nil, fmt.Errorf("check: PowerScaling: %w", err)
			}
			pairs[i][j] = w
		}
	}
	var out []Sensitivity
	for i, name := range d.Names() {
		var x []float64
		for c := range d.Chains() {
			x = append(x, d.Element(c, i)...)
		}
		if err := finite("PowerScaling: "+name, x); err != nil {
			return nil, err
		}
		s := Sensitivity{Name: name, Prior: sensitivity(x, pairs[0]), Likelihood: sensitivity(x, pairs[1])}
		switch {
		case s.Prior >= sensitive && s.Likelihood >= sensitive:
			s.Diagnosis = "prior-data conflict"
		case s.Prior >= sensitive:
			s.Diagnosis = "strong prior / weak likelihood"
		}
		out = append(out, s)
	}
	return out, nil
}

// powers are the α.
var powers = [2]float64{1 - powerStep, 1 / (1 - powerStep)}

// scaled are the weights of draws when a part of their log density is multiplied by α.
func scaled(logp []float64, alpha float64) ([]float64, error) {
	ratios := make([]float64, len(logp))
	for i, v := range logp {
		ratios[i] = (alpha - 1) * v
	}
	w, err := loo.PSIS(ratios, 1)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(logp))
	for i, l := range w.LogWeights {
		out[i] = math.Exp(l)
	}
	return out, nil
}

// sensitivity of one element to weights of both powers.
func sensitivity(x []float64, weights [2][]float64) float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(x[i], x[j]) })
	back := slices.Clone(order)
	slices.Reverse(back)
	out := 0.0
	for j, w := range weights {
		far := math.Max(distance(x, w, order), distance(x, w, back))
		out += far / math.Abs(math.Log2(powers[j])) / 2
	}
	return out
}

// distance is D between draws and weighted draws, along an order of the draws.
func distance(x, w []float64, order []int) float64 {
	p, q, sum, total := 0.0, 0.0, 0.0, 0.0
	for k, i := range order[:len(order)-1] {
		p += 1 / float64(len(x))
		q += w[i]
		dx := math.Abs(x[order[k+1]] - x[i])
		total += (p + q) * dx
		for _, v := range [2]float64{p, q} {
			if v > 0 {
				sum += v * math.Log2(2*v/(p+q)) * dx
			}
		}
	}
	if !(total > 0) {
		return 0
	}
	return math.Sqrt(math.Max(0, sum/total)) // the terms ∫ (Q − P) of both orders cancel
}
