// Package curvature computes what Gaussian approximations and second-order methods are made of: gradients of single
// data, Fisher, Gauss-Newton and Hessian matrices, their diagonals and their products with a vector, conjugate
// gradients, and the linearised predictive.
//
// With l_i(θ) = log p(y_i | x_i, θ) the density of datum i, g_i its gradient, z_i = f(x_i, θ) the output of a model
// with C numbers, J_i = ∂z_i/∂θ of shape [C, d], and H_i = −∂² log p(y_i | z_i)/∂z_i² of shape [C, C]:
//
//	empirical Fisher     Σ_i g_i g_iᵀ            Fisher, FisherDiag, FVP
//	Gauss-Newton (GGN)   Σ_i J_iᵀ H_i J_i        GGN, GGNFactor, GGNDiag, GGNVP
//	Hessian              −∇² log posterior       Hessian, HessianDiag (and HVP, of the function as it is)
//
// All three are on the scale of a precision: a Gaussian approximation adds them to the precision of its prior. They
// are sums over the data of the batch, so those of two batches add up to that of both. Where p(y|z) is an
// exponential family with natural parameter z, as for softmax, Bernoulli logits and normal observations, the GGN is
// the Fisher matrix proper, the expectation of the empirical one over y ~ p(y|z). (Martens 2020, sections 8 and 9;
// Kunstner et al. 2019.)
//
// # What is asked of the functions
//
// Datum i is evaluated by itself, as a batch of one, mapped over the data. A model whose output for one datum depends
// on the others of its batch (batch normalisation in training) therefore sees batches of one here, except in FVP and
// GGNVP, which take the batch as it is. An [Outer] must give datum i a density that depends on z_i alone: that of datum
// 0 is compared with what it is in a batch of one, and an error says where shapes do not match, such as z [n, 1] and y
// [n]. All curvature is at a single point θ of shape [d]: K chains are an error.
//
// # Memory
//
// Rows of gradients are made in blocks that fit into [Options].Memory, so that diagonals never hold more than one
// block. A result or an intermediate that does not fit is refused before it is made, with a [infer.MemoryError] that
// says how much it takes and what to do instead.
package curvature
