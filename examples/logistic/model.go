package main

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// logPosterior is Bayesian logistic regression with prior w ~ N(0, I): the mean over data of the log posterior, which
// goes with the temperature 1/768. The labels are signs, so that log p(y|x, w) = log σ(y xᵀw).
func logPosterior(p infer.Params, b infer.Batch) (*ts.Tensor, infer.Aux) {
	w := p.Get("w")
	x, y := b.Get("x"), b.Get("y")
	logPrior := w.MustDot(w, false).MustMulScalar(ts.FloatScalar(-0.5/patients), false)
	logLikelihood := x.MustMv(w, false).MustMul(y, false).MustLogSigmoid(false).MustMean(gotch.Double, false)
	return logPrior.MustAdd(logLikelihood, false), nil
}
