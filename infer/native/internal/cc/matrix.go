package cc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// gemmProducts is from how many products on a matrix product goes to the library.
const gemmProducts = 8000

func viaLibrary(s *ir.Step) bool { return s.Kind == ir.MatMul && s.M*s.N*s.K >= gemmProducts }

// matrices are the operands of a step that is no loop, the result first.
func matrices(s *ir.Step) []*ir.Matrix {
	switch s.Kind {
	case ir.MatMul, ir.Solve:
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
	return index(off, strides, vars)
}

func (o operands) at(m ir.Matrix, i, j string) string { return o.f.at(m.Buf, o.index(m, i, j)) }

// count opens a loop; it is vectorised where it pays.
func count(v string, n int, clause string) string {
	l := fmt.Sprintf("for (long %s = 0; %s < %d; %s++)", v, v, n, v)
	if n < 4 {
		return l
	}
	return "_Pragma(\"omp simd" + clause + "\") " + l
}

// product has the innermost loop run over the dimension of unit strides.
func (o operands) product() {
	s, f := o.s, o.f
	if viaLibrary(s) {
		pointer := func(m ir.Matrix) string {
			return fmt.Sprintf("&b%d[%s], %d, %d", m.Buf, o.index(m, "0", "0"), m.Row, m.Col)
		}
		f.line("if (gemm) gemm(%d, %d, %d, %s, %s, %s);\nelse {", s.M, s.N, s.K, pointer(s.A), pointer(s.B), pointer(s.Out))
		defer f.line("}")
	}
	out, a, b := o.at(s.Out, "i", "j"), o.at(s.A, "i", "k"), o.at(s.B, "k", "j")
	unit := func(n int, strides ...int) int {
		score := min(n, 64)
		for _, k := range strides {
			switch k {
			case 1:
				score *= 4
			case 0:
				score *= 2
			}
		}
		return score
	}
	dot := unit(s.K, s.A.Col, s.B.Row)
	wide := unit(s.N, s.Out.Col, s.B.Col)
	tall := unit(s.M, s.Out.Row, s.A.Row)
	i := fmt.Sprintf("for (long i = 0; i < %d; i++)", s.M)
	j := fmt.Sprintf("for (long j = 0; j < %d; j++)", s.N)
	k := fmt.Sprintf("for (long k = 1; k < %d; k++)", s.K)
	first := func(loop string) string {
		return fmt.Sprintf("%s %s = %s*%s;", loop, out, o.at(s.A, "i", "0"), o.at(s.B, "0", "j"))
	}
	const few = 16
	switch {
	case s.K == 1:
		f.line("%s %s", i, first(count("j", s.N, "")))
	case s.M*s.N <= few && s.K >= 8:
		o.sums()
	case s.K <= few && max(s.M, s.N) >= 8:
		terms := make([]string, s.K)
		for k := range terms {
			terms[k] = o.at(s.A, "i", strconv.Itoa(k)) + "*" + o.at(s.B, strconv.Itoa(k), "j")
		}
		outer, inner := i, count("j", s.N, "")
		if tall > wide {
			outer, inner = j, count("i", s.M, "")
		}
		f.line("%s %s %s = %s;", outer, inner, out, strings.Join(terms, " + "))
	case dot >= wide && dot >= tall:
		f.line("%s %s {", i, j)
		f.line("double sum = 0.0;")
		f.line("%s sum += %s*%s;", count("k", s.K, " reduction(+:sum)"), a, b)
		f.line("%s = sum;\n}", out)
	case wide >= tall:
		f.line("%s {", i)
		f.line("%s", first(count("j", s.N, "")))
		f.line("%s { const double e = %s; %s %s += e*%s; }\n}", k, a, count("j", s.N, ""), out, b)
	default:
		f.line("%s {", j)
		f.line("%s", first(count("i", s.M, "")))
		f.line("%s { const double e = %s; %s %s += e*%s; }\n}", k, b, count("i", s.M, ""), out, a)
	}
}

// sums writes a product with few elements and many terms of each: all sums in one loop.
func (o operands) sums() {
	s, f := o.s, o.f
	var clause, body, after []string
	for i := range s.M {
		for j := range s.N {
			v, row, col := fmt.Sprintf("t%d_%d", i, j), strconv.Itoa(i), strconv.Itoa(j)
			f.line("double %s = 0.0;", v)
			clause = append(clause, v)
			body = append(body, fmt.Sprintf("%s += %s*%s;", v, o.at(s.A, row, "k"), o.at(s.B, "k", col)))
			after = append(after, fmt.Sprintf("%s = %s;", o.at(s.Out, row, col), v))
		}
	}
	f.line("%s {\n%s\n}", count("k", s.K, " reduction(+:"+strings.Join(clause, ",")+")"), strings.Join(body, "\n"))
	f.line("%s", strings.Join(after, "\n"))
}

// cholesky goes by columns. What has no factor becomes NaN, which later columns take over.
func (o operands) cholesky() {
	s, f := o.s, o.f
	l := func(i, j string) string { return o.at(s.Out, i, j) }
	f.line("for (long j = 0; j < %d; j++) {", s.N)
	f.line("for (long i = 0; i < j; i++) %s = 0.0;", l("i", "j"))
	f.line("double d = %s;", o.at(s.A, "j", "j"))
	f.line("for (long k = 0; k < j; k++) d -= %s*%s;", l("j", "k"), l("j", "k"))
	f.line("d = d > 0 ? __builtin_sqrt(d) : KELVIN_NAN;")
	f.line("%s = d;", l("j", "j"))
	f.line("for (long i = j + 1; i < %d; i++) {", s.N)
	f.line("double sum = 0.0;")
	f.line("_Pragma(\"omp simd reduction(+:sum)\") for (long k = 0; k < j; k++) sum += %s*%s;", l("i", "k"), l("j", "k"))
	f.line("%s = (%s - sum)/d;\n}\n}", l("i", "j"), o.at(s.A, "i", "j"))
}

// solve goes through the unknowns in the order that the triangle gives, all lines at once where there are several.
func (o operands) solve() {
	s, f := o.s, o.f
	n, lines := s.M, s.N
	x := func(i, line string) string { return o.at(s.Out, i, line) }
	b := func(i, line string) string { return o.at(s.B, i, line) }
	a := func(i, k string) string { return o.at(s.A, i, k) }
	if s.Right {
		n, lines = lines, n
		x = func(i, line string) string { return o.at(s.Out, line, i) }
		b = func(i, line string) string { return o.at(s.B, line, i) }
		a = func(i, k string) string { return o.at(s.A, k, i) }
	}
	next, earlier := "for (long i = 0; i < %d; i++) {", "for (long k = 0; k < i; k++)"
	if s.Upper != s.Right {
		next, earlier = "for (long i = %d - 1; i >= 0; i--) {", fmt.Sprintf("for (long k = i + 1; k < %d; k++)", n)
	}
	if lines == 1 {
		f.line(next, n)
		f.line("double sum = 0.0;")
		f.line("_Pragma(\"omp simd reduction(+:sum)\") %s sum += %s*%s;", earlier, a("i", "k"), x("k", "0"))
		f.line("sum = %s - sum;", b("i", "0"))
		if !s.Unit {
			f.line("sum /= %s;", a("i", "i"))
		}
		f.line("%s = sum;\n}", x("i", "0"))
		return
	}
	f.line(next, n)
	f.line("%s %s = %s;", count("l", lines, ""), x("i", "l"), b("i", "l"))
	f.line("%s { const double e = %s;", earlier, a("i", "k"))
	f.line("%s %s -= e*%s; }", count("l", lines, ""), x("i", "l"), x("k", "l"))
	if !s.Unit {
		f.line("{ const double e = %s; %s %s /= e; }", a("i", "i"), count("l", lines, ""), x("i", "l"))
	}
	f.line("}")
}
