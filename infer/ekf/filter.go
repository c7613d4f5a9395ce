package ekf

import (
	"errors"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// options are the fields that all configurations have, with the target.
type options struct {
	name     string
	target   infer.Target
	perDatum curvature.PerDatum // in place of the target's likelihood
	lr       infer.Schedule     // nil means n
	walk     walk
	sd       float64
	sds, cov torch.Tensor
	memory   int

	prior bool // the prior is the target's: the state begins at the first batch
	bayes bool // no LR is configured
}

// checked are the options with their defaults.
func (o options) checked() (options, error) {
	if o.perDatum == nil && o.target.LogPosterior == nil {
		return o, fmt.Errorf("%s: the target is empty, and PerDatum is nil: one of them is needed: %w", o.name,
			infer.ErrConfig)
	}
	o.prior = o.target.Parts != nil && o.sd == 0 && o.sds == (torch.Tensor{}) && o.cov == (torch.Tensor{})
	o.bayes = o.lr == nil
	check, memory := &method.Checks{Name: o.name}, float64(o.memory)
	if !o.bayes {
		check.Schedule("LR", &o.lr, 0, false)
	}
	o.walk.check(check)
	check.Value("InitSD", &o.sd, 1, true)
	check.Value("Memory", &memory, 0, false)
	if err := check.Err(); err != nil {
		return o, err
	}
	err := o.walk.copied(o.name)
	return o, err
}

// limits are the options of package curvature.
func (o *options) limits() curvature.Options {
	return curvature.Options{Memory: o.memory, MemoryField: o.name + ".Memory"}
}

// Name is the name of the method in checkpoints.
func (o *options) Name() string { return o.name }

// Passes is how often a fit goes over the data: once.
func (o *options) Passes() int { return 1 }

// Batches are the data one by one, in an order of the seed: a filter linearises each batch at the mean before it, so
// that all data in one batch would be taken in a single step from the prior.
func (o *options) Batches(data infer.Batch, seed uint64) (infer.Batches, error) {
	return infer.Minibatches(data, infer.MinibatchOptions{Size: 1, Seed: seed})
}

// CheckRows refuses data that a filter cannot take one by one, before a run begins.
func (o *options) CheckRows(b infer.Batch) error {
	if _, err := approx.Rows(b); err != nil {
		return fmt.Errorf("%s: %w", o.name, err)
	}
	return nil
}

// rate is ε of an update.
func (o *options) rate(step int, b infer.Batch) (float64, error) {
	if err := o.CheckRows(b); err != nil {
		return 0, err
	}
	if o.lr == nil {
		n, err := b.Size()
		return float64(n), err
	}
	lr := o.lr(step)
	return lr, method.CheckValue(o.name, fmt.Sprintf("LR at update %d", step), lr, 0, false)
}

// each is the log likelihood of each datum of a batch.
func (o *options) each(p infer.Params, b infer.Batch) curvature.PerDatum {
	switch {
	case o.perDatum != nil:
		return o.perDatum
	case o.target.Parts == nil:
		return curvature.PerSample(o.target.LogPosterior)
	}
	f, _ := approx.Data(o.target, approx.Point(p, 0), b)
	return f
}

// begin is the target's prior as a Gaussian: its mean in the shape of p, and its precision, [d, d], or [d] where it is
// diagonal.
func (o *options) begin(p infer.Params, b infer.Batch) (mean, precision torch.Tensor) {
	mean, precision, err := approx.Gaussian(approx.Prior(o.target, 1), approx.Point(p, 0), b, o.memory, o.name)
	if errors.Is(err, approx.ErrNoGaussian) || errors.Is(err, infer.ErrNonFinite) {
		approx.Fail("the prior: %w: set InitSD, and start at the prior's mean", err)
	}
	if err != nil {
		approx.Fail("the prior: %w", err)
	}
	return approx.Copy(torch.Of(mean.T().MustExpandAs(p.Flat.T(), false))), precision
}

// belief is a state: the Gaussians of K chains. Its functions are called inside torch.Do, and may panic with errors
// that it returns.
type belief[S any] interface {
	infer.State
	// from is the state with another Gaussian, of the precision [d, d], or [d] where that is diagonal.
	from(mean, precision torch.Tensor) S
	deviations(z torch.Tensor) torch.Tensor // of draws from the means, for standard normal numbers [K, d, n]
	logDet() []float64                      // the logarithm of the determinant of that map
}

// filter is the transform of all methods: they differ in their states, and in what a batch makes of one.
type filter[S belief[S]] struct {
	options
	init   func(start infer.Params) S // it and update are called inside torch.Do, and may panic with errors
	update func(s S, each curvature.PerDatum, b infer.Batch, lr, q float64) (S, infer.Info)
	// restore makes a state of saved tensors.
	restore func(p infer.Params, saved infer.Saved) (S, error)
}

func (t *filter[S]) Init(p infer.Params) (infer.State, error) {
	start, err := approx.Start(t.name, p)
	if err != nil {
		return nil, err
	}
	var s S
	err = torch.Do(func(scope *torch.Scope) error {
		if t.walk.sds != (torch.Tensor{}) {
			positive(t.name, "TransitionSDs", t.walk.sds, p, false, true)
		}
		s = t.init(start)
		method.Keep(scope, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (t *filter[S]) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[S](state, t.name)
	if err != nil {
		return nil, infer.Info{}, err
	}
	lr, err := t.rate(s.Steps(), b)
	if err != nil {
		return nil, infer.Info{}, err
	}
	q, err := t.walk.at(t.name, s.Steps())
	if err != nil {
		return nil, infer.Info{}, err
	}
	var next S
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		each := t.each(s.Position(), b) // before the prior, which cannot tell why a model fails at a part of its data
		if s.Steps() == 0 && t.prior {
			s = s.from(t.begin(s.Position(), b))
		}
		next, info = t.update(s, each, b, lr, q)
		method.Keep(scope, next)
		return nil
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return next, info, nil
}

// Sample draws from the Gaussians. With K chains draw i is of chain i mod K.
func (t *filter[S]) Sample(state infer.State, n int, streams *torch.Streams) (infer.Params, error) {
	s, err := method.StateAs[S](state, t.name)
	if err != nil {
		return infer.Params{}, err
	}
	if err := method.CheckDraws(t.name, n, streams); err != nil {
		return infer.Params{}, err
	}
	p := s.Position()
	out, err := method.DrawGaussians(p, n, p.Layout.Dim(), streams, func(eps torch.Tensor) (torch.Tensor, error) {
		return approx.T(s.deviations(approx.T(eps))), nil
	})
	if err != nil {
		return infer.Params{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return out, nil
}

// Notes compare the Gaussians with the posterior, where it is that which the filter is for.
func (t *filter[S]) Notes(state infer.State, run infer.RunSummary) []draws.Note {
	s, err := method.StateAs[S](state, t.name)
	if err != nil || !t.prior || !t.bayes || t.walk.sd(max(run.Updates-1, 0)) != 0 {
		return nil
	}
	p := s.Position()
	return approx.Closeness(approx.Fit{Name: t.name, Target: t.target, Temperature: 1, Batch: run.Batch, Mean: p,
		Width: p.Layout.Dim(),
		Map: func(eps torch.Tensor) (torch.Tensor, torch.Tensor, error) {
			return approx.T(s.deviations(approx.T(eps))), approx.Standard(eps, s.logDet()), nil
		},
		Advice: "a filter sees each datum once: use laplace.DenseHessian, vi.Dense or hmc.NUTS where all data are at hand, " +
			"or ekf.GaussNewton, which is exact where data are normal around a linear function."})
}

func (t *filter[S]) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	return t.restore(infer.Params{Layout: layout, Flat: flat}, saved)
}

// finite says whether the log likelihood of a chain and its gradient are finite: else it stays where it is.
func finite(value, norm float64) bool { return !math.IsNaN(value+norm) && !math.IsInf(value+norm, 0) }
