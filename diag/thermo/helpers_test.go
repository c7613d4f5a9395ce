package thermo

import (
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

var nan, inf = math.NaN(), math.Inf(1)

var (
	filled = testkit.Filled
	source = testkit.Source
	ar1    = testkit.AR1
	meanSE = testkit.MeanSE
)

func codes(r *diag.Report) map[diag.Code]int {
	m := map[diag.Code]int{}
	for _, f := range r.Findings {
		m[f.Code]++
	}
	return m
}
