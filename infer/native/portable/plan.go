// Package portable carries compiled log densities out of libtorch: it writes their plans as bytes, reads them with
// bounds, and runs them in plain Go. It imports neither gotch nor C, so what uses it builds with CGO_ENABLED=0.
// Programs use ppl.Program.Export, which writes a [File], and package serve, which reads one.
package portable

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Plan is a compiled function with the numbers of its batch.
type Plan struct {
	plan   *ir.Plan
	inputs [][]float64 // by slot
}

// NewPlan is a plan with the numbers of its inputs, each converted to float64. Package native makes it.
func NewPlan(p *ir.Plan, inputs [][]float64) (*Plan, error) {
	if p == nil || len(inputs) != len(p.Inputs) {
		return nil, fmt.Errorf("portable: %d inputs are not those of the plan", len(inputs))
	}
	ordered := *p
	ordered.Steps = ir.InOrder(p.Steps)
	p = &ordered
	if err := bounded(p); err != nil {
		return nil, err
	}
	for i, s := range p.Inputs {
		if len(inputs[i]) != s.Len() {
			return nil, fmt.Errorf("portable: input %q has %d numbers, expected %d", s.Name, len(inputs[i]), s.Len())
		}
	}
	for _, s := range append(ir.Leaves(p.Prologue), ir.Leaves(p.Steps)...) {
		if s.Kind == ir.Call {
			return nil, fmt.Errorf("portable: %w", ir.ErrCall)
		}
	}
	for i, b := range p.Buffers {
		slots := map[ir.Kind][]ir.Slot{ir.Input: p.Inputs, ir.Aux: p.Outputs}[b.Kind]
		if slots != nil && (b.Slot < 0 || b.Slot >= len(slots) || slots[b.Slot].Len() != b.Len) {
			return nil, fmt.Errorf("portable: buffer %d is no tensor of the plan: %w", i, errBounds)
		}
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("portable: %w", err)
	}
	return &Plan{p, inputs}, nil
}

// Machine makes a machine of a plan: it runs what depends on the batch alone. It is safe for concurrent use.
func (p *Plan) Machine() (*ir.Machine, error) {
	m, err := ir.NewMachine(p.plan, p.inputs)
	if err != nil {
		return nil, fmt.Errorf("portable: %w", err)
	}
	return m, nil
}

// Sites are what the plan makes besides value and gradient: its outputs, one after the other.
func (p *Plan) Sites() (sites []draws.Site, err error) {
	offset := 0
	for _, s := range p.plan.Outputs {
		sites = append(sites, draws.Site{Name: s.Name, Shape: s.Shape, Offset: offset, Size: s.Len()})
		offset += s.Len()
	}
	_, err = draws.New(sites, nil, 1)
	return sites, err
}

// Inputs are the tensors of the batch that the function reads, each a site at 0.
func (p *Plan) Inputs() (sites []draws.Site) {
	for _, s := range p.plan.Inputs {
		sites = append(sites, draws.Site{Name: s.Name, Shape: s.Shape, Size: s.Len()})
	}
	return sites
}

// With is the plan with other numbers in the place of some inputs, by name. What a plan does not read is not looked at.
func (p *Plan) With(data map[string][]float64) (*Plan, error) {
	inputs := slices.Clone(p.inputs)
	for i, s := range p.plan.Inputs {
		v, ok := data[s.Name]
		if !ok {
			continue
		}
		if err := fill(s, v); err != nil {
			return nil, err
		}
		inputs[i] = slices.Clone(v)
	}
	return &Plan{p.plan, inputs}, nil
}

// fill makes sure that numbers are those of an input.
func fill(s ir.Slot, v []float64) error {
	if len(v) != s.Len() {
		return fmt.Errorf("portable: the data %q have %d numbers, expected %d, of shape %v", s.Name, len(v), s.Len(), s.Shape)
	}
	for k, x := range v {
		if !holds(s.Elem, x) {
			return fmt.Errorf("portable: number %d of the data %q is %v, which its type cannot hold", k, s.Name, x)
		}
	}
	return nil
}

