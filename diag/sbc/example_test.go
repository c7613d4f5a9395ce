package sbc_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/diag/sbc"
)

// The posterior of a normal mean with prior N(0, 1) and one observation y ~ N(mean, 1) is N(y/2, 1/2). A method that
// takes 1/2 for the standard deviation instead of the variance has draws that are too narrow.
func Example() {
	result, err := sbc.Run(context.Background(), func(_ context.Context, seed uint64) (sbc.Case, error) {
		r := rand.New(rand.NewPCG(seed, 0))
		mu := r.NormFloat64()
		y := mu + r.NormFloat64()
		posterior := make([]float64, 99)
		for i := range posterior {
			posterior[i] = y/2 + r.NormFloat64()/2
		}
		return sbc.Case{
			Truth: map[string]float64{"mu": mu},
			Draws: map[string][]float64{"mu": posterior},
		}, nil
	}, sbc.Options{Replications: 500})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := result.Diagnose()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range report.Findings {
		fmt.Println(f.Severity, f.Message)
	}
	// Output:
	// serious mu: the ranks of the truth are not uniform (p = 0.00025): the draws are too narrow, or depend on each other
}
