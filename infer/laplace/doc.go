// Package laplace holds Laplace approximations: a Gaussian at a mode θ̂ of the log density, whose precision P is the
// curvature there.
//
//	N(θ̂, T P⁻¹),   P = curvature of the data + of the prior + T · that of the log Jacobian + damping
//
// [DiagFisher], [DenseFisher], [DiagGGN], [DenseGGN], [DenseHessian] and [KFAC] differ in the curvature of the data. A
// run first looks for the mode. Then an update adds the curvature of a batch and leaves the point as it is, so one pass
// over the data, in whatever batches, makes the approximation. In a loop of your own:
//
//	transform, err := laplace.DenseGGN{Forward: f, Outer: o, PriorPrecision: laplace.Isotropic(1)}.Build(target)
//	state, err := transform.Init(mode)
//	state, info, err := transform.Update(state, batch) // for each batch
//	draws, err := transform.(infer.Sampler).Sample(state, 100, &streams)
//
// # Temperature
//
// T = 1 is the Bayes posterior for every target. At T the Gaussian is that of p^(1/T)·|J|, with the Jacobian of the map
// to unconstrained space as it is.
//
// # Prior
//
// [DenseHessian] differentiates the whole target. The other methods add up the curvature of the
// likelihood, and add that of the prior and the Jacobian once, at the first batch: those of a target that
// can tell its parts, or PriorPrecision.
//
// # Chains
//
// With K chains each point has a Gaussian of its own, and Sample draws from them in turn: draw i is of chain i mod K, a
// mixture of Laplace approximations. Chain of [Posterior] picks one of them.
package laplace
