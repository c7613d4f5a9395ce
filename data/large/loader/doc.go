// Package loader makes batches of data that do not fit in memory: rows of a [large.Table], shuffled anew in each epoch,
// read ahead while a run computes.
//
//	table, err := large.Open(map[string]string{"x": "x.npy", "y": "y.npy"})
//	defer table.Close()
//	batches, err := loader.New(table, loader.Options{Size: 256, Seed: 1})
//	posterior, err := infer.Sample(ctx, program, sgmcmc.SGHMC{}, infer.Options{Batches: batches})
//
// A run with a checkpoint goes on with the next batch, to the bit, and refuses files that have changed.
//
// The model is compiled on some rows, such as the first batch, and its plate has the option ppl.Minibatch and the size
// table.Rows().
package loader
