package main

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// logPosterior is Bayesian logistic regression with prior w ~ N(0, I): the mean over data of the log posterior, which
// goes with the temperature 1/768. The labels are signs, so that log p(y|x, w) = log σ(y xᵀw).
func logPosterior(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	w := p.Get("w").T()
	x, y := b.Get("x").T(), b.Get("y").T()
	logPrior := w.MustDot(w, false).MustMulScalar(ts.FloatScalar(-0.5/patients), false)
	logLikelihood := x.MustMv(w, false).MustMul(y, false).MustLogSigmoid(false).MustMean(gotch.Double, false)
	return torch.Of(logPrior.MustAdd(logLikelihood, false)), nil
}

// logOdds and logLikelihoods are the likelihood in the two parts that a Gauss-Newton matrix is made of: xᵀw, and log σ(y xᵀw) of each
// patient.
func logOdds(p infer.Params, b infer.Batch) *ts.Tensor {
	return b.Get("x").T().MustMv(p.Get("w").T(), false)
}

func logLikelihoods(z *ts.Tensor, b infer.Batch) *ts.Tensor {
	return torch.Of(z).Mul(b.Get("y")).LogSigmoid().T()
}

// regression is the same model in Kelvin's language: what is random, and how the data depend on it. Compile makes the log
// posterior of it. The plate says that the patients are independent, and how many there are where a batch has only some.
func regression(c *ppl.Ctx) {
	w := c.Sample("w", dist.Normal(0, 1).Expand(features))
	c.Plate("patients", patients, func(c *ppl.Ctx) {
		c.Observe("diabetes", dist.BernoulliLogitGLM(c.Data("x"), w, 0), c.Data("diabetes"))
	})
}
