package main

import (
	"context"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
)

// carried is continual learning with Laplace approximations: the posterior N(θ*, (λP)⁻¹) of the episodes so far is the
// prior of the next, one penalty centred at the last optimum, and the curvature of an episode at its optimum is added
// to what there is,
//
//	θ*_n = argmax log p(y_n|θ) − (λ/2) (θ − θ*_{n−1})ᵀ P_{n−1} (θ − θ*_{n−1}),    P_n = P_{n−1} + F_n
//
// (Huszár 2018; Ritter et al. 2018; Duffield et al. 2025, section 5.2.)
type carried struct {
	model model
	training
	curvature infer.Method // an approximation of package laplace, with the precision of the first prior
	weight    float64      // λ; 1 is Bayes

	at    infer.Params // where the next episode begins
	state infer.State  // N(θ*, P⁻¹), nil before the first episode
}

func (c *carried) learn(ctx context.Context, episode series) error {
	prior := logDensity(c.model.firstPrior)
	if c.state != nil {
		log, err := c.state.(laplace.Posterior).LogPrior(c.weight)
		if err != nil {
			return err
		}
		prior = log
	}
	var err error
	if c.at, err = c.mode(ctx, c.model, prior, c.at, episode); err != nil {
		return err
	}
	transform, err := c.curvature.Build(infer.Target{})
	if err != nil {
		return err
	}
	if c.state == nil {
		c.state, err = transform.Init(c.at)
	} else {
		// The curvature so far, around the new optimum.
		saved := c.state.Save()
		saved.Tensors["params"] = c.at.Flat
		c.state, err = transform.(infer.Restorer).Restore(c.at.Layout, saved)
	}
	if err != nil {
		return err
	}
	batch, err := episode.batch()
	if err != nil {
		return err
	}
	c.state, _, err = transform.Update(c.state, batch)
	return err
}

func (c *carried) predict(x infer.Batch) (prediction, error) {
	if _, ok := c.state.(laplace.KFACState); ok {
		mean, cov, err := c.state.(laplace.KFACState).LinearizedNetwork(c.model.network, x, curvature.LinearizedOptions{})
		if err != nil {
			return prediction{}, err
		}
		return gaussian(mean, cov)
	}
	mean, cov, err := c.state.(laplace.Posterior).Linearized(c.model.forward, x, curvature.LinearizedOptions{})
	if err != nil {
		return prediction{}, err
	}
	return gaussian(mean, cov)
}
