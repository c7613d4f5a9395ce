package fuse

// #cgo CFLAGS: -O3 -I${SRCDIR}/../../native/internal/cc
// #cgo CXXFLAGS: -O3 -I${SRCDIR}/../../native/internal/cc
// #cgo LDFLAGS: -lm -ldl
// #cgo noescape kelvin_fuse_run
// #cgo nocallback kelvin_fuse_run
// #include <stdlib.h>
// #include "loop.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
)

// MostDim is the largest number of parameters whose updates are fused: above it the threads of tensor operations and
// their wide vectors are worth more than what a call of them costs.
const MostDim = 4096

// Chains are the states of K chains, in memory of C.
type Chains struct {
	Values, Norms []float64 // of each chain at the last update: what Run evaluated; the values are NaN where it did not

	k, d, stride int
	c            *C.kelvin_chains
	memory       *memory
	registers    [C.KELVIN_REGISTERS][]float64
	held         []uint8
	value, grad  *function
	gathers      []C.kelvin_gather
}

// memory are the blocks of chains.
type memory struct{ blocks []unsafe.Pointer }

// block is memory of zeros, aligned for vectors.
func (m *memory) block(bytes int) unsafe.Pointer {
	var p unsafe.Pointer
	if C.posix_memalign(&p, 64, C.size_t(max(bytes, 64))) != 0 {
		panic(fmt.Sprintf("fuse: no memory for %d bytes", bytes)) // as make would
	}
	clear(unsafe.Slice((*byte)(p), bytes))
	m.blocks = append(m.blocks, p)
	return p
}

func (m *memory) numbers(n int) []float64 { return unsafe.Slice((*float64)(m.block(8*n)), n) }

func (m *memory) free() {
	for _, p := range m.blocks {
		C.free(p)
	}
}

// New makes the states of chains with d parameters and some parts besides θ, all 0.
func New(d, parts int, streams torch.Streams) *Chains {
	m := &memory{}
	k := max(len(streams.Chains), 1)
	c := &Chains{k: k, d: d, stride: (d + 7) / 8 * 8, memory: m}
	runtime.AddCleanup(c, func(m *memory) { m.free() }, m)
	c.c = (*C.kelvin_chains)(m.block(int(unsafe.Sizeof(C.kelvin_chains{}))))
	c.c.chains, c.c.dim, c.c.stride = C.long(k), C.long(d), C.long(c.stride)
	for r := range c.registers {
		switch {
		case r == int(Theta) || r >= int(Part(0)) && r < int(Part(parts)):
			c.registers[r] = m.numbers(k * c.stride)
		case r < int(Part(0)):
			c.registers[r] = m.numbers(c.stride)
		default:
			continue
		}
		c.c.registers[r] = (*C.double)(&c.registers[r][0])
	}
	c.Values, c.Norms = m.numbers(k), m.numbers(k)
	c.c.values, c.c.norms = (*C.double)(&c.Values[0]), (*C.double)(&c.Norms[0])
	c.held = unsafe.Slice((*uint8)(m.block(k)), k)
	c.c.held = (*C.uchar)(&c.held[0])
	chains := unsafe.Slice((*uint64)(m.block(8*k)), k)
	copy(chains, streams.Chains)
	c.c.streams = (*C.uint64_t)(&chains[0])
	c.c.seed, c.c.offset = C.uint64_t(streams.Seed), C.uint64_t(streams.Offset)
	return c
}

// Set puts K rows of d numbers in a register that is θ or a part.
func (c *Chains) Set(r Register, x []float64) {
	for k := range c.k {
		copy(c.registers[r][k*c.stride:][:c.d], x[k*c.d:])
	}
}

// Get is what Set puts.
func (c *Chains) Get(r Register) []float64 {
	out := make([]float64, 0, c.k*c.d)
	for k := range c.k {
		out = append(out, c.registers[r][k*c.stride:][:c.d]...)
	}
	return out
}

// Offset is where the streams stand.
func (c *Chains) Offset() uint64 { return uint64(c.c.offset) }

// Undefined is how many updates of the last call were held at a finite value whose gradient was NaN.
func (c *Chains) Undefined() int { return int(c.c.undefined) }

// Held says whether the last update held a chain.
func (c *Chains) Held(k int) bool { return c.held[k] != 0 }

