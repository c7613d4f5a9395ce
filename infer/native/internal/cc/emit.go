// Package cc turns a plan into C, has the machine's C compiler make a shared object of it, keeps the object in the
// user's cache, and loads it.
package cc

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/abi"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Limits of what is compiled: beyond them a compiler takes minutes.
const (
	maxInstructions = 20000
	maxText         = 4 << 20 // bytes
)

// stackBytes is how much scratch lies on the stack, where the compiler can keep it in registers.
const stackBytes = 16 << 10

// TooLargeError is the error of a plan that is too large for a C compiler.
type TooLargeError struct{ Instructions, Bytes int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("cc: the plan has %d instructions (at most %d) and %d bytes of C (at most %d)",
		e.Instructions, maxInstructions, e.Bytes, maxText)
}

// UnsupportedError is the error of a step that has no order-independent meaning, which C would need.
type UnsupportedError struct {
	Step   int
	Reason string
}

func (e *UnsupportedError) Error() string { return fmt.Sprintf("cc: step %d: %s", e.Step, e.Reason) }

//go:embed helpers.h
var helpers string

//go:embed special.h
var special string

// Emit writes a plan, which must have passed its checks, as one C file. It defines kelvin_prologue and kelvin_main, both
// of type kelvin_fn, and kelvin_abi, the version of the interface. The text depends on no machine and on no data
// except constants of one number, so that equal models have equal texts.
func Emit(p *ir.Plan) (string, error) {
	body, err := emitPlan(p, "")
	if err != nil {
		return "", err
	}
	return preamble() + body, nil
}

func preamble() string {
	return "// Made by Kelvin. Do not edit.\n" + abi.Header + "\n" + helpers + "\n" + special + "\nconst int kelvin_abi = KELVIN_ABI;\n"
}

// emitPlan writes the two functions of a plan; the suffix ends their names.
func emitPlan(p *ir.Plan, suffix string) (string, error) {
	n := 0
	for _, steps := range [][]ir.Step{p.Prologue, p.Steps} {
		for i := range steps {
			n += 1 + len(steps[i].Body)
		}
	}
	if n > maxInstructions {
		return "", &TooLargeError{Instructions: n}
	}
	var text strings.Builder
	for _, part := range []struct {
		name  string
		steps []ir.Step
	}{{"prologue", p.Prologue}, {"main", p.Steps}} {
		f := function{plan: p, layout: p.Place()}
		f.plans(part.steps)
		for i := range part.steps {
			if err := f.step(i, &part.steps[i]); err != nil {
				return "", err
			}
		}
		f.write(&text, part.name, suffix)
		if text.Len() > maxText {
			return "", &TooLargeError{Instructions: n, Bytes: text.Len()}
		}
	}
	return text.String(), nil
}

// place says where a function keeps a buffer.
type place uint8

const (
	unused  place = iota
	literal       // the number stands in the text
	scalar        // a local variable
	array         // a local array
	pointer       // memory of the caller
)

// function is one of the two functions while it is written.
type function struct {
	plan   *ir.Plan
	layout ir.Layout
	places []place
	lines  []string
}

