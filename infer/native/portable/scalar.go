package portable

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// instr is an instruction of a loop in the form that the machine runs.
type instr struct {
	op      ir.Op
	k       int // its number
	a, b, c int // those of its operands
	num     float64
	at      *address
	limit   float64

	va, vb, vc bool // whether an operand is a vector
	reg        int  // the register of a vector
	direct     bool // a load that is a part of its buffer, where the address allows it
	flat       bool // the address walks through a block in steps of one
}

// scalars runs instructions at one point. It is false where an index is wrong.
func (m *memory) scalars(list []instr, at []int) bool {
	s := m.scalar
	for i := range list {
		in := &list[i]
		switch in.op {
		case ir.Num:
			s[in.k] = in.num
		case ir.Load, ir.Coord:
			s[in.k] = in.at.load(m, at)
		case ir.Add:
			s[in.k] = s[in.a] + s[in.b]
		case ir.Sub:
			s[in.k] = s[in.a] - s[in.b]
		case ir.Mul:
			s[in.k] = s[in.a] * s[in.b]
		case ir.Div:
			s[in.k] = s[in.a] / s[in.b]
		case ir.Exp:
			s[in.k] = math.Exp(s[in.a])
		default:
			if in.op.Writes() {
				if !m.write(in, s[in.a], in.at.element(m, at)) {
					return false
				}
				continue
			}
			s[in.k] = ir.Apply(in.op, s[in.a], s[in.b], s[in.c])
		}
	}
	return true
}

// write does what an instruction does to one element.
func (m *memory) write(in *instr, v float64, element int) bool {
	to := &m.buf[in.at.buf][element]
	switch in.op {
	case ir.StoreIndex:
		if !(v >= 0 && v < in.limit) || v != math.Trunc(v) {
			return false
		}
		*to = v
	case ir.Sum, ir.ScatterAdd:
		*to += v
	case ir.Prod:
		*to *= v
	case ir.MaxOf:
		*to = ir.Apply(ir.Max, *to, v, 0)
	default:
		*to = v
	}
	return true
}

// first is what a reduction starts from; the sum of nothing but -0 is -0.
func first(op ir.Op) float64 {
	switch op {
	case ir.Prod:
		return 1
	case ir.MaxOf:
		return math.Inf(-1)
	}
	return math.Copysign(0, -1)
}
