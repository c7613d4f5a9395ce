// Package laplace holds Laplace approximations: a Gaussian at a point θ̂ that optimisation has found, whose precision P
// is the curvature of the log posterior there.
//
//	N(θ̂, T P⁻¹),   P = Σ curvature of the data + prior precision + damping
//
// [DiagFisher], [DenseFisher], [DiagGGN], [DenseGGN], [DenseHessian] and [KFAC] differ in the curvature. An update adds
// the curvature of a batch and leaves the point as it is, so one pass over the data, in whatever batches, makes the
// approximation:
//
//	transform, err := laplace.DenseGGN{Forward: f, Outer: o, PriorPrecision: laplace.Isotropic(1)}.Build(logPosterior)
//	result, err := oldrun.Run(ctx, transform, mode, onePass, infer.Options{Steps: batches, NoDraws: true})
//	draws, err := transform.(infer.Sampler).Sample(result.State, 100, &streams)
//
// # Scale
//
// The precision is on the scale of the sum over data, whatever the scale of the log posterior: Temperature 1 is the
// Bayes posterior (it is not divided by N here). The Fisher and Gauss-Newton methods take the log likelihoods of single
// data and add them up. The Hessian takes the log posterior given to Build, and weighs batches so that a pass over the
// data gives the Hessian of the sum: the mean program.MeanLogPosterior() of a compiled model by default, and the sum
// program.LogPosterior() with SumOver: see [DenseHessian].
//
// # Prior
//
// PriorPrecision is added once, at the start, and not with each batch. The Fisher and Gauss-Newton methods see the
// likelihood alone, so they need it. DenseHessian differentiates a log posterior that holds its prior already: there
// PriorPrecision must be left out, or the prior would count twice.
//
// # Chains
//
// With K chains each point has a Gaussian of its own, and Sample draws from them in turn: draw i is of chain i mod K, a
// mixture of Laplace approximations. [Chain] picks one of them.
package laplace
