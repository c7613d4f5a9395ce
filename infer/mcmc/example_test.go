package mcmc_test

import (
	"context"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/mcmc"
)

// accidents of each year: their rate fell at some time, at which the likelihood jumps.
var accidents = []float64{4, 5, 4, 1, 0, 4, 3, 4, 0, 6, 3, 3, 4, 0, 1, 1, 0, 1, 0, 1, 0, 0, 2, 1}

// fall is a log density in plain Go: Poisson counts whose rate changes from early to late after a number of years, with
// Exponential(1/3) priors of the rates and a uniform one of the time.
func fall(x []float64) float64 {
	early, late, change := x[0], x[1], x[2]
	if early <= 0 || late <= 0 || change < 0 || change > float64(len(accidents)) {
		return math.Inf(-1) // outside of the support
	}
	sum := -(early + late) / 3
	for year, n := range accidents {
		rate := early
		if float64(year) >= change {
			rate = late
		}
		sum += n*math.Log(rate) - rate
	}
	return sum
}

// A function of numbers is sampled as it is: without tensors, without a gradient, and where it jumps.
func Example() {
	program := infer.Plain(fall, []string{"early", "late", "change"}, []float64{2, 2, 12})
	draws, err := infer.Sample(context.Background(), program, mcmc.Slice{}, infer.Options{Seed: 1, Draws: 4000})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"early", "late", "change"} {
		mean, err := draws.Mean(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %.1f\n", name, mean[0])
	}
	// Output:
	// early 3.1
	// late 0.7
	// change 12.7
}
