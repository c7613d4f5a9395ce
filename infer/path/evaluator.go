package path

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Evaluator evaluates the targets of a path, for one program on all of its data. Any number of goroutines may use it,
// each with Points of its own.
type Evaluator struct {
	path     Path
	d        int
	layout   *infer.Layout
	wide     *infer.Layout // with β as its last coordinate
	batch    infer.Batch
	base     infer.Target // the program's
	target   infer.Target // of the point with its β
	device   gotch.Device // of the program's points
	f        *native.Func // nil where gradient evaluates
	gradient infer.Gradient
}

// Points are what is known of K points, each at its β. LogP is the log density there, up to the constant that LogZ0
// is of too; it is not finite where the density is not. Eval makes room; buffers are used again.
type Points struct {
	Beta  []float64 // [K]
	LogP  []float64 // [K], log density at β
	Slope []float64 // [K], ∂LogP/∂β
	Grad  []float64 // [K, d], ∂LogP/∂x, row after row

	wide, wideGrad []float64
}

// At is the log density of row k at another β, where the path is linear; NaN for a row that is not there.
func (p *Points) At(k int, beta float64) float64 {
	if p == nil || k < 0 || k >= min(len(p.Beta), len(p.LogP), len(p.Slope)) {
		return math.NaN()
	}
	return p.LogP[k] + (beta-p.Beta[k])*p.Slope[k]
}

// errUnbound is the error of an evaluator that nobody made.
var errUnbound = fmt.Errorf("path.Evaluator: it is the zero value: make one with Path.On: %w", infer.ErrConfig)

// mostNumbers bounds what Start draws at once, so that a mistake is no request for all memory.
const mostNumbers = 1 << 28

// Linear says whether the log density is linear in β, so that [Points.At] is exact: all but the observation path.
func (e *Evaluator) Linear() bool { return e.path.Normalizer == nil }

// Dim is d, the dimension of unconstrained space.
func (e *Evaluator) Dim() int { return e.d }

// Compiled says whether native code evaluates one row after the other, so that a block of points costs as much as its
// points one by one. Otherwise a block is one evaluation of tensors, and costs little more than a point.
func (e *Evaluator) Compiled() bool { return e.f != nil }

// Eval evaluates K points, x of K·d numbers row after row, at a β for each row or one for all. β must be from 0 to 1.
// A point outside a wall of the reference is evaluated like the others: [Evaluator.Inside] tells. A row at which
// linear algebra fails has NaN; other errors of the model are returned.
func (e *Evaluator) Eval(x, beta []float64, out *Points) error {
	if e.d < 1 {
		return errUnbound
	}
	k := len(x) / e.d
	if out == nil || k*e.d != len(x) || len(beta) != k && len(beta) != 1 {
		return fmt.Errorf("path.Eval: %d numbers and %d values of β for points of %d dimensions: %w", len(x), len(beta), e.d,
			infer.ErrConfig)
	}
	w := e.d + 1
	out.Beta, out.LogP, out.Slope = room(out.Beta, k), room(out.LogP, k), room(out.Slope, k)
	out.Grad, out.wide, out.wideGrad = room(out.Grad, k*e.d), room(out.wide, k*w), room(out.wideGrad, k*w)
	for i := range k {
		b := beta[i%len(beta)]
		if !(b >= 0 && b <= 1) {
			return &infer.FieldError{Type: "path.Evaluator", Field: "β", Value: b, Allowed: "it must be from 0 to 1"}
		}
		out.Beta[i] = b
		copy(out.wide[i*w:], x[i*e.d:(i+1)*e.d])
		out.wide[i*w+e.d] = b
	}
	if k == 0 {
		return nil
	}
	if err := e.rows(out.wide, out.LogP, out.wideGrad); err != nil {
		return fmt.Errorf("path.Eval: %w", err)
	}
	for i := range k {
		copy(out.Grad[i*e.d:(i+1)*e.d], out.wideGrad[i*w:])
		out.Slope[i] = out.wideGrad[i*w+e.d]
	}
	return nil
}

func room(s []float64, n int) []float64 { return slices.Grow(s[:0], n)[:n] }

// rows evaluates points with their β.
func (e *Evaluator) rows(x, values, grad []float64) error {
	if e.f != nil {
		return e.f.Rows(x, 0, values, grad, nil)
	}
	err := torch.Do(func(*torch.Scope) error {
		shape := []int{len(values), e.d + 1}
		flat, err := torch.FromSliceOn(e.device, gotch.Double, x, shape...)
		if err != nil {
			return err
		}
		v, err := e.gradient.ValueAndGrad(infer.Params{Layout: e.wide, Flat: flat}, e.batch, 0)
		if err != nil {
			return err
		}
		copy(values, v.Values)
		return torch.CopyTo(grad, v.Grad)
	})
	if err == nil || !torch.HasNoFactors(err) {
		return err
	}
	if len(values) == 1 {
		values[0] = math.NaN()
		for i := range grad {
			grad[i] = math.NaN()
		}
		return nil
	}
	w := e.d + 1
	for i := range values {
		if err := e.rows(x[i*w:(i+1)*w], values[i:i+1], grad[i*w:(i+1)*w]); err != nil {
			return err
		}
	}
	return nil
}

