package lower

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// item is a unit of work: an operation at each point of a space, or a step on matrices.
type item struct {
	v     *value
	what  what
	space []int
	args  []ref
	dst   ref // where a store, a reduction or a scatter writes
	after int // how many other items of the value come first
	rank  int // its place in the order of making
	form  int // the number of its space
	done  bool
}

// longLoop is how many iterations a loop has that is worth another one beside it.
const longLoop = 32

type what uint8

const (
	compute  what = iota // a pointwise value
	store                // a cell of an assembled value
	combine              // a reduction
	addTo                // a scatter
	checked              // an index
	operator             // a step on matrices
	over                 // a loop over time
)

// group is a fused loop, or one operator.
type group struct {
	space []int
	items []*item
}

// scheduler orders the items of one part of a plan: greedily, as many as can be in each loop.
type scheduler struct {
	items  []*item
	left   map[*value]int // items of a value that are not done; values without are there from the start
	reads  map[*value]int // how often items read a value
	spaces [][]int        // that items have, each once
	finer  [][]bool       // whether a space of these is another one, the second, with some dimensions split
	groups []group
}

// number is the number of a space of an item.
func (s *scheduler) number(space []int) int {
	if k := slices.IndexFunc(s.spaces, func(x []int) bool { return slices.Equal(x, space) }); k >= 0 {
		return k
	}
	s.spaces = append(s.spaces, space)
	s.finer = append(s.finer, nil)
	for i := range s.finer {
		for j := len(s.finer[i]); j < len(s.spaces); j++ {
			s.finer[i] = append(s.finer[i], fits(s.spaces[j], s.spaces[i]))
		}
	}
	return len(s.spaces) - 1
}

// itemsOf is the work that makes a value.
func itemsOf(v *value) []*item {
	switch v.kind {
	case pointwise:
		return []*item{{v: v, what: compute, space: v.sizes, args: v.args}}
	case reduce:
		return []*item{{v: v, what: combine, space: v.sizes, args: v.args,
			dst: ref{v: v, strides: keptStrides(v.sizes, v.keep)}}}
	case index:
		return []*item{{v: v, what: checked, space: v.sizes, args: v.args, dst: whole(v, v.sizes)}}
	case matrices:
		return []*item{{v: v, what: operator, space: v.sizes, args: v.args}}
	case turns:
		return []*item{{v: v, what: over, args: v.args}}
	case assemble, scatter:
		sizes := v.sizes
		if v.kind == scatter {
			sizes = v.step.Sizes
		}
		var out []*item
		for _, c := range v.cells {
			out = append(out, storeOf(v, sizes, c))
		}
		out = inStep(out)
		if v.kind == scatter {
			dst := v.place
			dst.v = v
			out = append(out, &item{v: v, what: addTo, space: v.sizes, args: v.args[:1], dst: dst, after: len(out)})
		}
		return out
	}
	return nil
}

// storeOf copies a cell to its place.
func storeOf(v *value, sizes []int, c cell) *item {
	dst := whole(v, sizes).at(c.lo)
	var dims []int
	for d, n := range c.sizes {
		if n > 1 {
			dims = append(dims, d)
		}
	}
	slices.SortStableFunc(dims, func(a, b int) int { return abs(c.ref.strides[b]) - abs(c.ref.strides[a]) })
	space, refs := collapse(picked(c.sizes, dims), []ref{c.ref.pick(dims), dst.pick(dims)})
	return &item{v: v, what: store, space: space, args: refs[:1], dst: refs[1]}
}

// inStep makes one of stores that follow one another at equal distances, as those of what turns make in turn.
func inStep(stores []*item) []*item {
	if len(stores) < fewestTurns {
		return stores
	}
	alike, keys := map[string][]*item{}, []string{}
	for i, it := range stores {
		key := fmt.Sprintf("%p %v %v %v", it.args[0].v, it.space, it.args[0].strides, it.dst.strides)
		if it.args[0].ix != nil || it.dst.ix != nil {
			key = fmt.Sprint(i)
		}
		if alike[key] == nil {
			keys = append(keys, key)
		}
		alike[key] = append(alike[key], it)
	}
	var out []*item
	for _, key := range keys {
		all := alike[key]
		slices.SortStableFunc(all, func(a, b *item) int { return a.dst.off - b.dst.off })
		for len(all) > 0 {
			n := evenly(all)
			if n < fewestTurns {
				out, all = append(out, all[0]), all[1:]
				continue
			}
			out, all = append(out, oneStore(all[:n])), all[n:]
		}
	}
	return out
}

