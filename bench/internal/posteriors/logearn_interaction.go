package posteriors

import (
	"math"
)

// logearnInteraction is the regression of log earnings (posteriordb, logearn_interaction; Gelman and Hill 2007,
// chapter 4):
//
//	beta, sigma flat
//	log earn ~ N(beta_1 + beta_2 height + beta_3 male + beta_4 height·male, sigma)
func logearnInteraction(d *Data) Posterior {
	n := d.count("N", 1)
	earn, height, male := d.positive("earn", n), d.vector("height", n), d.vector("male", n)
	logs := each(n, func(i int) float64 { return math.Log(earn[i]) })
	return flatRegression(d, logs, 0, ones(n), height, male, product(height, male))
}
