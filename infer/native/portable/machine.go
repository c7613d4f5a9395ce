package portable

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// code is a plan in the form that the machine runs. It has no state.
type code struct {
	plan                    *ir.Plan
	prologue, main          []step
	dims, values, registers int // of the largest step
}

// step is a part of a plan. It is false where an index of the batch is wrong.
type step interface{ run(m *memory) bool }

// repeat is steps that run Times times.
type repeat struct {
	times int
	inner []step
}

func (r repeat) run(m *memory) bool {
	defer func() { m.turn = 0 }()
	for m.turn = 0; m.turn < r.times; m.turn++ {
		for _, s := range r.inner {
			if !s.run(m) {
				return false
			}
		}
	}
	return true
}

// errCall is why a plan stays where it is.
var errCall = errors.New("portable: it calls a function in C, which cannot leave its process")

// compile takes a plan that was checked.
func compile(p *ir.Plan) (*code, error) {
	c := &code{plan: p}
	var err error
	if c.prologue, err = c.steps(p.Prologue); err != nil {
		return nil, err
	}
	c.main, err = c.steps(p.Steps)
	c.registers++ // of broadcasts
	return c, err
}

func (c *code) steps(all []ir.Step) ([]step, error) {
	var out []step
	for i := range all {
		s := &all[i]
		switch s.Kind {
		case ir.Loop:
			for _, in := range s.Body {
				if (in.Op == ir.Sum || in.Op == ir.Prod || in.Op == ir.MaxOf) && in.At.Index != nil {
					return nil, errors.New("a reduction has an index")
				}
			}
			out = append(out, c.newLoop(s))
		case ir.Repeat:
			inner, err := c.steps(s.Inner)
			if err != nil {
				return nil, err
			}
			out = append(out, repeat{s.Times, inner})
		default:
			c.dims = max(c.dims, len(s.Sizes))
			out = append(out, matrices{s})
		}
	}
	return out, nil
}

// Machine is a plan with its batch, ready to run. It is safe for concurrent use.
type Machine struct {
	code   *code
	shared [][]float64
	calls  sync.Pool
}

// Machine makes a machine of a plan: it runs what depends on the batch alone.
func (p *Plan) Machine() (*Machine, error) {
	c, err := compile(p.plan)
	if err != nil {
		return nil, fmt.Errorf("portable: %w", err)
	}
	m := c.newMemory(nil)
	for i, b := range p.plan.Buffers {
		if b.Kind == ir.Input {
			m.buf[i] = p.inputs[b.Slot]
		}
	}
	for _, s := range c.prologue {
		if !s.run(m) {
			return nil, errors.New("portable: the batch has an index that is negative, not whole, or not below the size " +
				"of what it selects from")
		}
	}
	machine := &Machine{code: c, shared: m.buf}
	machine.calls.New = func() any { return c.newMemory(machine.shared) }
	return machine, nil
}

// Dim is the number of parameters.
func (m *Machine) Dim() int { return m.code.plan.Dim }

// Eval is the value at x with the gradient in grad, both of Dim numbers: log density + weight · log |Jacobian|. It
// fills aux, a slice for each of Sites. It is NaN where the density has none.
func (m *Machine) Eval(x []float64, weight float64, grad []float64, aux [][]float64) float64 {
	plan := m.code.plan
	if len(x) != plan.Dim || len(grad) != plan.Dim || len(aux) != len(plan.Outputs) {
		panic(fmt.Sprintf("portable: %d numbers, room for %d of the gradient and %d outputs, expected %d, %d and %d",
			len(x), len(grad), len(aux), plan.Dim, plan.Dim, len(plan.Outputs)))
	}
	w := m.calls.Get().(*memory)
	defer m.calls.Put(w)
	var value []float64
	for i, b := range plan.Buffers {
		switch b.Kind {
		case ir.X:
			w.buf[i] = x
		case ir.Grad:
			w.buf[i] = grad
		case ir.Weight:
			w.buf[i][0] = weight
		case ir.Aux:
			w.buf[i] = aux[b.Slot][:b.Len]
		case ir.Value:
			value = w.buf[i]
		}
	}
	for _, s := range m.code.main {
		s.run(w)
	}
	if value == nil {
		return math.NaN()
	}
	return value[0]
}
