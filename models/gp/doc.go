// Package gp holds Gaussian processes: kernels, their sums and products, the exact marginal likelihood, latent
// processes under any likelihood, predictions at new inputs, and the Hilbert-space approximation, whose cost grows
// with the number of data and not with its cube.
//
//	f := gp.Process{Kernel: gp.Matern{Nu: 1.5, Scale: amplitude, Length: length}, X: c.Data("x")}
//	c.Observe("y", f.Marginal(noise), c.Data("y"))
//
// Inputs are tensors of shape [n, d], or [n] for d = 1. The parameters of kernels are numbers or tensors of shape [],
// so that they may be latent variables; a Length may be of shape [d], one for each input (automatic relevance
// determination). What is wrong panics with a [dist.Error] that names it.
package gp
