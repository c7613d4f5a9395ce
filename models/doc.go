// Package models holds ready-made models, written in the language of package ppl.
//
// A model is a configuration with the data and the scales of the priors. Build checks it and returns a [Model]: the
// function that ppl.Compile takes, and the batch that goes with it.
//
//	m, err := models.LinearRegression{X: x, Y: y}.Build()
//	program, err := m.Compile()
//	draws, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{})
//
// ppl.Predictive with the function and a batch of other features predicts new data.
//
// Each configuration says what its latent variables are called, their priors, the source, and what is known of the
// posterior. [All] has each model with small data of its own, for comparisons of methods over many posteriors.
//
// [SIR] and [Absorption] are models of differential equations, which package ode solves. [Horseshoe] is a prior for
// many coefficients of which few are far from 0, as a part of a model:
//
//	b := models.Horseshoe{Global: tau0, Slab: 2}.Sample(c, "b", features)
//
// declares the coefficients and what they are made of, and returns them.
//
// A new model is one file: a configuration, its Build, and a function without arguments that fills it with data, which
// the list of All names.
package models
