package infer

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/kelvin-ppl/kelvin/internal/parallel"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Evaluation is a log posterior with its gradient at one point or at K.
type Evaluation struct {
	Value torch.Tensor // shape [], or [K]
	Grad  torch.Tensor // shape [d], or [K, d]
	Aux   Aux

	Values []float64 // Value in Go, K numbers
	Norms  []float64 // the Euclidean norm of each gradient
}

// Diverged says for each chain whether its density or gradient is not finite; nil when all are.
func (e Evaluation) Diverged() []bool {
	var bad []bool
	for k := range min(len(e.Values), len(e.Norms)) {
		if s := e.Values[k] + e.Norms[k]; math.IsNaN(s) || math.IsInf(s, 0) {
			if bad == nil {
				bad = make([]bool, len(e.Values))
			}
			bad[k] = true
		}
	}
	return bad
}

// Gradient gives a log posterior with its gradient. All methods ask for gradients through it.
type Gradient interface {
	// ValueAndGrad evaluates LogPosterior + jacobian · LogJacobian of a target at p, of shape [d] or [K, d]. A method at
	// temperature T gives T/N, which is 0 for an optimiser. The tensors belong to the scope that is open.
	ValueAndGrad(p Params, b Batch, jacobian float64) (Evaluation, error)
}

// NewGradient differentiates a target with libtorch's autograd, mapped over the chains. In a run it compiles the
// target, as the run's Options.Native asks; see package native.
func NewGradient(t Target) (Gradient, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if t.plain != nil {
		return nil, errPlain
	}
	a := &autograd{target: t}
	if t.compilation != nil {
		a.native = &compiled{compilation: t.compilation}
		a.free = &compiled{compilation: t.compilation, free: true}
	}
	if p, ok := t.Program.(interface{ Direct() directDensity }); ok && t.N() == 1 {
		if f := p.Direct(); f != nil {
			return &direct{autograd: a, f: f}, nil
		}
	}
	return a, nil
}

// directDensity is LogPosterior + jacobian · LogJacobian at one point in Go, which puts its gradient into grad. It is
// called from several goroutines.
type directDensity = func(x []float64, jacobian float64, grad []float64) (float64, error)

// direct evaluates a density in Go, of float64 in main memory.
type direct struct {
	*autograd
	f directDensity
}

func (d *direct) ValueAndGrad(p Params, b Batch, jacobian float64) (e Evaluation, err error) {
	dtype, err := torch.DTypeOfTensor(p.Flat)
	if err != nil {
		return e, err
	}
	if device, err := torch.DeviceOf(p.Flat); err != nil || device != torch.CPU || dtype != gotch.Double {
		return d.autograd.ValueAndGrad(p, b, jacobian)
	}
	x, err := torch.ToSlice[float64](p.Flat)
	if err != nil {
		return e, err
	}
	k, n := p.Chains(), p.Layout.Dim()
	values, grads := make([]float64, k), make([]float64, len(x))
	row := func(i int) error {
		v, err := d.f(x[i*n:(i+1)*n], jacobian, grads[i*n:(i+1)*n])
		values[i] = v
		return err
	}
	if err := parallel.Each(k, row); err != nil {
		return e, fmt.Errorf("log posterior: %w", err)
	}
	shape := []int{}
	if p.Batched() {
		shape = []int{k}
	}
	if e.Value, err = torch.FromSlice(values, shape...); err != nil {
		return e, err
	}
	if e.Grad, err = torch.FromSlice(grads, append(shape, n)...); err != nil {
		return e, err
	}
	e.Values, e.Norms, err = torch.ValuesAndNorms(e.Value, e.Grad, k)
	return e, err
}

type autograd struct {
	target   Target
	external atomic.Pointer[External] // once the log posterior has asked for it
	native   *compiled                // nil for eager evaluation
	free     *compiled                // the same without the value
}

func (a *autograd) ValueAndGrad(p Params, b Batch, jacobian float64) (Evaluation, error) {
	if a.native != nil && a.external.Load() == nil {
		if e, ok, err := a.native.evaluate(a.target, p, b, jacobian); ok || err != nil && !a.asked(err) {
			return e, err
		}
	}
	e, err := a.evaluate(p, b, jacobian)
	if err != nil && a.asked(err) {
		e, err = a.evaluate(p, b, jacobian)
	}
	return e, err
}

func (a *autograd) evaluate(p Params, b Batch, jacobian float64) (Evaluation, error) {
	rows, err := p.rows()
	if err != nil {
		return Evaluation{}, err
	}
	var names []string
	density := a.target.Density(jacobian)
	x, beside := p.Flat, columns{}
	if a.external.Load() != nil {
		if x, beside, err = a.beside(p, b, rows); err != nil {
			return Evaluation{}, fmt.Errorf("log posterior: %w", err)
		}
	}
	tie := false
	f := func(flat torch.Tensor) (torch.Tensor, []torch.Tensor) {
		var external Tensors
		if len(beside.names) > 0 {
			flat, external = beside.cut(flat)
		}
		point := Params{Layout: p.Layout, Flat: flat, External: external, alone: rows == 0, tied: tie}
		value, aux := evaluateAt(density, point, b)
		names = Batch(aux).names()
		return value, aux.sorted()
	}
	var e Evaluation
	var more []torch.Tensor
	evaluate := torch.ValueAndGradAux
	if rows > 0 {
		evaluate = torch.VmapValueAndGradAux
	}
	err = retied(func(again bool) (err error) {
		tie = again
		e.Value, e.Grad, more, err = evaluate(f, x)
		return err
	})
	if err != nil {
		return Evaluation{}, fmt.Errorf("log posterior: %w", err)
	}
	if len(beside.names) > 0 {
		if e.Grad, err = raw.Of(e.Grad.T().Narrow(-1, 0, int64(beside.sizes[0]), false)); err != nil {
			return Evaluation{}, err
		}
		if e.Grad, err = raw.Of(e.Grad.T().Contiguous(false)); err != nil {
			return Evaluation{}, err
		}
	}
	if len(names) > 0 {
		e.Aux = Aux{}
		for i, name := range names {
			e.Aux[name] = more[i]
		}
	}
	e.Values, e.Norms, err = torch.ValuesAndNorms(e.Value, e.Grad, max(rows, 1))
	if c := a.target.compilation; c != nil && err == nil {
		c.undefined.among(e, p)
	}
	return e, err
}

// evaluateAt evaluates a density at a single point, cut into its sites. It panics with an error, as a model does.
func evaluateAt(density LogPosterior, p Params, b Batch) (torch.Tensor, Aux) {
	point, err := p.Split()
	logp, aux := density(torch.Must(point, err), b)
	for _, name := range Batch(aux).names() {
		if aux[name] == (torch.Tensor{}) {
			torch.Must(logp, fmt.Errorf("it returned nil as aux %q", name))
		}
	}
	return torch.Of(logp.T()), aux
}

// sorted are the tensors in the order of their names.
func (a Aux) sorted() []torch.Tensor {
	var out []torch.Tensor
	for _, name := range Batch(a).names() {
		out = append(out, a[name])
	}
	return out
}
