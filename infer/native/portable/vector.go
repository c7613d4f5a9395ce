package portable

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// vectors runs the instructions of a block. It is false where an index is wrong.
func (l *loop) vectors(m *memory, at []int, rows, inner int) bool {
	n := rows * inner
	for i := range l.block {
		in := &l.block[i]
		switch {
		case in.direct:
			o := in.at.start(m, at)
			m.vector[in.k] = m.buf[in.at.buf][o : o+n : o+n]
		case in.op.Writes():
			if !m.put(in, at, rows, inner) {
				return false
			}
		case in.op == ir.Load || in.op == ir.Coord:
			m.vector[in.k] = m.register(in.reg)[:n]
			m.get(in, at, rows, inner)
		default:
			d := m.register(in.reg)[:n]
			m.vector[in.k] = d
			m.apply(in, d)
		}
	}
	return true
}

// get loads a block.
func (m *memory) get(in *instr, at []int, rows, inner int) {
	a, d := in.at, m.vector[in.k]
	o, last := a.start(m, at), len(at)-1
	down, along := a.strides[last-1], a.strides[last]
	if a.buf < 0 {
		for i := range d {
			d[i] = float64(o + down*(i/inner) + along*(i%inner))
		}
		return
	}
	from := m.buf[a.buf]
	if a.index != nil {
		x, p := m.buf[a.index.buf], a.index.start(m, at)
		indexDown, indexAlong := a.index.strides[last-1], a.index.strides[last]
		for r := range rows {
			q, e := p+r*indexDown, o+r*down
			for i := range inner {
				d[r*inner+i] = from[e+a.scale*int(x[q])]
				q, e = q+indexAlong, e+along
			}
		}
		return
	}
	for r := range rows {
		row, e := d[r*inner:(r+1)*inner], o+r*down
		switch along {
		case 0:
			v := from[e]
			for i := range row {
				row[i] = v
			}
		case 1:
			copy(row, from[e:])
		default:
			for i := range row {
				row[i] = from[e]
				e += along
			}
		}
	}
}

// put does what an instruction that writes does to the elements of a block, in the order of the loop.
func (m *memory) put(in *instr, at []int, rows, inner int) bool {
	a := in.at
	o, last := a.start(m, at), len(at)-1
	down, along := a.strides[last-1], a.strides[last]
	v := m.vector[in.a]
	if !in.va {
		v = m.broadcast(m.scalar[in.a], rows*inner)
	}
	to := m.buf[a.buf]
	switch {
	case in.op == ir.Store && in.flat:
		copy(to[o:], v)
		return true
	case in.op == ir.Sum && down == 0 && along == 0:
		to[o] += sum(v)
		return true
	case in.op == ir.Sum && along == 0:
		for r := range rows {
			to[o+r*down] += sum(v[r*inner : (r+1)*inner])
		}
		return true
	case in.op == ir.Sum && along == 1:
		for r := range rows {
			row := to[o+r*down:][:inner]
			for i, x := range v[r*inner : (r+1)*inner] {
				row[i] += x
			}
		}
		return true
	}
	for r := range rows {
		for i := range inner {
			e := o + r*down + i*along
			if a.index != nil {
				x := a.index
				e += a.scale * int(m.buf[x.buf][x.start(m, at)+r*x.strides[last-1]+i*x.strides[last]])
			}
			if !m.write(in, v[r*inner+i], e) {
				return false
			}
		}
	}
	return true
}

// broadcast is n times a number, in the last register.
func (m *memory) broadcast(v float64, n int) []float64 {
	d := m.blocks[len(m.blocks)-blockLen:][:n]
	for i := range d {
		d[i] = v
	}
	return d
}

// sum adds up in four parts, which the processor does at the same time.
func sum(v []float64) float64 {
	var a, b, c, d float64
	for ; len(v) >= 4; v = v[4:] {
		a, b, c, d = a+v[0], b+v[1], c+v[2], d+v[3]
	}
	for _, x := range v {
		a += x
	}
	return a + b + (c + d)
}

// apply computes a pointwise operation.
func (m *memory) apply(in *instr, d []float64) {
	switch {
	case in.op == ir.Select:
		m.choose(in, d)
	case in.op < ir.Add:
		unary(in.op, d, m.vector[in.a][:len(d)])
	case in.va && in.vb:
		both(in.op, d, m.vector[in.a][:len(d)], m.vector[in.b][:len(d)])
	case in.va:
		left(in.op, d, m.vector[in.a][:len(d)], m.scalar[in.b])
	default:
		right(in.op, d, m.scalar[in.a], m.vector[in.b][:len(d)])
	}
}

