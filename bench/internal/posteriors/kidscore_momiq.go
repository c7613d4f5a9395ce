package posteriors

// kidscoreMomIQ is the regression of children's test scores on their mothers' (posteriordb, kidscore_momiq; Gelman and
// Hill 2007, chapter 3):
//
//	beta flat, sigma ~ HalfCauchy(2.5)
//	kid_score ~ N(beta_1 + beta_2 mom_iq, sigma)
func kidscoreMomIQ(d *Data) Posterior {
	n := d.count("N", 1)
	return flatRegression(d, d.vector("kid_score", n), 2.5, ones(n), d.vector("mom_iq", n))
}