// holds says whether elements of a type can be a number.
func holds(e ir.Elem, x float64) bool {
	switch e {
	case ir.F32:
		return x != x || float64(float32(x)) == x
	case ir.I64:
		return x >= -1<<53 && x <= 1<<53 && x == float64(int64(x))
	case ir.U8:
		return x >= 0 && x <= 255 && x == float64(uint8(x))
	}
	return true
}

// The bounds of a plan that is read: memory beside the file's own numbers, sizes, and the work of one evaluation.
const (
	maxNumbers = 1 << 27 // 1 GiB
	maxSize    = 1 << 28 // of dimensions, strides and offsets, so that sums of products fit into an int
	maxDims    = 64
	maxWork    = 1 << 42 // instructions and multiplications
	maxParts   = 1 << 21 // of a file's plan: buffers, steps, each of which counts as four, and instructions
)

var errBounds = errors.New("portable: the plan is beyond the bounds of a plan that leaves its process")

// bounded makes sure that a plan stays within the bounds; arithmetic on it cannot overflow then.
func bounded(p *ir.Plan) error {
	if p.Dim < 1 || p.Dim > maxNumbers {
		return errBounds
	}
	numbers := 0
	for _, s := range p.Outputs {
		if numbers += s.Len(); numbers > maxNumbers {
			return errBounds
		}
	}
	for _, b := range p.Buffers {
		if b.Kind > ir.Aux || b.Elem > ir.I32 || b.Len < 0 || b.Len > maxNumbers || len(b.Data) > 0 && b.Kind != ir.Const {
			return errBounds
		}
		if numbers += b.Len; numbers > maxNumbers {
			return errBounds
		}
		for _, v := range b.Data {
			if b.Elem == ir.I32 && !(v >= 0 && v < maxSize && v == float64(int(v))) {
				return errBounds
			}
		}
	}
	work := 0.0
	for _, part := range [][]ir.Step{p.Prologue, p.Steps} {
		for i := range part {
			w, ok := boundedStep(&part[i])
			if work += w; !ok || work > maxWork {
				return errBounds
			}
		}
	}
	return nil
}

func small(v ...int) bool {
	return len(v) <= maxDims && !slices.ContainsFunc(v, func(i int) bool { return i < -maxSize || i > maxSize })
}

// boundedStep is the work of a step, and whether its numbers are within the bounds.
func boundedStep(s *ir.Step) (work float64, ok bool) {
	if s.Kind > ir.Repeat || !small(s.Sizes...) || !small(s.M, s.N, s.K, s.Times) {
		return 0, false
	}
	for _, m := range []*ir.Matrix{&s.Out, &s.A, &s.B} {
		if !small(m.Strides...) || !small(m.Buf, m.Off, m.Row, m.Col, m.Turn) {
			return 0, false
		}
	}
	for i := range s.Body {
		in := &s.Body[i]
		if in.Op > ir.StoreIndex || !small(in.A, in.B, in.C, in.Dim, in.Limit) {
			return 0, false
		}
		for a := &in.At; a != nil; a = a.Index {
			if !small(a.Strides...) || !small(a.Buf, a.Off, a.Scale, a.Turn) {
				return 0, false
			}
		}
	}
	work = float64(max(len(s.Body), 1))
	if s.Kind != ir.Loop {
		m, n, k := float64(max(s.M, 1)), float64(max(s.N, 1)), float64(max(s.K, 1))
		work = m*n*k + map[ir.StepKind]float64{ir.Cholesky: n * n * n, ir.Solve: m * n * max(m, n)}[s.Kind]
	}
	for _, n := range s.Sizes {
		work *= float64(max(n, 1))
	}
	for i := range s.Inner {
		w, ok := boundedStep(&s.Inner[i])
		if work += w * float64(s.Times); !ok {
			return 0, false
		}
	}
	return work, true
}
