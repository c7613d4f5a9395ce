package cc

import (
	"fmt"
	"strconv"
	"strings"
)

// few is up to how many numbers the emitter writes out what it would loop over otherwise.
const few = 16

// product has the innermost loop run over the dimension of unit strides.
func (o operands) product() {
	s, f := o.s, o.f
	dot := score(s.K, s.A.Col, s.B.Row)
	wide := score(s.N, s.Out.Col, s.B.Col)
	tall := score(s.M, s.Out.Row, s.A.Row)
	switch {
	case s.M*s.N <= few && s.K >= 8:
		o.sums()
	case s.K <= few:
		o.terms(tall > wide)
	case dot > wide && dot > tall && s.N == 1 && s.M >= 8:
		o.rows()
	case dot > wide && dot > tall:
		f.line("%s %s {", plain("i", s.M), plain("j", s.N))
		f.line("double sum = 0.0;")
		f.line("%s sum += %s*%s;", count("k", s.K, " reduction(+:sum)"), o.at(s.A, "i", "k"), o.at(s.B, "k", "j"))
		f.line("%s = sum;\n}", o.at(s.Out, "i", "j"))
	default:
		o.updates(tall > wide)
	}
}

// score says how well a dimension serves as the innermost loop, by the strides of the operands in it.
func score(n int, strides ...int) int {
	v := min(n, 64)
	for _, k := range strides {
		switch k {
		case 1:
			v *= 4
		case 0:
			v *= 2
		}
	}
	return v
}

// terms writes a product with few terms of each element: all in one expression.
func (o operands) terms(tall bool) {
	s := o.s
	sum := make([]string, s.K)
	for k := range sum {
		sum[k] = o.at(s.A, "i", strconv.Itoa(k)) + "*" + o.at(s.B, strconv.Itoa(k), "j")
	}
	outer, inner := plain("i", s.M), count("j", s.N, "")
	if tall {
		outer, inner = plain("j", s.N), count("i", s.M, "")
	}
	o.f.line("%s %s %s = %s;", outer, inner, o.at(s.Out, "i", "j"), strings.Join(sum, " + "))
}

// rows writes a product with a vector, four rows at a time: each number of the vector is loaded once for them.
func (o operands) rows() {
	s, f := o.s, o.f
	rest := s.M % 4
	f.line("for (long i = 0; i < %d; i += 4) {\ndouble t0 = 0.0, t1 = 0.0, t2 = 0.0, t3 = 0.0;", s.M-rest)
	f.line("%s {\nconst double e = %s;", count("k", s.K, " reduction(+:t0,t1,t2,t3)"), o.at(s.B, "k", "0"))
	rows := []string{"i", "(i+1)", "(i+2)", "(i+3)"}
	for r, i := range rows {
		f.line("t%d += %s*e;", r, o.at(s.A, i, "k"))
	}
	f.line("}")
	for r, i := range rows {
		f.line("%s = t%d;", o.at(s.Out, i, "0"), r)
	}
	f.line("}")
	if rest > 0 {
		f.line("for (long i = %d; i < %d; i++) {\ndouble sum = 0.0;", s.M-rest, s.M)
		f.line("%s sum += %s*%s;", count("k", s.K, " reduction(+:sum)"), o.at(s.A, "i", "k"), o.at(s.B, "k", "0"))
		f.line("%s = sum;\n}", o.at(s.Out, "i", "0"))
	}
}

// updates adds multiples of lines of one operand to each line of the result, four at a time, or eight to one line. A
// line is a row, or a column where tall is set. An operand whose lines are no neighbours in memory is laid out anew
// first, if it is small.
func (o operands) updates(tall bool) {
	s, f := o.s, o.f
	lines, n, line, inner := s.M, s.N, "i", "j"
	factor := func(k string) string { return o.at(s.A, "i", k) }
	other := func(k string) string { return o.at(s.B, k, "j") }
	stride := s.B.Col
	if tall {
		lines, n, line, inner = n, lines, inner, line
		factor, other = func(k string) string { return o.at(s.B, k, "j") }, func(k string) string { return o.at(s.A, "i", k) }
		stride = s.A.Row
	}
	if stride > 1 && lines >= 4 && s.K*n <= stackBytes/8 {
		f.line("double packed[%d] KELVIN_ALIGNED;", s.K*n)
		f.line("%s %s packed[k*%d+%s] = %s;", plain("k", s.K), plain(inner, n), n, inner, other("k"))
		other = func(k string) string { return fmt.Sprintf("packed[(%s)*%d+%s]", k, n, inner) }
	}
	out := o.at(s.Out, "i", "j")
	f.line("%s {", plain(line, lines))
	next := []string{"k", "(k+1)", "(k+2)", "(k+3)", "(k+4)", "(k+5)", "(k+6)", "(k+7)"}
	if lines > 1 || s.K < 64 {
		next = next[:4]
	}
	first := s.K % len(next)
	f.line("%s %s = %s;", count(inner, n, ""), out, o.sum(factor, other, first))
	f.line("for (long k = %d; k < %d; k += %d) {", first, s.K, len(next))
	products := make([]string, len(next))
	for i, k := range next {
		f.line("const double e%d = %s;", i, factor(k))
		products[i] = fmt.Sprintf("e%d*%s", i, other(k))
	}
	f.line("%s %s += %s;\n}\n}", count(inner, n, ""), out, strings.Join(products, " + "))
}

// sum is that of the first n products.
func (o operands) sum(factor, other func(string) string, n int) string {
	if n == 0 {
		return "0.0"
	}
	all := make([]string, n)
	for k := range all {
		all[k] = factor(strconv.Itoa(k)) + "*" + other(strconv.Itoa(k))
	}
	return strings.Join(all, " + ")
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
