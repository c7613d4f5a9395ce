// Package infer is the contract that all inference methods share.
//
// A model is a [LogPosterior]: a function of parameters and a batch that returns the log posterior density of one
// point. A [Method] is a configuration (sgmcmc.SGHMC{...}, optim.Adam{...}); building it with a log posterior gives a
// [Transform], whose Init makes a [State] and whose Update moves it by one batch. [Run] drives a transform: chains,
// burn-in, thinning, progress, checkpoints. Whoever wants the loop in hand writes
//
//	state, err := transform.Init(params)
//	for batch := range batches {
//		state, info, err = transform.Update(state, batch)
//	}
//
// # Scale and temperature
//
// Every method with a temperature T targets the density exp(logPosterior/T). The recommended log posterior is the mean
// over data, (1/N) log prior + (1/n) Σ log likelihood for a batch of n of N data, with temperature T/N: step sizes then
// depend neither on N nor on n, and T = 1 is the Bayes posterior. T = 0 is optimisation. (Wenzel et al. 2020, section
// 2; Duffield et al. 2025, section 4.)
//
// # Chains
//
// K chains are a leading axis of the flat parameter vector. The log posterior of one chain is mapped over it with vmap:
// the model is written for one chain.
package infer
