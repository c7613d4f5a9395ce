package infer

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/floats"
)

// mostShapes is for how many shapes of batches a gradient is compiled; others are eager.
const mostShapes = 8

// compiled are the functions of one target, by the shapes of the batches and whether the Jacobian counts.
type compiled struct {
	compilation *compilation
	free        bool // without the value
	mu          sync.Mutex
	shapes      map[string]*native.Func // nil where eager
	last        struct {
		batch    Batch
		versions []int // of its tensors: a change in place makes another
		jacobian bool
		f        *native.Func
	}
}

// versions are those of a batch's tensors, by name.
func versions(b Batch) ([]int, error) {
	var out []int
	for _, name := range b.names() {
		if torch.Freed(b[name]) {
			return nil, fmt.Errorf("batch tensor %q was freed: %w", name, ErrConfig)
		}
		out = append(out, int(b[name].T().Must_Version(false)))
	}
	return out, nil
}

// evaluate evaluates a target by native code; ok is false where that is left to eager evaluation.
func (c *compiled) evaluate(t Target, p Params, b Batch, jacobian float64) (e Evaluation, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, err := c.find(t, p, b, jacobian != 0)
	if err != nil || f == nil {
		return e, false, err
	}
	if !f.Planned() {
		if e, err = evaluateReplay(f, p, jacobian); err == nil {
			c.compilation.undefined.among(e, p)
			c.look(t, p, b, jacobian, e, 1)
		}
		return e, err == nil, nil // eager evaluation has the same bits, and the right error
	}
	if e, err = evaluateNative(f, p, jacobian); err == nil {
		c.look(t, p, b, jacobian, e, len(e.Values))
	}
	return e, true, err
}

// look compares an evaluation with the model, where that is due after n more gradients.
func (c *compiled) look(t Target, p Params, b Batch, jacobian float64, e Evaluation, n int) {
	if s := &c.compilation.spots; s.after(n) {
		s.look(t, b, func() (Params, float64, []float64, []float64, error) {
			grads, err := torch.ToSlice[float64](e.Grad)
			return p, jacobian, e.Values, grads, err
		})
	}
}

// find is the function for a point and a batch, bound to it; nil for eager evaluation.
func (c *compiled) find(t Target, p Params, b Batch, jacobian bool) (*native.Func, error) {
	now, err := versions(b)
	if err != nil {
		return nil, err
	}
	if f := c.last.f; f != nil && c.last.jacobian == jacobian && maps.Equal(c.last.batch, b) &&
		slices.Equal(now, c.last.versions) && (f.Planned() || replays(f, p)) {
		return f, nil
	}
	key, err := c.key(p, b, jacobian)
	if err != nil {
		return nil, err
	}
	f, ok := c.shapes[key]
	switch {
	case ok && f != nil:
		c.last.f = nil
		if err = f.Set(b); err != nil && !f.Planned() {
			f, err = nil, nil // eager evaluation has the right numbers, or the right error
		} else if err != nil {
			err = explained(err, t, p, b)
		}
	case !ok && len(c.shapes) < mostShapes:
		if !jacobian {
			t.LogJacobian = nil
		}
		if c.free {
			f, err = c.compilation.gradientOnly(t, p, b)
		} else {
			f, err = c.compilation.compile(t, p, b, true)
		}
		if err != nil {
			return nil, err
		}
		if c.shapes == nil {
			c.shapes = map[string]*native.Func{}
		}
		if key, err = c.key(p, b, jacobian); err != nil { // what it depends on is known now
			return nil, err
		}
		c.shapes[key] = f
	}
	if f != nil && err == nil {
		c.last.batch, c.last.versions, c.last.jacobian, c.last.f = maps.Clone(b), now, jacobian, f
	}
	return f, err
}

// explained is the error of a batch that native code cannot take: that of eager evaluation, which names the operation,
// where it has one too.
func explained(err error, t Target, p Params, b Batch) error {
	eager := torch.Do(func(*torch.Scope) error {
		_, _, _, err := differentiate(t.LogPosterior, p, b)
		return err
	})
	if eager != nil {
		return eager
	}
	return err
}

// key names what a function depends on: the shapes of the batch, and for a replay also that of the point.
func (c *compiled) key(p Params, b Batch, jacobian bool) (string, error) {
	key, err := shapesOf(b, jacobian)
	if err != nil || c.compilation.tier() != native.Replay {
		return key, err
	}
	shape, err := torch.Shape(p.Flat)
	return fmt.Sprint(key, shape, p.Flat.T().DType()), err
}

// replays says whether a replay is for points like p.
func replays(f *native.Func, p Params) bool {
	shape, err := torch.Shape(p.Flat)
	if err != nil {
		return false
	}
	device, err := torch.DeviceOf(p.Flat)
	return err == nil && f.Replays(torch.Ints(torch.Int64s(shape)), p.Flat.T().DType(), device)
}

// evaluateReplay does a recorded evaluation again, at points like those that it was recorded at.
func evaluateReplay(f *native.Func, p Params, jacobian float64) (e Evaluation, err error) {
	rows, err := p.rows()
	if err != nil {
		return e, err
	}
	flat, err := p.Flat.T().Contiguous(false)
	if err != nil {
		return e, err
	}
	var aux map[string]torch.Tensor
	if e.Value, e.Grad, aux, err = f.Tensors(torch.Of(flat), jacobian); err != nil {
		return e, err
	}
	e.Aux = aux
	e.Values, e.Norms, err = torch.ValuesAndNorms(e.Value, e.Grad, max(rows, 1))
	return e, err
}

// shapesOf names what a function depends on besides the point.
func shapesOf(b Batch, jacobian bool) (string, error) {
	key := fmt.Sprint(jacobian)
	for _, name := range b.names() {
		shape, err := torch.Shape(b[name])
		if err != nil {
			return "", fmt.Errorf("batch tensor %q: %w", name, err)
		}
		dtype, err := torch.DTypeOfTensor(b[name])
		if err != nil {
			return "", err
		}
		key += fmt.Sprintf(" %q%v%v", name, shape, dtype)
	}
	return key, nil
}

// evaluateNative runs native code at a point, of shape [d] or [K, d].
func evaluateNative(f *native.Func, p Params, jacobian float64) (e Evaluation, err error) {
	rows, err := p.rows()
	if err != nil {
		return e, err
	}
	k, d := max(rows, 1), p.Layout.Dim()
	lead := []int{}
	if rows > 0 {
		lead = []int{rows}
	}
	grad := make([]float64, k*d)
	e.Values, e.Norms = make([]float64, k), make([]float64, k)
	outputs := f.Outputs()
	aux := make([][]float64, len(outputs))
	for i, o := range outputs {
		aux[i] = make([]float64, k*o.Len())
	}
	err = torch.View(p.Flat, func(x []float64) error { return f.Rows(x, jacobian, e.Values, grad, aux) })
	if err != nil {
		return e, err
	}
	for i := range e.Norms {
		e.Norms[i] = floats.Norm(grad[i*d:(i+1)*d], 2)
	}
	if e.Value, err = torch.FromSlice(e.Values, lead...); err != nil {
		return e, err
	}
	if e.Grad, err = torch.FromSlice(grad, append(lead, d)...); err != nil {
		return e, err
	}
	for i, o := range outputs {
		if e.Aux == nil {
			e.Aux = Aux{}
		}
		if e.Aux[o.Name], err = torch.FromSlice(aux[i], append(slices.Clone(lead), o.Shape...)...); err != nil {
			return e, err
		}
	}
	return e, nil
}
