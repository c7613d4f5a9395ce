package ppl

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// table is a term of a log density over discrete variables: a tensor with a dimension for each of them, in their order,
// and then those of the plates.
type table struct {
	t      torch.Tensor
	shape  []int // of t
	vars   []*variable
	plates []Plate
	scale  float64  // without the plates' part
	site   *Site    // whose density it is; nil for a sum
	of     []*table // that a sum is made of
	shared bool     // the tensor is that of other steps of a loop too
	row    row      // of which t is taken where it is needed
}

// first is the first site of a table.
func (f *table) first() *Site {
	for f.site == nil {
		f = f.of[0]
	}
	return f.site
}

// sites are those whose densities are in a table, each once.
func (f *table) sites() (out []*Site) {
	seen, known, open := map[*table]bool{}, map[*Site]bool{}, []*table{f}
	for len(open) > 0 {
		f, open = open[len(open)-1], open[:len(open)-1]
		if seen[f] {
			continue
		}
		seen[f] = true
		if s := f.site; s != nil && !known[s] {
			known[s], out = true, append(out, s)
		}
		for i := len(f.of) - 1; i >= 0; i-- {
			open = append(open, f.of[i])
		}
	}
	return out
}

// numel is how many numbers the table has.
func (f *table) numel() int { return count(f.shape) }

func logOf(n int) float64 { return math.Log(float64(n)) }

// lowest stands for minus infinity in tables. Sums of 1e5 times it are finite.
func lowest(t torch.Tensor) float64 {
	if t.T().DType() == gotch.Double {
		return -1e290
	}
	return -1e32 // in float32
}

// add makes a site's log density a table. own is the variable whose site it is; nil for others.
func (e *enumeration) add(s *Site, logp torch.Tensor, own *variable) {
	f := e.frame(s, logp.Shape(), own, e.current)
	f.shared = e.shared[logp.T()] && e.reveal == nil
	if known, ok := e.views[viewKey{t: logp}]; ok && f.shared {
		f.t = known
	} else if f.t = filled(logp).Reshape(f.shape...); f.shared {
		e.views[viewKey{t: logp}] = f.t
	}
	if own != nil && e.reveal != nil {
		f.t = f.t.Add(e.reveal.leaf(e, own, f))
		f.shape = f.t.Shape()
	}
	if e.seen != nil {
		e.seen(s, f)
	}
	e.tables = append(e.tables, f)
}

// frame is the table of a site without its numbers. Its shape is that of the log density with the dimensions of the
// variables that it depends on, of those that slots stand for, and of the plates.
func (e *enumeration) frame(s *Site, shape []int, own *variable, current []*variable) *table {
	f := &table{scale: s.Scale / s.weight, plates: e.note(s), site: s}
	left := max(len(shape)-e.right, 0)
	for i, n := range shape[:left] {
		slot := left - 1 - i
		if n == 1 && (own == nil || slot != own.slot) {
			continue
		}
		if slot >= len(current) || current[slot] == nil || current[slot].size != n {
			s.fail("its log density has shape %v, with size %d at dimension %d, where no discrete variable of this size is: "+
				"formulas of discrete variables must broadcast (Take, Where, arithmetic), with vectors as the last dimensions of "+
				"an event", shape, n, i-len(shape))
		}
		f.vars = append(f.vars, current[slot])
		f.shape = append(f.shape, n)
	}
	for _, v := range f.vars {
		for _, p := range v.plates {
			if !slices.ContainsFunc(f.plates, func(q Plate) bool { return q.key() == p.key() }) {
				s.fail("it depends on %q, a discrete variable in plate %q, and is itself outside of that plate: the sum over all "+
					"combinations of the plate's variables has no short form; declare it inside", v.name, p.Name)
			}
		}
	}
	plates := shape[left:]
	for range e.right - len(plates) {
		f.shape = append(f.shape, 1)
	}
	f.shape = append(f.shape, plates...)
	return f
}

