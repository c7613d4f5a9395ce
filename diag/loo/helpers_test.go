package loo

import (
	"math"

	"github.com/kelvin-ppl/kelvin/internal/sample/sampletest"
)

var nan, inf = math.NaN(), math.Inf(1)

type lcg = sampletest.LCG

var (
	filled      = sampletest.Filled
	goldenAR    = sampletest.GoldenAR
	goldenHeavy = sampletest.GoldenHeavy
	source      = sampletest.Source
	normals     = sampletest.Normals
	near        = sampletest.Near
	meanSE      = sampletest.MeanSE
)
