package irtest

import "github.com/kelvin-ppl/kelvin/infer/native/internal/ir"

// Builder makes plans in few words.
type Builder struct {
	Case
	x, grad, value int
}

// NewBuilder starts a case at the point x.
func NewBuilder(name string, x ...float64) *Builder {
	b := &Builder{Case: Case{Name: name, Plan: &ir.Plan{Dim: len(x)}, X: x, Weight: 1}}
	b.x = b.buffer(ir.Buffer{Kind: ir.X, Len: len(x)})
	b.grad = b.buffer(ir.Buffer{Kind: ir.Grad, Len: len(x)})
	b.value = b.buffer(ir.Buffer{Kind: ir.Value, Len: 1})
	return b
}

func (b *Builder) buffer(u ir.Buffer) int {
	b.Plan.Buffers = append(b.Plan.Buffers, u)
	return len(b.Plan.Buffers) - 1
}

// Const, Work, Prepared, Index, Input and Aux make buffers.
func (b *Builder) Const(data ...float64) int {
	return b.buffer(ir.Buffer{Kind: ir.Const, Len: len(data), Data: data})
}

func (b *Builder) Work(n int) int     { return b.buffer(ir.Buffer{Kind: ir.Work, Len: n}) }
func (b *Builder) Prepared(n int) int { return b.buffer(ir.Buffer{Kind: ir.Prepared, Len: n}) }

// Index is a constant array of indices.
func (b *Builder) Index(data ...float64) int {
	return b.buffer(ir.Buffer{Kind: ir.Const, Elem: ir.I32, Len: len(data), Data: data})
}

// PreparedIndex is an array of indices that the prologue fills.
func (b *Builder) PreparedIndex(n int) int {
	return b.buffer(ir.Buffer{Kind: ir.Prepared, Elem: ir.I32, Len: n})
}

func (b *Builder) Input(elem ir.Elem, data ...float64) int {
	b.Inputs = append(b.Inputs, data)
	b.Plan.Inputs = append(b.Plan.Inputs, ir.Slot{Name: "input", Elem: elem, Shape: []int{len(data)}})
	return b.buffer(ir.Buffer{Kind: ir.Input, Elem: elem, Len: len(data), Slot: len(b.Inputs) - 1})
}

func (b *Builder) Aux(n int) int {
	b.Plan.Outputs = append(b.Plan.Outputs, ir.Slot{Name: "output", Shape: []int{n}})
	return b.buffer(ir.Buffer{Kind: ir.Aux, Len: n, Slot: len(b.Plan.Outputs) - 1})
}

// Loop adds a loop to the main part.
func (b *Builder) Loop(sizes []int, fill func(*Body)) {
	body := Body{sizes: sizes}
	fill(&body)
	b.Plan.Steps = append(b.Plan.Steps, ir.Step{Sizes: sizes, Body: body.list})
}

// Before adds a loop to the prologue.
func (b *Builder) Before(sizes []int, fill func(*Body)) {
	body := Body{sizes: sizes}
	fill(&body)
	b.Plan.Prologue = append(b.Plan.Prologue, ir.Step{Sizes: sizes, Body: body.list})
}

// Step adds a step that is no loop.
func (b *Builder) Step(s ir.Step) { b.Plan.Steps = append(b.Plan.Steps, s) }

// Finish writes 0 to what a plan must write and this one does not.
func (b *Builder) Finish() Case {
	written := map[int]bool{}
	for _, s := range b.Plan.Steps {
		for _, in := range s.Body {
			if in.Op.Writes() {
				written[in.At.Buf] = true
			}
		}
	}
	for _, u := range []int{b.value, b.grad} {
		if !written[u] {
			b.Loop([]int{b.Plan.Buffers[u].Len}, func(k *Body) { k.Write(ir.Store, k.Num(0), u, 0, 1) })
		}
	}
	return b.Case
}

// Body is that of a loop.
type Body struct {
	sizes []int
	list  []ir.Instr
}

func (k *Body) add(in ir.Instr) int {
	k.list = append(k.list, in)
	return len(k.list) - 1
}

func at(buf, off int, strides []int) ir.Address {
	return ir.Address{Buf: buf, Off: off, Strides: strides}
}

func (k *Body) Num(v float64) int { return k.add(ir.Instr{Op: ir.Num, Num: v}) }
func (k *Body) Coord(dim int) int { return k.add(ir.Instr{Op: ir.Coord, Dim: dim}) }

func (k *Body) Load(buf, off int, strides ...int) int {
	return k.add(ir.Instr{Op: ir.Load, At: at(buf, off, strides)})
}

// Gather loads element off + Σ strides·i + scale·index.
func (k *Body) Gather(buf, off int, strides []int, scale int, index ir.Address) int {
	return k.add(ir.Instr{Op: ir.Load, At: ir.Address{Buf: buf, Off: off, Strides: strides, Scale: scale, Index: &index}})
}

// Op applies an operation to earlier instructions.
func (k *Body) Op(op ir.Op, operands ...int) int {
	in := ir.Instr{Op: op}
	for i, v := range operands {
		*[]*int{&in.A, &in.B, &in.C}[i] = v
	}
	return k.add(in)
}

// Write stores or reduces a value.
func (k *Body) Write(op ir.Op, value, buf, off int, strides ...int) {
	k.add(ir.Instr{Op: op, A: value, At: at(buf, off, strides)})
}

// Scatter adds a value at off + Σ strides·i + scale·index.
func (k *Body) Scatter(value, buf, off int, strides []int, scale int, index ir.Address) {
	k.add(ir.Instr{Op: ir.ScatterAdd, A: value,
		At: ir.Address{Buf: buf, Off: off, Strides: strides, Scale: scale, Index: &index}})
}

// StoreIndex stores a checked index.
func (k *Body) StoreIndex(value, buf, limit, off int, strides ...int) {
	k.add(ir.Instr{Op: ir.StoreIndex, A: value, Limit: limit, At: at(buf, off, strides)})
}
