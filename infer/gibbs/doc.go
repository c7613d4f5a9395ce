// Package gibbs samples a posterior by blocks: each method moves some sites while the others rest. Discrete sites are
// such a block.
//
//	program, err := ppl.CompileDiscrete(model, batch)
//	draws, err := infer.Sample(ctx, program, gibbs.Blocks{
//		{Sites: []string{"g"}, Method: gibbs.Discrete{}},
//		{Sites: []string{gibbs.Rest}, Method: hmc.NUTS{}},
//	}, infer.Options{})
package gibbs
