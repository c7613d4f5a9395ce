// Package pathfinder approximates a posterior along the paths of quasi-Newton optimisers, from a few hundred
// gradients for each:
//
//	draws, err := infer.Sample(ctx, program, pathfinder.Pathfinder{}, infer.Options{})
//
// The draws have an error that more of them do not remove. Notes of the run say where it is large. As the start of
// NUTS, Pathfinder is the field of that name of hmc.NUTS.
package pathfinder
