package hmc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// NewDensity is a log posterior on one batch as a kernel.Density: K points are one evaluation, mapped over the chains. The
// points are made on the device. A failure of a matrix factorisation inside the model is a divergence of its chain; any other error
// ends the run.
func NewDensity(logPosterior infer.LogPosterior, layout *infer.Layout, batch infer.Batch, device gotch.Device) (kernel.Density, error) {
	gradient, err := infer.NewGradient(infer.Sum(logPosterior, 1))
	if err != nil {
		return nil, fmt.Errorf("hmc: %w", err)
	}
	if layout == nil {
		return nil, fmt.Errorf("hmc: the layout is nil: %w", infer.ErrConfig)
	}
	return &density{gradient: gradient, layout: layout, batch: batch, device: device}, nil
}

type density struct {
	gradient infer.Gradient
	layout   *infer.Layout
	batch    infer.Batch
	device   gotch.Device
}

func (d *density) Dim() int { return d.layout.Dim() }

func (d *density) ValueAndGrad(x, logp, grad []float64) error {
	err := torch.Do(func(*torch.Scope) error {
		shape := []int64{int64(d.Dim())}
		if len(logp) > 1 {
			shape = []int64{int64(len(logp)), int64(d.Dim())}
		}
		flat, err := torch.FromSliceOn(d.device, gotch.Double, x, shape...)
		if err != nil {
			return err
		}
		e, err := d.gradient.ValueAndGrad(infer.Params{Layout: d.layout, Flat: flat}, d.batch, 0)
		if err != nil {
			return err
		}
		copy(logp, e.Values)
		return torch.CopyTo(grad, e.Grad)
	})
	if err != nil && factorisation(err) {
		return pointError{err}
	}
	return err
}

// pointError says that a point was bad, and not the model.
type pointError struct{ error }

func (pointError) Recoverable() bool { return true }
func (e pointError) Unwrap() error   { return e.error }

// factorisation says whether an error is of linear algebra at a matrix that has no factors: not positive-definite, singular, or without
// convergence. Libtorch has no type for it; the words are in the messages of all versions from 1.13 on.
func factorisation(err error) bool {
	var e *torch.Error
	if !errors.As(err, &e) {
		return false
	}
	text := e.Error()
	if !strings.Contains(text, "linalg") && !strings.Contains(text, "cholesky") {
		return false
	}
	for _, words := range []string{"not positive-definite", "could not be completed", "singular", "failed to converge", "ill-conditioned"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}
