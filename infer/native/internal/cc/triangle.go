package cc

import (
	"fmt"
	"strconv"
	"strings"
)

// cholesky goes by columns: when one is done, what it gives is taken from all later ones. What has no factor becomes
// NaN, which later columns take over.
func (o operands) cholesky() {
	s, f := o.s, o.f
	l := func(i, j string) string { return o.at(s.Out, i, j) }
	f.line("%s %s %s = i < j ? 0.0 : %s;", plain("i", s.N), plain("j", s.N), l("i", "j"), o.at(s.A, "i", "j"))
	f.line("double column[%d] KELVIN_ALIGNED;", s.N)
	f.line("%s {", plain("j", s.N))
	f.line("double d = %s;", l("j", "j"))
	f.line("d = d > 0 ? __builtin_sqrt(d) : KELVIN_NAN;")
	f.line("%s = d;", l("j", "j"))
	f.line("const double r = 1/d;")
	f.line("for (long i = j + 1; i < %d; i++) column[i] = %s = %s*r;", s.N, l("i", "j"), l("i", "j"))
	if s.Out.Col == 1 || s.Out.Row != 1 {
		f.line("for (long i = j + 1; i < %d; i++) { const double e = column[i];", s.N)
		f.line("_Pragma(\"omp simd\") for (long k = j + 1; k <= i; k++) %s -= e*column[k]; }", l("i", "k"))
	} else {
		f.line("for (long k = j + 1; k < %d; k++) { const double e = column[k];", s.N)
		f.line("_Pragma(\"omp simd\") for (long i = k; i < %d; i++) %s -= e*column[i]; }", s.N, l("i", "k"))
	}
	f.line("}")
}

// triangle is a system to solve for one line of unknowns at a time, whichever side the triangle is on: sum over k of
// a(i, k)·x(k, l) is b(i, l).
type triangle struct {
	operands
	n, lines int
	forward  bool
	a, x, b  func(i, k string) string
	unitI    bool // a(i, k) has unit strides in i
	unitK    bool // and in k
	unitX    bool // x(i, l) has unit strides in i
	unitL    bool // and in l
}

// solve chooses the order: several lines at once where they are neighbours in memory, else one after the other.
func (o operands) solve() {
	s := o.s
	t := triangle{operands: o, n: s.M, lines: s.N, forward: s.Upper == s.Right}
	if s.Right {
		t.n, t.lines = s.N, s.M
		t.a = func(i, k string) string { return o.at(s.A, k, i) }
		t.x = func(i, l string) string { return o.at(s.Out, l, i) }
		t.b = func(i, l string) string { return o.at(s.B, l, i) }
		t.unitI, t.unitK, t.unitX, t.unitL = s.A.Col == 1, s.A.Row == 1, s.Out.Col == 1, s.Out.Row == 1
	} else {
		t.a = func(i, k string) string { return o.at(s.A, i, k) }
		t.x = func(i, l string) string { return o.at(s.Out, i, l) }
		t.b = func(i, l string) string { return o.at(s.B, i, l) }
		t.unitI, t.unitK, t.unitX, t.unitL = s.A.Row == 1, s.A.Col == 1, s.Out.Row == 1, s.Out.Col == 1
	}
	switch {
	case t.n <= few/2 && t.lines >= few && s.Out.Buf != s.B.Buf:
		t.vectors()
	case t.lines > 1 && (t.unitL || !t.unitX):
		t.together()
	case t.unitI && !t.unitK:
		t.updates()
	default:
		t.dots()
	}
}

// unknowns opens the loop over the unknowns, in the order in which they can be solved for.
func (t triangle) unknowns(v string) {
	if t.forward {
		t.f.line("for (long %s = 0; %s < %d; %s++) {", v, v, t.n, v)
		return
	}
	t.f.line("for (long %s = %d; %s >= 0; %s--) {", v, t.n-1, v, v)
}

// later is the loop over the unknowns i that come after k, and earlier that over the k that come before i.
func (t triangle) later() string {
	if t.forward {
		return fmt.Sprintf("for (long i = k + 1; i < %d; i++)", t.n)
	}
	return "for (long i = 0; i < k; i++)"
}

func (t triangle) earlier() string {
	if t.forward {
		return "for (long k = 0; k < i; k++)"
	}
	return fmt.Sprintf("for (long k = i + 1; k < %d; k++)", t.n)
}

// together solves for all lines at once. What an unknown gives is taken from all later ones.
func (t triangle) together() {
	f := t.f
	f.line("%s %s %s = %s;", plain("i", t.n), count("l", t.lines, ""), t.x("i", "l"), t.b("i", "l"))
	t.unknowns("k")
	if !t.s.Unit {
		f.line("const double s = kelvin_scale(%s), r = 1/(%s*s);", t.a("k", "k"), t.a("k", "k"))
		f.line("%s %s = KELVIN_KEEP(%s*s)*r;", count("l", t.lines, ""), t.x("k", "l"), t.x("k", "l"))
	}
	f.line("%s { const double e = %s;", t.later(), t.a("i", "k"))
	f.line("%s %s -= e*%s; }\n}", count("l", t.lines, ""), t.x("i", "l"), t.x("k", "l"))
}

// vectors solves for few unknowns of many lines, a vector of lines at a time: the triangle and the reciprocals of its
// diagonal are numbers that all share.
func (t triangle) vectors() {
	f := t.f
	order := make([]string, t.n)
	for i := range order {
		if order[i] = strconv.Itoa(i); !t.forward {
			order[i] = strconv.Itoa(t.n - 1 - i)
		}
	}
	var body []string
	for n, i := range order {
		sum := t.b(i, "l")
		for _, k := range order[:n] {
			f.line("const double a%s_%s = %s;", i, k, t.a(i, k))
			sum += fmt.Sprintf(" - a%s_%s*x%s", i, k, k)
		}
		if !t.s.Unit {
			f.line("const double s%s = kelvin_scale(%s), r%s = 1/(%s*s%s);", i, t.a(i, i), i, t.a(i, i), i)
			sum = fmt.Sprintf("KELVIN_KEEP((%s)*s%s)*r%s", sum, i, i)
		}
		body = append(body, fmt.Sprintf("const double x%s = %s;\n%s = x%s;", i, sum, t.x(i, "l"), i))
	}
	f.line("%s {\n%s\n}", count("l", t.lines, ""), strings.Join(body, "\n"))
}

// updates does the same for one line after the other.
func (t triangle) updates() {
	f := t.f
	f.line("%s {", plain("l", t.lines))
	f.line("%s %s = %s;", count("i", t.n, ""), t.x("i", "l"), t.b("i", "l"))
	t.unknowns("k")
	f.line("double e = %s;", t.x("k", "l"))
	if !t.s.Unit {
		f.line("%s = e = e/%s;", t.x("k", "l"), t.a("k", "k"))
	}
	f.line("_Pragma(\"omp simd\") %s %s -= e*%s;\n}\n}", t.later(), t.x("i", "l"), t.a("i", "k"))
}

// dots takes from each unknown what all earlier ones give.
func (t triangle) dots() {
	f := t.f
	f.line("%s {", plain("l", t.lines))
	t.unknowns("i")
	f.line("double sum = 0.0;")
	f.line("_Pragma(\"omp simd reduction(+:sum)\") %s sum += %s*%s;", t.earlier(), t.a("i", "k"), t.x("k", "l"))
	f.line("sum = %s - sum;", t.b("i", "l"))
	if !t.s.Unit {
		f.line("sum /= %s;", t.a("i", "i"))
	}
	f.line("%s = sum;\n}\n}", t.x("i", "l"))
}
