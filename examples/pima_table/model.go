package main

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/pima"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// regression is Bayesian logistic regression without an intercept, with prior w ~ N(0, I).
func regression(c *ppl.Ctx) {
	w := c.Sample("w", dist.Normal(0, 1).Expand(pima.Features))
	c.Plate("patients", pima.Patients, func(c *ppl.Ctx) {
		c.Observe("diabetes", dist.BernoulliLogitGLM(c.Data("x"), w, 0), c.Data("diabetes"))
	})
}

// copies is the log density of K independent copies of the posterior, w of shape [K, 8]: the sum of the K mean log posteriors,
// without the constants of the priors. Its batch has other data for each copy, "x" of shape [n, K, 8] and "y", signs, of shape
// [n, K]. A sampler whose elements move by themselves, such as SGHMC, then runs K independent chains as one point, which see batches
// of their own; the chains of a run all see the same.
func copies(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	w, x, y := p.Get("w").T(), b.Get("x").T(), b.Get("y").T()
	n := float64(x.MustSize()[0])
	logPrior := w.MustSquare(false).MustSum(gotch.Double, false).MustMulScalar(ts.FloatScalar(-0.5/pima.Patients), false)
	logits := x.MustMul(w, false).MustSumDimIntlist([]int64{-1}, false, gotch.Double, false)
	logLikelihood := y.MustMul(logits, false).MustLogSigmoid(false).MustSum(gotch.Double, false).MustMulScalar(ts.FloatScalar(1/n), false)
	return torch.Of(logPrior.MustAdd(logLikelihood, false)), nil
}
