package cc

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// nest is a loop step while it is written: its space without dimensions of one iteration, and lines for each level.
// Level l lies inside l loops.
type nest struct {
	f       *function
	step    int
	sizes   []int
	vars    []string
	body    []ir.Instr   // addresses and dimensions are those of sizes
	levels  []int        // of each instruction
	before  [][]string   // the lines of a level that stand before its inner loop, or all of the innermost level
	after   [][]string   // those that stand after it
	values  []string     // of each instruction, as a double
	truths  []string     // of each instruction, as a condition
	simd    []string     // reductions of the innermost loop
	vector  bool         // whether iterations of the innermost loop may run together
	ordered map[int]bool // buffers whose accesses must keep their order
	masks   map[int]bool // instructions that have one
	numbers []int        // of each instruction, the same for equal values
	terms   []terms      // of each instruction
	hides   bool         // a sum is hidden
}

func (f *function) loop(i int, s *ir.Step) error {
	n := &nest{f: f, step: i, ordered: map[int]bool{}, masks: map[int]bool{}}
	n.sizes, n.body = s.Simplified()
	for k := range n.body {
		if in := &n.body[k]; in.Op == ir.Coord {
			if in.Dim = slices.Index(in.At.Strides, 1); in.Dim < 0 {
				in.Op, in.Num = ir.Num, 0
			}
			in.At = ir.Address{}
		}
	}
	r := len(n.sizes)
	n.rotate()
	for d := range r {
		n.vars = append(n.vars, "i"+strconv.Itoa(d))
	}
	n.before, n.after = make([][]string, r+1), make([][]string, r+1)
	n.vector = r > 0 && n.sizes[r-1] >= 4
	if err := n.hazards(); err != nil {
		return err
	}
	n.values, n.truths = make([]string, len(n.body)), make([]string, len(n.body))
	n.levels, n.numbers, n.terms = make([]int, len(n.body)), make([]int, len(n.body)), make([]terms, len(n.body))
	for k := range n.body {
		n.levels[k] = n.level(k)
		w := &n.body[k]
		switch {
		case !w.Op.Writes() || r == 0:
		case w.Op == ir.ScatterAdd, w.At.Index != nil:
			n.vector = false
		case w.Op == ir.Store && w.At.Strides[r-1] == 0 && n.levels[k] == r:
			n.vector = false // the element holds what the last iteration stored
		}
	}
	for k := range n.body {
		n.sum(k)
		n.instruction(k)
	}
	overlaps := n.overlaps()
	for l := range r {
		f.lines = append(f.lines, n.before[l]...)
		v, from, to := n.vars[l], "0", strconv.Itoa(n.sizes[l])
		if l == r-1 && overlaps {
			f.line("for (long eight = 0; eight < %s; eight += 8) {", to)
			f.line("const long from = eight < %d ? eight : %d;", n.sizes[l]-8, n.sizes[l]-8)
			from, to = "from", "from + 8"
		}
		if l == r-1 && n.vector {
			f.line("#pragma omp simd%s", strings.Join(n.simd, ""))
		}
		f.line("for (long %s = %s; %s < %s; %s++) {", v, from, v, to, v)
	}
	f.lines = append(f.lines, n.before[r]...)
	for l := r - 1; l >= 0; l-- {
		f.line("}")
		if l == r-1 && overlaps {
			f.line("}")
		}
		f.lines = append(f.lines, n.after[l]...)
	}
	return nil
}

// overlaps says whether the innermost loop is done eight iterations at a time, the last eight of which have some that
// were done before: what is left over would call functions for one number each, which take as long as those for eight.
// Iterations can be done again where they only store, and read nothing that they store.
func (n *nest) overlaps() bool {
	r := len(n.sizes)
	if !n.vector || n.sizes[r-1] < 8 || n.sizes[r-1]%8 == 0 || n.sizes[r-1] > 1<<10 {
		return false
	}
	stored, calls := map[int]bool{}, false
	for k := range n.body {
		in := &n.body[k]
		if in.Op.Writes() && in.Op != ir.Store {
			return false
		}
		if in.Op == ir.Store {
			stored[in.At.Buf] = true
		}
		calls = calls || n.levels[k] == r && in.Op >= ir.Exp && in.Op <= ir.I1e || in.Op == ir.Pow || in.Op == ir.Atan2
	}
	return calls && !slices.ContainsFunc(n.body, func(in ir.Instr) bool { return in.Op == ir.Load && stored[in.At.Buf] })
}

