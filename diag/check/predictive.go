package check

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
)

// Outcome is a statistic of the data beside those of replicated data.
type Outcome struct {
	Observed   float64   // of the data
	Replicated []float64 // of each replicate
	// P is the part of the replicates whose statistic is greater than that of the data, with half of those that are equal.
	// Near 0 or 1 the model does not predict the statistic. It is not uniform under the model: posterior predictive
	// probabilities of statistics that the model fits are near 1/2 (Gelman 2013).
	P float64
}

// Statistic compares a statistic of the data with those of replicates, [draw][datum] (Gelman, Meng and Stern 1996).
// Statistics that no parameter fits, such as a maximum, the number of zeros or an autocorrelation, say most.
func Statistic(y []float64, replicates [][]float64, f func(y []float64) float64) (*Outcome, error) {
	if f == nil {
		return nil, fmt.Errorf("check: Statistic: the statistic is nil: %w", draws.ErrRange)
	}
	if err := replicated("Statistic", y, replicates); err != nil {
		return nil, err
	}
	o := &Outcome{Observed: f(y)}
	for _, r := range replicates {
		v := f(r)
		o.Replicated = append(o.Replicated, v)
		switch {
		case v > o.Observed:
			o.P += 1 / float64(len(replicates))
		case v == o.Observed:
			o.P += 0.5 / float64(len(replicates))
		}
	}
	return o, finite("Statistic", append([]float64{o.Observed}, o.Replicated...))
}

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

// finite refuses numbers that are not.
func finite(what string, x []float64) error {
	for i, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("check: %s: number %d is %v: %w", what, i, v, diag.ErrNotFinite)
		}
	}
	return nil
}

// replicated checks data and their replicates.
func replicated(what string, y []float64, replicates [][]float64) error {
	if len(y) == 0 || len(replicates) == 0 {
		return fmt.Errorf("check: %s: %d data and %d replicates: %w", what, len(y), len(replicates), draws.ErrSize)
	}
	if err := finite(what+": the data", y); err != nil {
		return err
	}
	for s, r := range replicates {
		if len(r) != len(y) {
			return fmt.Errorf("check: %s: replicate %d has %d numbers for %d data: %w", what, s, len(r), len(y), draws.ErrSize)
		}
		if err := finite(fmt.Sprintf("%s: replicate %d", what, s), r); err != nil {
			return err
		}
	}
	return nil
}
