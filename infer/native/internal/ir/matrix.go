package ir

import "math"

// matrices is a step on matrices.
type matrices struct{ step *Step }

// operand is a matrix of one repetition.
type operand struct {
	mem      []float64
	off      int
	row, col int
}

func (o operand) at(i, j int) *float64 { return &o.mem[o.off+o.row*i+o.col*j] }

// t is the transpose.
func (o operand) t() operand { return operand{o.mem, o.off, o.col, o.row} }

func (s matrices) operand(m *memory, x *Matrix, at []int) operand {
	o := x.Off + x.Turn*m.turn
	for d, k := range x.Strides {
		o += k * at[d]
	}
	return operand{m.buf[x.Buf], o, x.Row, x.Col}
}

func (s matrices) run(m *memory) bool {
	at := m.at[:len(s.step.Sizes)]
	clear(at)
	for more := true; more; more = Next(at, s.step.Sizes) {
		out, a := s.operand(m, &s.step.Out, at), s.operand(m, &s.step.A, at)
		switch s.step.Kind {
		case MatMul:
			s.product(m, out, a, s.operand(m, &s.step.B, at))
		case Cholesky:
			m.cholesky(s.step.N, out, a)
		case Solve:
			s.solve(m, out, a, s.operand(m, &s.step.B, at))
		case Scan:
			s.scan(m, out, a)
		}
	}
	return true
}

// product is Out = A·B: row by row where rows are contiguous, else element by element.
func (s matrices) product(m *memory, out, a, b operand) {
	n, rows := s.step.N, m.round == nil && s.step.Out.Buf != s.step.A.Buf && s.step.Out.Buf != s.step.B.Buf
	for i := range s.step.M {
		from, to := 0, n
		if s.step.Upper {
			from = i
		}
		if s.step.Lower {
			to = i + 1
		}
		if rows && out.col == 1 && b.col == 1 && to > 3 {
			o := out.off + out.row*i
			d := out.mem[o : o+n]
			clear(d)
			d = d[:to]
			for k := from; k < s.step.K; k++ {
				x, o := *a.at(i, k), b.off+b.row*k
				m.operands.mulAdd(d, b.mem[o:o+to], value{number: x}, d)
			}
			continue
		}
		for j := range n {
			v := 0.0
			if j < to {
				v = m.dot(s.step.K-from, a.mem, a.off+a.row*i+a.col*from, a.col, b.mem, b.off+b.row*from+b.col*j, b.row)
			}
			*out.at(i, j) = v
		}
	}
}

// dot is Σ a·b over n elements that lie p and q apart.
func (m *memory) dot(n int, a []float64, i, p int, b []float64, j, q int) float64 {
	if n <= 0 {
		return 0
	}
	if p == 1 && q == 1 && m.round == nil {
		return dot(a[i:i+n], b[j:j+n])
	}
	s := 0.0
	for range n {
		s = m.rounded(s + a[i]*b[j])
		i, j = i+p, j+q
	}
	return s
}

// cholesky makes the lower factor, column by column.
func (m *memory) cholesky(n int, out, a operand) {
	for j := range n {
		for i := range j {
			*out.at(i, j) = 0
		}
		for i := j; i < n; i++ {
			v := *a.at(i, j) - m.dot(j, out.mem, out.off+out.row*i, out.col, out.mem, out.off+out.row*j, out.col)
			switch {
			case i > j:
				v /= *out.at(j, j)
			case v > 0:
				v = math.Sqrt(v)
			default:
				v = math.NaN() // which every later column takes over
			}
			*out.at(i, j) = m.rounded(v)
		}
	}
}

// solve is A·Out = B, or Out·A = B, for a triangular A.
func (s matrices) solve(m *memory, out, a, b operand) {
	n, lines, upper := s.step.M, s.step.N, s.step.Upper
	if s.step.Right {
		n, lines, upper = s.step.N, s.step.M, !upper
		out, a, b = out.t(), a.t(), b.t()
	}
	for line := range lines {
		for q := range n {
			i, from := q, 0
			if upper {
				i = n - 1 - q
				from = i + 1
			}
			v := *b.at(i, line) - m.dot(q, a.mem, a.off+a.row*i+a.col*from, a.col, out.mem,
				out.off+out.row*from+out.col*line, out.row)
			if !s.step.Unit {
				v /= *a.at(i, i)
			}
			*out.at(i, line) = m.rounded(v)
		}
	}
}

// scan is a running sum or product.
func (s matrices) scan(m *memory, out, a operand) {
	v := 0.0
	if s.step.Product {
		v = 1
	}
	for k := range s.step.N {
		if x := *a.at(0, k); s.step.Product {
			v *= x
		} else {
			v += x
		}
		v = m.rounded(v)
		*out.at(0, k) = v
	}
}
