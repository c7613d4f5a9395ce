package infer

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Evaluator evaluates a target at points in the memory of Go, for methods whose chains are Go code: values alone, or
// with gradients. It evaluates [Plain] log densities too. Values of a compiled model are code without its gradient.
type Evaluator struct {
	target   Target
	scale    float64  // of the target to the sum over data
	graded   bool     // with gradients
	gradient Gradient // nil for plain Go
	external *atomic.Bool
	layout   *Layout
	batch    Batch
	device   gotch.Device
	f        *native.Func // nil where the target is evaluated as it is
}

// NewEvaluator is the evaluator of a target, which has no points yet.
func NewEvaluator(t Target, gradients bool) (*Evaluator, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	e := &Evaluator{target: t, scale: t.N(), graded: gradients, external: new(atomic.Bool)}
	if t.Parts != nil {
		e.target, e.scale = t.Summed(), 1
	}
	if t.plain != nil && !gradients {
		return e, nil
	}
	var err error
	e.gradient, err = NewGradient(e.target)
	return e, err
}

// On is the evaluator at points like p, of shape [d] or [K, d], on a batch.
func (e *Evaluator) On(p Params, b Batch) (*Evaluator, error) {
	if e == nil || e.external == nil {
		return nil, fmt.Errorf("infer.Evaluator: it is the zero value: make one with infer.NewEvaluator: %w", ErrConfig)
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	own := *e
	own.layout, own.batch, own.f = p.Layout, b, nil
	var err error
	own.device, err = torch.DeviceOf(p.Flat)
	return &own, err
}

// For is the evaluator at the points and on the batch of a job, compiled as the options of the run ask.
func (e *Evaluator) For(j Job) (*Evaluator, error) {
	own, err := e.On(j.Start, j.Batch)
	if err != nil || j.compilation == nil {
		return own, err
	}
	if e.target.plain != nil {
		j.compilation.decide(native.Report{Tier: native.Eager, Reason: "the log density is plain Go"})
		return own, nil
	}
	t := withoutAux(e.target)
	if own.f, err = j.compilation.make(t, j.Start, j.Batch, false, !e.graded); own.f != nil {
		j.compilation.spots.keep(own.f, t, j.Start, j.Batch, !e.graded)
	}
	return own, err
}

// Concurrent says that several goroutines may evaluate at once, and that a block of points costs as much as its points
// one by one. Otherwise a block is one evaluation of tensors.
func (e *Evaluator) Concurrent() bool { return e != nil && (e.target.plain != nil || e.f != nil) }

// Eval evaluates K points, x of K·d numbers row after row: N·LogPosterior + temperature·LogJacobian into values, and
// its gradients into grads, which is nil for values alone. A row at which linear algebra fails has NaN.
func (e *Evaluator) Eval(x []float64, temperature float64, values, grads []float64) error {
	if e == nil || e.layout == nil {
		return fmt.Errorf("infer.Evaluator: it has no points: make one with On or For: %w", ErrConfig)
	}
	want := 0 // of the gradients
	if e.graded {
		want = len(x)
	}
	if len(x) != len(values)*e.layout.Dim() || len(grads) != want {
		return fmt.Errorf("infer.Evaluator: %d numbers, room for %d values and %d numbers of gradients, at points of %d: %w",
			len(x), len(values), len(grads), e.layout.Dim(), ErrConfig)
	}
	if len(values) == 0 {
		return nil
	}
	if err := e.rows(x, temperature/e.scale, values, grads); err != nil {
		return err
	}
	if e.scale != 1 {
		for i := range values {
			values[i] *= e.scale
		}
		for i := range grads {
			grads[i] *= e.scale
		}
	}
	return nil
}

func (e *Evaluator) rows(x []float64, weight float64, values, grads []float64) (err error) {
	d := e.layout.Dim()
	switch {
	case e.target.plain != nil:
		for k := range values {
			if values[k], err = callPlain(e.target.plain, x[k*d:(k+1)*d]); err != nil {
				return err
			}
		}
		return nil
	case e.f != nil:
		if !e.graded {
			grads = make([]float64, len(x))
		}
		for k := range values {
			if values[k], err = e.f.Eval(x[k*d:(k+1)*d], weight, grads[k*d:(k+1)*d]); err != nil {
				return err
			}
		}
		return nil
	}
	if err = e.tensors(x, weight, values, grads); err == nil || !torch.HasNoFactors(err) {
		return err
	}
	if len(values) == 1 {
		values[0] = math.NaN()
		for i := range grads {
			grads[i] = math.NaN()
		}
		return nil
	}
	for k := range values {
		var g []float64
		if e.graded {
			g = grads[k*d : (k+1)*d]
		}
		if err := e.rows(x[k*d:(k+1)*d], weight, values[k:k+1], g); err != nil {
			return err
		}
	}
	return nil
}

// tensors evaluates all rows at once.
func (e *Evaluator) tensors(x []float64, weight float64, values, grads []float64) error {
	return torch.Do(func(*torch.Scope) error {
		flat, err := torch.FromSliceOn(e.device, gotch.Double, x, len(values), e.layout.Dim())
		if err != nil {
			return err
		}
		p := Params{Layout: e.layout, Flat: flat}
		if !e.graded && !e.external.Load() {
			var needs *External
			if err = e.plainValues(p, weight, values); !errors.As(err, &needs) {
				return err
			}
			e.external.Store(true) // its gradient comes with it
		}
		all, err := e.gradient.ValueAndGrad(p, e.batch, weight)
		if err != nil {
			return err
		}
		copy(values, all.Values)
		if e.graded {
			return torch.CopyTo(grads, all.Grad)
		}
		return nil
	})
}

// plainValues evaluates without recording gradients.
func (e *Evaluator) plainValues(p Params, weight float64, values []float64) error {
	density := e.target.Density(weight)
	err := torch.NoGrad(func() error {
		out, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			value, _ := evaluateAt(density, Params{Layout: e.layout, Flat: in[0]}, e.batch)
			return []torch.Tensor{value}, nil
		}, []torch.Tensor{p.Flat}, nil)
		if err != nil {
			return err
		}
		return torch.CopyTo(values, out[0])
	})
	if err != nil {
		return fmt.Errorf("log posterior: %w", err)
	}
	return nil
}
