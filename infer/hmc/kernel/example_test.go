package kernel_test

import (
	"context"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// A normal law with mean 3 and standard deviation 2, as a density in plain Go.
func Example() {
	density := kernel.Func(1, func(x, grad []float64) float64 {
		z := (x[0] - 3) / 2
		grad[0] = -z / 2
		return -z * z / 2
	})
	sum, square, n := 0.0, 0.0, 0.0
	result, err := kernel.Run(context.Background(), density, kernel.Options{
		Draws: 4000, Seed: 1, Parallel: true,
		Record: func(_, _ int, x []float64, info kernel.Info) error {
			if !info.Warmup {
				sum, square, n = sum+x[0], square+x[0]*x[0], n+1
			}
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mean := sum / n
	fmt.Printf("%d chains: mean %.0f, sd %.0f\n", len(result.StepSizes), mean, math.Sqrt(square/n-mean*mean))
	// Output: 4 chains: mean 3, sd 2
}
