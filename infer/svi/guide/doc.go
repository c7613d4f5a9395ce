// Package guide makes guides for models of continuous variables, whatever the model: distributions on unconstrained
// space, mapped to the supports of the model's variables.
//
//	q, err := guide.Dense{}.Build(model, data)
//	draws, err := infer.Sample(ctx, program, svi.SVI{Guide: q}, infer.Options{})
//
// A guide is a model in the language of package ppl. Its Params are called "guide." and what they are; its random
// variables on unconstrained space, which the model does not have, have names that begin with _. The density of these,
// and a factor with the Jacobian of the maps to the supports, are that of the guide. Guides take several chains and
// samples at once.
package guide
