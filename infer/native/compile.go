package native

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/cc"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Source is a log density of one point.
type Source struct {
	Dim   int                     // the number of parameters
	Batch map[string]torch.Tensor // contiguous or not; the density gets copies of them
	// Evaluate evaluates the density at x, a float64 tensor of shape [Dim], on tensors like those of Batch: the log
	// density, and the log Jacobian where there is one, each with its gradient; and other tensors by name.
	Evaluate func(x torch.Tensor, batch map[string]torch.Tensor) (values, grads []torch.Tensor,
		aux map[string]torch.Tensor,
		err error)
	// Unfit says why the density cannot be compiled, where that is known; "" for trying.
	Unfit string

	// Point is a point of the form, type and device of those to come, [Dim] or [K, Dim], and Whole evaluates the log
	// density + weight · log Jacobian of its rows at once: a Replay repeats it. With a nil Whole there
	// is no Replay.
	Point torch.Tensor
	Whole func(x torch.Tensor, batch map[string]torch.Tensor, weight float64) (values, grads torch.Tensor,
		aux map[string]torch.Tensor, err error)
	// Unplanned says why no plan can be made of the density, so that a Replay is all there is; "" for trying.
	Unplanned string

	// Shared keeps code of earlier calls, for those whose recordings give the same plan. With nil nothing is shared.
	Shared *Cache

	exact func(x []float64) (numbers, error) // what a function is compared with; nil for Evaluate
}

// ErrNative is what errors of a density that cannot be compiled wrap, where compiling was required.
var ErrNative = errors.New("no native code")

// Compile makes a function of a density. It is recorded at the first two points, which must give the same program, and
// compared with eager evaluation at all of them. A nil Func means that evaluation is to be eager; the report says why.
// The error is of the density itself, or says what stands against the tier that was required.
func Compile(s Source, points [][]float64, o Options) (*Func, Report, error) {
	began := time.Now()
	if len(points) < 2 {
		return nil, Report{}, fmt.Errorf("%w: there are %d points; two or more are compared", ErrNative, len(points))
	}
	tier, err := o.Tier.resolve()
	if err != nil {
		return nil, Report{}, err
	}
	var f *Func
	report := Report{Tier: Eager}
	if tier == Eager {
		report.Reason = "it was asked for"
		return nil, report, nil
	}
	// The runtime must not move the goroutine: what is recorded is what its thread does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = torch.Do(func(*torch.Scope) error {
		if s.Unfit != "" {
			return &refusal{s.Unfit}
		}
		own := s
		if own.Batch, err = copies(s.Batch); err != nil {
			return err
		}
		f, err = own.compile(points, tier, o, &report)
		return err
	})
	if err == nil {
		err = f.Set(s.Batch)
	}
	report.Seconds = time.Since(began).Seconds()
	var refused *refusal
	switch {
	case err == nil:
		return f, report, nil
	case !errors.As(err, &refused):
		return nil, report, err
	}
	report.Tier, report.Reason = Eager, refused.reason
	if tier != Auto {
		return nil, report, fmt.Errorf("native: %s: %w", refused.reason, ErrNative)
	}
	return nil, report, nil
}

// compile makes the best function of a tier.
func (s Source) compile(points [][]float64, tier Tier, o Options, report *Report) (f *Func, err error) {
	reason := "it was asked for"
	if tier != Replay {
		var refused *refusal
		f, err = s.planned(points, tier, o, report)
		if err == nil || s.Whole == nil || tier == C || tier == VM || !errors.As(err, &refused) {
			return f, err
		}
		reason = refused.reason
	}
	f, err = s.replayed(o, report)
	var refused *refusal
	switch {
	case errors.As(err, &refused) && tier != Replay:
		return nil, &refusal{reason + "; replay: " + refused.reason}
	case err != nil:
		return nil, err
	}
	report.Tier, report.Reason, report.Loops, report.Error = Replay, reason, 0, 0
	return f, nil
}

