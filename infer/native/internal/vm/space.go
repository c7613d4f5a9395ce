package vm

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// blockLen is how many iterations a kernel runs at a time: what most bodies need then fits into the first cache, and
// the cost of calling a kernel is small.
const blockLen = 512

// space is the iteration space of a loop: outer dimensions, then, with chunk, one whose rows are taken some at a time,
// then the dimensions inside a row. A space of one block has the latter alone.
type space struct {
	sizes  []int
	outer  int  // how many dimensions are outer ones
	chunk  bool // the dimension behind them is taken some rows at a time
	one    bool // one block
	serial bool // one iteration at a time
	rows   int  // rows in a block
	inner  int  // iterations in a row
}

// maxOuter is KVM_OUTER.
const maxOuter = 6

// divide chooses the blocks of a space.
func divide(sizes []int, serial bool) (space, error) {
	n := len(sizes)
	s := space{sizes: sizes, rows: 1, inner: 1, serial: serial}
	switch {
	case n == 0 || !serial && ir.Iterations(sizes) <= blockLen:
		s.one, s.serial = true, false
		s.inner = ir.Iterations(sizes)
		return s, nil
	case serial:
		s.outer = n
	default:
		first := n
		for first > 1 && s.inner*sizes[first-1] <= blockLen {
			first--
			s.inner *= sizes[first]
		}
		s.outer = first
		if per := blockLen / s.inner; per > 1 {
			s.outer, s.chunk = first-1, true
			rows := sizes[s.outer]
			blocks := (rows + per - 1) / per
			s.rows = (rows + blocks - 1) / blocks
			if s.inner == 1 {
				s.rows = (s.rows + 7) / 8 * 8
			}
		}
	}
	if s.outer > maxOuter {
		return s, fmt.Errorf("vm: a loop over %d dimensions, %v; the machine takes %d", n, sizes, maxOuter)
	}
	return s, nil
}

// inBlock are the sizes and strides of an access inside a block.
func (s *space) inBlock(strides []int) (sizes, inside []int) {
	if s.chunk {
		return append([]int{s.rows}, s.sizes[s.outer+1:]...), strides[s.outer:]
	}
	return s.sizes[s.outer:], strides[s.outer:]
}

// flat is the distance between iterations of a block that follow each other, where there is one.
func flat(sizes, strides []int) (int, bool) {
	n := len(sizes)
	if n == 0 {
		return 1, true
	}
	for d := range n - 1 {
		if strides[d] != strides[d+1]*sizes[d+1] {
			return 0, false
		}
	}
	return strides[n-1], true
}

// level says where in a loop an instruction runs.
type level int

const (
	once level = iota
	outer
	block
)

// level is that of what depends on a set of dimensions; array says whether it varies in a block.
func (s *space) level(dims uint) (l level, array bool) {
	array = dims>>s.outer != 0
	switch {
	case s.one:
		return once, array
	case s.serial:
		return block, true
	case s.chunk && dims>>s.outer&1 != 0:
		return block, true
	case dims&(1<<s.outer-1) != 0:
		return outer, array
	}
	return once, array
}
