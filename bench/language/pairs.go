package main

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// pair is one posterior twice: by hand, and compiled from the language.
type pair struct {
	name             string
	layout           *infer.Layout
	batch            infer.Batch
	byHand, language infer.LogPosterior
}

func pairs() ([]pair, error) {
	var out []pair
	for _, f := range []func() (string, ppl.Model, infer.Batch, infer.LogPosterior, error){
		func() (string, ppl.Model, infer.Batch, infer.LogPosterior, error) { return logistic(1000, 25) },
		func() (string, ppl.Model, infer.Batch, infer.LogPosterior, error) { return logistic(768, 8) },
		schools, poisson,
	} {
		name, model, batch, byHand, err := f()
		if err != nil {
			return nil, err
		}
		program, err := ppl.Compile(model, batch)
		if err != nil {
			return nil, err
		}
		parts := program.Target().Parts
		out = append(out, pair{name, program.Layout(), batch, byHand,
			func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
				return parts(p, b, infer.Weights{Prior: 1, Likelihood: 1, Jacobian: 1})
			}})
	}
	return out, nil
}

// logistic is logistic regression with n data and d features.
func logistic(n, d int) (string, ppl.Model, infer.Batch, infer.LogPosterior, error) {
	data, err := bench.NewLogistic(n, d, torch.CPU)
	if err != nil {
		return "", nil, nil, nil, err
	}
	labels := make([]float64, n)
	for i, s := range data.Sign {
		labels[i] = (s + 1) / 2
	}
	batch, err := tensors(map[string][]float64{"y": labels, "sign": data.Sign})
	if err != nil {
		return "", nil, nil, nil, err
	}
	if batch["x"], err = torch.FromSlice(data.X, n, d); err != nil {
		return "", nil, nil, nil, err
	}
	model := func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Independent(dist.Normal(0, 1).Expand(d), 1))
		c.Plate("data", n, func(c *ppl.Ctx) {
			c.Observe("y", dist.BernoulliLogits(c.Data("x").MatMul(w)), c.Data("y"))
		})
	}
	byHand := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		w := p.Get("w").T()
		logLik := b.Get("x").T().MustMv(w, false).MustMul(b.Get("sign").T(),
			false).MustLogSigmoid(false).MustSum(gotch.Double, false)
		return half(torch.Of(w.MustSquare(false).MustSum(gotch.Double, false))).Add(logLik), nil
	}
	return "logistic regression, " + size(n, d), model, batch, byHand, nil
}

// schools is eight schools, non-centred.
func schools() (string, ppl.Model, infer.Batch, infer.LogPosterior, error) {
	batch, err := tensors(map[string][]float64{"y": bench.SchoolsY, "sigma": bench.SchoolsSigma})
	model := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 5))
		tau := c.Sample("tau", dist.HalfCauchy(5))
		c.Plate("schools", 8, func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Normal(0, 1))
			theta := z.Mul(tau).Add(mu)
			c.Observe("y", dist.Normal(theta, c.Data("sigma")), c.Data("y"))
		})
	}
	byHand := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		mu, logTau, z := p.Get("mu").T(), p.Get("tau").T(), p.Get("z").T()
		tau := logTau.MustExp(false)
		theta := z.MustMul(tau, false).MustAdd(mu, false)
		logLik := half(torch.Of(b.Get("y").Sub(theta).Div(b.Get("sigma")).Square().T().MustSum(gotch.Double, false)))
		priorZ := half(torch.Of(z.MustSquare(false).MustSum(gotch.Double, false)))
		priorMu := half(torch.Of(mu.MustDivScalar(ts.FloatScalar(5), false).MustSquare(false)))
		priorTau := tau.MustDivScalar(ts.FloatScalar(5), false).MustSquare(false).MustLog1p(false)
		return logLik.Add(priorZ).Add(priorMu).Sub(priorTau).Add(logTau), nil
	}
	return "eight schools, non-centred", model, batch, byHand, err
}

// poisson is Poisson regression: counts y_i ~ Poisson(exp(a + b x_i)).
func poisson() (string, ppl.Model, infer.Batch, infer.LogPosterior, error) {
	const n = 500
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = float64(i)/n - 0.5
		y[i] = float64(i * 7 % 11)
	}
	batch, err := tensors(map[string][]float64{"x": x, "y": y})
	model := func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 2))
		slope := c.Sample("b", dist.Normal(0, 1))
		c.Plate("data", n, func(c *ppl.Ctx) {
			c.Observe("y", dist.PoissonLog(c.Data("x").Mul(slope).Add(a)), c.Data("y"))
		})
	}
	byHand := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		a, slope := p.Get("a").T(), p.Get("b").T()
		eta := b.Get("x").Mul(slope).Add(a).T()
		logLik := b.Get("y").Mul(eta).Sub(eta.MustExp(false)).T().MustSum(gotch.Double, false)
		priorA := half(torch.Of(a.MustDivScalar(ts.FloatScalar(2), false).MustSquare(false)))
		return torch.Of(logLik.MustAdd(priorA.T(), false).MustAdd(half(torch.Of(slope.MustSquare(false))).T(), false)), nil
	}
	return "Poisson regression, " + size(n, 2), model, batch, byHand, err
}

// half is −x/2.
func half(x torch.Tensor) torch.Tensor {
	return torch.Of(x.T().MustMulScalar(ts.FloatScalar(-0.5), false))
}

func size(n, d int) string { return fmt.Sprintf("%d x %d", n, d) }

// tensors are named vectors as a batch.
func tensors(values map[string][]float64) (infer.Batch, error) {
	batch := infer.Batch{}
	for name, v := range values {
		var err error
		if batch[name], err = torch.FromSlice(v); err != nil {
			return nil, err
		}
	}
	return batch, nil
}
