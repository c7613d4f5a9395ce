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

func codes(r *diag.Report) map[diag.Code]int {
	m := map[diag.Code]int{}
	for _, f := range r.Findings {
		m[f.Code]++
	}
	return m
}