// SetHeld says so where another made that update.
func (c *Chains) SetHeld(k int, held bool) {
	c.held[k] = 0
	if held {
		c.held[k] = 1
	}
}

// function is a native function with what C needs to call it.
type function struct {
	of   *native.Func
	done func()
}

// Bind gives the functions to call: for value with gradient, and for the gradient alone, which may be the same.
func (c *Chains) Bind(value, grad *native.Func) error {
	if c.value != nil && c.value.of == value && c.grad.of == grad {
		return nil
	}
	c.Unbind()
	var err error
	if c.value, err = bind(value, &c.c.value); err != nil {
		return err
	}
	if c.grad, err = bind(grad, &c.c.grad); err != nil {
		return err
	}
	outputs := append(slices.Clone(value.Outputs()), grad.Outputs()...)
	if len(outputs) == 0 {
		return nil
	}
	at := unsafe.Slice((*unsafe.Pointer)(c.memory.block(8*len(outputs))), len(outputs))
	for i, o := range outputs {
		n := 1
		for _, s := range o.Shape {
			n *= int(s)
		}
		at[i] = c.memory.block(8 * n)
	}
	c.c.aux = (**C.double)(unsafe.Pointer(&at[0]))
	return nil
}

func bind(f *native.Func, to *C.kelvin_function) (*function, error) {
	main, prologue, call, done, err := f.Addresses()
	if err != nil {
		return nil, err
	}
	to.main, to.prologue, to.call = (C.kelvin_fn)(main), (C.kelvin_fn)(prologue), (*C.kelvin_call)(call)
	return &function{f, done}, nil
}

// Unbind gives the functions back.
func (c *Chains) Unbind() {
	for _, f := range []*function{c.value, c.grad} {
		if f != nil {
			f.done()
		}
	}
	c.value, c.grad = nil, nil
}

// Rows are the data that updates choose from: each takes rows of From and puts them one after the other in To, which
// the functions that are bound read. Both are addresses of memory that the caller keeps.
type Rows struct {
	From, To unsafe.Pointer
	Bytes    int // of a row
}

// ErrIndex is the error of a batch with an index that is out of range. The tensors that rows go to have that batch.
var ErrIndex = errors.New("the batch has an index that is negative, not whole, or not " +
	"below the size of what it selects from")

// Run makes the updates of a program. rows gets d + 3 numbers of each chain for each update that records: the point,
// the value, the norm of the gradient, and 1 where the update that led there was held, else 0. With index each update
// has size rows of data, whose numbers follow each other in index. It returns how many updates were made, and how
// many of single chains were held.
func (c *Chains) Run(p *Program, rows []float64, data []Rows, size int, index []int) (done, held int, err error) {
	if len(p.moves) == 0 {
		return 0, 0, nil
	}
	want := p.Records(len(p.moves)) * c.k * (c.d + 3)
	if len(rows) != want || index != nil && len(index) != len(p.moves)*size {
		return 0, 0, fmt.Errorf("fuse: %d numbers for draws, expected %d; %d indices for %d updates", len(rows), want,
			len(index), len(p.moves))
	}
	c.gathers = c.gathers[:0]
	for _, r := range data {
		c.gathers = append(c.gathers, C.kelvin_gather{(*C.char)(r.From), (*C.char)(r.To), C.long(r.Bytes)})
	}
	var ops *C.kelvin_op
	if len(p.ops) > 0 {
		ops = &p.ops[0]
	}
	failed := C.kelvin_fuse_run(c.c, C.long(len(p.moves)), &p.moves[0], ops, (*C.double)(unsafe.SliceData(rows)),
		C.long(len(c.gathers)), unsafe.SliceData(c.gathers), C.long(size),
		(*C.int64_t)(unsafe.Pointer(unsafe.SliceData(index))))
	runtime.KeepAlive(c)
	if failed != 0 {
		return int(failed) - 1, int(c.c.total), ErrIndex
	}
	return len(p.moves), int(c.c.total), nil
}

// normal are standard normal numbers of a stream.
func normal(seed, stream, offset uint64, out []float64) {
	C.kelvin_fuse_normal(C.uint64_t(seed), C.uint64_t(stream), C.uint64_t(offset), C.long(len(out)),
		(*C.double)(&out[0]))
}
