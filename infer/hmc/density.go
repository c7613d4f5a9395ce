package hmc

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// gradients evaluate a target.
type gradients struct {
	n        float64        // what turns a mean into the sum that is sampled
	scale    float64        // N, or 1 where the target tells its parts, which are evaluated as sums
	whole    infer.Gradient // posterior and Jacobian together
	target   infer.Target   // of whole
	jacobian infer.Gradient // alone; nil for none
}

func newGradients(target infer.Target) (*gradients, error) {
	g := &gradients{n: target.N(), scale: target.N()}
	if target.Parts != nil {
		target = target.Summed()
		g.scale = 1
	}
	g.target = target
	var err error
	if g.whole, err = infer.NewGradient(target); err != nil {
		return nil, err
	}
	if target.LogJacobian != nil {
		g.jacobian, err = infer.NewGradient(infer.Target{LogPosterior: target.LogJacobian})
	}
	return g, err
}

// density is a target on one batch as a kernel.Density: K points are one evaluation, mapped over the chains. The
// points are made on the device. A failure of a matrix factorisation inside the model is a divergence of its chain;
// any other error ends the run.
type density struct {
	*gradients
	layout *infer.Layout
	batch  infer.Batch
	device gotch.Device
}

// tempered is a density with a Jacobian: N·LogPosterior + T·LogJacobian.
type tempered struct{ density }

// on is the target on a batch, where points are like flat.
func (g *gradients) on(p infer.Params, batch infer.Batch) (interface {
	Dim() int
	ValueAndGrad(x, logp, grad []float64) error
}, error) {
	if p.Layout == nil {
		return nil, fmt.Errorf("the layout is nil: %w", infer.ErrConfig)
	}
	device, err := torch.DeviceOf(p.Flat)
	if err != nil {
		return nil, err
	}
	d := density{gradients: g, layout: p.Layout, batch: batch, device: device}
	if g.jacobian != nil {
		return tempered{d}, nil
	}
	return d, nil
}

func (d density) Dim() int { return d.layout.Dim() }

func (d density) ValueAndGrad(x, logp, grad []float64) error {
	return d.do(x, len(logp), func(p infer.Params) error { return d.add(d.whole, p, 0, logp, grad) })
}

// ValueAndGradAt evaluates rows of one temperature together. Rows of several are evaluated as log posterior and log
// Jacobian apart.
func (d tempered) ValueAndGradAt(x, t, logp, grad []float64) error {
	return d.do(x, len(logp), func(p infer.Params) error {
		same := true
		for _, e := range t {
			same = same && e == t[0]
		}
		if same {
			return d.add(d.whole, p, t[0]/d.scale, logp, grad)
		}
		if err := d.add(d.whole, p, 0, logp, grad); err != nil {
			return err
		}
		j, jGrad := make([]float64, len(logp)), make([]float64, len(grad))
		if err := read(d.jacobian, p, d.batch, 0, j, jGrad); err != nil {
			return err
		}
		n := d.Dim()
		for k, e := range t {
			logp[k] += e * j[k]
			for i := k * n; i < (k+1)*n; i++ {
				grad[i] += e * jGrad[i]
			}
		}
		return nil
	})
}

// do calls f with the points as tensors.
func (d density) do(x []float64, rows int, f func(infer.Params) error) error {
	err := torch.Do(func(*torch.Scope) error {
		shape := []int{d.Dim()}
		if rows > 1 {
			shape = []int{rows, d.Dim()}
		}
		flat, err := torch.FromSliceOn(d.device, gotch.Double, x, shape...)
		if err != nil {
			return err
		}
		return f(infer.Params{Layout: d.layout, Flat: flat})
	})
	if err != nil && torch.HasNoFactors(err) {
		return pointError{err}
	}
	return err
}

// add sets value and gradient to N times those of a mean.
func (d density) add(g infer.Gradient, p infer.Params, jacobian float64, logp, grad []float64) error {
	if err := read(g, p, d.batch, jacobian, logp, grad); err != nil || d.scale == 1 {
		return err
	}
	for k := range logp {
		logp[k] *= d.scale
	}
	for i := range grad {
		grad[i] *= d.scale
	}
	return nil
}

func read(g infer.Gradient, p infer.Params, b infer.Batch, jacobian float64, logp, grad []float64) error {
	e, err := g.ValueAndGrad(p, b, jacobian)
	if err != nil {
		return err
	}
	copy(logp, e.Values)
	return torch.CopyTo(grad, e.Grad)
}

// pointError says that a point was bad, and not the model.
type pointError struct{ error }

func (pointError) Recoverable() bool { return true }
func (e pointError) Unwrap() error   { return e.error }

// compiled is a target as native code. Chains call it each by itself, at the same time.
type compiled struct {
	f     *native.Func
	scale float64
}

// compiledTempered is native code of a target with a Jacobian.
type compiledTempered struct{ compiled }

func (c compiled) Dim() int { return c.f.Dim() }

// Concurrent says that calls may come from several goroutines at once.
func (c compiled) Concurrent() bool { return true }

func (c compiled) ValueAndGrad(x, logp, grad []float64) error {
	d := c.f.Dim()
	for k := range logp {
		lo, hi := k*d, (k+1)*d
		if err := c.eval(&logp[k], x[lo:hi], 0, grad[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

// ValueAndGradAt evaluates each row at its temperature: N·LogPosterior + T·LogJacobian.
func (c compiledTempered) ValueAndGradAt(x, t, logp, grad []float64) error {
	d := c.f.Dim()
	for k, temperature := range t {
		lo, hi := k*d, (k+1)*d
		if err := c.eval(&logp[k], x[lo:hi], temperature/c.scale, grad[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

func (c compiled) eval(logp *float64, x []float64, weight float64, grad []float64) (err error) {
	if *logp, err = c.f.Eval(x, weight, grad); err != nil || c.scale == 1 {
		return err
	}
	for i := range grad {
		grad[i] *= c.scale
	}
	*logp *= c.scale
	return nil
}
