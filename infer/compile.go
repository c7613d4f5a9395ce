package infer

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Compile makes native code of a target on the batch b, for points like start, of shape [d] or [K, d]. The function's
// value is LogPosterior + weight · LogJacobian; its outputs are what the log posterior gives besides. A nil function
// means eager evaluation; the report says why. Variables of the program that the target reads are constants of the
// code, which keeps what they are now.
func Compile(t Target, start Params, b Batch, o native.Options) (*native.Func, native.Report, error) {
	return compileFor(t, start, b, o, false)
}

// compileFor is [Compile]. Where the function is a replay, it evaluates all rows of a point at once if so asked, and
// single points otherwise; a plan evaluates both.
func compileFor(t Target, start Params, b Batch, o native.Options, rows bool) (*native.Func, native.Report, error) {
	if err := t.check(); err != nil {
		return nil, native.Report{}, err
	}
	points, err := recordingPoints(start)
	if err != nil {
		return nil, native.Report{}, err
	}
	l, names := start.Layout, b.names()
	source := native.Source{Dim: l.Dim(), Batch: b, Unplanned: unfit(start), Shared: compiledFor(l)}
	if source.Point, err = form(start, rows); err != nil {
		return nil, native.Report{}, err
	}
	unchanged := func(batch Batch) error {
		if have := batch.names(); !slices.Equal(names, have) {
			return fmt.Errorf("the model changed its batch from %q to %q: %w", names, have, ErrConfig)
		}
		return nil
	}
	source.Whole = func(x torch.Tensor, batch map[string]torch.Tensor, weight float64) (values, grads torch.Tensor,
		aux map[string]torch.Tensor, err error) {
		values, grads, aux, err = differentiate(t.Density(weight), Params{Layout: l, Flat: x}, batch)
		if err == nil {
			err = unchanged(batch)
		}
		return values, grads, aux, err
	}
	source.Evaluate = func(x torch.Tensor, batch map[string]torch.Tensor) (values, grads []torch.Tensor,
		aux map[string]torch.Tensor, err error) {
		functions := []LogPosterior{t.LogPosterior}
		if t.LogJacobian != nil {
			functions = append(functions, tied(t.LogJacobian))
		}
		for _, f := range functions {
			value, grad, more, err := differentiate(f, Params{Layout: l, Flat: x}, batch)
			if err != nil {
				return nil, nil, nil, err
			}
			values, grads = append(values, value), append(grads, grad)
			if aux == nil {
				aux = more
			}
		}
		return values, grads, aux, unchanged(batch)
	}
	f, report, err := native.Compile(source, points, o)
	var e *External
	if errors.As(err, &e) {
		source.Unfit = fmt.Sprintf("the density of site %q is a Go function", e.Site)
		return native.Compile(source, points, o)
	}
	return f, report, err
}

// codeOf has the code that was compiled for points of a layout, which is freed with it.
var codeOf sync.Map // of weak.Pointer[Layout] to *native.Cache

// compiledFor is the code that was compiled for points of a layout. Runs of one program share it: what they record says
// whether the code is theirs.
func compiledFor(l *Layout) *native.Cache {
	key := weak.Make(l)
	if code, ok := codeOf.Load(key); ok {
		return code.(*native.Cache)
	}
	code, loaded := codeOf.LoadOrStore(key, &native.Cache{})
	if !loaded {
		runtime.AddCleanup(l, func(key weak.Pointer[Layout]) { codeOf.Delete(key) }, key)
	}
	return code.(*native.Cache)
}

// form is a tensor of the form of the points that a function is asked for: all rows, or the first.
func form(start Params, rows bool) (torch.Tensor, error) {
	n, err := start.rows()
	if err != nil || rows || n == 0 {
		return start.Flat, err
	}
	return raw.Of(start.Flat.T().Select(0, 0, false))
}

// unfit says why points cannot be those of a plan; "" where they can.
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
	if _, err := start.rows(); err != nil {
		return nil, err
	}
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

// differentiate evaluates a density with its gradient and aux, at a single point or mapped over the rows. The tensors
// belong to the scope that is open.
func differentiate(f LogPosterior, p Params, b Batch) (value, grad torch.Tensor, aux map[string]torch.Tensor,
	err error) {
	rows, err := p.rows()
	if err != nil {
		return torch.Tensor{}, torch.Tensor{}, nil, err
	}
	evaluate := torch.ValueAndGradAux
	if rows > 0 {
		evaluate = torch.VmapValueAndGradAux
	}
	var names []string
	var more []torch.Tensor
	err = retied(func(tie bool) (err error) {
		value, grad, more, err = evaluate(func(flat torch.Tensor) (torch.Tensor, []torch.Tensor) {
			value, aux := evaluateAt(f, Params{Layout: p.Layout, Flat: flat, tied: tie}, b)
			names = Batch(aux).names()
			return value, aux.sorted()
		}, p.Flat)
		return err
	})
	if err != nil {
		return torch.Tensor{}, torch.Tensor{}, nil, fmt.Errorf("log posterior: %w", err)
	}
	aux = map[string]torch.Tensor{}
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

	undefined undefined // gradients of the run
	spots     spots
}

// compile is compileFor as the run asks for it.
func (c *compilation) compile(t Target, start Params, b Batch, rows bool) (*native.Func, error) {
	return c.make(t, start, b, rows, false)
}

// decide says who evaluates where nothing is compiled.
func (c *compilation) decide(r native.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		c.report, c.done = r, true
	}
}

// make is compile with values and gradients, or with values alone.
func (c *compilation) make(t Target, start Params, b Batch, rows, valueOnly bool) (*native.Func, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.options
	o.GradientFree = valueOnly
	if c.pinned != "" && o.Tier == native.Auto {
		o.Tier = c.pinned
	}
	f, report, err := compileFor(t, start, b, o, rows)
	if err != nil {
		return nil, err
	}
	if f != nil {
		f.Watch(func(x []float64) { c.undefined.see(x, 1) })
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

// undecided is the tier of a checkpoint from before the first gradient.
const undecided native.Tier = "none"

// pin makes a run that goes on from a checkpoint use the tier that made it.
func (c *compilation) pin(tier native.Tier) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch tier {
	case undecided:
	case "":
		c.pinned = native.Eager // the only tier of the checkpoints that name none
	default:
		c.pinned = tier
	}
	return c.same()
}

// toPin is the tier that a run that goes on from here has to use.
func (c *compilation) toPin() native.Tier {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.done:
		return c.report.Tier
	case c.pinned != "":
		return c.pinned
	}
	return undecided
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

// unplanned says whether gradients are known to be no plan's.
func (c *compilation) unplanned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done && (c.report.Tier == native.Eager || c.report.Tier == native.Replay)
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
	t = withoutAux(t)
	f, err := j.compilation.compile(t, j.Start, j.Batch, false)
	if f != nil {
		j.compilation.spots.keep(f, t, j.Start, j.Batch, false)
	}
	return f, err
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