// level is how many loops an instruction lies in: those whose coordinate it needs. It is called in order.
func (n *nest) level(k int) int {
	in := &n.body[k]
	r, l := len(n.sizes), 0
	address := func(a *ir.Address) {
		for d, s := range a.Strides {
			if s != 0 {
				l = max(l, d+1)
			}
		}
		if n.ordered[a.Buf] {
			l = r
		}
	}
	switch {
	case in.Op == ir.Coord:
		return in.Dim + 1
	case in.Op == ir.Load || in.Op == ir.Store || in.Op == ir.StoreIndex:
		address(&in.At)
		if in.At.Index != nil {
			address(in.At.Index)
		}
	case in.Op.Writes():
		return r
	}
	for _, a := range in.Operands() {
		l = max(l, n.levels[a])
	}
	return l
}

// add writes a line at a level.
func (n *nest) add(l int, format string, args ...any) {
	n.before[l] = append(n.before[l], fmt.Sprintf(format, args...))
}

// element is the element at an address, as C.
func (n *nest) element(a *ir.Address) string {
	i := index(a.Off, a.Turn, a.Strides, n.vars)
	if a.Index != nil {
		x := "(long)" + n.f.at(a.Index.Buf, index(a.Index.Off, a.Index.Turn, a.Index.Strides, n.vars))
		if a.Scale != 1 {
			x += "*" + strconv.Itoa(a.Scale)
		}
		if i == "0" {
			i = x
		} else {
			i = x + "+" + i
		}
		i = strings.ReplaceAll(i, "+-", "-")
	}
	return n.f.at(a.Buf, i)
}

// instruction writes one instruction of the body.
func (n *nest) instruction(k int) {
	in := &n.body[k]
	v := "v" + strconv.Itoa(k)
	var a, b, c string
	if in.Op > ir.Coord {
		ops := in.Operands()
		a = n.values[ops[0]]
		if len(ops) > 1 {
			b = n.values[ops[1]]
		}
		if len(ops) > 2 {
			c = n.values[ops[2]]
		}
	}
	if in.Op <= ir.Coord || in.Op.Writes() {
		n.move(k, v, a)
	} else {
		n.compute(k, v, a, b, c)
	}
}

// move writes what an instruction loads or stores.
func (n *nest) move(k int, v, a string) {
	in := &n.body[k]
	l := n.levels[k]
	switch in.Op {
	case ir.Num:
		n.values[k] = number(in.Num)
	case ir.Coord:
		n.values[k] = "(double)" + n.vars[in.Dim]
	case ir.Load:
		n.values[k] = n.element(&in.At)
		if n.f.places[in.At.Buf] != literal {
			n.add(l, "const double %s = %s;", v, n.values[k])
			n.values[k] = v
		}
	case ir.Store:
		n.add(l, "%s = %s;", n.element(&in.At), a)
	case ir.ScatterAdd:
		n.add(l, "%s += %s;", n.element(&in.At), a)
	case ir.StoreIndex:
		n.vector = false
		n.add(l, "if (!(%s >= 0 && %s < %d && __builtin_trunc(%s) == %s)) return %d;", a, a, in.Limit, a, a, n.step+1)
		n.add(l, "%s = (int32_t)%s;", n.element(&in.At), a)
	case ir.Sum, ir.Prod, ir.MaxOf:
		n.reduce(k, a)
	}
}

