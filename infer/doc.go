// Package infer is the contract that all inference methods share, and the door to them:
//
//	draws, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{})
//
// A program is a compiled model (package ppl) or [Handwritten]; another method is another third argument. [Run] has the
// same arguments and returns all that a run leaves: draws, last states, averages. [Options] say how many chains,
// updates and draws there are, and what is saved.
//
// A [Method] is a configuration (sgmcmc.SGHMC{...}, optim.Adam{...}). Building it with a [Target] gives a [Transform],
// whose Init makes a [State] and whose Update moves it by one batch. Whoever wants the loop in hand writes
//
//	transform, err := method.Build(program.Target())
//	state, err := transform.Init(params)
//	for batch := range batches {
//		state, info, err = transform.Update(state, batch)
//	}
//
// [Advance] makes an update in the memory of the state before, as a run does.
//
// # Scale and temperature
//
// A [Target] is a log density that knows the number of data N. Every method with a temperature T has the density
// exp(N · LogPosterior / T) · |Jacobian| on unconstrained space, where LogPosterior is the mean over the data,
// (1/N) log prior + (1/n) Σ log likelihood for a batch of n of N data. T = 1 is the Bayes posterior for every method,
// T = 0 the mode of the density that the user wrote. Step sizes multiply the gradient of LogPosterior, so they depend
// neither on N nor on n. (Wenzel et al. 2020, section 2; Duffield et al. 2025, section 4.)
//
// # Chains
//
// K chains are a leading axis of the flat parameter vector. A model is written for one chain. Its gradient is compiled
// where it can be, and chains call it one after another; elsewhere vmap maps it over the chains.
package infer