// filled is a log density with [lowest] for minus infinity: sums of that alone would have no gradient.
func filled(logp torch.Tensor) torch.Tensor { return logp.AtLeast(lowest(logp)) }

func unfilled(t torch.Tensor) torch.Tensor { return torch.Choose(t.Lt(lowest(t)/1e5), math.Inf(-1), t) }

// numel is how many numbers a table of some variables in some plates has, in float64 since it may be very large.
func (e *enumeration) numel(vars []*variable, plates []Plate) float64 {
	n := 1.0
	for _, v := range vars {
		n *= float64(v.size)
	}
	for _, p := range plates {
		n *= float64(e.usedOf(p))
	}
	return n
}

func (e *enumeration) usedOf(p Plate) int {
	if used := e.used[p.key()].Used; used > 0 {
		return used
	}
	return p.Size
}

// contract sums all variables out: one table without variables for each group of tables that have variables in common.
func (e *enumeration) contract(tables []*table) (results []*table) {
	tables = slices.Clone(tables)
	for len(tables) > 0 {
		leaf := slices.MaxFunc(tables, func(a, b *table) int { return cmp.Compare(len(a.plates), len(b.plates)) }).plates
		var group, rest []*table
		for _, f := range tables {
			if samePlates(f.plates, leaf) {
				group = append(group, f)
			} else {
				rest = append(rest, f)
			}
		}
		var crossing *table
		for _, part := range components(group, leaf) {
			switch f := e.eliminate(part, leaf); {
			case len(f.vars) == 0:
				results = append(results, f)
			case f.crosses():
				crossing, rest = f, append(rest, f)
			default:
				rest = append(rest, e.reduce(f))
			}
		}
		if tables = rest; crossing != nil {
			tables = e.unroll(crossing, rest)
		}
	}
	slices.SortStableFunc(results, func(a, b *table) int { return cmp.Compare(a.first().Name, b.first().Name) })
	return results
}

func samePlates(a, b []Plate) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(p Plate) bool { return !inPlates(p, b) })
}

func inPlates(p Plate, plates []Plate) bool {
	return slices.ContainsFunc(plates, func(q Plate) bool { return q.key() == p.key() })
}

// components are the tables that are connected by variables of their own plates.
func components(group []*table, leaf []Plate) (parts [][]*table) {
	of := map[*variable]int{} // number of a part
	var at []int
	find := func(i int) int {
		for at[i] != i {
			i = at[i]
		}
		return i
	}
	for i, f := range group {
		at = append(at, i)
		for _, v := range f.vars {
			if !samePlates(v.plates, leaf) {
				continue
			}
			if j, ok := of[v]; ok {
				at[find(i)] = find(j)
			}
			of[v] = find(i)
		}
	}
	where := map[int]int{}
	for i, f := range group {
		root := find(i)
		k, ok := where[root]
		if !ok {
			k = len(parts)
			where[root] = k
			parts = append(parts, nil)
		}
		parts[k] = append(parts[k], f)
	}
	return parts
}

// eliminate sums the variables of the innermost plates out of connected tables, one after the other.
func (e *enumeration) eliminate(tables []*table, leaf []Plate) *table {
	for _, f := range tables {
		if f.scale != tables[0].scale {
			f.first().fail("its log density counts %v times, and that of %q, which is in the same sum over discrete "+
				"variables, %v times: scales inside a sum must be equal", f.scale, tables[0].first().Name, tables[0].scale)
		}
	}
	var local []*variable
	known := map[*variable]bool{}
	for _, f := range tables {
		for _, v := range f.vars {
			if !known[v] && samePlates(v.plates, leaf) {
				local = append(local, v)
			}
			known[v] = true
		}
	}
	local = e.plan.order(e, tables, local)
	if !e.dry && e.reveal == nil && e.atOnce {
		tables, local = e.sumAtOnce(tables, local)
	}
	live := map[*variable][]*table{}
	for _, f := range tables {
		f.t, f.row = f.tensor(), row{}
		for _, v := range f.vars {
			live[v] = append(live[v], f)
		}
	}
	done := map[*table]bool{}
	for _, v := range local {
		var of []*table
		for _, f := range live[v] {
			if !done[f] {
				of = append(of, f)
				done[f] = true
			}
		}
		f := e.sumVariable(v, of)
		for _, w := range f.vars {
			live[w] = append(live[w], f)
		}
		tables = append(tables, f)
	}
	var last []*table
	for _, f := range tables {
		if !done[f] {
			last = append(last, f)
		}
	}
	return e.join(last, nil)
}

