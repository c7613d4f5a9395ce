package main

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/pima"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// regression is Bayesian logistic regression without an intercept, with prior w ~ N(0, I).
func regression(c *ppl.Ctx) {
	w := c.Sample("w", dist.Normal(0, 1).Expand(pima.Features))
	c.Plate("patients", pima.Patients, func(c *ppl.Ctx) {
		c.Observe("diabetes", dist.BernoulliLogitGLM(c.Data("x"), w, 0), c.Data("diabetes"))
	})
}

// copies is the log density of K independent copies of the posterior, w of shape [K, 8]: the sum of the K mean log
// posteriors, without the constants of the priors. Its batch has other data for each copy, "x" of shape [n, K, 8] and
// "y", signs, of shape [n, K]. A sampler whose elements move by themselves, such as SGHMC, then runs K independent
// chains as one point, which see batches of their own; the chains of a run all see the same.
func copies(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	w, x, y := p.Get("w"), b.Get("x"), b.Get("y")
	n := float64(x.Shape()[0])
	logPrior := w.Square().Sum().Mul(-0.5 / pima.Patients)
	logLikelihood := x.Mul(w).Sum(-1).Mul(y).LogSigmoid().Sum().Div(n)
	return logPrior.Add(logLikelihood), nil
}