// Start draws n points at β = 0, of n·d numbers: draw i reads the stream (seed, first + i). The error of a start that
// cannot be sampled says why: of an improper prior, which site; of the full path, that it has none.
func (e *Evaluator) Start(n int, seed, first uint64) ([]float64, error) {
	switch {
	case e.d < 1:
		return nil, errUnbound
	case n < 1 || n > mostNumbers/e.d:
		return nil, &infer.FieldError{Type: "path.Evaluator", Field: "n", Value: n,
			Allowed: fmt.Sprintf("it must be at least 1, and at most %d for %d dimensions", mostNumbers/e.d, e.d)}
	case e.path.Reference != nil:
		return e.path.Reference.draw(n, seed, first)
	}
	if err := e.normalized(); err != nil {
		return nil, err
	}
	s := torch.Streams{Seed: seed, Chains: make([]uint64, n)}
	for i := range s.Chains {
		s.Chains[i] = first + uint64(i)
	}
	var x []float64
	err := torch.Do(func(*torch.Scope) error {
		p, err := e.base.Prior(e.batch, s)
		if err != nil {
			return err
		}
		x, err = p.Values()
		return err
	})
	if err == nil && len(x) != n*e.d {
		err = fmt.Errorf("Target.Prior returned %d numbers, expected [%d, %d]: %w", len(x), n, e.d, infer.ErrLayout)
	}
	if err != nil {
		return nil, fmt.Errorf("path.Start: %w", err)
	}
	return x, nil
}

// normalized returns an error unless the path starts at a prior that can be drawn from.
func (e *Evaluator) normalized() error {
	switch {
	case e.d < 1:
		return errUnbound
	case e.path.Full:
		return fmt.Errorf("%s: at β = 0 the full path has no normalizer and cannot be drawn from; walk the likelihood path, "+
			"Path{}, or from a Reference: %w", name, infer.ErrConfig)
	case e.base.Prior == nil:
		return fmt.Errorf("%s: the target does not say that its prior is normalized, so that log Z is not defined: set "+
			"infer.Target.Prior to what draws from it, compile a model, or walk from a Reference: %w", name, infer.ErrConfig)
	}
	return nil
}

// LogZ0 is log Z at β = 0: 0 for a prior, and in closed form for a reference. The error is that of [Evaluator.Start].
// An observation path starts at the prior times 1 over the number of outcomes for each datum, and has log Z0 of that
// only where the normalizer at β = 0 is the same for all θ, as it is for a classifier.
func (e *Evaluator) LogZ0() (float64, error) {
	if h := e.path.Reference; h != nil {
		return h.LogZ(), nil
	}
	if e.path.Normalizer == nil {
		if err := e.normalized(); err != nil {
			return 0, err
		}
		_, err := e.Start(1, 0, 0) // an improper prior is found by drawing
		return 0, err
	}
	const tries = 8
	x, err := e.Start(tries, 0, 0)
	if err != nil {
		return 0, err
	}
	// log density − log prior at β = 0 is −Σ log Z_i(θ, 0).
	first, err := infer.NewParams(e.layout, x[:e.d])
	if err != nil {
		return 0, err
	}
	plain, _, err := Path{}.bind(e.base, first, e.batch)
	if err != nil {
		return 0, err
	}
	if err := plain.by(nil, plain.target); err != nil {
		return 0, err
	}
	var own, prior Points
	if err := e.Eval(x, []float64{0}, &own); err != nil {
		return 0, err
	}
	if err := plain.Eval(x, []float64{0}, &prior); err != nil {
		return 0, err
	}
	z := own.LogP[0] - prior.LogP[0]
	for k := range own.LogP {
		if d := own.LogP[k] - prior.LogP[k]; !(math.Abs(d-z) <= 1e-8*(1+math.Abs(z))) {
			return 0, fmt.Errorf("%s: at β = 0 the observations' normalizer is %.6g at one point and %.6g at another, so that "+
				"the start is not the prior: the observation path of this likelihood has no known log Z0: %w", name, -z, -d,
				infer.ErrConfig)
		}
	}
	return z, nil
}

// Inside says whether a point is within the walls of the reference; without walls every point is.
func (e *Evaluator) Inside(x []float64) bool {
	if e.path.Reference == nil {
		return true
	}
	return e.path.Reference.inside(x)
}

// Walls are the reference's; nil for none.
func (e *Evaluator) Walls() (lower, upper []float64) {
	if h := e.path.Reference; h != nil {
		return h.Lower, h.Upper
	}
	return nil, nil
}
