package svi

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/infer/svi/guide"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// SVI fits a guide to the posterior of a compiled model. K chains are K independent fits, from the same start.
//
// Info.LogPosterior is the mean of log p(y, z) over the samples, per datum; Info.Stats has the "nelbo", the negative
// bound on the scale of the sum over data, in nats at T = 1. A chain whose bound or gradient is not finite is held.
type SVI struct {
	// Guide is q. nil is the guide of the program, and for one that has none guide.Normal{}.
	Guide ppl.Model
	ELBO  ELBO // the bound; nil means Trace{}
	// Optimizer climbs: an infer.GradientMethod without weight decay. nil means optim.Adam, with a learning rate that
	// falls from 0.05 to 0.001 over the first 4000 updates. For the weights of networks that is too large.
	Optimizer   infer.Method
	Samples     int            // S, draws of the guide in an update; 0 means 8
	Temperature infer.Schedule // T; nil means 1, the Bayes posterior
	// KLWeight is λ: prior and guide count λ(log p(z) − T log q(z)) beside the log likelihood, whose sites
	// [ppl.Program.WithLikelihood] names. nil means 1.
	KLWeight infer.Schedule
}

const name = "svi.SVI"

// defaultSamples is S where the configuration has none.
const defaultSamples = 8

// Defaults are 4000 updates in the warm-up, which fit the guide, and then 1000 draws from it.
func (SVI) Defaults() infer.Options { return approx.Defaults() }

// Build checks the configuration, and runs guide and model once: a guide that lacks a variable of the model, or has one
// that the model lacks, is an error that names both. The target must be that of a compiled model.
func (c SVI) Build(target infer.Target) (infer.Transform, error) {
	t := &fit{SVI: c, data: target.N()}
	if err := t.check(); err != nil {
		return nil, err
	}
	var err error
	switch program := target.Program.(type) {
	case *Program:
		t.plan, t.batch, t.point = program.plan, program.batch, program.layout
		if c.Guide != nil {
			t.plan, err = survey(program.plan.model, c.Guide, program.batch)
		}
	case *ppl.Program:
		t.batch, t.point = program.Batch(), program.Layout()
		if t.Guide == nil {
			if t.Guide, err = (guide.Normal{}).Build(program.Model(), t.batch); err != nil {
				return nil, fmt.Errorf("%s: Guide is nil: %w", name, err)
			}
		}
		if t.plan, err = survey(program.Model(), t.Guide, t.batch); err == nil {
			t.plan.likelihood = program.IsLikelihood
		}
	default:
		return nil, fmt.Errorf("%s: the target is of functions, and a guide needs the variables of a model: "+
			"ppl.Compile or svi.Compile makes a program of it: %w", name, infer.ErrConfig)
	}
	if err == nil {
		err = t.plan.holds(t.point)
	}
	if err == nil && len(t.plan.scored) > 0 {
		err = t.ELBO.scores(t.Samples)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// check fills in the defaults.
func (t *fit) check() (err error) {
	if t.ELBO == nil {
		t.ELBO = Trace{}
	}
	if t.Samples == 0 {
		t.Samples = defaultSamples
	}
	if t.Samples < 1 || t.Samples > maxSamples {
		return &infer.FieldError{Type: name, Field: "Samples", Value: t.Samples,
			Allowed: fmt.Sprintf("it must be from 1 to %d, or 0 for the default of %d", maxSamples, defaultSamples)}
	}
	if t.Temperature, err = method.CheckSchedule(name, "Temperature", t.Temperature, infer.Constant(1), 0,
		false); err != nil {
		return err
	}
	if t.KLWeight, err = method.CheckSchedule(name, "KLWeight", t.KLWeight, infer.Constant(1), 0, false); err != nil {
		return err
	}
	if err := t.ELBO.check(t.Temperature(0)); err != nil {
		return err
	}
	t.method, err = approx.Optimizer(name, t.Optimizer)
	return err
}
