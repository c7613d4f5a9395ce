package ir

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Machine runs a plan in Go: it is what a plan means, with which tests compare the back ends, and it runs plans that
// have left libtorch. It has a batch, and is safe for concurrent use.
type Machine struct {
	// Round replaces each number that is computed; nil leaves it. Where it moves numbers by their rounding, the results
	// say how many of their digits rounding decides.
	Round func(float64) float64

	plan                    *Plan
	main                    []step
	dims, values, registers int // of the largest step
	shared                  [][]float64
	prologue                []step
	early                   map[int]bool // buffers of the prologue
	gradient                bool
	calls                   *sync.Pool
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

// ErrCall is why a plan stays where it is.
var ErrCall = errors.New("it calls a function in C, which cannot leave its process")

// NewMachine takes a plan that was checked and the numbers of each of its inputs, and runs what depends on these alone.
func NewMachine(p *Plan, inputs [][]float64) (*Machine, error) {
	m := &Machine{plan: p, registers: 1} // of broadcasts
	var err error
	if m.prologue, err = m.steps(p.Prologue); err == nil {
		m.main, err = m.steps(p.Steps)
	}
	if err != nil {
		return nil, err
	}
	m.early = map[int]bool{}
	for _, s := range Leaves(p.Prologue) {
		s.Accesses(func(buf, _ int, _ bool) { m.early[buf] = true })
	}
	m.gradient = slices.ContainsFunc(p.Buffers, func(b Buffer) bool { return b.Kind == Grad })
	m.calls = &sync.Pool{New: func() any { return m.newMemory(false) }}
	return m.With(inputs)
}

// With is the machine with other inputs.
func (m *Machine) With(inputs [][]float64) (*Machine, error) {
	out := *m
	w := m.newMemory(true)
	for i, b := range m.plan.Buffers {
		if b.Kind == Input {
			w.buf[i] = inputs[b.Slot]
		}
	}
	for _, s := range m.prologue {
		if !s.run(w) {
			return nil, errors.New("the batch has an index that is negative, not whole, or not below the size of what it " +
				"selects from")
		}
	}
	out.shared = w.buf
	return &out, nil
}

// steps are steps in the form that the machine runs.
func (m *Machine) steps(all []Step) ([]step, error) {
	var out []step
	all = InOrder(all)
	for i := range all {
		s := &all[i]
		switch s.Kind {
		case Loop:
			for _, in := range s.Body {
				if in.Op.reduces() && in.At.Index != nil {
					return nil, errors.New("a reduction has an index")
				}
			}
			out = append(out, m.newLoop(s))
		case Repeat:
			inner, err := m.steps(s.Inner)
			if err != nil {
				return nil, err
			}
			out = append(out, repeat{s.Times, inner})
		case Call:
			return nil, ErrCall
		default:
			m.dims = max(m.dims, len(s.Sizes))
			out = append(out, matrices{s})
		}
	}
	return out, nil
}

// memory is what one call at a time works on. Constants, inputs and prepared numbers are shared between calls.
type memory struct {
	buf    [][]float64 // by the number of the buffer in the plan
	turn   int         // of the Repeat that runs
	at     []int       // a point of a loop's space
	scalar []float64   // values of instructions
	vector [][]float64 // likewise, of those that differ within a block
	blocks []float64   // the registers of vectors
	round  func(float64) float64
	operands
}

// newMemory makes the memory of a call, or of the prologue. It is NaN: nothing may be read before it is written.
// Indices are 0, which is within bounds, should a damaged plan read them before.
func (m *Machine) newMemory(prologue bool) *memory {
	w := &memory{buf: make([][]float64, len(m.plan.Buffers)), at: make([]int, m.dims), scalar: make([]float64, m.values),
		vector: make([][]float64, m.values), blocks: make([]float64, m.registers*blockLen)}
	for i, b := range m.plan.Buffers {
		switch {
		case b.Kind == Const:
			w.buf[i] = b.Data
		case prologue && (b.Kind == Prepared || b.Kind == Work && m.early[i]),
			!prologue && (b.Kind == Work || b.Kind == Value || b.Kind == Weight):
			w.buf[i] = make([]float64, b.Len)
			for k := range w.buf[i] {
				if b.Elem != I32 {
					w.buf[i][k] = math.NaN()
				}
			}
		}
	}
	return w
}

// register is a vector register.
func (m *memory) register(r int) []float64 {
	return m.blocks[r*blockLen : (r+1)*blockLen : (r+1)*blockLen]
}

// rounded is a computed number.
func (m *memory) rounded(x float64) float64 {
	if m.round == nil {
		return x
	}
	return m.round(x)
}

// Dim is the number of parameters.
func (m *Machine) Dim() int { return m.plan.Dim }

// Eval is the value at x with the gradient in grad, both of Dim numbers: log density + weight · log |Jacobian|. It
// fills aux, a slice for each of the plan's outputs. It is NaN where the density has none. A plan without a gradient
// takes nil for it.
func (m *Machine) Eval(x []float64, weight float64, grad []float64, aux [][]float64) float64 {
	plan := m.plan
	if len(x) != plan.Dim || len(grad) != plan.Dim && (grad != nil || m.gradient) || len(aux) != len(plan.Outputs) {
		panic(fmt.Sprintf("portable: %d numbers, room for %d of the gradient and %d outputs, expected %d, %d and %d",
			len(x), len(grad), len(aux), plan.Dim, plan.Dim, len(plan.Outputs)))
	}
	w := m.calls.Get().(*memory)
	defer m.calls.Put(w)
	w.round = m.Round
	var value []float64
	for i, b := range plan.Buffers {
		switch b.Kind {
		case Input, Prepared:
			w.buf[i] = m.shared[i]
		case X:
			w.buf[i] = x
		case Grad:
			w.buf[i] = grad
		case Weight:
			w.buf[i][0] = weight
		case Aux:
			w.buf[i] = aux[b.Slot][:b.Len]
		case Value:
			value = w.buf[i]
		}
	}
	for _, s := range m.main {
		s.run(w)
	}
	if value == nil {
		return math.NaN()
	}
	return value[0]
}