// evenly is how many stores are at equal distances, from the first on.
func evenly(all []*item) int {
	distance := func(i int) [2]int {
		a, b := all[i], all[i+1]
		return [2]int{b.args[0].off - a.args[0].off, b.dst.off - a.dst.off}
	}
	n := 1
	for n < len(all) && distance(n-1) == distance(0) {
		n++
	}
	return n
}

// oneStore is several stores as one, with a dimension in front that goes from one to the next.
func oneStore(all []*item) *item {
	it := *all[0]
	ahead := func(r, next ref) ref {
		r.strides = append([]int{next.off - r.off}, r.strides...)
		return r
	}
	space, refs := collapse(append([]int{len(all)}, it.space...),
		[]ref{ahead(it.args[0], all[1].args[0]), ahead(it.dst, all[1].dst)})
	it.space, it.args, it.dst = space, refs[:1], refs[1]
	return &it
}

// schedule orders the work for some values of a stage.
func schedule(values []*value, part stage) []group {
	s := &scheduler{left: map[*value]int{}, reads: map[*value]int{}}
	for _, v := range values {
		if v.stage != part || v.kind == index && v.data != nil {
			continue
		}
		for _, it := range itemsOf(v) {
			it.rank, it.form = len(s.items), s.number(it.space)
			s.items = append(s.items, it)
			s.left[v]++
			for _, r := range it.args {
				s.reads[r.v]++
			}
		}
	}
	remaining := s.items
	for len(remaining) > 0 {
		g := s.next(remaining)
		if len(g.items) == 0 {
			refuse("%d items wait for one another", len(remaining))
		}
		s.finish(g)
		remaining = slices.DeleteFunc(slices.Clone(remaining), func(it *item) bool { return it.done })
	}
	return s.groups
}

func (s *scheduler) finish(g group) {
	for _, it := range g.items {
		it.done = true
		s.left[it.v]--
	}
	s.groups = append(s.groups, g)
}

// waits says whether a value is still to be made.
func (s *scheduler) waits(v *value) bool {
	if v.kind == series {
		v = v.again.loop
	}
	return s.left[v] > 0
}

// alone says whether an item is a step of its own.
func (it *item) alone() bool { return it.what == operator || it.what == over }

// ready says whether all that an item reads is in memory.
func (s *scheduler) ready(it *item) bool {
	for _, r := range it.args {
		if s.waits(r.v) || r.ix != nil && s.waits(r.ix.v) {
			return false
		}
	}
	return s.started(it)
}

// started says whether a scatter's array is filled and its index known.
func (s *scheduler) started(it *item) bool {
	return it.what != addTo || s.left[it.v] == 1 && s.left[it.dst.ix.v] == 0
}

// next is the group to do: an operator or numbers where some are ready, else the loop that holds the most.
func (s *scheduler) next(remaining []*item) group {
	var forms []int
	has := make([]bool, len(s.spaces))
	for _, it := range remaining {
		if has[it.form] && !it.alone() || !s.ready(it) {
			continue
		}
		if it.alone() {
			return group{items: []*item{it}}
		}
		has[it.form], forms = true, append(forms, it.form)
	}
	if k := slices.IndexFunc(forms, func(f int) bool { return len(s.spaces[f]) == 0 }); k >= 0 {
		return group{space: []int{}, items: s.closure(remaining, forms[k])}
	}
	// A space may be a finer form of that of a ready item.
	for _, it := range remaining {
		if !it.alone() && !has[it.form] && slices.ContainsFunc(forms, func(f int) bool {
			x := s.spaces[f]
			return len(x) > 0 && len(it.space) > len(x) && s.finer[it.form][f]
		}) {
			has[it.form], forms = true, append(forms, it.form)
		}
	}
	var best group
	for _, f := range forms {
		if items := s.closure(remaining, f); len(items) > len(best.items) {
			best = group{s.spaces[f], items}
		}
	}
	best.items = apart(best)
	best.items = s.deferred(best)
	return best
}

