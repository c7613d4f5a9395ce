package ppl

import (
	"reflect"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// loopSites are the observed sites of loops over time whose densities are computed together: those of one name and one
// distribution, such as Normal(loc.Take(z), 1), which differ in their data alone. A chain is then as few operations as
// the forward algorithm, of which each step takes its densities from a table that was computed at once.
type loopSites struct {
	open map[string]*loopGroup // the last group of a name
	all  []*loopGroup
}

// loopGroup are sites of one distribution.
type loopGroup struct {
	dist  dist.Distribution
	shape []int // of the data of each
	sites []loopSite
}

// loopSite is a site whose table is still to be made.
type loopSite struct {
	*Site
	at      int         // the place of its table
	current []*variable // what slots stood for
}

// take notes a site whose density is computed later, and keeps its table's place. It is false for a site that is none
// of those, and where the compiler makes a loop of steps that compute their own.
func (l *loopSites) take(e *enumeration, s *Site) bool {
	if e.fix != nil || !e.atOnce || s.ctx.steps == "" || s.Kind != KindSample || !s.Observed ||
		s.Mask != (torch.Tensor{}) ||
		e.has(s.valueShape()) {
		return false
	}
	key := s.class() + s.ctx.slot
	g := l.open[key]
	if g == nil || !slices.Equal(g.shape, s.valueShape()) || !same(reflect.ValueOf(g.dist), reflect.ValueOf(s.given)) {
		g = &loopGroup{dist: s.given, shape: s.valueShape()}
		if l.open == nil {
			l.open = map[string]*loopGroup{}
		}
		l.open[key] = g
		l.all = append(l.all, g)
	}
	g.sites = append(g.sites, loopSite{s, len(e.tables), slices.Clone(e.current)})
	e.tables = append(e.tables, nil)
	return true
}

// finish makes the tables of the sites that were taken.
func (l *loopSites) finish(e *enumeration) {
	for _, g := range l.all {
		logps, shape := g.together(e)
		for i, s := range g.sites {
			var f *table
			if logps == (torch.Tensor{}) {
				own := e.logProb(s.Site)
				f = e.frame(s.Site, own.Shape(), nil, s.current)
				f.t = filled(own).Reshape(f.shape...)
			} else {
				f = e.frame(s.Site, shape, nil, s.current)
				f.row = row{logps, i}
			}
			e.tables[s.at] = f
		}
	}
	*l = loopSites{}
}

// together are the log densities of the sites along the first dimension of one tensor, in the shape of their tables,
// and the shape that each would have alone. They are nil for a single site, and for a distribution that does not take
// many data at once.
func (g *loopGroup) together(e *enumeration) (logps torch.Tensor, shape []int) {
	if len(g.sites) == 1 {
		return torch.Tensor{}, nil
	}
	n := len(g.sites)
	values := make([]any, n)
	for i, s := range g.sites {
		values[i] = s.Value
	}
	batch, event := len(g.dist.BatchShape()), len(g.dist.EventShape())
	stacked := []int{n}
	for range batch + event - len(g.shape) {
		stacked = append(stacked, 1)
	}
	all := g.dist.LogProb(torch.Stack(0, values...).Reshape(append(stacked, g.shape...)...))
	shape = all.Shape()
	if len(shape) != 1+max(batch, len(g.shape)-event) || shape[0] != n {
		return torch.Tensor{}, nil
	}
	shape = shape[1:]
	each := e.frame(g.sites[0].Site, shape, nil, g.sites[0].current)
	return filled(all).Reshape(append([]int{n}, each.shape...)...), shape
}

// same says whether two values are made of the same numbers and the same pointers. Functions differ.
func same(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Interface:
		return same(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		return a.Pointer() == b.Pointer()
	case reflect.Func:
		return a.IsNil() && b.IsNil()
	}
	return a.Comparable() && a.Equal(b)
}
