package portable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// writer appends numbers to bytes: whole numbers as signed varints, others as their bits, little-endian.
type writer struct{ b []byte }

func (w *writer) ints(v ...int) {
	for _, i := range v {
		w.b = binary.AppendVarint(w.b, int64(i))
	}
}

func (w *writer) list(v []int) {
	w.ints(len(v))
	w.ints(v...)
}

func (w *writer) bool(v ...bool) {
	for _, x := range v {
		if x {
			w.b = append(w.b, 1)
		} else {
			w.b = append(w.b, 0)
		}
	}
}

func (w *writer) float(v float64) { w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(v)) }

// numbers are those of a buffer or a tensor, whose count the reader knows.
func (w *writer) numbers(e ir.Elem, v []float64) {
	for _, x := range v {
		switch e {
		case ir.U8:
			w.b = append(w.b, byte(x))
		case ir.I32:
			w.b = binary.LittleEndian.AppendUint32(w.b, uint32(x))
		default:
			w.float(x)
		}
	}
}

// numberBytes are those of a number.
func numberBytes(e ir.Elem) int {
	switch e {
	case ir.U8:
		return 1
	case ir.I32:
		return 4
	}
	return 8
}

func (w *writer) slot(s ir.Slot) {
	w.ints(len(s.Name))
	w.b = append(w.b, s.Name...)
	w.ints(int(s.Elem), len(s.Shape))
	for _, n := range s.Shape {
		w.ints(int(n))
	}
}

func (w *writer) address(a *ir.Address) {
	w.ints(a.Buf, a.Off, a.Turn)
	w.list(a.Strides)
	w.bool(a.Index != nil)
	if a.Index != nil {
		w.ints(a.Scale)
		w.address(a.Index)
	}
}

// reader reads what a writer wrote. After an error it gives zeros.
type reader struct {
	b     []byte
	parts int // of the plan so far
	err   error
}

// errCut says that bytes end too early, or count what is not there.
var errCut = errors.New("portable: the bytes of a plan end too early, or count more than there is")

func (r *reader) fail() { r.b, r.err = nil, errCut }