// join adds tables, with the variable first, if there is one, in front.
func (e *enumeration) join(tables []*table, first *variable) *table {
	if len(tables) == 1 && (first == nil || tables[0].vars[0] == first) {
		if e.dry {
			e.plan.weigh(e, tables[0])
		}
		return tables[0]
	}
	out := &table{plates: tables[0].plates, scale: tables[0].scale, of: tables}
	if first != nil {
		out.vars = append(out.vars, first)
	}
	var rest []*variable
	for _, f := range tables {
		for _, v := range f.vars {
			if v != first && !slices.Contains(rest, v) {
				rest = append(rest, v)
			}
		}
	}
	slices.SortFunc(rest, func(a, b *variable) int { return cmp.Compare(a.id, b.id) })
	out.vars = append(out.vars, rest...)
	if e.dry {
		e.plan.weigh(e, out)
		return out
	}
	sorted := slices.Clone(tables) // small tables are added first
	slices.SortStableFunc(sorted, func(a, b *table) int { return cmp.Compare(a.numel(), b.numel()) })
	sum := *sorted[0] // of those over the same variables, which need one view
	sorted = sorted[1:]
	for len(sorted) > 0 && slices.Equal(sorted[0].vars, sum.vars) {
		sum.t, sum.shared = sum.t.Add(sorted[0].t), false
		sum.shape = broadcast(sum.shape, sorted[0].shape)
		sorted = sorted[1:]
	}
	out.t, out.shape = e.align(&sum, out.vars)
	for _, f := range sorted {
		t, shape := e.align(f, out.vars)
		out.t, out.shape = out.t.Add(t), broadcast(out.shape, shape)
	}
	return out
}

// broadcast is the shape that two of the same number of dimensions broadcast to.
func broadcast(a, b []int) []int {
	out := slices.Clone(a)
	for i, n := range b {
		if out[i] == 1 {
			out[i] = n
		}
	}
	return out
}

// align is a table as a view over more variables, and the shape of that.
func (e *enumeration) align(f *table, vars []*variable) (torch.Tensor, []int) {
	if slices.Equal(f.vars, vars) {
		return f.t, f.shape
	}
	wide := make([]int, 0, len(vars)+e.right)
	order := make([]int, 0, len(f.shape))
	places := make([]byte, len(vars))
	for i, v := range vars {
		at := slices.Index(f.vars, v)
		if places[i] = byte(1 + at); at >= 0 {
			order, wide = append(order, at), append(wide, f.shape[at])
		} else {
			wide = append(wide, 1)
		}
	}
	wide = append(wide, f.shape[len(f.vars):]...)
	key := viewKey{t: f.t, places: string(places)}
	if known, ok := e.views[key]; ok && f.shared {
		return known, wide
	}
	for i := len(f.vars); i < len(f.shape); i++ {
		order = append(order, i)
	}
	t := f.t
	if !slices.IsSorted(order) {
		t = torch.Of(t.T().MustPermute(torch.Int64s(order), false))
	}
	t = t.Reshape(wide...)
	if f.shared {
		e.views[key] = t
	}
	return t, wide
}

