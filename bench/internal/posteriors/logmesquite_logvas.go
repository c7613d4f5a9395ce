package posteriors

import (
	"math"
)

// logmesquiteLogvas is the regression of the logarithm of the weight of mesquite bushes on volume, area and shape
// (posteriordb, logmesquite_logvas; Gelman and Hill 2007, chapter 4), with d1 and d2 for diam1 and diam2:
//
//	beta, sigma flat
//	log weight ~ N(beta · x, sigma)
//	x = [1, log(d1 d2 canopy_height), log(d1 d2), log(d1/d2), log total_height, log density, group]
func logmesquiteLogvas(d *Data) Posterior {
	n := d.count("N", 1)
	logs := func(name string) []float64 {
		v := d.positive(name, n)
		return each(n, func(i int) float64 { return math.Log(v[i]) })
	}
	d1, d2, canopy := logs("diam1"), logs("diam2"), logs("canopy_height")
	volume := each(n, func(i int) float64 { return d1[i] + d2[i] + canopy[i] })
	area := each(n, func(i int) float64 { return d1[i] + d2[i] })
	shape := each(n, func(i int) float64 { return d1[i] - d2[i] })
	return flatRegression(d, logs("weight"), 0,
		ones(n), volume, area, shape, logs("total_height"), logs("density"), d.vector("group", n))
}
