package cc

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// hazards finds accesses whose order matters.
func (n *nest) hazards() error {
	for k := range n.body {
		w := &n.body[k]
		if !w.Op.Writes() {
			continue
		}
		reduces := w.Op >= ir.Sum && w.Op <= ir.MaxOf
		if reduces && w.At.Index != nil {
			return &UnsupportedError{n.step, fmt.Sprintf("instruction %d reduces into elements chosen by an index", k)}
		}
		for j := range n.body {
			o := &n.body[j]
			var reads []*ir.Address
			switch {
			case o.Op == ir.Load:
				reads = append(reads, &o.At)
			case !o.Op.Writes():
				continue
			}
			if o.At.Index != nil {
				reads = append(reads, o.At.Index)
			}
			for _, a := range reads {
				if a.Buf != w.At.Buf || n.apart(a, &w.At) {
					continue
				}
				if reduces {
					return &UnsupportedError{n.step, fmt.Sprintf("instruction %d reads what instruction %d reduces into", j, k)}
				}
				n.ordered[a.Buf] = true
				if w.Op == ir.ScatterAdd || !n.same(a, &w.At) {
					n.vector = false
				}
			}
			if j < k && o.Op.Writes() && o.At.Buf == w.At.Buf && !n.apart(&o.At, &w.At) {
				if reduces || o.Op >= ir.Sum && o.Op <= ir.MaxOf {
					return &UnsupportedError{n.step, fmt.Sprintf("instructions %d and %d write the same elements", j, k)}
				}
				n.ordered[w.At.Buf] = true
				if !n.same(&o.At, &w.At) {
					n.vector = false
				}
			}
		}
	}
	return nil
}

// span is the range of elements that an address can reach, the index apart, and a number that divides every step.
func (n *nest) span(a *ir.Address) (lo, hi, step int) {
	lo, hi = a.Off, a.Off
	for d, s := range a.Strides {
		lo += min(0, s*(n.sizes[d]-1))
		hi += max(0, s*(n.sizes[d]-1))
		step = ir.Divisor(step, s)
	}
	if a.Index != nil {
		lo, hi = 0, n.f.plan.Buffers[a.Buf].Len-1
		step = ir.Divisor(step, a.Scale)
	}
	return lo, hi, step
}

// apart says whether two addresses of one buffer surely never meet in one turn.
func (n *nest) apart(a, b *ir.Address) bool {
	if a.Turn != b.Turn {
		return false
	}
	alo, ahi, as := n.span(a)
	blo, bhi, bs := n.span(b)
	if ahi < blo || bhi < alo {
		return true
	}
	g := ir.Divisor(as, bs)
	return g > 1 && (a.Off-b.Off)%g != 0
}

// same says whether two addresses meet within one iteration of the innermost loop alone.
func (n *nest) same(a, b *ir.Address) bool {
	r := len(n.sizes)
	return a.Index == nil && b.Index == nil && a.Off == b.Off && a.Turn == b.Turn &&
		slices.Equal(a.Strides, b.Strides) &&
		(r == 0 || a.Strides[r-1] != 0)
}
