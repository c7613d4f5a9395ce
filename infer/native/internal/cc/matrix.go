package cc

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// dense says whether a step is so large that a call of kelvin_dense is faster than code of its own.
func dense(s *ir.Step) bool {
	switch s.Kind {
	case ir.MatMul:
		return s.Upper || s.Lower || min(s.M, s.N) >= 4 && s.M*s.N*s.K >= 1<<13
	case ir.Cholesky:
		return s.N >= 24 && s.Out.Col == 1
	case ir.Solve:
		n, lines := s.M, s.N
		if s.Right {
			n, lines = lines, n
		}
		return lines >= 8 && n >= 8 && n*n*lines >= 1<<12
	}
	return false
}

// call writes a step as a call of kelvin_dense.
func (o operands) call() {
	s := o.s
	at := func(m ir.Matrix, row, col int) string {
		return fmt.Sprintf("&%s, %d, %d", o.at(m, "0", "0"), row, col)
	}
	upright := func(m ir.Matrix) string { return at(m, m.Row, m.Col) }
	switch {
	case s.Kind == ir.MatMul:
		o.f.line("dense->product(%d, %d, %d, %d, %d, %s, %s, %s);", s.M, s.N, s.K, bit(s.Upper), bit(s.Lower),
			upright(s.A), upright(s.B), upright(s.Out))
	case s.Kind == ir.Cholesky:
		o.f.line("dense->cholesky(%d, %s, &%s, %d);", s.N, upright(s.A), o.at(s.Out, "0", "0"), s.Out.Row)
	case s.Right: // Out·A = B is Aᵀ·Outᵀ = Bᵀ
		turned := func(m ir.Matrix) string { return at(m, m.Col, m.Row) }
		o.f.line("dense->solve(%d, %d, %d, %d, %s, %s, %s);", s.N, s.M, bit(!s.Upper), bit(s.Unit), turned(s.A),
			turned(s.B), turned(s.Out))
	default:
		o.f.line("dense->solve(%d, %d, %d, %d, %s, %s, %s);", s.M, s.N, bit(s.Upper), bit(s.Unit), upright(s.A),
			upright(s.B), upright(s.Out))
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// matrix writes a step on matrices, repeated over its space.
func (f *function) matrix(i int, s *ir.Step) error {
	var vars []string
	for d, n := range s.Sizes {
		v := "s" + strconv.Itoa(d)
		vars = append(vars, v)
		f.line("for (long %s = 0; %s < %d; %s++) {", v, v, n, v)
	}
	o := operands{f, s, vars}
	if s.Kind == ir.MatMul && (s.Out.Buf == s.A.Buf || s.Out.Buf == s.B.Buf) {
		return &UnsupportedError{i, "a matrix product writes into an operand"}
	}
	switch {
	case dense(s):
		o.call()
	case s.Kind == ir.MatMul:
		o.product()
	case s.Kind == ir.Cholesky:
		o.cholesky()
	case s.Kind == ir.Solve:
		o.solve()
	case s.Kind == ir.Call:
		f.line("kelvin_foreign(&%s, &%s, &%s);", o.at(s.B, "0", "0"), o.at(s.A, "0", "0"), o.at(s.Out, "0", "0"))
	case s.Kind == ir.Scan:
		start, op := "0.0", "+="
		if s.Product {
			start, op = "1.0", "*="
		}
		f.line("double sum = %s;", start)
		f.line("for (long j = 0; j < %d; j++) { sum %s %s; %s = sum; }", s.N, op, o.at(s.A, "0", "j"), o.at(s.Out, "0", "j"))
	}
	for range s.Sizes {
		f.line("}")
	}
	return nil
}

// operands writes elements of the matrices of a step.
type operands struct {
	f    *function
	s    *ir.Step
	vars []string
}

// index is that of element (i, j) of the matrix of this repetition; i and j are variables or numbers.
func (o operands) index(m ir.Matrix, i, j string) string {
	off, strides, vars := m.Off, slices.Clone(m.Strides), slices.Clone(o.vars)
	for _, x := range []struct {
		at     string
		stride int
	}{{i, m.Row}, {j, m.Col}} {
		if n, err := strconv.Atoi(x.at); err == nil {
			off += n * x.stride
			continue
		}
		strides, vars = append(strides, x.stride), append(vars, x.at)
	}
	return index(off, m.Turn, strides, vars)
}

func (o operands) at(m ir.Matrix, i, j string) string { return o.f.at(m.Buf, o.index(m, i, j)) }

// plain opens a loop, and so does count, which has it vectorised where that pays.
func plain(v string, n int) string {
	return fmt.Sprintf("for (long %s = 0; %s < %d; %s++)", v, v, n, v)
}

func count(v string, n int, clause string) string {
	if n < 4 {
		return plain(v, n)
	}
	return "_Pragma(\"omp simd" + clause + "\") " + plain(v, n)
}
