package cc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// gcc makes x of x + a - a where it may reorder sums, and that is no number where a is infinite. Barriers keep it from
// doing so, but its vectoriser drops them. So in loops a sum is hidden where one of its terms comes again, with the
// other sign, in what it is added to: its bits are exchanged by those of a number that the compiler does not know to be
// 0. In other sums nothing cancels.

// terms are what a value is a sum of: numbers of equal values with their signs, plus or minus or both.
type terms map[int]sign

type sign uint8

const (
	plus sign = 1 << iota
	minus
)

// mostTerms is how many terms of a sum are looked at; one with more is always hidden.
const mostTerms = 64

// large is from where on constants are terms, all of them one: smaller ones add up to what rounds less.
const (
	large     = 0x1p40
	constants = 0
)

func (s sign) times(by sign) sign {
	if by == minus {
		return s>>1 | s<<1&minus
	}
	return s
}

// add adds the terms of another value, or takes them away.
func (x terms) add(y terms, by sign) {
	for t, s := range y {
		if len(x) <= mostTerms {
			x[t] |= s.times(by)
		}
	}
}

// sums is what a function knows of the sums of its loops. Two loops read one element by different strides, so that of
// what a loop has stored, terms are known by their buffers too: as -1 - the number of the buffer.
type sums struct {
	numbers map[string]int // of values, by what they are
	buffers map[int]int    // of values that are read
	stored  map[int]terms  // in a buffer
}

func newSums() sums {
	return sums{numbers: map[string]int{}, buffers: map[int]int{}, stored: map[int]terms{}}
}

// number is the same for equal values of a loop.
func (s *sums) number(what string) int {
	n, ok := s.numbers[what]
	if !ok {
		n = len(s.numbers) + 1 // 0 is of constants
		s.numbers[what] = n
	}
	return n
}

// cancels says whether a term of x cancels one of y in x + by·y.
func (s *sums) cancels(x, y terms, by sign) bool {
	if len(x) > mostTerms || len(y) > mostTerms {
		return true
	}
	for t, had := range x {
		against := y[t]
		if from, read := s.buffers[t]; read {
			against |= y[-1-from]
		}
		if had.times(minus)&against.times(by) != 0 {
			return true
		}
	}
	return false
}

// sum notes what an instruction is a sum of. It is called in order.
func (n *nest) sum(k int) {
	in, s := &n.body[k], &n.f.sums
	if in.Op.Writes() {
		n.store(in)
		return
	}
	of := terms{}
	what := fmt.Sprint(in.Op)
	constant, number := in.Op == ir.Num, in.Num
	switch {
	case in.Op == ir.Load && n.f.places[in.At.Buf] == literal:
		constant, number = true, n.f.plan.Buffers[in.At.Buf].Data[0]
		what += fmt.Sprint(" of ", in.At.Buf)
	case constant:
		what += fmt.Sprint(math.Float64bits(number))
	case in.Op == ir.Coord:
		what += fmt.Sprint(in.Dim, " of ", n.step)
	case in.Op == ir.Load:
		what += fmt.Sprint(in.At.Buf, in.At.Off, in.At.Turn, in.At.Strides)
		if x := in.At.Index; x != nil {
			what += fmt.Sprint(in.At.Scale, *x)
		}
		of.add(s.stored[in.At.Buf], plus)
	default:
		for _, a := range in.Operands() {
			what += fmt.Sprint(" ", n.numbers[a])
		}
	}
	own := s.number(what)
	n.numbers[k], n.terms[k] = own, of
	if in.Op == ir.Load && !constant {
		s.buffers[own] = in.At.Buf
	}
	switch {
	case constant:
		if math.Abs(number) >= large {
			of[constants] = plus | minus
		}
	case n.levels[k] == 0: // outside of loops nothing becomes a vector, and barriers stay
		of[own] = plus
	case in.Op == ir.Add:
		of.add(n.terms[in.A], plus)
		of.add(n.terms[in.B], plus)
	case in.Op == ir.Sub:
		of.add(n.terms[in.A], plus)
		of.add(n.terms[in.B], minus)
	case in.Op == ir.Neg:
		of.add(n.terms[in.A], minus)
	case in.Op == ir.Select:
		of.add(n.terms[in.B], plus)
		of.add(n.terms[in.C], plus)
	default:
		of[own] = plus
	}
}

// store notes what an instruction writes.
func (n *nest) store(in *ir.Instr) {
	s := &n.f.sums
	had := s.stored[in.At.Buf]
	if had == nil {
		had = terms{}
		s.stored[in.At.Buf] = had
	}
	had.add(n.terms[in.A], plus)
	for t, sign := range n.terms[in.A] {
		if from, read := s.buffers[t]; read {
			had[-1-from] |= sign
		}
	}
}

// hidden are the operands of a sum, as C: those that are sums themselves are hidden where something cancels.
func (n *nest) hidden(k int) (a, b string) {
	in := &n.body[k]
	a, b = n.values[in.A], n.values[in.B]
	x, y, by := n.terms[in.A], n.terms[in.B], plus
	if in.Op == ir.Sub {
		by = minus
	}
	if s := &n.f.sums; n.levels[k] == 0 || !s.cancels(x, y, by) && !s.cancels(y, x, by) {
		return a, b
	}
	hide := func(of terms, v string) string {
		if len(of) <= 1 {
			return v
		}
		if !n.hides {
			n.hides = true
			n.add(0, "const int64_t hide%d = kelvin_nothing();", n.step)
		}
		return fmt.Sprintf("kelvin_hide(%s, hide%d)", v, n.step)
	}
	return hide(x, a), hide(y, b)
}