// planned makes a function of a plan.
func (s Source) planned(points [][]float64, tier Tier, o Options, report *Report) (*Func, error) {
	if s.Unplanned != "" {
		return nil, &refusal{s.Unplanned}
	}
	plan, s, err := s.short(points, o)
	if err == nil && plan == nil {
		plan, err = planOf(s, points[0], points[1], o)
	}
	if err != nil {
		return nil, err
	}
	leaves := ir.Leaves(plan.Steps)
	report.Loops = len(leaves)
	report.Notes = plan.Notes
	for _, step := range plan.Steps {
		if step.Kind == ir.Repeat && !step.Blocks {
			report.OverTime++
		}
	}
	for _, step := range leaves {
		report.Ops += max(len(step.Body), 1)
	}
	f, err := s.choose(plan, points, tier, o, report)
	if err != nil {
		return nil, err
	}
	return f, write(plan, o)
}

// refusal says why a density is not compiled; it is no error of the density.
type refusal struct{ reason string }

func (r *refusal) Error() string { return "native: " + r.reason }

// choose makes the best function of a plan that gives the right numbers, of code of an earlier call where that is the
// choice.
func (s Source) choose(plan *ir.Plan, points [][]float64, tier Tier, o Options, report *Report) (*Func, error) {
	if s.Shared == nil {
		f, _, err := choose(plan, s, points, tier, o, report)
		return f, err
	}
	r := requested(tier, o)
	if had, ok := s.Shared.find(func(c *choice) bool { return c.is(plan, r) }); ok {
		if f, err := had.again(s, points, o, report); f != nil || err != nil {
			return f, err
		}
	}
	f, first, err := choose(plan, s, points, tier, o, report)
	if err != nil || !first {
		return f, err
	}
	at, err := s.digest(points)
	if err != nil {
		return nil, err
	}
	c := &choice{request: r, plan: plan, code: f.code, report: *report, checked: map[where]float64{}}
	c.check(at, report.Error)
	s.Shared.add(c)
	return f, nil
}

// choose makes the best function of a plan that gives the right numbers. First says that it is of the first tier that
// this machine has, whatever the numbers.
func choose(plan *ir.Plan, s Source, points [][]float64, tier Tier, o Options, report *Report) (f *Func, first bool,
	err error) {
	eager, err := evaluations(s, points)
	if err != nil {
		return nil, false, err
	}
	first = true
	var reasons string
	for _, try := range []struct {
		tier Tier
		make func(*ir.Plan, Options, *Report) (code, error)
	}{{C, compiled}, {VM, interpreted}} {
		if try.tier != tier && (tier == C || tier == VM) {
			continue
		}
		c, err := try.make(plan, o, report)
		if err == nil {
			if f, err = newFunc(plan, own(c)); err == nil {
				err = f.verify(s, points, eager, o, report)
			}
			if err == nil {
				report.Tier, report.Reason = try.tier, reasons
				return f, first, nil
			}
		}
		first = first && errors.Is(err, cc.ErrNoCompiler)
		if reasons != "" {
			reasons += "; "
		}
		reasons += fmt.Sprintf("%s: %v", try.tier, err)
	}
	return nil, false, &refusal{reasons}
}

// copies are tensors of the scope that is open, each with memory of its own.
func copies(batch map[string]torch.Tensor) (map[string]torch.Tensor, error) {
	out := make(map[string]torch.Tensor, len(batch))
	for name, t := range batch {
		c, err := t.T().Contiguous(false)
		if err == nil {
			out[name], err = torch.Copy(torch.Of(c))
		}
		if err != nil {
			return nil, fmt.Errorf("batch tensor %q: %w", name, err)
		}
	}
	return out, nil
}

// numbers are an evaluation in Go. The log Jacobian counts with the constant weight.
type numbers struct {
	value float64
	grad  []float64
	slack []float64 // how far value and gradient move where the point moves by rounding; nil as long as nobody asks
}

// weight is that of the log Jacobian where a function is compared with eager evaluation.
const weight = 0.75

func (s Source) numbers(x []float64) (n numbers, err error) {
	if s.exact != nil {
		return s.exact(x)
	}
	err = torch.Do(func(*torch.Scope) error {
		t, err := torch.FromSlice(x)
		if err != nil {
			return err
		}
		values, grads, _, err := s.Evaluate(t, s.Batch)
		if err != nil {
			return err
		}
		if n.value, err = torch.Item(values[0]); err != nil {
			return err
		}
		if n.grad, err = torch.ToSlice[float64](grads[0]); err != nil || len(values) < 2 {
			return err
		}
		j, err := torch.Item(values[1])
		if err != nil {
			return err
		}
		grad, err := torch.ToSlice[float64](grads[1])
		n.value += weight * j
		for i, g := range grad {
			n.grad[i] += weight * g
		}
		return err
	})
	return n, err
}

