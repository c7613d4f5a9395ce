package ir

import "math"

// blocks runs the instructions of a block. It is false where an index is wrong.
func (l *loop) blocks(m *memory, at []int, rows, inner int) bool {
	n := rows * inner
	for i := range l.block {
		in := &l.block[i]
		switch {
		case in.fused && m.round == nil:
		case in.direct:
			o := in.At.start(m, at)
			m.vector[in.k] = m.buf[in.At.Buf][o : o+n : o+n]
		case in.Op.Writes():
			if !m.put(in, at, rows, inner) {
				return false
			}
		case in.Op == Load || in.Op == Coord:
			m.vector[in.k] = m.register(in.reg)[:n]
			m.get(in, at, rows, inner)
		default:
			d := m.register(in.reg)[:n]
			m.vector[in.k] = d
			m.apply(in, d)
			if m.round != nil && in.Op.rounds() {
				for k, v := range d {
					d[k] = m.round(v)
				}
			}
		}
	}
	return true
}

// get loads a block.
func (m *memory) get(in *instr, at []int, rows, inner int) {
	a, d := &in.At, m.vector[in.k]
	o, last := a.start(m, at), len(at)-1
	down, along := a.Strides[last-1], a.Strides[last]
	if a.Buf < 0 {
		for i := range d {
			d[i] = float64(o + down*(i/inner) + along*(i%inner))
		}
		return
	}
	from := m.buf[a.Buf]
	if a.Index != nil {
		x, p := m.buf[a.Index.Buf], a.Index.start(m, at)
		indexDown, indexAlong := a.Index.Strides[last-1], a.Index.Strides[last]
		for r := range rows {
			q, e := p+r*indexDown, o+r*down
			for i := range inner {
				d[r*inner+i] = from[e+a.Scale*int(x[q])]
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
	a := &in.At
	o, last := a.start(m, at), len(at)-1
	down, along := a.Strides[last-1], a.Strides[last]
	to := m.buf[a.Buf]
	if in.mul != nil && m.round == nil {
		to[o] += dot(m.vector[in.mul.A][:rows*inner], m.vector[in.mul.B])
		return true
	}
	v := m.vector[in.A]
	if !in.va {
		v = m.broadcast(m.scalar[in.A], rows*inner)
	}
	switch {
	case in.Op == Store && in.flat:
		copy(to[o:], v)
		return true
	case m.round != nil:
	case in.Op == Sum && down == 0 && along == 0:
		to[o] += sum(v)
		return true
	case in.Op == Sum && along == 0:
		for r := range rows {
			to[o+r*down] += sum(v[r*inner : (r+1)*inner])
		}
		return true
	case in.Op == Sum && along == 1:
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
			if a.Index != nil {
				x := a.Index
				e += a.Scale * int(m.buf[x.Buf][x.start(m, at)+r*x.Strides[last-1]+i*x.Strides[last]])
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

// value is an operand of an instruction.
func (m *memory) value(k int, vector bool) value {
	if vector {
		return value{vector: m.vector[k]}
	}
	return value{number: m.scalar[k]}
}

// apply computes a pointwise operation.
func (m *memory) apply(in *instr, d []float64) {
	switch {
	case in.mul != nil && m.round == nil:
		m.mulAdd(in, d)
	case in.Op == Select:
		m.choose(in, d)
	case in.Op < Add:
		if !m.one(in.Op, d, m.vector[in.A][:len(d)]) {
			vectorOf(in.Op, d, m.vector[in.A][:len(d)])
		}
	case len(d) >= few && m.two(in.Op, d, m.value(in.A, in.va), m.value(in.B, in.vb)):
	case in.va && in.vb:
		vectors(in.Op, d, m.vector[in.A][:len(d)], m.vector[in.B][:len(d)])
	case in.va:
		vectorWithNumber(in.Op, d, m.vector[in.A][:len(d)], m.scalar[in.B], false)
	default:
		vectorWithNumber(in.Op, d, m.vector[in.B][:len(d)], m.scalar[in.A], true)
	}
}

// mulAdd is a sum, one of whose operands is a product that nothing else reads.
func (m *memory) mulAdd(in *instr, d []float64) {
	p, other := in.mul, in.B
	if in.A != p.k {
		other = in.A
	}
	a, b := m.value(p.A, p.va), m.value(p.B, p.vb)
	if a.vector == nil {
		a, b = b, a
	}
	m.operands.mulAdd(d, a.vector, b, m.vector[other])
}

// choose is a Select, of which any operand may be a number.
func (m *memory) choose(in *instr, d []float64) {
	if len(d) >= few && m.three(fast.choose, d, m.value(in.A, in.va), m.value(in.B, in.vb), m.value(in.C, in.vc)) {
		return
	}
	b, c := m.scalar[in.B], m.scalar[in.C]
	for i := range d {
		a := m.scalar[in.A]
		if in.va {
			a = m.vector[in.A][i]
		}
		switch {
		case a != 0 && in.vb:
			d[i] = m.vector[in.B][i]
		case a != 0:
			d[i] = b
		case in.vc:
			d[i] = m.vector[in.C][i]
		default:
			d[i] = c
		}
	}
}

// vectorOf is an operation of one operand.
func vectorOf(op Op, d, a []float64) {
	switch op {
	case Neg:
		for i, x := range a {
			d[i] = -x
		}
	case Sqrt:
		for i, x := range a {
			d[i] = math.Sqrt(x)
		}
	case Exp:
		for i, x := range a {
			d[i] = math.Exp(x)
		}
	default:
		f := unary[op]
		for i, x := range a {
			d[i] = f(x)
		}
	}
}

// vectors is an operation of two vectors.
func vectors(op Op, d, a, b []float64) {
	a, b = a[:len(d)], b[:len(d)]
	switch op {
	case Add:
		for i := range d {
			d[i] = a[i] + b[i]
		}
	case Sub:
		for i := range d {
			d[i] = a[i] - b[i]
		}
	case Mul:
		for i := range d {
			d[i] = a[i] * b[i]
		}
	case Div:
		for i := range d {
			d[i] = a[i] / b[i]
		}
	default:
		f := binary[op]
		for i := range d {
			d[i] = f(a[i], b[i])
		}
	}
}

// vectorWithNumber is an operation of a vector and a number, in whichever order.
func vectorWithNumber(op Op, d, a []float64, b float64, numberFirst bool) {
	switch {
	case op == Add:
		for i, x := range a {
			d[i] = x + b
		}
	case op == Mul:
		for i, x := range a {
			d[i] = x * b
		}
	case op == Sub && numberFirst:
		for i, x := range a {
			d[i] = b - x
		}
	case op == Sub:
		for i, x := range a {
			d[i] = x - b
		}
	case op == Div && numberFirst:
		for i, x := range a {
			d[i] = b / x
		}
	case op == Div:
		for i, x := range a {
			d[i] = x / b
		}
	case numberFirst:
		f := binary[op]
		for i, x := range a {
			d[i] = f(b, x)
		}
	default:
		f := binary[op]
		for i, x := range a {
			d[i] = f(x, b)
		}
	}
}
