// Package vi fits normal distributions to a posterior by variational inference: [Diag] with independent elements,
// [Dense] with any covariance, [LowRank] with a covariance of low rank plus a diagonal.
//
// The distribution is q = N(μ, FFᵀ) on unconstrained space, and a sample is θ = μ + Fε with ε standard normal. Its
// parameters φ, which are μ and those of the scale factor F, minimise the negative evidence lower bound
//
//	NELBO = −E_q[log p(θ)] + T E_q[log q(θ) − log|J(θ)|]
//
// with log p the log density of the target on the scale of the sum over data, log|J| its log Jacobian, and T the
// temperature. The minimum is at q as close as can be, in KL(q‖·), to the density p^(1/T)·|J|. T = 1 is the Bayes
// posterior, whatever the size of the data, and the NELBO is in nats. For a normal posterior of mean m and precision Λ
// the minimum has μ = m, and a covariance of TΛ⁻¹ for Dense, and variances T/Λ_ii for Diag, which are too small where
// elements are correlated. With a normalised log p and T = 1 the NELBO is the divergence itself: 0 where q is p. At T =
// 0 the mean goes to the mode of p and the standard deviations to 0, without ever getting there.
//
// Expectations are means over S samples (Kingma and Welling 2014). With g = ∇(log p(θ) + T log|J(θ)|) and
// u = Σ⁻¹(θ − μ) = −∇log q(θ), the gradient of −NELBO has two parts:
//
//	(∂θ/∂φ)ᵀ(g + Tu) − T ∂log q(θ; φ)/∂φ at θ fixed
//
// The second has mean 0, and noise. It is left out unless asked for, which is called sticking the landing (Roeder, Wu
// and Duvenaud 2017): where q is p the gradient is then 0 for each single sample, in the mean and in the scale.
//
// An optimiser moves φ, any [infer.GradientMethod], such as those of package optim. It is given the gradient divided by
// the number of data, so that a step size does not depend on N. A transform is an [infer.Sampler]: the draws of a run
// come from q, after the updates of the warm-up have fitted it. K chains are K independent fits. A chain with a sample
// whose density or gradient is not finite is held and reported in Info.Diverged. Info.LogPosterior is the mean over the
// samples, Info.GradNorm the norm of the gradient in φ, Info.Stats has the "nelbo", and each tensor of Info.Aux has a
// dimension of S, after that of the chains where there is one.
//
// A compiled model needs no guide: its target is on unconstrained space, where a normal distribution fits, and its
// Constrain maps samples to the model's variables. See the example.
package vi
