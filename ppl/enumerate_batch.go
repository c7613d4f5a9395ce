package ppl

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

const (
	fewestAtOnce = 4   // variables that are summed out at once
	mostJoint    = 128 // joint values of one of them and its neighbours
	mostStates   = 5   // of which so many joint values are
	longChain    = 500 // variables of which a recording in the order of time takes too much memory: a megabyte each
)

// sumsAtOnce says whether steps of chains are summed out many at a time. While operations are recorded that is so for
// two states and for long chains: else the compiler makes a faster loop of the order of time.
func (p *sumPlan) sumsAtOnce() bool {
	if !ts.KelvinRecorded() {
		return true
	}
	states := 0
	for _, c := range p.classes {
		states = max(states, c.size)
	}
	return states <= 2 || states <= mostStates && p.count > longChain
}

// sumAtOnce sums variables out many at a time, where their tables look alike: of a chain every second one, then every
// second of those that are left, and so on. A chain of n steps takes some ten operations for each doubling of n that
// way, where it takes as many for each step in the order of time. It costs as many numbers more as a variable has
// values, so that variables of many values are left to that order.
func (e *enumeration) sumAtOnce(tables []*table, local []*variable) ([]*table, []*variable) {
	for {
		batch := e.alike(tables, local)
		if batch == nil {
			return tables, local
		}
		gone, used := map[*variable]bool{}, map[*table]bool{}
		for _, m := range batch {
			gone[m.v] = true
			for _, f := range m.tables {
				used[f] = true
			}
		}
		tables = slices.DeleteFunc(slices.Clone(tables), func(f *table) bool { return used[f] })
		local = slices.DeleteFunc(slices.Clone(local), func(v *variable) bool { return gone[v] })
		tables = append(tables, e.sumBatch(batch)...)
	}
}

// summand is a variable with all of its tables, and the other variables in these.
type summand struct {
	v      *variable
	tables []*table
	near   []*variable
	joint  int // values of all of them
	key    string
}

// describe sorts the tables, and says what they look like, and of which tensors they are rows: others would have to be
// put together one by one. The tensors have numbers, not addresses: two evaluations have one order.
func (m *summand) describe(number map[torch.Tensor]int) {
	for _, f := range m.tables {
		for _, w := range f.vars {
			if w != m.v && !slices.Contains(m.near, w) {
				m.near = append(m.near, w)
			}
		}
	}
	slices.SortFunc(m.near, func(a, b *variable) int { return cmp.Compare(a.id, b.id) })
	m.joint = m.v.size
	for _, w := range m.near {
		m.joint *= w.size
	}
	all := slices.Clone(m.tables)
	keys := make([]string, len(all))
	var key []byte
	for k, f := range m.tables {
		key = key[:0]
		for i, w := range f.vars {
			key = append(key, byte('b'+slices.Index(m.near, w))) // 'a' is its own
			key = strconv.AppendInt(key, int64(f.shape[i]), 10)
		}
		for _, n := range f.shape[len(f.vars):] {
			key = strconv.AppendInt(append(key, ' '), int64(n), 10)
		}
		keys[k] = string(fmt.Appendf(key, "@%d/", number[f.row.in]))
	}
	slices.SortStableFunc(m.tables, func(a, b *table) int {
		return strings.Compare(keys[slices.Index(all, a)], keys[slices.Index(all, b)])
	})
	slices.Sort(keys)
	m.key = strings.Join(keys, "")
}

// alike are variables that look alike and are in no table together: those of the fewest joint values, and of them the
// most. It is nil where there are too few.
func (e *enumeration) alike(tables []*table, local []*variable) []*summand {
	if len(local) < fewestAtOnce {
		return nil
	}
	of := map[*variable]*summand{}
	all := make([]*summand, len(local))
	for i, v := range local {
		all[i] = &summand{v: v}
		of[v] = all[i]
	}
	number := map[torch.Tensor]int{}
	for _, f := range tables {
		if _, known := number[f.row.in]; !known {
			number[f.row.in] = len(number)
		}
		for _, v := range f.vars {
			if m := of[v]; m != nil {
				m.tables = append(m.tables, f)
			}
		}
	}
	slices.SortFunc(all, func(a, b *summand) int { return cmp.Compare(a.v.id, b.v.id) })
	batches, taken := map[string][]*summand{}, map[string]map[*variable]bool{}
	var best []*summand
	for _, m := range all {
		m.describe(number)
		if m.joint > mostJoint || len(m.near) == 0 {
			continue
		}
		if taken[m.key] == nil {
			taken[m.key] = map[*variable]bool{}
		}
		if slices.ContainsFunc(m.near, func(w *variable) bool { return taken[m.key][w] }) {
			continue
		}
		taken[m.key][m.v] = true
		b := append(batches[m.key], m)
		batches[m.key] = b
		if len(b) < fewestAtOnce || float64(len(b))*e.numel(append(m.near, m.v), m.tables[0].plates) > maxTable {
			continue
		}
		if best == nil || m.joint < best[0].joint || m.joint == best[0].joint && len(b) > len(best) {
			best = b
		}
	}
	return best
}

