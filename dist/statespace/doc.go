// Package statespace holds linear-Gaussian state-space models as distributions of series: the local level, the local
// linear trend, seasons, ARMA, sums of these, and systems of your own.
//
// [New] makes the distribution of a series, whose log density is the Kalman filter. Numbers that are NaN are missing.
// [Series] also has the states given a series (smoothing), draws of them, and forecasts.
//
//	trend := statespace.LocalLevel{Scale: wander, Mean: 1000, Spread: 500}
//	c.Observe("y", statespace.New(100, noise, trend), c.Data("y"))
//
// The filter keeps the covariance of the states as U diag(λ) Uᵀ, a factor and weights that are never negative (Bierman
// 1977, Factorization Methods for Discrete Sequential Estimation). It divides by the variances of single observations
// alone, so that nearly singular noise, states without noise and states that are known exactly are no special cases.
package statespace
