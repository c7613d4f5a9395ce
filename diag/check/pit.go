package check

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
)

// LOOPIT are the leave-one-out probability integral transforms of the data: for each datum the probability, given the
// others, of a value below it, with half of that of an equal one,
//
//	PIT(i) = Σ w(s) (1[ỹ(s,i) < y(i)] + ½ 1[ỹ(s,i) = y(i)])
//
// with w the Pareto-smoothed weights of 1/p(y(i)|θ(s)) (Gelfand, Dey and Chang 1992; Vehtari, Gelman and Gabry 2017).
// Replicates ỹ and log likelihoods are [draw][datum], of the same draws. They are uniform where the predictions of
// continuous data are calibrated: of a ∪ shape the predictions are too narrow, of a ∩ shape too wide. Those of counts
// are uniform only as far as single values have small probabilities.
func LOOPIT(y []float64, replicates, loglik [][]float64) ([]float64, error) {
	if err := replicated("LOOPIT", y, replicates); err != nil {
		return nil, err
	}
	if len(loglik) != len(replicates) {
		return nil, fmt.Errorf("check: LOOPIT: log likelihoods of %d draws, replicates of %d: %w", len(loglik),
			len(replicates), draws.ErrSize)
	}
	ratios, out := make([]float64, len(loglik)), make([]float64, len(y))
	for i, v := range y {
		for s, l := range loglik {
			if len(l) != len(y) {
				return nil, fmt.Errorf("check: LOOPIT: draw %d has %d log likelihoods for %d data: %w", s, len(l), len(y),
					draws.ErrSize)
			}
			ratios[s] = -l[i]
		}
		w, err := loo.PSIS(ratios, 1)
		if err != nil {
			return nil, fmt.Errorf("check: LOOPIT: datum %d: %w", i, err)
		}
		for s, r := range replicates {
			switch p := math.Exp(w.LogWeights[s]); {
			case r[i] < v:
				out[i] += p
			case r[i] == v:
				out[i] += p / 2
			}
		}
		out[i] = math.Min(out[i], 1)
	}
	return out, nil
}
