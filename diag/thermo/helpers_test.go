package thermo

import (
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/internal/sample/sampletest"
)

var nan, inf = math.NaN(), math.Inf(1)

var (
	filled = sampletest.Filled
	source = sampletest.Source
	ar1    = sampletest.AR1
	meanSE = sampletest.MeanSE
)

// stat is a statistic with the same numbers in all chains, zero but for the draws named.
func stat(m, n int, base, special float64, at ...int) [][]float64 {
	return filled(m, n, func(c, i int) float64 {
		for _, k := range at {
			if k == i {
				return special
			}
		}
		return base
	})
}

func codes(r *diag.Report) map[diag.Code]int {
	m := map[diag.Code]int{}
	for _, f := range r.Findings {
		m[f.Code]++
	}
	return m
}
