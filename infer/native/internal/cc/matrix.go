package cc

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// gemmProducts is from how many products on a matrix product goes to the library.
const gemmProducts = 32768

func viaLibrary(s *ir.Step) bool { return s.Kind == ir.MatMul && s.M*s.N*s.K >= gemmProducts }

// matrices are the operands of a step that is no loop, the result first.
func matrices(s *ir.Step) []*ir.Matrix {
	switch s.Kind {
	case ir.MatMul, ir.Solve, ir.Call:
		return []*ir.Matrix{&s.Out, &s.A, &s.B}
	}
	return []*ir.Matrix{&s.Out, &s.A}
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
	switch s.Kind {
	case ir.MatMul:
		if s.Out.Buf == s.A.Buf || s.Out.Buf == s.B.Buf {
			return &UnsupportedError{i, "a matrix product writes into an operand"}
		}
		o.product()
	case ir.Cholesky:
		o.cholesky()
	case ir.Solve:
		o.solve()
	case ir.Call:
		f.line("kelvin_foreign(&%s, &%s, &%s);", o.at(s.B, "0", "0"), o.at(s.A, "0", "0"), o.at(s.Out, "0", "0"))
	case ir.Scan:
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
