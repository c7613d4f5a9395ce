package portable

import "github.com/kelvin-ppl/kelvin/infer/native/internal/ir"

// memory is what one call at a time works on. Constants, inputs and prepared numbers are shared between calls.
type memory struct {
	buf    [][]float64 // by the number of the buffer in the plan
	turn   int         // of the Repeat that runs
	at     []int       // a point of a loop's space
	scalar []float64   // values of instructions
	vector [][]float64 // likewise, of those that differ within a block
	blocks []float64   // the registers of vectors
}

// newMemory makes the memory of a call. Shared are the buffers that calls share; nil makes them too.
func (c *code) newMemory(shared [][]float64) *memory {
	m := &memory{buf: make([][]float64, len(c.plan.Buffers)), at: make([]int, c.dims), scalar: make([]float64, c.values),
		vector: make([][]float64, c.values), blocks: make([]float64, c.registers*blockLen)}
	for i, b := range c.plan.Buffers {
		switch {
		case shared != nil && shares(b.Kind):
			m.buf[i] = shared[i]
		case b.Kind == ir.Const:
			m.buf[i] = b.Data
		case b.Kind != ir.Input && b.Kind != ir.X && b.Kind != ir.Grad && b.Kind != ir.Aux:
			m.buf[i] = make([]float64, b.Len)
		}
	}
	return m
}

// shares says whether calls share the buffers of a kind.
func shares(k ir.Kind) bool { return k == ir.Const || k == ir.Input || k == ir.Prepared }

// register is a vector register.
func (m *memory) register(r int) []float64 {
	return m.blocks[r*blockLen : (r+1)*blockLen : (r+1)*blockLen]
}

// address is an ir.Address over the dimensions that a loop has after simplification. A buf of -1 is a coordinate.
type address struct {
	buf, off, turn int
	strides        []int
	index          *address
	scale          int
}

func newAddress(a *ir.Address) *address {
	if a == nil {
		return nil
	}
	return &address{buf: a.Buf, off: a.Off, turn: a.Turn, strides: append([]int{}, a.Strides...),
		index: newAddress(a.Index), scale: a.Scale}
}

// start is the element at a point, without what the index adds.
func (a *address) start(m *memory, at []int) int {
	o := a.off + a.turn*m.turn
	for d, s := range a.strides {
		o += s * at[d]
	}
	return o
}

// element is the element at a point.
func (a *address) element(m *memory, at []int) int {
	o := a.start(m, at)
	if a.index != nil {
		o += a.scale * int(m.buf[a.index.buf][a.index.start(m, at)])
	}
	return o
}

// load is the number at a point.
func (a *address) load(m *memory, at []int) float64 {
	if a.buf < 0 {
		return float64(a.start(m, at))
	}
	return m.buf[a.buf][a.element(m, at)]
}

// varies says whether an address depends on a dimension from first on.
func (a *address) varies(first int) bool {
	for _, s := range a.strides[first:] {
		if s != 0 {
			return true
		}
	}
	return a.index != nil && a.index.varies(first)
}
