package sample

import (
	"math"
	"slices"
	"testing"
)

// By hand: the mean of 1, 4, 2 and 5, 9 is 4.2; changes do not cross from chain to chain, nor over a NaN.
func TestEnergies(t *testing.T) {
	nan := math.NaN()
	m, c := Energies([][]float64{{1, 4, 2}, {5, nan, 9}})
	want := []float64{-3.2, -0.2, -2.2, 0.8, 4.8}
	for i := range want {
		if len(m) != len(want) || math.Abs(m[i]-want[i]) > 1e-12 {
			t.Fatalf("marginal energies are %v, want %v", m, want)
		}
	}
	if !slices.Equal(c, []float64{3, -2}) {
		t.Errorf("changes are %v, want 3 and -2", c)
	}
}
