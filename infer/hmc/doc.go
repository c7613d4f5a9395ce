// Package hmc samples posteriors by Hamiltonian Monte Carlo: NUTS, HMC and MALA with Stan's adaptation, and replica
// exchange over a ladder of temperatures.
//
//	program, err := ppl.Compile(model, data)
//	draws, err := hmc.Sample(ctx, program, hmc.Options{})
//
// [Sample] runs 4 chains of 1000 warm-up transitions and 1000 draws of NUTS unless told otherwise. [Run] also returns the draws on unconstrained
// space, the adapted metrics and the counts of gradients; [Stream] hands out draws as they come. Each chain is a goroutine; the
// gradients that the chains want are evaluated as one batch of tensors (see package kernel, which holds the algorithms in plain Go).
//
// [NUTS] and [HMC] are also infer.Methods, with build, init and update like all others.
package hmc
