package posteriors

// nes is the regression of party identification (posteriordb, nes; Gelman and Hill 2007, chapter 4):
//
//	beta, sigma flat
//	partyid7 ~ N(beta · x, sigma)
//	x = [1, real_ideo, race_adj, age = 2, age = 3, age = 4, educ1, gender, income], age = age_discrete
func nes(d *Data) Posterior {
	n := d.count("N", 1)
	age := d.vector("age_discrete", n)
	group := func(g float64) []float64 {
		return each(n, func(i int) float64 {
			if age[i] == g {
				return 1
			}
			return 0
		})
	}
	return flatRegression(d, d.vector("partyid7", n), 0, ones(n), d.vector("real_ideo", n),
		d.vector("race_adj", n), group(2), group(3), group(4), d.vector("educ1", n), d.vector("gender", n),
		d.vector("income", n))
}
