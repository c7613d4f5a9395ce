package cc

import (
	"fmt"

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

// apart says whether two addresses of one buffer surely never meet in one turn.
func (n *nest) apart(a, b *ir.Address) bool {
	return a.Apart(b, n.sizes, n.f.plan.Buffers[a.Buf].Len)
}

// same says whether two addresses meet within one iteration of the innermost loop alone.
func (n *nest) same(a, b *ir.Address) bool {
	r := len(n.sizes)
	return a.Same(b) && (r == 0 || a.Strides[r-1] != 0)
}
