//go:build slow

package svi_test

import "testing"

// In up to 100 dimensions each variance is right to 3 %.
func TestDenseGuideFindsLargeNormalPosteriors(t *testing.T) {
	for _, d := range []int{5, 20, 50, 100} {
		for _, condition := range []float64{1, 100} {
			denseGuide(t, d, condition, 0, 0.03)
		}
	}
}
