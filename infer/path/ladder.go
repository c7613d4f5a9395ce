package path

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/ladder"
)

// Power is the ladder β_k = (k/(n−1))^c of n rungs from 0 to 1. A power c of 3 to 5 puts most rungs near the prior,
// where the slope changes fastest (Friel and Pettitt 2008). n below 2, or a c that is not positive, gives none, which
// [CheckLadder] refuses.
func Power(n int, c float64) []float64 {
	if n < 2 || n > mostRungs || !(c > 0) {
		return nil
	}
	out := make([]float64, n)
	for k := range out {
		out[k] = math.Pow(float64(k)/float64(n-1), c)
	}
	return out
}

const mostRungs = 1 << 16

// CheckLadder returns an error unless the β of a ladder are at least two, from 0 to 1, and increase from each to the
// next. of is what errors call the configuration.
func CheckLadder(of string, beta []float64) error {
	bad := func(field string, value any, allowed string) error {
		return &infer.FieldError{Type: of, Field: field, Value: value, Allowed: allowed}
	}
	if len(beta) < 2 {
		return bad("Ladder", fmt.Sprintf("of %d rungs", len(beta)), "it must have at least 2")
	}
	for k, b := range beta {
		if !(b >= 0 && b <= 1) {
			return bad(fmt.Sprintf("Ladder[%d]", k), b, "it must be from 0 to 1")
		}
		if k > 0 && !(b > beta[k-1]) {
			return bad(fmt.Sprintf("Ladder[%d]", k), fmt.Sprintf("%v after %v", b, beta[k-1]), "the ladder must increase")
		}
	}
	return nil
}

// Equalize is a ladder of n rungs with the ends of beta whose neighbours have equal rates of rejected swaps, where
// those of beta have the rates given, one less than its rungs (Syed et al. 2022, algorithm 2). The barrier
// Λ(β) = ∫ of the local rate is the running sum of the rates, with straight lines between the rungs; rung k is where it
// is k/(n−1) of its total.
func Equalize(beta, rejected []float64, n int) ([]float64, error) {
	if err := CheckLadder("path.Equalize", beta); err != nil {
		return nil, err
	}
	if len(rejected) != len(beta)-1 || n < 2 || n > mostRungs {
		return nil, fmt.Errorf("path.Equalize: %d rates for %d rungs, and %d asked for: %w", len(rejected), len(beta), n,
			infer.ErrConfig)
	}
	for k, r := range rejected {
		if !(r >= 0 && r <= 1) {
			return nil, &infer.FieldError{Type: "path.Equalize", Field: fmt.Sprintf("rejected[%d]", k), Value: r,
				Allowed: "it must be from 0 to 1"}
		}
	}
	out := ladder.Equal(beta, rejected, n, ladder.Line)
	return out, CheckLadder("path.Equalize", out)
}
