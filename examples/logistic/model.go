package main

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// logPosterior is Bayesian logistic regression with prior w ~ N(0, I): the mean over data of the log posterior. The
// labels are signs, so that log p(y|x, w) = log σ(y xᵀw).
func logPosterior(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	w, x, y := p.Get("w"), b.Get("x"), b.Get("y")
	logPrior := w.Square().Sum().Mul(-0.5 / patients)
	return x.MatMul(w).Mul(y).LogSigmoid().Mean().Add(logPrior), nil
}

// logOdds and logLikelihoods are the likelihood in the two parts of a Gauss-Newton matrix: xᵀw, and log σ(y xᵀw) of
// each patient.
func logOdds(p infer.Params, b infer.Batch) torch.Tensor { return b.Get("x").MatMul(p.Get("w")) }

func logLikelihoods(z torch.Tensor, b infer.Batch) torch.Tensor {
	return z.Mul(b.Get("y")).LogSigmoid()
}

// regression is the same model in Kelvin's language: what is random, and how the data depend on it. The plate says that
// the patients are independent, and how many there are, since a batch may have only some.
func regression(c *ppl.Ctx) {
	w := c.Sample("w", dist.Normal(0, 1).Expand(features))
	c.Plate("patients", patients, func(c *ppl.Ctx) {
		c.Observe("diabetes", dist.BernoulliLogitGLM(c.Data("x"), w, 0), c.Data("diabetes"))
	})
}
