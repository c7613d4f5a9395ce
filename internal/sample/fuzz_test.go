package sample_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

// FuzzCurves draws any numbers: nothing panics, and the mean of a density is the share of the draws in its view.
func FuzzCurves(f *testing.F) {
	tiny := math.SmallestNonzeroFloat64
	testkit.FuzzNumbers(f, [][]float64{
		{},
		{1},
		{0, tiny, 0, tiny, 0, tiny},
		{-tiny, tiny, 0, 3 * tiny},
		{-math.MaxFloat64, math.MaxFloat64, 0, math.MaxFloat64},
		{2, 2, 2, 2, 2},
		{math.NaN(), math.Inf(1), math.Inf(-1), 1, 2},
		{1, math.Nextafter(1, 2), 1},
	}, func(t *testing.T, x []float64) {
		chains := [][]float64{x[:len(x)/2], x[len(x)/2:]}
		sample.Ranks(chains)
		sample.Energies(chains)
		low, high, ok := sample.View(chains...)
		if !ok || low >= high {
			return
		}
		d := sample.Density(x, low, high, 64)
		sample.Ceiling([][]float64{d, nil})
		inside, finite, sum := 0.0, 0.0, 0.0
		for _, v := range x {
			if sample.Finite(v) {
				finite++
				if low <= v && v <= high {
					inside++
				}
			}
		}
		for _, v := range d {
			sum += v / 64
		}
		if math.Abs(sum-inside/finite) > 1e-9 {
			t.Fatalf("the density of %v in [%g, %g] has mass %g, want %g", x, low, high, sum, inside/finite)
		}
	})
}
