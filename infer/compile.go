package infer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/floats"
)

// Compile makes native code of a target on the batch b, for points like start, of shape [d] or [K, d]. The function's
// value is LogPosterior + weight · LogJacobian; its outputs are what the log posterior gives besides. A nil function
// means eager evaluation; the report says why.
func Compile(t Target, start Params, b Batch, o native.Options) (*native.Func, native.Report, error) {
	if err := t.check(); err != nil {
		return nil, native.Report{}, err
	}
	points, err := recordingPoints(start)
	if err != nil {
		return nil, native.Report{}, err
	}
	l, names := start.Layout, b.names()
	source := native.Source{Dim: l.Dim(), Batch: b, Unfit: unfit(start)}
	source.Evaluate = func(x *ts.Tensor, batch map[string]*ts.Tensor) (values, grads []*ts.Tensor,
		aux map[string]*ts.Tensor, err error) {
		for _, f := range []LogPosterior{t.LogPosterior, t.LogJacobian} {
			if f == nil {
				continue
			}
			value, grad, more, err := differentiate(f, Params{Layout: l, Flat: x}, batch)
			if err != nil {
				return nil, nil, nil, err
			}
			values, grads = append(values, value), append(grads, grad)
			if aux == nil {
				aux = more
			}
		}
		if have := Batch(batch).names(); !slices.Equal(names, have) {
			return nil, nil, nil, fmt.Errorf("the model changed its batch from %q to %q: %w", names, have, ErrConfig)
		}
		return values, grads, aux, nil
	}
	f, report, err := native.Compile(source, points, o)
	var e *External
	if errors.As(err, &e) {
		source.Unfit = fmt.Sprintf("the density of site %q is a Go function", e.Site)
		return native.Compile(source, points, o)
	}
	return f, report, err
}

// unfit says why points cannot be those of native code; "" where they can.
func unfit(p Params) string {
	device, err := torch.DeviceOf(p.Flat)
	if err != nil {
		return err.Error()
	}
	dtype, err := torch.DTypeOfTensor(p.Flat)
	switch {
	case err != nil:
		return err.Error()
	case device != gotch.CPU:
		return fmt.Sprintf("the parameters are on the device %v", device)
	case dtype != gotch.Double:
		return fmt.Sprintf("the parameters are of type %v, not float64", dtype)
	}
	return ""
}

// recordingPoints are where an evaluation is recorded and compared: the chains' starts, at most four, and a step from
// the first in all directions, so that what depends on the point shows.
func recordingPoints(start Params) ([][]float64, error) {
	flat, err := start.Values()
	if err != nil {
		return nil, err
	}
	d := start.Layout.Dim()
	var points [][]float64
	for k := 0; k+d <= len(flat) && len(points) < 4; k += d {
		points = append(points, flat[k:k+d])
	}
	moved := slices.Clone(points[0])
	for i := range moved {
		moved[i] += 0.01 * (1 + float64(i%7)) / 7
	}
	return slices.Insert(points, 1, moved), nil
}

// differentiate evaluates a density with its gradient and aux at a single point. The tensors belong to the scope that
// is open.
func differentiate(f LogPosterior, p Params, b Batch) (value, grad *ts.Tensor, aux map[string]*ts.Tensor, err error) {
	var names []string
	value, grad, more, err := torch.ValueAndGradAux(func(flat *ts.Tensor) (*ts.Tensor, []*ts.Tensor) {
		value, aux := evaluateAt(f, Params{Layout: p.Layout, Flat: flat}, b)
		names = Batch(aux).names()
		return value, aux.sorted()
	}, p.Flat)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("log posterior: %w", err)
	}
	aux = map[string]*ts.Tensor{}
	for i, name := range names {
		aux[name] = more[i]
	}
	return value, grad, aux, nil
}

// compilation is how the gradients of a run are made, and what became of it.
type compilation struct {
	mu      sync.Mutex
	options native.Options
	pinned  native.Tier // of the checkpoint that the run goes on from
	report  native.Report
	done    bool
}

// compile is [Compile] as the run asks for it.
func (c *compilation) compile(t Target, start Params, b Batch) (*native.Func, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.options
	if c.pinned != "" && o.Tier == native.Auto {
		o.Tier = c.pinned
	}
	f, report, err := Compile(t, start, b, o)
	if err != nil {
		return nil, err
	}
	if !c.done {
		c.report, c.done = report, true
	}
	return f, c.same()
}

