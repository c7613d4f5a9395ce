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
	result, err := kernel.Run(context.Background(), density, kernel.Options{Draws: 4000, Seed: 1, Parallel: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	sum, square, n := 0.0, 0.0, 0.0
	for _, c := range result.Chains {
		for i := range c.Len() {
			x := c.Draw(i)[0]
			sum, square, n = sum+x, square+x*x, n+1
		}
	}
	mean := sum / n
	fmt.Printf("%d chains: mean %.0f, sd %.0f\n", len(result.Chains), mean, math.Sqrt(square/n-mean*mean))
	// Output: 4 chains: mean 3, sd 2
}

// Stan's warm-up of 1000 transitions.
func ExampleWindows() {
	s := kernel.Windows(1000, 75, 50, 25)
	fmt.Println(s.Start, s.Ends)
	// Output: 75 [99 149 249 449 949]
}
