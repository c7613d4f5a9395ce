// Package vi fits normal distributions to a posterior by variational inference: [Diag] with independent elements, [Dense]
// with any covariance, [LowRank] with a covariance of low rank plus a diagonal.
//
// The distribution is q = N(μ, FFᵀ), and a sample is θ = μ + Fε with ε standard normal. Its parameters φ, which are μ and
// those of the scale factor F, minimise the negative evidence lower bound
//
//	NELBO = −E_q[log p(θ)] + T E_q[log q(θ)]
//
// with log p the log posterior and T the temperature. The minimum is at q as close as can be, in KL(q‖p^(1/T)), to the
// density to the power 1/T. For a normal posterior of mean m and precision Λ it has μ = m, and a covariance of TΛ⁻¹ for
// Dense, and variances T/Λ_ii for Diag, which are too small where elements are correlated. With a normalised log p and
// T = 1 the NELBO is the divergence itself: 0 where q is p. At T = 0 the mean goes to the mode and the standard deviations
// to 0, without ever getting there: μ is then the maximum a posteriori.
//
// Expectations are means over S samples (Kingma and Welling 2014). With g = ∇log p(θ) and u = Σ⁻¹(θ − μ) = −∇log q(θ), the
// gradient of −NELBO has two parts:
//
//	(∂θ/∂φ)ᵀ(g + Tu) − T ∂log q(θ; φ)/∂φ at θ fixed
//
// The second has mean 0, and noise. It is left out unless asked for, which is called sticking the landing (Roeder, Wu and
// Duvenaud 2017): where q is p the gradient is then 0 for each single sample, in the mean and in the scale.
//
// The temperature belongs to the scale of the log posterior. With the sum over N data, LogPosterior of a compiled model, the posterior
// has T = 1, the default. With the mean, MeanLogPosterior, it has T = 1/N, which has to be said: at T = 1 q is the approximation
// to the density to the power 1/N, as wide as that of a single datum.
//
// What moves φ is an optimiser, any [infer.GradientMethod], such as those of package optim. The draws of [infer.Run] are the
// means μ after each update, not draws from q: those come from the transform, which is an [infer.Sampler]. K chains are K
// independent fits. A chain with a sample whose density or gradient is not finite is held and reported in Info.Diverged.
// Info.LogPosterior is the mean over the samples, Info.GradNorm the norm of the gradient in φ, Info.Stats has the "nelbo",
// and each tensor of Info.Aux has a dimension of S, after that of the chains where there is one.
//
// A compiled model needs no guide written for it: its log posterior is on unconstrained space, where a normal distribution
// fits, and its Constrain maps samples to the model's variables. See the example.
package vi
