// Package svi is stochastic variational inference (Hoffman et al. 2013; Ranganath et al. 2014): it fits a guide q, a
// model in the language of package ppl with learnable Params, to the posterior of another model.
//
//	program, err := ppl.Compile(model, data)
//	draws, err := infer.Sample(ctx, program, svi.SVI{Guide: guide}, infer.Options{})
//
// A guide declares each latent variable of the model, by name and with its shape, and observes nothing. Package guide
// makes guides for any model of continuous variables: normal distributions, flows. Without a Guide it is guide.Normal.
//
// With ℓ = log p(y, z) − T log q(z) for a draw z of the guide, the Params of guide and model maximise a bound, by
// default the evidence lower bound
//
//	ELBO = E_q[ℓ] = E_q[log p(y, z)] − T E_q[log q(z)]
//
// Both densities are those of the constrained values. At T = 1 the guide goes to the Bayes posterior, at T to the
// density p^(1/T), and at T = 0 to the mode of p. An [ELBO] is one of [Trace], [MeanField], [Renyi] and [IWAE].
//
// # Gradients
//
// A draw whose gradient goes back to the Params (a normal number, a gamma number) is differentiated. Where all draws of
// a guide have one, their supports stay, and ℓ varies less than half as much as log p(y, z), [Trace] leaves the score
// of the guide, ∇ log q(z) at given z, out of the gradient: its mean is 0, and without it the noise vanishes where the
// guide is the posterior (Roeder, Wu and Duvenaud 2017). A variable whose draws have none, a discrete one above all,
// has the score-function gradient (Williams 1992)
//
//	E_q[∇ log q(z_i) (ℓ_i − b)]
//
// where ℓ_i is what ℓ has in the plates of the variable, element by element, and in none: other elements of its plates
// are independent of it and are left out. The baseline b is the mean of the other samples (Kool et al. 2019), and with
// a single sample the mean of ℓ_i in the updates before. A mixture is taken so too: its draws have no gradient in the
// weights.
//
// # Programs
//
// Draws are of the guide, with the sites that other methods have: what [ppl.Compile] made. For models that it refuses,
// with discrete variables that cannot be summed out, or variables of single data in a plate that is subsampled (an
// amortised guide, whose Params are the weights of an encoder), [Compile] makes a program of model and guide.
package svi
