package check

import (
	"fmt"

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
