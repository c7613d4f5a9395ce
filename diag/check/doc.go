// Package check compares data with what a model predicts, and asks what prior and likelihood contribute: statistics of
// replicated data, leave-one-out probability integral transforms, and power-scaling sensitivity. Pictures of them are
// in diag/plot/predictive. Replicates are rows of numbers, one for each draw: of prior draws the checks are prior
// predictive, of posterior draws posterior predictive.
//
// Errors wrap [draws.ErrSize], [draws.ErrRange] or [diag.ErrNotFinite].
package check

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

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