// compute writes a pointwise operation.
func (n *nest) compute(k int, v, a, b, c string) {
	in := &n.body[k]
	l := n.levels[k]
	if (in.Op == ir.And || in.Op == ir.Or) && n.mixed(k, v) {
		return
	}
	if t := truth(in.Op, n.condition, in, a, b); t != "" {
		q := "q" + strconv.Itoa(k)
		n.add(l, "const _Bool %s = %s;", q, t)
		n.truths[k] = q
		n.values[k] = "(" + q + " ? 1.0 : 0.0)"
		return
	}
	n.values[k] = v
	if in.Op == ir.Select {
		if n.fixed(in.A) && l == len(n.sizes) {
			n.add(l, "const double %s = kelvin_pick(%s, %s, %s);", v, n.mask(in.A), b, c)
			return
		}
		n.add(l, "const double %s = %s ? %s : %s;", v, n.condition(in.A), b, c)
		return
	}
	if in.Op == ir.Div && n.divide(k, l, a, b) {
		return
	}
	if l < len(n.sizes) || !n.vector {
		switch in.Op {
		case ir.Hypot:
			n.add(l, "const double %s = kelvin_hypot_one(%s, %s);", v, a, b)
			return
		case ir.Lgamma, ir.Digamma, ir.Trigamma, ir.Erfcx, ir.Erfinv, ir.I0e, ir.I1e:
			n.add(l, "const double %s = %s_one(%s);", v, functions[in.Op], a)
			return
		case ir.Tanh:
			n.add(l, "const double %s = tanh(%s);", v, a)
			return
		}
	}
	switch in.Op {
	case ir.Mul:
		a, b = n.kept(in.A), n.kept(in.B)
	case ir.Add, ir.Sub:
		a, b = n.hidden(k)
		n.add(l, "const double %s = KELVIN_KEEP(%s);", v, expression(in.Op, a, b))
		return
	}
	n.add(l, "const double %s = %s;", v, expression(in.Op, a, b))
}

// kept is a factor, kept from being reordered with the product that it is a factor of. Sums are kept where they are
// made: (a + b) - a is not b where a is infinite, and -(a - b) is not b - a where a is b, since the sign of a zero is
// that of the infinity which is its reciprocal. A product in a sum stays open, for the two make one instruction.
func (n *nest) kept(k int) string {
	if n.body[k].Op == ir.Mul {
		return "KELVIN_KEEP(" + n.values[k] + ")"
	}
	return n.values[k]
}

// condition is whether the value of an instruction is not 0.
func (n *nest) condition(k int) string {
	if n.truths[k] != "" {
		return n.truths[k]
	}
	return "(" + n.values[k] + " != 0)"
}

// fixed says whether a value is the same throughout the innermost loop, which is to run in vectors.
func (n *nest) fixed(k int) bool { return n.vector && n.levels[k] < len(n.sizes) }

// mask is whether the value of an instruction is not 0, as a number of ones or zeros.
func (n *nest) mask(k int) string {
	m := "m" + strconv.Itoa(k)
	if !n.masks[k] {
		n.masks[k] = true
		n.add(n.levels[k], "const int64_t %s = %s ? -1 : 0;", m, n.condition(k))
	}
	return m
}

// mixed writes a conjunction or disjunction of what varies with what does not, and says whether it is one.
func (n *nest) mixed(k int, v string) bool {
	in := &n.body[k]
	a, b := in.A, in.B
	if n.fixed(b) {
		a, b = b, a
	}
	if !n.fixed(a) || n.fixed(b) {
		return false
	}
	varies := "(" + n.condition(b) + " ? 1.0 : 0.0)"
	first, second := varies, "0.0"
	if in.Op == ir.Or {
		first, second = "1.0", varies
	}
	n.add(n.levels[k], "const double %s = kelvin_pick(%s, %s, %s);", v, n.mask(a), first, second)
	n.values[k] = v
	return true
}

// divide writes a division by a number, or by what is the same throughout the innermost loop, as a product, and says
// whether it did. A division takes as long as ten products. The divisor is scaled so that its reciprocal has all its
// bits.
func (n *nest) divide(k, l int, a, b string) bool {
	in := &n.body[k]
	if d := &n.body[in.B]; d.Op == ir.Num || d.Op == ir.Load && n.f.places[d.At.Buf] == literal {
		v := d.Num
		if d.Op == ir.Load {
			v = n.f.plan.Buffers[d.At.Buf].Data[0]
		}
		if m := math.Abs(v); m < 0x1p-1000 || m > 0x1p1000 || m != m {
			return false
		}
		n.add(l, "const double v%d = %s*%s;", k, a, number(1/v))
		return true
	}
	r := len(n.sizes)
	lb := n.levels[in.B]
	if r == 0 || l != r || lb == r || n.sizes[r-1] < 8 {
		return false
	}
	n.add(lb, "const double s%d = kelvin_scale(%s), r%d = 1.0/(%s*s%d);", k, b, k, b, k)
	n.add(l, "const double v%d = KELVIN_KEEP(%s*s%d)*r%d;", k, a, k, k)
	return true
}
