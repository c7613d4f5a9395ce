//go:build slow

package vi_test

import "testing"

// Of 500 dimensions and a condition number of 1e4, whatever the scale.
func TestDenseFindsLargeGaussians(t *testing.T) {
	for i, g := range []gaussian{
		{d: 500, least: 0.7, most: 0.7}, {d: 500, least: 0.01, most: 1}, {d: 500, least: 0.1, most: 10},
		{d: 500, least: 1, most: 100}, {d: 250, least: 0.1, most: 10},
	} {
		g.found(t, uint64(i+1))
	}
	for seed := range uint64(20) {
		g := gaussian{d: 20, least: 0.01, most: 1}
		g.found(t, seed+1)
	}
}
