package fuse

// #cgo noescape kelvin_pass_run
// #cgo nocallback kelvin_pass_run
// #include "pass.h"
import "C"

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Off lets tensor operations make the updates that passes would make. It is for tests, which compare the two.
var Off atomic.Bool

// Made counts passes, so that tests know that they look at some.
var Made atomic.Int64

// Pass is one update of chains whose states are tensors, in one pass over memory: blocks of the elements go through
// the operations of a program while they are in cache, and their noise is made there. Libtorch's threads share the
// blocks; no number depends on how many they are. Roundings are those of libtorch's operations one after the other:
// sums of products with fused multiply-adds, in the precision of the tensors. Means are made in double precision.
type Pass struct {
	Dim     int
	Single  bool // precision of all tensors
	Streams torch.Streams
	Held    []bool // chains that stay where they are; nil for none
	Threads int    // at most; 0 for as many as libtorch uses

	c C.kelvin_pass
}

// Rows makes a register a tensor of a row for each chain. to gets what the update makes, nil for what it only reads. It
// may be from, where no chain is held.
func (p *Pass) Rows(r Register, from, to unsafe.Pointer) { p.set(r, C.KELVIN_ROWS, from, to) }

// Alike makes a register a tensor of one row that all chains read.
func (p *Pass) Alike(r Register, from unsafe.Pointer) { p.set(r, C.KELVIN_ALIKE, from, nil) }

// Numbers makes a register a tensor of one number for each chain, which [Program.Drift] moves.
func (p *Pass) Numbers(r Register, from, to unsafe.Pointer) { p.set(r, C.KELVIN_SINGLE, from, to) }

func (p *Pass) set(r Register, kind C.uchar, from, to unsafe.Pointer) {
	p.c.kinds[r], p.c.from[r], p.c.to[r] = kind, from, to
}

// Run makes the first update of a program, whatever it says of values and records. It returns the statistics that the
// program tells, and moves the streams on where it draws noise. The caller keeps the tensors alive.
func (p *Pass) Run(program *Program) (stats map[string][]float64) {
	Made.Add(1)
	chains := max(len(p.Streams.Chains), 1)
	p.c.chains, p.c.dim, p.c.threads = C.long(chains), C.long(p.Dim), C.int(p.Threads)
	p.c.single, p.c.noise = C.int(truth(p.Single)), C.int(program.moves[0].noise)
	p.c.seed, p.c.offset = C.uint64_t(p.Streams.Seed), C.uint64_t(p.Streams.Offset)
	p.c.count, p.c.means = C.int(len(program.ops)), C.int(program.means)
	made := 2 // numbers of a position
	if p.Single {
		made = 4
	}
	var means, partial []float64
	if program.means > 0 {
		means = make([]float64, chains*program.means)
		partial = make([]float64, chains*program.means*int(C.kelvin_pass_blocks(p.c.dim)))
	}
	C.kelvin_pass_run(&p.c, unsafe.SliceData(program.ops), (*C.uint64_t)(unsafe.SliceData(p.Streams.Chains)),
		(*C.uchar)(unsafe.Pointer(unsafe.SliceData(p.Held))), (*C.double)(unsafe.SliceData(means)),
		(*C.double)(unsafe.SliceData(partial)))
	runtime.KeepAlive(program)
	if program.moves[0].noise != 0 {
		p.Streams.Offset += uint64((p.Dim + made - 1) / made)
	}
	for _, s := range program.stats {
		if stats == nil {
			stats = make(map[string][]float64, len(program.stats))
		}
		values := make([]float64, chains)
		for k := range values {
			values[k] = means[k*program.means+s.mean]
		}
		stats[s.name] = values
	}
	return stats
}

// floats are the normal numbers of a stream in single precision, by vectors of at most 16, 8 or 1 numbers.
func floats(width int, seed, stream, offset uint64, out []float32) {
	C.kelvin_pass_normal(C.int(width), C.uint64_t(seed), C.uint64_t(stream), C.uint64_t(offset),
		C.long(len(out)), (*C.float)(&out[0]))
}
