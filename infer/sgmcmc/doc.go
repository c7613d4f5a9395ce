// Package sgmcmc holds the stochastic-gradient Markov chain Monte Carlo methods, one file each.
//
// All of them target exp(logPosterior/T) at temperature T and, SGNHT apart, become optimisers at T = 0. The symbols in the update
// equations: θ parameters, m momenta, g gradient of the log posterior, ε step size (LR), T temperature, α friction, β an
// estimate of the variance of the gradient noise, σ the standard deviation of the momenta at T = 1, z standard normal.
package sgmcmc