// sumVariable is the sum over one variable of the tables that have it.
func (e *enumeration) sumVariable(v *variable, tables []*table) *table {
	f := *e.join(tables, v)
	switch {
	case e.dry:
	case e.reveal != nil:
		f.t, f.shape = e.reveal.choose(f.t), f.shape[1:]
	default:
		f.t, f.shape = f.t.LogSumExp(0), f.shape[1:]
	}
	f.vars, f.shared = f.vars[1:], false
	return &f
}

// reduce multiplies a table's repetitions in the plates that none of its variables is in. There is such a plate.
func (e *enumeration) reduce(f *table) *table {
	var outer []Plate
	for _, p := range f.plates {
		if slices.ContainsFunc(f.vars, func(v *variable) bool { return inPlates(p, v.plates) }) {
			outer = append(outer, p)
		}
	}
	out := *f
	out.plates = outer
	for _, p := range f.plates {
		if inPlates(p, outer) {
			continue
		}
		f.whole(p)
		if !e.dry {
			used := e.usedOf(p)
			if at := len(out.shape) + p.Dim; out.shape[at] == 1 && used > 1 {
				out.t = out.t.Mul(float64(used))
			} else if out.shape[at] > 1 {
				out.shape = slices.Clone(out.shape)
				out.shape[at] = 1
				out.t = torch.Of(out.t.T().MustSumDimIntlist([]int64{int64(p.Dim)}, true, out.t.T().DType(), false))
			}
			if used != p.Size {
				out.t = out.t.Mul(e.outer.weigh(p.Size, used))
			}
		}
	}
	return &out
}

func names[T any](of []T, name func(T) string) string {
	out := make([]string, len(of))
	for i, x := range of {
		out[i] = name(x)
	}
	return strings.Join(out, ", ")
}

// show shows the sites that depend on discrete variables to the handlers outside. The last observed one of each sum has
// its logarithm as its density.
func (e *enumeration) show(results []*table) {
	place := map[*Site]int{}
	for i, s := range e.held {
		s.summed, place[s] = &summed{mask: s.Mask}, i
	}
	var own []*Site
	for _, f := range results {
		t, scale := f.t, f.scale
		shape := slices.Clone(f.shape)
		for _, p := range f.plates {
			used := e.usedOf(p)
			shape[len(shape)+p.Dim] = used
			scale *= e.outer.weigh(p.Size, used)
		}
		if !slices.Equal(shape, f.shape) {
			t = t.Expand(shape...)
		}
		for len(shape) > 0 && shape[0] == 1 {
			shape = shape[1:]
		}
		t = t.Reshape(shape...)
		t = unfilled(t)
		var last *Site
		sites := f.sites()
		for _, s := range sites {
			if s.Observed && (last == nil || place[s] > place[last]) {
				last = s
			}
		}
		if e.reveal != nil {
			e.reveal.totals = append(e.reveal.totals, t.Sum())
		}
		if last != nil {
			last.Scale, last.summed.marginal, last.summed.with = scale, t, siteNames(sites)
			continue
		}
		own = append(own, &Site{Kind: KindFactor, Name: f.first().Name + " summed out", Value: t, Observed: true,
			Scale: scale, weight: 1, ctx: e.outer, summed: &summed{marginal: t, prior: true, with: siteNames(sites)}})
	}
	for _, s := range append(e.held, own...) {
		s.stop = false
		value := s.Value
		if e.outer.show(s); s.Value != value {
			s.fail("a handler outside of Enumerate gives it a value, after the discrete variables that it depends on have " +
				"been summed out: put the handler inside")
		}
	}
}

func siteNames(sites []*Site) []string {
	out := make([]string, len(sites))
	for i, s := range sites {
		out[i] = s.Name
	}
	return out
}

// elementwise is the part of a sum that a site has.
func (m *summed) elementwise(s *Site) torch.Tensor {
	if s.Mask != m.mask {
		s.fail("a handler outside of Enumerate masks it, and its density is a sum over discrete variables: put the mask " +
			"inside")
	}
	if m.marginal == (torch.Tensor{}) {
		return torch.Scalar(0)
	}
	return m.marginal
}
