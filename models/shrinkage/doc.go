// Package shrinkage holds priors for many coefficients of which few are far from 0, as parts of a model in the
// language.
//
//	b := shrinkage.Horseshoe{Global: tau0, Slab: 2}.Sample(c, "b", features)
//
// declares the coefficients and what they are made of, and returns them. A prior of this kind has no density in closed
// form, so it is a few sites of the model and not a distribution.
package shrinkage
