package statespace_test

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist/statespace"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A random walk that is seen without noise at its first time and its third: between them its mean is halfway, and its
// variance half of that of a step. A forecast has the variance of one step more for each step ahead.
func ExampleNew() {
	err := torch.Do(func(*torch.Scope) error {
		walk := statespace.New(3, 0, statespace.LocalLevel{Scale: 2, Spread: 10})
		y := torch.New([]float64{1, math.NaN(), 2})
		mean, covariance := walk.Smoothed(y)
		fmt.Printf("%.3f %.3f\n", mean.At(1).Item(), covariance.At(1).Item())
		ahead := walk.Forecast(y, 2)
		fmt.Printf("%.3f %.3f\n", ahead.Mean().Values(), ahead.Variance().Values())
		return nil
	})
	fmt.Println(err)
	// Output:
	// 1.500 2.000
	// [2.000 2.000] [4.000 8.000]
	// <nil>
}
