package main

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The Laplace approximations are Gaussians at the MAP. But for the last they predict by the linearised network, whose
// logits are normal, with the probit approximation of the probability.

// fitLaplace takes the curvature of all data at a point. There is no target: the methods have the
// likelihood and the prior.
func (t *task) fitLaplace(m infer.Method, at infer.Params) (infer.State, error) {
	r, err := infer.Run(context.Background(), infer.Handwritten(infer.Target{}, at, t.data), m,
		infer.Options{Chains: 1, Warmup: infer.None, Draws: infer.None})
	if err != nil {
		return nil, err
	}
	return r.State, nil
}

// linearised is the predictor of a Gaussian and the function that is linearised.
func (t *task) linearised(s infer.State, f curvature.Forward) predictor {
	return t.probit(func(b infer.Batch) (mean, cov torch.Tensor, err error) {
		return s.(laplace.Posterior).Linearized(f, b, curvature.LinearizedOptions{})
	})
}

func (t *task) probit(law func(b infer.Batch) (mean, cov torch.Tensor, err error)) predictor {
	return gaussianLogits(t.samples, func(part torch.Tensor) (mean, variance, p torch.Tensor, err error) {
		if mean, variance, err = law(infer.Batch{"x": part}); err == nil {
			p, err = laplace.Probit(mean, variance)
		}
		return mean, variance, p, err
	})
}

func (t *task) lastLayer(context.Context) (predictor, error) {
	last := layers[len(layers)-1]
	_, start, embed, err := infer.Subspace(t.model.logPosterior, t.mode, last.Weight, last.Bias)
	if err != nil {
		return nil, err
	}
	f := laplace.Restrict(curvature.Forward(t.model.forward), embed)
	s, err := t.fitLaplace(laplace.DenseGGN{Forward: f, Outer: outer,
		PriorPrecision: laplace.Isotropic(t.model.precision)}, start)
	return t.linearised(s, f), err
}

func (t *task) diagonal(context.Context) (predictor, error) {
	s, err := t.fitLaplace(laplace.DiagGGN{Forward: t.model.forward, Outer: outer,
		PriorPrecision: laplace.Isotropic(t.model.precision)}, t.mode)
	return t.linearised(s, t.model.forward), err
}

func (t *task) kronecker(context.Context) (predictor, error) {
	s, err := t.fitLaplace(laplace.KFAC{Network: network, Layers: layers, Outer: outer,
		PriorPrecision: laplace.Isotropic(t.model.precision)}, t.mode)
	return t.probit(func(b infer.Batch) (mean, cov torch.Tensor, err error) {
		return s.(laplace.KFACState).LinearizedNetwork(network, b, curvature.LinearizedOptions{})
	}), err
}

func (t *task) denseGGN() (infer.State, error) {
	return t.fitLaplace(laplace.DenseGGN{Forward: t.model.forward, Outer: outer,
		PriorPrecision: laplace.Isotropic(t.model.precision)}, t.mode)
}

func (t *task) dense(context.Context) (predictor, error) {
	s, err := t.denseGGN()
	return t.linearised(s, t.model.forward), err
}

// denseEvidence has the prior precision that maximises the evidence, with the MAP as it is.
func (t *task) denseEvidence(context.Context) (predictor, error) {
	s, err := t.denseGGN()
	if err != nil {
		return nil, err
	}
	s, found, err := laplace.OptimizePriorPrecision(s, laplace.PriorOptions{})
	if err != nil {
		return nil, err
	}
	lambda, _ := found.Site(layers[0].Weight)
	t.notes = append(t.notes, fmt.Sprintf("Laplace, evidence: the prior precision is %.3g in place of %.3g", lambda,
		t.model.precision))
	return t.linearised(s, t.model.forward), nil
}

// denseDraws puts draws of the parameters into the network itself.
func (t *task) denseDraws(ctx context.Context) (predictor, error) {
	method := laplace.DenseGGN{Forward: t.model.forward, Outer: outer,
		PriorPrecision: laplace.Isotropic(t.model.precision)}
	d, err := infer.Sample(ctx, infer.Handwritten(infer.Target{}, t.mode, t.data), method,
		infer.Options{Chains: 1, Warmup: infer.None, Draws: t.samples, Seed: t.seed + 7})
	if err != nil {
		return nil, err
	}
	p, err := t.params(d)
	return t.network(p), err
}