// apart leaves scatters out of a long loop that computes something too: a loop with a scatter cannot run in vectors.
// They get a loop of their own.
func apart(g group) []*item {
	adds := func(it *item) bool { return it.what == addTo }
	if ir.Iterations(g.space) < longLoop || !slices.ContainsFunc(g.items, adds) {
		return g.items
	}
	rest := slices.DeleteFunc(slices.Clone(g.items), adds)
	if !slices.ContainsFunc(rest, func(it *item) bool { return it.what == compute }) {
		return g.items
	}
	return rest
}

// fits says whether a space is another with some dimensions split.
func fits(coarse, fine []int) bool {
	_, ok := split(coarse, fine)
	return ok
}

// split is how many dimensions of the fine space each of the coarse one has.
func split(coarse, fine []int) ([]int, bool) {
	var counts []int
	k := 0
	for _, n := range coarse {
		product, count := 1, 0
		for k < len(fine) && product < n {
			product *= fine[k]
			k++
			count++
		}
		if product != n {
			return nil, false
		}
		counts = append(counts, count)
	}
	return counts, k == len(fine)
}

// refine is a reference in a finer space.
func (r ref) refine(coarse, fine []int) ref {
	if slices.Equal(coarse, fine) {
		return r
	}
	counts, _ := split(coarse, fine)
	return r.with(func(own []int) (strides []int) {
		k := 0
		for d, count := range counts {
			for _, s := range contiguous(fine[k : k+count]) {
				strides = append(strides, s*own[d])
			}
			k += count
		}
		return strides
	})
}

// closure are the items that can be done together in one loop over a space.
func (s *scheduler) closure(remaining []*item, form int) []*item {
	var out []*item
	inside := map[*value]bool{}
	space := s.spaces[form]
	own := contiguous(space)
	for _, it := range remaining {
		if it.alone() || !s.finer[form][it.form] {
			continue
		}
		ok := s.started(it)
		for _, r := range it.args {
			if r.ix != nil && s.waits(r.ix.v) {
				ok = false
			}
			if !s.waits(r.v) || !ok {
				continue
			}
			f := r.refine(it.space, space)
			ok = inside[r.v] && r.ix == nil && f.off == 0 && slices.Equal(f.strides, own)
		}
		if ok {
			out = append(out, it)
			if it.what == compute {
				inside[it.v] = true
			}
		}
	}
	return out
}

// wide is how many numbers are too many for a cache.
const wide = 1 << 13

// deferred leaves out what nothing in the loop needs and a later loop can compute as well: it would go through memory.
// Of what the loop makes it is made of numbers alone that go through memory anyway.
func (s *scheduler) deferred(g group) []*item {
	uses := map[*value]int{}
	made := map[*value]*item{}
	for _, it := range g.items {
		if it.what == compute {
			made[it.v] = it
		}
		for _, r := range it.args {
			uses[r.v]++
		}
	}
	inside := maps.Clone(uses)
	var waits func(it *item) bool // what it is made of is there without this loop too, or can wait with it
	waits = func(it *item) bool {
		return !slices.ContainsFunc(it.args, func(r ref) bool {
			by := made[r.v]
			return by != nil && (it.v.n < wide || !cheap(it.v.op) || s.reads[r.v] == inside[r.v] &&
				(inside[r.v] > 1 || !waits(by)))
		})
	}
	items := slices.Clone(g.items)
	for k := len(items) - 1; k >= 0; k-- {
		it := items[k]
		if it.what != compute || uses[it.v] > 0 || ir.Iterations(g.space) == 1 {
			continue
		}
		if !waits(it) {
			continue
		}
		for _, r := range it.args {
			uses[r.v]--
		}
		items = slices.Delete(items, k, k+1)
	}
	if len(items) == 0 {
		return g.items
	}
	return items
}

// cheap says whether an operation takes less time than a number takes from memory.
func cheap(op ir.Op) bool { return op == copyOf || op == ir.Neg || op >= ir.Add && op <= ir.Mul }
