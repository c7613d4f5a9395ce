package ir

import "math"

// instr is an instruction of a loop in the form that the machine runs.
type instr struct {
	Instr      // over the dimensions of a simplified space
	k     int  // its number
	va    bool // whether an operand is a vector
	vb    bool
	vc    bool

	reg    int  // the register of a vector
	direct bool // a load that is a part of its buffer, where the address allows it
	flat   bool // the address walks through a block in steps of one
	fused  bool // a product that the one instruction that reads it does
	mul    *instr
}

// scalars runs instructions at one point. It is false where an index is wrong.
func (m *memory) scalars(list []instr, at []int) bool {
	s := m.scalar
	for i := range list {
		in := &list[i]
		switch in.Op {
		case Num:
			s[in.k] = in.Num
			continue
		case Load, Coord:
			s[in.k] = in.At.load(m, at)
			continue
		case Add:
			s[in.k] = s[in.A] + s[in.B]
		case Sub:
			s[in.k] = s[in.A] - s[in.B]
		case Mul:
			s[in.k] = s[in.A] * s[in.B]
		case Div:
			s[in.k] = s[in.A] / s[in.B]
		case Exp:
			s[in.k] = math.Exp(s[in.A])
		default:
			if in.Op.Writes() {
				if !m.write(in, s[in.A], in.At.element(m, at)) {
					return false
				}
				continue
			}
			s[in.k] = Apply(in.Op, s[in.A], s[in.B], s[in.C])
		}
		if m.round != nil && in.Op.rounds() {
			s[in.k] = m.round(s[in.k])
		}
	}
	return true
}

// write does what an instruction does to one element.
func (m *memory) write(in *instr, v float64, element int) bool {
	to := &m.buf[in.At.Buf][element]
	switch in.Op {
	case StoreIndex:
		if !(v >= 0 && v < float64(in.Limit)) || v != math.Trunc(v) {
			return false
		}
		*to = v
	case Sum, ScatterAdd:
		*to = m.rounded(*to + v)
	case Prod:
		*to = m.rounded(*to * v)
	case MaxOf:
		*to = max(*to, v)
	default:
		*to = v
	}
	return true
}

// first is what a reduction starts from; the sum of nothing but -0 is -0.
func first(op Op) float64 {
	switch op {
	case Prod:
		return 1
	case MaxOf:
		return math.Inf(-1)
	}
	return math.Copysign(0, -1)
}

// start is the element at a point, without what the index adds.
func (a *Address) start(m *memory, at []int) int {
	o := a.Off + a.Turn*m.turn
	for d, s := range a.Strides {
		o += s * at[d]
	}
	return o
}

// element is the element at a point.
func (a *Address) element(m *memory, at []int) int {
	o := a.start(m, at)
	if a.Index != nil {
		o += a.Scale * int(m.buf[a.Index.Buf][a.Index.start(m, at)])
	}
	return o
}

// load is the number at a point.
func (a *Address) load(m *memory, at []int) float64 {
	if a.Buf < 0 {
		return float64(a.start(m, at))
	}
	return m.buf[a.Buf][a.element(m, at)]
}