// sumBatch is the sum over each of several variables of its tables.
func (e *enumeration) sumBatch(batch []*summand) []*table {
	m := batch[0]
	var sum torch.Tensor
	var shape []int
	for j := range m.tables {
		of := make([]*table, len(batch))
		for i, m := range batch {
			of[i] = m.tables[j]
		}
		t, one := together(of), m.tables[j].alignedTo(append([]*variable{m.v}, m.near...))
		wide := append([]int{t.Shape()[0]}, one.shape...)
		if !slices.IsSorted(one.order) {
			t = torch.Of(t.T().MustPermute(torch.Int64s(one.order), false))
		}
		if t = t.Reshape(wide...); j == 0 {
			sum, shape = t, wide
		} else {
			sum, shape = sum.Add(t), broadcast(shape, wide)
		}
	}
	sum = sum.LogSumExp(1)
	shape = slices.Delete(shape, 1, 2)
	out := make([]*table, len(batch))
	for i, m := range batch {
		out[i] = &table{shape: shape[1:], vars: m.near, plates: m.tables[0].plates, scale: m.tables[0].scale, of: m.tables,
			row: row{sum, min(i, shape[0]-1)}}
	}
	return out
}

// row is a table as a part of a tensor that has several of them, along its first dimension.
type row struct {
	in torch.Tensor
	at int
}

// view is how the dimensions of rows are ordered and reshaped to have more variables.
type view struct{ order, shape []int }

// alignedTo is a view of rows like a table over more variables, whose shape is without the rows.
func (f *table) alignedTo(vars []*variable) view {
	v := view{order: []int{0}}
	for _, w := range vars {
		at := slices.Index(f.vars, w)
		if at < 0 {
			v.shape = append(v.shape, 1)
			continue
		}
		v.order, v.shape = append(v.order, at+1), append(v.shape, f.shape[at])
	}
	for i := len(f.vars); i < len(f.shape); i++ {
		v.order = append(v.order, i+1)
	}
	v.shape = append(v.shape, f.shape[len(f.vars):]...)
	return v
}

// together are tables along a new first dimension, which has size 1 where they are all the same.
func together(of []*table) torch.Tensor {
	first := of[0].row
	differs := func(f *table) bool { return f.row.in != (torch.Tensor{}) || f.t.T() != of[0].t.T() }
	if first.in == (torch.Tensor{}) && !slices.ContainsFunc(of, differs) {
		return of[0].t.Unsqueeze(0)
	}
	step := of[1].row.at - first.at
	for i, f := range of {
		if f.row.in == (torch.Tensor{}) || f.row.in != first.in || f.row.at != first.at+i*step || step < 0 {
			all := make([]any, len(of))
			for i, f := range of {
				all[i] = f.tensor()
			}
			return torch.Stack(0, all...)
		}
	}
	if step == 0 {
		return first.in.Slice(0, first.at, first.at+1)
	}
	return every(first.in, first.at, step, len(of))
}

// every are n rows, step by step. Compiled, parts of a reshaped tensor are boxes of memory, also of its gradient, where
// a slice with a step is many rows.
func every(t torch.Tensor, from, step, n int) torch.Tensor {
	shape := t.Shape()
	whole := n
	if from+n*step > shape[0] {
		whole-- // the last one has no full step behind it
	}
	if step == 1 || whole == 0 {
		return t.Slice(0, from, from+n)
	}
	groups := append([]int{whole, step}, shape[1:]...)
	out := torch.Of(t.Slice(0, from, from+whole*step).Reshape(groups...).T().MustSelect(1, 0, false))
	if whole < n {
		last := from + whole*step
		out = torch.Cat(0, []torch.Tensor{out, t.Slice(0, last, last+1)})
	}
	return out
}

// tensor is the table's tensor, taken from that of several tables where it is a part of one.
func (f *table) tensor() torch.Tensor {
	if _, none := f.t.Number(); none && f.row.in != (torch.Tensor{}) {
		f.t = f.row.in.At(f.row.at)
	}
	return f.t
}
