package cc

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// short is below how many iterations a loop gains nothing from vectors.
const short = 8

// rotate makes another dimension the innermost one where that is too short for vectors. It does so only where the order
// of the iterations is of no account: nothing that is written is read or written again, except by sums.
func (n *nest) rotate() {
	r := len(n.sizes)
	if r < 2 || n.sizes[r-1] >= short {
		return
	}
	best, most := r-1, score(n.sizes[r-1], n.strides(r-1)...)
	for d, size := range n.sizes[:r-1] {
		if v := score(size, n.strides(d)...); size >= short && v > most {
			best, most = d, v
		}
	}
	if best == r-1 || !n.free() {
		return
	}
	last := func(list []int) []int {
		v := list[best]
		return append(slices.Delete(slices.Clone(list), best, best+1), v)
	}
	n.sizes = last(n.sizes)
	for k := range n.body {
		in := &n.body[k]
		switch {
		case in.Op == ir.Coord && in.Dim == best:
			in.Dim = r - 1
		case in.Op == ir.Coord && in.Dim > best:
			in.Dim--
		case in.Op == ir.Load || in.Op.Writes():
			in.At.Strides = last(in.At.Strides)
			if in.At.Index != nil {
				x := *in.At.Index
				x.Strides = last(x.Strides)
				in.At.Index = &x
			}
		}
	}
}

// strides are two that stand for all of a dimension: the largest of a load, and of a write. One that is reduced over
// counts as a unit.
func (n *nest) strides(d int) []int {
	read, written := 0, 0
	for k := range n.body {
		switch in := &n.body[k]; {
		case in.Op == ir.Load:
			read = max(read, in.At.Strides[d], -in.At.Strides[d])
		case in.Op.Writes():
			written = max(written, in.At.Strides[d], -in.At.Strides[d])
		}
	}
	return []int{max(read, 1), max(written, 1)}
}

// free says whether the order of iterations is of no account.
func (n *nest) free() bool {
	written := map[int][]*ir.Address{}
	for k := range n.body {
		in := &n.body[k]
		if !in.Op.Writes() {
			continue
		}
		reduces := in.Op >= ir.Sum && in.Op <= ir.MaxOf
		if !reduces && (in.At.Index != nil || !in.At.Injective(n.sizes)) {
			return false
		}
		for _, a := range written[in.At.Buf] {
			if !n.apart(a, &in.At) {
				return false
			}
		}
		written[in.At.Buf] = append(written[in.At.Buf], &in.At)
	}
	for k := range n.body {
		in := &n.body[k]
		if in.Op != ir.Load {
			continue
		}
		for _, a := range written[in.At.Buf] {
			if !n.apart(a, &in.At) {
				return false
			}
		}
		if in.At.Index != nil && written[in.At.Index.Buf] != nil {
			return false
		}
	}
	return true
}
