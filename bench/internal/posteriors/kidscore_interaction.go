package posteriors

// kidscoreInteraction is the regression of children's test scores (posteriordb, kidscore_interaction; Gelman and Hill
// 2007, chapter 3):
//
//	beta flat, sigma ~ HalfCauchy(2.5)
//	kid_score ~ N(beta_1 + beta_2 mom_hs + beta_3 mom_iq + beta_4 mom_hs·mom_iq, sigma)
func kidscoreInteraction(d *Data) Posterior {
	n := d.count("N", 1)
	school, iq := d.vector("mom_hs", n), d.vector("mom_iq", n)
	return flatRegression(d, d.vector("kid_score", n), 2.5, ones(n), school, iq, product(school, iq))
}
