// Package sgmcmc holds the stochastic-gradient Markov chain Monte Carlo methods, one file each.
//
// A target has density p(θ)^(1/T)·|Jacobian| at temperature T; T = 1 is the Bayes posterior, and SGNHT apart all
// methods become optimisers at T = 0. The symbols in the update equations: θ parameters, m momenta, g gradient of the
// mean log posterior (with τ times that of the log Jacobian), ε step size (LR), τ = T/N with N data, α friction, β an
// estimate of the variance of the gradient noise, σ the standard deviation of the momenta at τ = 1, z standard normal.
package sgmcmc