// gradientOnly makes native code without the value, in the tier of the code with it; nil where there is none.
func (c *compilation) gradientOnly(t Target, start Params, b Batch) (*native.Func, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.options
	o.Tier, o.ValueFree = c.report.Tier, true
	f, _, err := Compile(withoutAux(t), start, b, o)
	if errors.Is(err, native.ErrNative) {
		return nil, nil
	}
	return f, err
}

// leave notes why a run leaves its gradients to eager evaluation.
func (c *compilation) leave(reason string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if tier := c.options.Tier; tier != native.Auto && tier != native.Eager {
		return fmt.Errorf("native: %s: %w", reason, native.ErrNative)
	}
	if !c.done {
		c.report, c.done = native.Report{Tier: native.Eager, Reason: reason}, true
	}
	return c.same()
}

// pin makes a run that goes on from a checkpoint use the tier that made it.
func (c *compilation) pin(tier native.Tier) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinned = tier; tier == "" {
		c.pinned = native.Eager
	}
	return c.same()
}

// same refuses a run that goes on in another tier.
func (c *compilation) same() error {
	if c.pinned == "" || !c.done || c.report.Tier == c.pinned {
		return nil
	}
	return fmt.Errorf(
		"the checkpoint was made with gradients of the tier %q, and this run has %q (%s): their last bits differ: %w",
		c.pinned, c.report.Tier, c.report.Reason, ErrCheckpoint)
}

// eager says whether gradients are known to be eager.
func (c *compilation) eager() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done && c.report.Tier == native.Eager
}

// tier is who evaluates the gradients, Eager before the first.
func (c *compilation) tier() native.Tier {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		return native.Eager
	}
	return c.report.Tier
}

// String says who evaluates the gradients, and why.
func (c *compilation) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		return "eager: the method differentiates by itself"
	}
	return c.report.String()
}

// Compile is native code of a target on the job's batch, made as the options of the run ask, without outputs. It is nil
// where the run is eager.
func (j Job) Compile(t Target) (*native.Func, error) {
	if j.compilation == nil {
		return nil, nil
	}
	return j.compilation.compile(withoutAux(t), j.Start, j.Batch)
}

// withoutAux is a target whose log posterior gives nothing besides.
func withoutAux(t Target) Target {
	value := t.LogPosterior
	t.LogPosterior = func(p Params, b Batch) (torch.Tensor, Aux) {
		logp, _ := value(p, b)
		return logp, nil
	}
	return t
}

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
		versions []int64 // of its tensors: a change in place makes another
		jacobian bool
		f        *native.Func
	}
}

// versions are those of a batch's tensors, by name.
func versions(b Batch) ([]int64, error) {
	var out []int64
	for _, name := range b.names() {
		if torch.Freed(b[name]) {
			return nil, fmt.Errorf("batch tensor %q was freed: %w", name, ErrConfig)
		}
		out = append(out, b[name].Must_Version(false))
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
	e, err = evaluateNative(f, p, jacobian)
	return e, true, err
}

// find is the function for a point and a batch, bound to it; nil for eager evaluation.
func (c *compiled) find(t Target, p Params, b Batch, jacobian bool) (*native.Func, error) {
	now, err := versions(b)
	if err != nil {
		return nil, err
	}
	if c.last.f != nil && c.last.jacobian == jacobian && maps.Equal(c.last.batch, b) &&
		slices.Equal(now, c.last.versions) {
		return c.last.f, nil
	}
	if reason := unfit(p); reason != "" {
		return nil, c.compilation.leave(reason)
	}
	key, err := shapesOf(b, jacobian)
	if err != nil {
		return nil, err
	}
	f, ok := c.shapes[key]
	switch {
	case ok && f != nil:
		err = f.Set(b)
	case !ok && len(c.shapes) < mostShapes:
		if !jacobian {
			t.LogJacobian = nil
		}
		make := c.compilation.compile
		if c.free {
			make = c.compilation.gradientOnly
		}
		if f, err = make(t, p, b); err != nil {
			return nil, err
		}
		if c.shapes == nil {
			c.shapes = map[string]*native.Func{}
		}
		c.shapes[key] = f
	}
	if f != nil && err == nil {
		c.last.batch, c.last.versions, c.last.jacobian, c.last.f = maps.Clone(b), now, jacobian, f
	}
	return f, err
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
	k, d := int(max(rows, 1)), p.Layout.Dim()
	lead := []int64{}
	if rows > 0 {
		lead = []int64{rows}
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
	if e.Grad, err = torch.FromSlice(grad, append(lead, int64(d))...); err != nil {
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