// choose is a Select, of which any operand may be a number.
func (m *memory) choose(in *instr, d []float64) {
	b, c := m.scalar[in.b], m.scalar[in.c]
	for i := range d {
		a := m.scalar[in.a]
		if in.va {
			a = m.vector[in.a][i]
		}
		switch {
		case a != 0 && in.vb:
			d[i] = m.vector[in.b][i]
		case a != 0:
			d[i] = b
		case in.vc:
			d[i] = m.vector[in.c][i]
		default:
			d[i] = c
		}
	}
}

// extreme is a Min or Max. Go's own know NaN, and that -0 is less than 0.
func extreme(op ir.Op, a, b float64) float64 {
	if op == ir.Min {
		return min(a, b)
	}
	return max(a, b)
}

func unary(op ir.Op, d, a []float64) {
	switch op {
	case ir.Neg:
		for i, x := range a {
			d[i] = -x
		}
	case ir.Exp:
		for i, x := range a {
			d[i] = math.Exp(x)
		}
	case ir.Sqrt:
		for i, x := range a {
			d[i] = math.Sqrt(x)
		}
	case ir.Abs:
		for i, x := range a {
			d[i] = math.Abs(x)
		}
	case ir.Log1p:
		for i, x := range a {
			d[i] = math.Log1p(x)
		}
	case ir.Log:
		for i, x := range a {
			if d[i] = math.Log(x); x < 0x1p-1022 {
				d[i] = ir.Apply(op, x, 0, 0)
			}
		}
	default:
		for i, x := range a {
			d[i] = ir.Apply(op, x, 0, 0)
		}
	}
}

func both(op ir.Op, d, a, b []float64) {
	a, b = a[:len(d)], b[:len(d)]
	switch op {
	case ir.Add:
		for i := range d {
			d[i] = a[i] + b[i]
		}
	case ir.Sub:
		for i := range d {
			d[i] = a[i] - b[i]
		}
	case ir.Mul:
		for i := range d {
			d[i] = a[i] * b[i]
		}
	case ir.Div:
		for i := range d {
			d[i] = a[i] / b[i]
		}
	case ir.Lt, ir.Le, ir.Eq:
		for i := range d {
			d[i] = 0
			if op == ir.Lt && a[i] < b[i] || op == ir.Le && a[i] <= b[i] || op == ir.Eq && a[i] == b[i] {
				d[i] = 1
			}
		}
	case ir.Min, ir.Max:
		for i := range d {
			d[i] = extreme(op, a[i], b[i])
		}
	default:
		for i := range d {
			d[i] = ir.Apply(op, a[i], b[i], 0)
		}
	}
}

func left(op ir.Op, d, a []float64, b float64) {
	switch op {
	case ir.Add:
		for i, x := range a {
			d[i] = x + b
		}
	case ir.Sub:
		for i, x := range a {
			d[i] = x - b
		}
	case ir.Mul:
		for i, x := range a {
			d[i] = x * b
		}
	case ir.Div:
		for i, x := range a {
			d[i] = x / b
		}
	case ir.Lt, ir.Le, ir.Eq:
		for i, x := range a {
			d[i] = 0
			if op == ir.Lt && x < b || op == ir.Le && x <= b || op == ir.Eq && x == b {
				d[i] = 1
			}
		}
	case ir.Min, ir.Max:
		for i, x := range a {
			d[i] = extreme(op, x, b)
		}
	default:
		for i, x := range a {
			d[i] = ir.Apply(op, x, b, 0)
		}
	}
}

func right(op ir.Op, d []float64, a float64, b []float64) {
	switch op {
	case ir.Add:
		for i, x := range b {
			d[i] = a + x
		}
	case ir.Sub:
		for i, x := range b {
			d[i] = a - x
		}
	case ir.Mul:
		for i, x := range b {
			d[i] = a * x
		}
	case ir.Div:
		for i, x := range b {
			d[i] = a / x
		}
	case ir.Lt, ir.Le, ir.Eq:
		for i, x := range b {
			d[i] = 0
			if op == ir.Lt && a < x || op == ir.Le && a <= x || op == ir.Eq && a == x {
				d[i] = 1
			}
		}
	case ir.Min, ir.Max:
		for i, x := range b {
			d[i] = extreme(op, a, x)
		}
	default:
		for i, x := range b {
			d[i] = ir.Apply(op, a, x, 0)
		}
	}
}
