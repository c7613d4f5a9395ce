package check_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag/check"
	"github.com/kelvin-ppl/kelvin/diag/plot"
)

// The largest of the data is beyond what the replicates have.
func ExampleStatistic() {
	rng := rand.New(rand.NewPCG(1, 2))
	y := []float64{0.3, -1.2, 0.8, 0.1, 7.5}
	replicates := make([][]float64, 500)
	for s := range replicates {
		for range y {
			replicates[s] = append(replicates[s], rng.NormFloat64())
		}
	}
	largest, err := check.Statistic(y, replicates, slices.Max[[]float64])
	if err != nil {
		fmt.Println(err)
		return
	}
	err = plot.Statistic(io.Discard, largest, plot.Options{Title: "largest"})
	fmt.Println(largest.P, err)
	// Output:
	// 0 <nil>
}
