package cc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// The time of a C compiler grows faster than the length of a function. A long part of a plan becomes several functions,
// which share the small buffers that more than one of them uses. Tests cut short plans.
var (
	longPart = 1500 // instructions of a part from which on it is cut
	onePiece = 300  // about so many are in a function then
)

const longLoop = 64 // iterations that take time

// piece is what one function does.
type piece struct {
	steps []ir.Step
	first int // the number of the first step, or of the Repeat that the steps are in
	times int // of that Repeat, whose turns call the function; 0 outside
	parts int // of the Repeat that is the only step; 0 for none
}

// pieces cuts a part of a plan.
func pieces(steps []ir.Step) []piece {
	if len(steps) == 0 {
		return []piece{{}}
	}
	most := onePiece
	if instructions(steps) < longPart {
		most = longPart
	}
	var out []piece
	for i := range steps {
		s := &steps[i]
		if most == longPart || s.Parts > 0 || s.Kind != ir.Repeat || instructions(s.Inner) < 2*onePiece {
			out = extend(out, piece{steps[i : i+1], i, 0, s.Parts}, most)
			continue
		}
		inside := []piece{}
		for k := range s.Inner {
			inside = extend(inside, piece{s.Inner[k : k+1], i, s.Times, 0}, most)
		}
		out = append(out, inside...)
	}
	return out
}

// cold says whether a piece takes no time beside the Repeats of its part: a compiler need not make it fast.
func (a piece) cold(all []piece) bool {
	over := func(a piece) bool {
		return a.times > 0 || slices.ContainsFunc(a.steps, func(s ir.Step) bool { return s.Kind == ir.Repeat })
	}
	return !over(a) && slices.ContainsFunc(all, over) && !slices.ContainsFunc(a.steps, func(s ir.Step) bool {
		return s.Kind != ir.Loop || ir.Iterations(s.Sizes) > longLoop
	})
}

// extend adds steps to the last of some pieces, as long as that has less than so many instructions.
func extend(all []piece, p piece, most int) []piece {
	if k := len(all) - 1; k >= 0 && all[k].times == p.times && all[k].parts == 0 && p.parts == 0 &&
		instructions(all[k].steps) < most {
		n := len(all[k].steps)
		all[k].steps = all[k].steps[:n+1]
		return all
	}
	return append(all, p)
}

// instructions is how much work a C compiler has with some steps.
func instructions(steps []ir.Step) int {
	n := 0
	for _, s := range ir.Leaves(steps) {
		n += 1 + len(s.Body)
	}
	return n
}

// emitPart writes the function of a part of a plan, called name.
func emitPart(p *ir.Plan, text *strings.Builder, name, suffix string, steps []ir.Step) error {
	all := pieces(steps)
	shared := sharedBuffers(p, all)
	w := whole{name: name, suffix: suffix}
	f := function{plan: p, layout: p.Place(), sums: newSums()}
	if len(all) > 1 {
		w.declare(p, text, shared)
	}
	for k, a := range all {
		f.lines, f.dense = nil, false
		f.plans(a, shared)
		for i := range a.steps {
			number := a.first
			if a.times == 0 {
				number += i
			}
			if err := f.step(number, &a.steps[i]); err != nil {
				return err
			}
		}
		f.write(text, &w, all, k)
		if text.Len() > maxText {
			return &TooLargeError{Instructions: instructions(steps), Bytes: text.Len()}
		}
	}
	w.end(text, all)
	return nil
}

// sharedBuffers are the places of the scratch that several pieces use, or one in several turns of a Repeat: the small
// buffers are members of one struct, whose elements a compiler tells apart.
func sharedBuffers(p *ir.Plan, all []piece) map[int]place {
	users, shared := map[int]int{}, map[int]place{}
	for k, a := range all {
		for _, s := range ir.Leaves(a.steps) {
			s.Accesses(func(buf, turn int, _ bool) {
				last, used := users[buf]
				users[buf] = k
				if (used && last != k || a.times > 0 && turn != 0) && p.Buffers[buf].Kind == ir.Work {
					shared[buf] = pointer
				}
			})
		}
	}
	left := stackBytes
	for buf, b := range p.Buffers {
		if size := (b.Len*8 + ir.Align - 1) / ir.Align * ir.Align; shared[buf] == pointer && size <= left {
			shared[buf] = member
			left -= size
		}
	}
	return shared
}

// whole is the function that calls those of the pieces.
type whole struct {
	name, suffix string
	calls        []string
}

// shared is the type of the shared buffers.
func (w *whole) shared() string { return w.name + "_shared" + w.suffix }

// of is the name of the function of a piece.
func (w *whole) of(k int, several bool) string {
	if !several {
		return w.name + "_body" + w.suffix
	}
	return w.name + "_body" + strconv.Itoa(k) + w.suffix
}

// part writes the function that runs one part of a piece, and has all of them run.
func (w *whole) part(text *strings.Builder, k int, a piece, several bool, call string) string {
	name, shared, at := fmt.Sprintf("%s_part%d%s", w.name, k, w.suffix), "", "(void *)0"
	if several {
		shared, at = w.shared()+" *const shared = of->shared;\n", "shared"
	}
	fmt.Fprintf(text, "\nstatic void %s(const void *parts, long part) {\nconst kelvin_parts *const of = parts;\n"+
		"const kelvin_call *const c = of->call;\n(void)c;\n%s(void)%s;\n}\n", name, shared, call)
	return fmt.Sprintf("kelvin_in_parts(c, %d, %s, %s)", a.parts, name, at)
}

// declare writes the type of the shared buffers.
func (w *whole) declare(p *ir.Plan, text *strings.Builder, shared map[int]place) {
	fmt.Fprintf(text, "\ntypedef struct {\n")
	for i, b := range p.Buffers {
		if shared[i] == member {
			fmt.Fprintf(text, "double b%d[%d]%s;\n", i, b.Len, aligned(b.Len))
		}
	}
	fmt.Fprintf(text, "} %s;\n", w.shared())
}

// end writes the function of the part.
func (w *whole) end(text *strings.Builder, all []piece) {
	fmt.Fprintf(text, "\nKELVIN_EXPORT int kelvin_%s%s(const kelvin_call *c) {\n(void)c;\n", w.name, w.suffix)
	if len(all) == 1 {
		fmt.Fprintf(text, "return %s;\n}\n", w.calls[0])
		return
	}
	fmt.Fprintf(text, "%s memory KELVIN_ALIGNED, *const shared = &memory;\nint failed;\n", w.shared())
	for k, a := range all {
		if a.times > 0 && (k == 0 || all[k-1].times == 0 || all[k-1].first != a.first) {
			fmt.Fprintf(text, "for (long turn = 0; turn < %d; turn++) {\n", a.times)
		}
		fmt.Fprintf(text, "if ((failed = %s)) return failed;\n", w.calls[k])
		if a.times > 0 && (k+1 == len(all) || all[k+1].times == 0 || all[k+1].first != a.first) {
			text.WriteString("}\n")
		}
	}
	text.WriteString("return 0;\n}\n")
}

// aligned has a buffer of several vectors begin with a cache line.
func aligned(n int) string {
	if n < 8 {
		return ""
	}
	return " KELVIN_ALIGNED"
}
