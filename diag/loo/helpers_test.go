package loo

import (
	"math"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

var nan, inf = math.NaN(), math.Inf(1)

type lcg = testkit.LCG

var (
	filled      = testkit.Filled
	goldenAR    = testkit.GoldenAR
	goldenHeavy = testkit.GoldenHeavy
	source      = testkit.Source
	normals     = testkit.Normals
	near        = testkit.Near
	meanSE      = testkit.MeanSE
)
