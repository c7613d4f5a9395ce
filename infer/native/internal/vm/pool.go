package vm

// #include "program.h"
import "C"

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// pool is the memory of a program: numbers, tables of places, loops and instructions.
type pool struct {
	bytes   []byte
	numbers map[uint64]int
	tables  map[string]int
	iotas   int // the place of 0, 1, 2, ...
	iota    int // how many
}

func (p *pool) align(n int) int {
	for len(p.bytes)%n != 0 {
		p.bytes = append(p.bytes, 0)
	}
	return len(p.bytes)
}

func put[T any](p *pool, v ...T) int {
	at := p.align(64)
	if len(v) > 0 {
		size := int(unsafe.Sizeof(v[0])) * len(v)
		p.bytes = append(p.bytes, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), size)...)
	}
	return at
}

// number places a constant.
func (p *pool) number(v float64) place {
	key := math.Float64bits(v)
	at, ok := p.numbers[key]
	if !ok {
		at = p.align(8)
		p.bytes = binary.NativeEndian.AppendUint64(p.bytes, key)
		p.numbers[key] = at
	}
	return place{C.B_POOL, uint32(at)}
}

// table places the offsets of a block's iterations, in elements.
func (p *pool) table(sizes, strides []int) place {
	key := fmt.Sprint(sizes, strides)
	at, ok := p.tables[key]
	if !ok {
		n := ir.Iterations(sizes)
		list := make([]int64, n)
		for i := range list {
			rest := i
			for d := len(sizes) - 1; d >= 0; d-- {
				list[i] += int64(strides[d] * (rest % sizes[d]))
				rest /= sizes[d]
			}
		}
		at = put(p, list...)
		p.tables[key] = at
	}
	return place{C.B_POOL, uint32(at)}
}

// coordinates places the numbers 0 to n-1.
func (p *pool) coordinates(n int) int {
	if n > p.iota {
		list := make([]float64, n)
		for i := range list {
			list[i] = float64(i)
		}
		p.iotas, p.iota = put(p, list...), n
	}
	return p.iotas
}

// code places instructions, with an end behind them.
func (p *pool) code(list []C.kvm_instr) int {
	return put(p, append(list[:len(list):len(list)], C.kvm_instr{})...)
}

// place is the address of an operand.
type place struct {
	base uint16
	off  uint32
}
