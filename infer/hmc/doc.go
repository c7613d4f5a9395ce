// Package hmc samples posteriors by Hamiltonian Monte Carlo: NUTS and HMC with adaptation, replica exchange over a
// ladder of temperatures, and the microcanonical samplers [MAMS] and [MCLMC] for many dimensions.
//
//	draws, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{})
//
// runs 4 chains of 1000 warm-up transitions and 1000 draws. Each chain is a goroutine; the gradients that the chains
// want are evaluated as one batch of tensors (see package kernel, which holds the algorithms in plain Go). [NUTS],
// [HMC] and [Exchange] also have init and update for loops of one's own, as all methods have.
package hmc