func (r *reader) int() int {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

// count is how many things of at least so many bytes follow.
func (r *reader) count(bytes int) int {
	n := r.int()
	if n < 0 || n > len(r.b)/bytes {
		r.fail()
		return 0
	}
	return n
}

// many is how many parts of a plan follow, each of some bytes and so many times as large as an instruction in memory.
func (r *reader) many(bytes, size int) int {
	n := r.count(bytes)
	if r.parts += n * size; r.parts > maxParts {
		r.fail()
		return 0
	}
	return n
}

func (r *reader) list() []int {
	n := r.count(1)
	if n > maxDims {
		r.fail()
		return nil
	}
	out := make([]int, n)
	for i := range out {
		out[i] = r.int()
	}
	return out
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail()
		return make([]byte, 8) // which is enough for a number
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) bool() bool { return r.take(1)[0] != 0 }

func (r *reader) float() float64 { return math.Float64frombits(binary.LittleEndian.Uint64(r.take(8))) }

func (r *reader) numbers(e ir.Elem, n int) []float64 {
	if size := numberBytes(e); n < 0 || n > len(r.b)/size {
		r.fail()
		return nil
	}
	out := make([]float64, n)
	for i := range out {
		switch e {
		case ir.U8:
			out[i] = float64(r.take(1)[0])
		case ir.I32:
			out[i] = float64(int32(binary.LittleEndian.Uint32(r.take(4))))
		default:
			out[i] = r.float()
		}
	}
	return out
}

func (r *reader) slot() (s ir.Slot) {
	s.Name = string(r.take(r.count(1)))
	s.Elem = ir.Elem(r.enum(int(ir.I32)))
	s.Shape = make([]int64, r.count(1))
	n := 1
	for i := range s.Shape {
		k := r.int()
		if k < 0 || k > maxNumbers || n*k > maxNumbers {
			r.fail()
			k = 0
		}
		s.Shape[i], n = int64(k), n*k
	}
	return s
}

// enum is a number from 0 to most.
func (r *reader) enum(most int) int {
	v := r.int()
	if v < 0 || v > most {
		r.fail()
		return 0
	}
	return v
}

// address reads an address; one that is an index has none.
func (r *reader) address(index bool) (a ir.Address) {
	a.Buf, a.Off, a.Turn = r.int(), r.int(), r.int()
	a.Strides = r.list()
	if r.bool() {
		if index {
			r.fail()
			return a
		}
		a.Scale = r.int()
		at := r.address(true)
		a.Index = &at
	}
	return a
}

// bytes are those of a plan. The numbers of its inputs are apart.
func (p *Plan) bytes() []byte {
	w := &writer{}
	w.ints(p.plan.Dim, len(p.plan.Buffers))
	for _, b := range p.plan.Buffers {
		w.ints(int(b.Kind), int(b.Elem), b.Len, b.Slot)
		if b.Kind == ir.Const {
			w.numbers(b.Elem, b.Data)
		}
	}
	w.ints(len(p.plan.Inputs))
	for _, s := range p.plan.Inputs {
		w.slot(s)
	}
	w.ints(len(p.plan.Outputs))
	for _, s := range p.plan.Outputs {
		w.slot(s)
	}
	w.steps(p.plan.Prologue)
	w.steps(p.plan.Steps)
	return w.b
}

// input is a tensor of the batch with its numbers.
type input struct {
	slot    ir.Slot
	numbers []float64
}

// dataBytes are those of the inputs of plans, each once.
func dataBytes(plans ...*Plan) []byte {
	var all []input
	for _, p := range plans {
		for i := 0; p != nil && i < len(p.inputs); i++ {
			s := p.plan.Inputs[i]
			if !slices.ContainsFunc(all, func(in input) bool { return in.slot.Name == s.Name }) {
				all = append(all, input{s, p.inputs[i]})
			}
		}
	}
	w := &writer{}
	w.ints(len(all))
	for _, in := range all {
		w.slot(in.slot)
		w.numbers(in.slot.Elem, in.numbers)
	}
	return w.b
}

// readData reads what dataBytes wrote, by name.
func readData(b []byte) (map[string]input, error) {
	r := &reader{b: b}
	out := map[string]input{}
	for range r.many(3, 1) {
		s := r.slot()
		out[s.Name] = input{s, r.numbers(s.Elem, s.Len())}
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail()
	}
	return out, r.err
}

// readPlan reads a plan, checks it, and makes sure that nothing follows.
func readPlan(b []byte, data map[string]input) (*Plan, error) {
	r := &reader{b: b}
	p := &ir.Plan{Dim: r.int(), Buffers: make([]ir.Buffer, r.many(4, 1))}
	for i := range p.Buffers {
		b := ir.Buffer{Kind: ir.Kind(r.enum(int(ir.Aux))), Elem: ir.Elem(r.enum(int(ir.I32))), Len: r.int(), Slot: r.int()}
		if b.Kind == ir.Const {
			b.Data = r.numbers(b.Elem, b.Len)
		}
		p.Buffers[i] = b
	}
	p.Inputs = make([]ir.Slot, r.many(3, 1))
	inputs := make([][]float64, len(p.Inputs))
	for i := range p.Inputs {
		s := r.slot()
		in, ok := data[s.Name]
		if r.err == nil && (!ok || in.slot.Elem != s.Elem || !slices.Equal(in.slot.Shape, s.Shape)) {
			return nil, fmt.Errorf("portable: the data have no %q of shape %v", s.Name, s.Shape)
		}
		p.Inputs[i], inputs[i] = s, in.numbers
	}
	p.Outputs = make([]ir.Slot, r.many(3, 1))
	for i := range p.Outputs {
		p.Outputs[i] = r.slot()
	}
	p.Prologue, p.Steps = r.steps(false), r.steps(false)
	if r.err == nil && len(r.b) > 0 {
		r.fail()
	}
	if r.err != nil {
		return nil, r.err
	}
	out, err := NewPlan(p, inputs)
	if err != nil {
		return nil, err
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
	return out, nil
}
