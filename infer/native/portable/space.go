package portable

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// simplify drops dimensions of one iteration, joins those that every address walks alike, and makes sure that there are
// two. It changes the addresses.
func simplify(sizes []int, list []instr) []int {
	var all []*address
	for _, in := range list {
		for a := in.at; a != nil; a = a.index {
			all = append(all, a)
		}
	}
	drop := func(d int) {
		for _, a := range all {
			a.strides = slices.Delete(a.strides, d, d+1)
		}
	}
	sizes = slices.Clone(sizes)
	for d := len(sizes) - 1; d >= 0; d-- {
		if sizes[d] == 1 {
			sizes = slices.Delete(sizes, d, d+1)
			drop(d)
		}
	}
	for d := len(sizes) - 2; d >= 0; d-- {
		if !slices.ContainsFunc(all, func(a *address) bool { return a.strides[d] != a.strides[d+1]*sizes[d+1] }) {
			sizes[d+1] *= sizes[d]
			sizes = slices.Delete(sizes, d, d+1)
			drop(d)
		}
	}
	for len(sizes) < 2 {
		sizes = slices.Insert(sizes, 0, 1)
		for _, a := range all {
			a.strides = slices.Insert(a.strides, 0, 0)
		}
	}
	return sizes
}

// conflicts says whether iterations must run one after the other, since one may read or write what another wrote, and
// which buffers an iteration writes and touches besides.
func conflicts(list []instr, sizes []int) (serial bool, touched map[int]bool) {
	touched = map[int]bool{}
	for i := range list {
		if !list[i].op.Writes() {
			continue
		}
		w := list[i].at
		for k := range list {
			for r := list[k].at; r != nil && k != i; r = r.index {
				if r.buf != w.buf || disjoint(w, r, sizes) {
					continue
				}
				touched[w.buf] = true
				sums := list[i].op == ir.ScatterAdd && list[k].op == ir.ScatterAdd
				if !sums && !(w.index == nil && w.same(r) && injective(w, sizes)) {
					serial = true
				}
			}
		}
	}
	return serial, touched
}

func (a *address) same(b *address) bool {
	return a.off == b.off && a.turn == b.turn && slices.Equal(a.strides, b.strides) && b.index == nil
}

// disjoint says that two addresses of one buffer reach no common element in a turn.
func disjoint(a, b *address, sizes []int) bool {
	if a.index != nil || b.index != nil || a.turn != b.turn {
		return false
	}
	step := 0
	var ends [2][2]int
	for i, x := range []*address{a, b} {
		lo, hi := x.off, x.off
		for d, s := range x.strides {
			lo, hi = lo+min(0, s*(sizes[d]-1)), hi+max(0, s*(sizes[d]-1))
			step = ir.Divisor(step, s)
		}
		ends[i] = [2]int{lo, hi}
	}
	return ends[0][1] < ends[1][0] || ends[1][1] < ends[0][0] || step > 1 && (a.off-b.off)%step != 0
}

// injective says that no two iterations reach one element: ordered by size, each stride is beyond what the smaller ones
// reach.
func injective(a *address, sizes []int) bool {
	abs := func(d int) int { return max(a.strides[d], -a.strides[d]) }
	var order []int
	for d := range sizes {
		if sizes[d] > 1 {
			order = append(order, d)
		}
	}
	slices.SortFunc(order, func(p, q int) int { return abs(p) - abs(q) })
	reach := 0
	for _, d := range order {
		if abs(d) <= reach {
			return false
		}
		reach += abs(d) * (sizes[d] - 1)
	}
	return true
}
