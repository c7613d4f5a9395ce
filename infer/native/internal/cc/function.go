package cc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// stackBytes is how much scratch lies on the stack, where the compiler can keep it in registers.
const stackBytes = 16 << 10

// partBytes is how much scratch of its own a part of a Repeat may have, on its stack.
const partBytes = 128 << 10

// place says where a function keeps a buffer.
type place uint8

const (
	unused  place = iota
	literal       // the number stands in the text
	scalar        // a local variable
	array         // a local array
	member        // memory that the functions of a part share
	pointer       // memory of the caller
)

// function is one of the two functions while it is written.
type function struct {
	plan   *ir.Plan
	layout ir.Layout
	places []place
	dense  bool   // a step goes to kelvin_dense
	own    []bool // scratch that no other piece uses
	lines  []string
	sums   sums
}

func (f *function) line(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

// plans decides where each buffer lives.
func (f *function) plans(a piece, shared map[int]place) {
	n := len(f.plan.Buffers)
	f.places, f.own = make([]place, n), make([]bool, n)
	used, addressed := make([]bool, n), make([]bool, n)
	for _, s := range ir.Leaves(a.steps) {
		s.Accesses(func(buf, _ int, _ bool) { used[buf] = true })
		for k := range s.Body {
			in := &s.Body[k]
			addressed[in.At.Buf] = addressed[in.At.Buf] || in.At.Index != nil
		}
		if s.Kind != ir.Loop {
			f.dense = f.dense || dense(s)
			for _, m := range s.Matrices() {
				addressed[m.Buf] = addressed[m.Buf] || dense(s) || s.Kind == ir.Call
			}
		}
	}
	var work []int
	for i, b := range f.plan.Buffers {
		switch {
		case !used[i]:
		case b.Kind == ir.Const && b.Len == 1 && b.Elem == ir.F64 && !addressed[i]:
			f.places[i] = literal
		case shared[i] != unused:
			f.places[i] = shared[i]
		case b.Kind == ir.Work:
			f.places[i] = pointer
			work, f.own[i] = append(work, i), true
		default:
			f.places[i] = pointer
		}
	}
	slices.SortStableFunc(work, func(a, b int) int { return f.plan.Buffers[a].Len - f.plan.Buffers[b].Len })
	left := stackBytes
	if a.parts > 0 {
		left = partBytes
	}
	for _, i := range work {
		size := f.plan.Buffers[i].Len * 8
		switch {
		case size > left:
		case size == 8 && !addressed[i]:
			f.places[i] = scalar
		default:
			f.places[i] = array
		}
		left -= size
	}
}

// parameters are those of a function's body, with what they are called with, and the declarations that follow from
// them.
type parameters struct {
	list, args, decls []string
	blocks            map[string]bool
}

func (p *parameters) add(param, arg string) {
	p.list = append(p.list, param)
	p.args = append(p.args, arg)
}

// block declares a buffer that lies in a block of the caller.
func (p *parameters) block(b ir.Buffer, name, block, constant string, offset int) {
	if !p.blocks[block] {
		p.blocks[block] = true
		p.add(constant+"char *restrict "+block, "c->"+block)
	}
	kind := constant + ctype[b.Elem]
	p.decls = append(p.decls, fmt.Sprintf("%s *const %s = KELVIN_AT(%s, %s, %d);", kind, name, kind, block, offset))
}

// buffer declares a buffer.
func (p *parameters) buffer(f *function, i int, main bool) {
	b, v := f.plan.Buffers[i], "b"+strconv.Itoa(i)
	switch f.places[i] {
	case unused, literal, member:
		return
	case scalar:
		p.decls = append(p.decls, "double "+v+";")
		return
	case array:
		p.decls = append(p.decls, fmt.Sprintf("double %s[%d] KELVIN_ALIGNED;", v, b.Len))
		return
	}
	prepared := ""
	if main {
		prepared = "const "
	}
	switch b.Kind {
	case ir.X:
		p.add("const double *restrict "+v, "c->x")
	case ir.Weight:
		p.add("const double weight", "c->weight")
		p.decls = append(p.decls, "const double *const "+v+" = &weight;")
	case ir.Grad:
		p.add("double *restrict "+v, "c->grad")
	case ir.Value:
		p.add("double *restrict "+v, "c->value")
	case ir.Input:
		t := ctype[b.Elem]
		p.add("const "+t+" *restrict "+v, fmt.Sprintf("(const %s *)c->inputs[%d]", t, b.Slot))
	case ir.Aux:
		p.add("double *restrict "+v, fmt.Sprintf("c->aux[%d]", b.Slot))
	case ir.Const:
		p.block(b, v, "consts", "const ", f.layout.Offset[i])
	case ir.Prepared:
		p.block(b, v, "prepared", prepared, f.layout.Offset[i])
	case ir.Work:
		p.block(b, v, "work", "", f.layout.Offset[i])
	}
}

// write puts the function of a piece together. Its body is a function of its own, since compilers heed restrict of
// parameters alone.
func (f *function) write(text *strings.Builder, w *whole, all []piece, k int) {
	p, several := parameters{blocks: map[string]bool{}}, len(all) > 1
	if f.dense {
		p.add("const kelvin_dense *const dense", "c->dense")
	}
	if several {
		p.add(w.shared()+" *restrict shared", "shared")
	}
	if all[k].times > 0 {
		p.add("const long turn", "turn")
	}
	if all[k].parts > 0 {
		p.add("const long part", "part")
	}
	for i := range f.plan.Buffers {
		p.buffer(f, i, w.name == "main")
	}
	if len(p.list) == 0 {
		p.list = []string{"void"}
	}
	name, cold := w.of(k, several), ""
	if all[k].cold(all) {
		cold = "__attribute__((cold)) "
	}
	fmt.Fprintf(text, "\nstatic KELVIN_BODY %sint %s(%s) {\n", cold, name, strings.Join(p.list, ", "))
	for _, l := range append(p.decls, f.lines...) {
		text.WriteString(l)
		text.WriteByte('\n')
	}
	text.WriteString("return 0;\n}\n")
	call := name + "(" + strings.Join(p.args, ", ") + ")"
	if all[k].parts > 0 {
		call = w.part(text, k, all[k], several, call)
	}
	w.calls = append(w.calls, call)
}

var ctype = [...]string{ir.F64: "double", ir.F32: "float", ir.I64: "int64_t", ir.U8: "uint8_t", ir.I32: "int32_t"}

// at is the element of a buffer with the given index, as C.
func (f *function) at(buf int, index string) string {
	switch f.places[buf] {
	case literal:
		return number(f.plan.Buffers[buf].Data[0])
	case scalar:
		return "b" + strconv.Itoa(buf)
	case member:
		return "shared->b" + strconv.Itoa(buf) + "[" + index + "]"
	}
	return "b" + strconv.Itoa(buf) + "[" + index + "]"
}

// number is a C literal with exactly this value.
func number(v float64) string {
	switch {
	case v != v:
		return "KELVIN_NAN"
	case v-v != 0:
		if v < 0 {
			return "(-KELVIN_INF)"
		}
		return "KELVIN_INF"
	}
	s := strconv.FormatFloat(v, 'g', -1, 64) // shortest that reads back exactly
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	if s[0] == '-' {
		s = "(" + s + ")"
	}
	return s
}

// index is Off + Turn·turn + Σ Strides·variables as C.
func index(off, turn int, strides []int, vars []string) string {
	var b strings.Builder
	if turn != 0 {
		strides, vars = append([]int{turn}, strides...), append([]string{"turn"}, vars...)
	}
	for d, s := range strides {
		switch {
		case s == 0:
			continue
		case s < 0:
			b.WriteByte('-')
			s = -s
		case b.Len() > 0:
			b.WriteByte('+')
		}
		b.WriteString(vars[d])
		if s != 1 {
			b.WriteString("*" + strconv.Itoa(s))
		}
	}
	if off != 0 || b.Len() == 0 {
		if off >= 0 && b.Len() > 0 {
			b.WriteByte('+')
		}
		b.WriteString(strconv.Itoa(off))
	}
	return b.String()
}