func (f *function) line(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

// plans decides where each buffer lives.
func (f *function) plans(steps []ir.Step) {
	n := len(f.plan.Buffers)
	f.places = make([]place, n)
	used, addressed := make([]bool, n), make([]bool, n)
	for i := range steps {
		s := &steps[i]
		for k := range s.Body {
			in := &s.Body[k]
			if in.Op == ir.Load || in.Op.Writes() {
				used[in.At.Buf] = true
				if x := in.At.Index; x != nil {
					used[x.Buf], addressed[in.At.Buf] = true, true
				}
			}
		}
		if s.Kind != ir.Loop {
			for _, m := range matrices(s) {
				used[m.Buf] = true
				addressed[m.Buf] = addressed[m.Buf] || viaLibrary(s)
			}
		}
	}
	var work []int
	for i, b := range f.plan.Buffers {
		switch {
		case !used[i]:
		case b.Kind == ir.Const && b.Len == 1 && b.Elem == ir.F64 && !addressed[i]:
			f.places[i] = literal
		case b.Kind == ir.Work:
			f.places[i] = pointer
			work = append(work, i)
		default:
			f.places[i] = pointer
		}
	}
	slices.SortStableFunc(work, func(a, b int) int { return f.plan.Buffers[a].Len - f.plan.Buffers[b].Len })
	left := stackBytes
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

// write puts the function together. The body is a function of its own, since compilers heed restrict of parameters alone.
func (f *function) write(text *strings.Builder, name, suffix string) {
	var params, args, decls []string
	param := func(kind, name, arg string) {
		params = append(params, kind+name)
		args = append(args, arg)
	}
	blocks := map[ir.Kind]bool{}
	block := func(k ir.Kind, name string, constant bool) {
		if blocks[k] {
			return
		}
		blocks[k] = true
		if constant {
			name = "const char *restrict " + name
		} else {
			name = "char *restrict " + name
		}
		param("", name, "c->"+name[strings.LastIndex(name, " ")+1:])
	}
	needsGemm := false
	for _, l := range f.lines {
		needsGemm = needsGemm || strings.Contains(l, "if (gemm)")
	}
	if needsGemm {
		param("const kelvin_gemm_fn ", "gemm", "c->gemm")
	}
	for i, b := range f.plan.Buffers {
		v := "b" + strconv.Itoa(i)
		switch f.places[i] {
		case unused, literal:
			continue
		case scalar:
			decls = append(decls, "double "+v+";")
			continue
		case array:
			decls = append(decls, fmt.Sprintf("double %s[%d] KELVIN_ALIGNED;", v, b.Len))
			continue
		}
		in := func(base string, constant bool) {
			q := ""
			if constant {
				q = "const "
			}
			decls = append(decls, fmt.Sprintf("%s%s *const %s = KELVIN_AT(%s%s, %s, %d);", q, ctype[b.Elem], v, q, ctype[b.Elem], base,
				f.layout.Offset[i]))
		}
		switch b.Kind {
		case ir.X:
			param("const double *restrict ", v, "c->x")
		case ir.Weight:
			decls = append(decls, "const double *const "+v+" = &weight;")
			param("const double ", "weight", "c->weight")
		case ir.Grad:
			param("double *restrict ", v, "c->grad")
		case ir.Value:
			param("double *restrict ", v, "c->value")
		case ir.Input:
			param("const "+ctype[b.Elem]+" *restrict ", v, fmt.Sprintf("(const %s *)c->inputs[%d]", ctype[b.Elem], b.Slot))
		case ir.Aux:
			param("double *restrict ", v, fmt.Sprintf("c->aux[%d]", b.Slot))
		case ir.Const:
			block(b.Kind, "consts", true)
			in("consts", true)
		case ir.Prepared:
			block(b.Kind, "prepared", name == "main")
			in("prepared", name == "main")
		case ir.Work:
			block(b.Kind, "work", false)
			in("work", false)
		}
	}
	if len(params) == 0 {
		params = []string{"void"}
	}
	fmt.Fprintf(text, "\nstatic KELVIN_BODY int %s_body%s(%s) {\n", name, suffix, strings.Join(params, ", "))
	for _, l := range append(decls, f.lines...) {
		text.WriteString(l)
		text.WriteByte('\n')
	}
	fmt.Fprintf(text, "return 0;\n}\n\nKELVIN_EXPORT int kelvin_%s%s(const kelvin_call *c) {\n(void)c;\nreturn %s_body%s(%s);\n}\n",
		name, suffix, name, suffix, strings.Join(args, ", "))
}

var ctype = [...]string{ir.F64: "double", ir.F32: "float", ir.I64: "int64_t", ir.U8: "uint8_t", ir.I32: "int32_t"}

// at is the element of a buffer with the given index, as C.
func (f *function) at(buf int, index string) string {
	switch f.places[buf] {
	case literal:
		return number(f.plan.Buffers[buf].Data[0])
	case scalar:
		return "b" + strconv.Itoa(buf)
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

// index is Off + Σ Strides·variables as C.
func index(off int, strides []int, vars []string) string {
	var b strings.Builder
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

// step writes one step.
func (f *function) step(i int, s *ir.Step) error {
	f.line("{ // step %d", i)
	defer f.line("}")
	if s.Kind != ir.Loop {
		return f.matrix(i, s)
	}
	return f.loop(i, s)
}