// evaluations are eager, at each point, and at the first once more after the others.
func evaluations(s Source, points [][]float64) ([]*numbers, error) {
	out := make([]*numbers, len(points))
	for k, x := range points {
		n, err := s.numbers(x)
		if err != nil {
			if k == 0 {
				return nil, err
			}
			n.value = math.NaN() // a point where the density has no value; the function must say so too
		}
		out[k] = &n
	}
	if again, err := s.numbers(points[0]); err != nil || !same(*out[0], again) {
		return nil, &refusal{"the density gives different numbers when it is evaluated twice at one point"}
	}
	return out, nil
}

// slackOf is how far element i of what is known at a point moves where the point moves by a few roundings, which tells
// what accuracy can be asked for where the density is ill-conditioned. Element 0 is the value, the others the gradient.
func (n *numbers) slackOf(i int, s Source, x []float64) float64 {
	if n.slack == nil {
		n.slack = make([]float64, len(x)+1)
		beside := make([]float64, len(x))
		for i, v := range x {
			beside[i] = v * (1 + 8*0x1p-52*float64(1-2*(i%2)))
		}
		if m, err := s.numbers(beside); err == nil {
			n.slack[0] = math.Abs(m.value - n.value)
			for i := range n.grad {
				n.slack[i+1] = math.Abs(m.grad[i] - n.grad[i])
			}
		}
	}
	return n.slack[i]
}

// same says whether two evaluations are equal, bit for bit.
func same(a, b numbers) bool {
	equal := func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) || x != x && y != y }
	return equal(a.value, b.value) && slices.EqualFunc(a.grad, b.grad, equal)
}

// tolerance is how far a compiled value may be from an eager one, in units of the largest number of its kind. Where
// eager evaluation is ill-conditioned it may be as far as rounding the point moves that, but never further than
// loosest.
const (
	tolerance = 1e-10
	loosest   = 1e-4
)

// verify compares a function with eager evaluation.
func (f *Func) verify(s Source, points [][]float64, eager []*numbers, o Options, report *Report) error {
	if err := f.Set(s.Batch); err != nil {
		return err
	}
	worst := 0.0
	for k, want := range eager {
		have := numbers{grad: make([]float64, s.Dim)}
		var err error
		if have.value, err = f.Eval(points[k], weight, have.grad); err != nil {
			return err
		}
		d, err := want.compare(s, points[k], have, o)
		if err != nil {
			return err
		}
		worst = math.Max(worst, d)
	}
	report.Error = worst
	return nil
}

// compare is the largest difference between what is known at x and what a function has there. The error says where it
// is too large.
func (n *numbers) compare(s Source, x []float64, have numbers, o Options) (worst float64, err error) {
	// near says whether element i is as near as can be asked for, at a distance d in units of the scale.
	near := func(i int, d, scale float64) bool {
		return d <= tolerance || d <= math.Min(16*n.slackOf(i, s, x)/scale, loosest)
	}
	finite := !math.IsNaN(n.value) && !math.IsInf(n.value, 0)
	wrong := func() (float64, error) {
		return 0, fmt.Errorf("its value is %v where eager evaluation gives %v", have.value, n.value)
	}
	if !finite {
		if !o.ValueFree && have.value-have.value == 0 {
			return wrong()
		}
		return 0, nil
	}
	if !o.ValueFree {
		scale := math.Max(1, math.Abs(n.value))
		if worst = math.Abs(have.value-n.value) / scale; !near(0, worst, scale) {
			return wrong()
		}
	}
	if o.GradientFree {
		return worst, nil
	}
	largest := 1e-3
	for _, g := range n.grad {
		if g-g == 0 {
			largest = math.Max(largest, math.Abs(g))
		}
	}
	for i, g := range n.grad {
		d := math.Abs(have.grad[i]-g) / largest
		both := g-g != 0 && have.grad[i]-have.grad[i] != 0
		if either := g-g != 0 || have.grad[i]-have.grad[i] != 0; !both && (either || !near(i+1, d, largest)) {
			return 0, fmt.Errorf("element %d of its gradient is %v where eager evaluation gives %v", i, have.grad[i], g)
		}
		if !both {
			worst = math.Max(worst, d)
		}
	}
	return worst, nil
}
