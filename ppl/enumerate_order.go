package ppl

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/kelvin-ppl/kelvin/torch"
)

// order is the order in which variables are summed out: the one of the plan, or, while that is made, always the
// variable whose sum has the smallest table. Of equal ones it is the first that was declared, so that a chain is summed
// forward.
func (p *sumPlan) order(e *enumeration, tables []*table, local []*variable) []*variable {
	if !e.dry {
		for _, v := range local {
			if _, ok := p.rank[v.name]; !ok {
				panic(&stalePlan{SiteError{Site: v.name, Message: "it is a discrete variable that was not there before"}})
			}
		}
		slices.SortFunc(local, func(a, b *variable) int { return cmp.Compare(p.rank[a.name], p.rank[b.name]) })
		return local
	}
	near := map[*variable]map[*variable]bool{} // the variables in one table with each
	for _, v := range local {
		near[v] = map[*variable]bool{}
	}
	for _, f := range tables {
		for _, v := range f.vars {
			for _, w := range f.vars {
				if near[v] != nil && w != v {
					near[v][w] = true
				}
			}
		}
	}
	slices.SortFunc(local, func(a, b *variable) int { return cmp.Compare(a.id, b.id) })
	cost := func(v *variable) float64 {
		n := float64(v.size)
		for w := range near[v] {
			n *= float64(w.size)
		}
		return n
	}
	costs := map[*variable]float64{}
	for _, v := range local {
		costs[v] = cost(v)
	}
	var order []*variable
	for len(local) > 0 {
		best := 0
		for i, v := range local {
			if costs[v] < costs[local[best]] {
				best = i
			}
		}
		v := local[best]
		local = slices.Delete(local, best, best+1)
		order = append(order, v)
		p.rank[v.name] = len(p.rank)
		for w := range near[v] {
			if near[w] == nil {
				continue
			}
			delete(near[w], v)
			for u := range near[v] {
				if u != w {
					near[w][u] = true
				}
			}
			costs[w] = cost(w)
		}
	}
	return order
}

// weigh notes the largest table, and refuses one that is too large.
func (p *sumPlan) weigh(e *enumeration, f *table) {
	n := e.numel(f.vars, f.plates)
	describe := func() string {
		text := names(f.vars, func(v *variable) string { return fmt.Sprintf("%s (%d values)", v.name, v.size) })
		if len(f.plates) > 0 {
			text += " in plates " + names(f.plates, func(p Plate) string { return fmt.Sprintf("%s (%d)", p.Name, e.usedOf(p)) })
		}
		return text
	}
	if n > maxTable {
		f.first().fail("the sum over discrete variables needs a table of %.3g numbers, over %s: at most %d are summed out; "+
			"fewer variables must depend on each other", n, describe(), maxTable)
	}
	if n > p.peak {
		p.peak, p.over = n, describe()
	}
}

// whole makes sure that a plate inside the sum over a variable has all of its data: the mean over minibatches of the
// logarithm of such a sum is not that of all data.
func (f *table) whole(p Plate) {
	for _, s := range f.sites() {
		for i, q := range s.Plates {
			if at := s.ctx.plates[i]; q.key() == p.key() && at.known && at.Used != at.Size {
				s.fail("it depends on %q, a discrete variable outside of plate %q, of which the batch has %d of %d: "+
					"the logarithm of its sum needs all of the data; take all in each update, or declare the variable "+
					"in the plate",
					f.vars[0].name, p.Name, at.Used, at.Size)
			}
		}
	}
}

// String says what is summed out, and what that costs.
func (p *sumPlan) String() string {
	return fmt.Sprintf("summed out exactly: %s; %d variables in %d tables, the largest of %.4g numbers, over %s",
		p.sizes(slices.Sorted(maps.Keys(p.classes))), p.count, p.tables, p.peak, p.over)
}

// seenTable is a table as it is compared.
type seenTable struct {
	shape  []int
	values []float64
	vars   []*variable
	plates []Plate
}

// comparisons is at how many values of the discrete variables the tables are compared with the model.
const comparisons = 3

// compare runs the model with single values of the discrete variables, chosen at random, and compares the densities of
// sites with the entries of their tables. They differ where a formula does not broadcast over a discrete variable, or
// where a step of a Markov uses a variable of two steps before. plain are the densities that are no tables, in the
// comparisons before: where a value of the discrete variables changes one, a formula has summed over all of them.
func (p *sumPlan) compare(m Model, c *Ctx, seen map[string]*seenTable, plain map[string]float64, parts map[string]int,
	attempt int) {
	random := rand.New(rand.NewPCG(uint64(attempt), 1))
	type values struct {
		shape []int
		x     []int
	}
	chosen := map[string]values{}
	choose := process(func(s *Site) {
		if s.density == nil && isDiscrete(s) {
			r := p.classes[s.class()]
			v := values{shape: s.Dist.BatchShape()}
			s.Value = single(s, func(int) int {
				v.x = append(v.x, int(random.Int64N(int64(r.size))))
				return r.low + v.x[len(v.x)-1]
			})
			chosen[s.Name] = v
		}
	})
	compare := finish(func(s *Site) {
		f := seen[s.Name]
		if !s.counts() {
			return
		}
		have, want, size := 0.0, 0.0, 0.0
		check(torch.Do(func(*torch.Scope) error { // a long chain has many
			for _, x := range s.elementwise().Values() {
				want += x * s.weight
				size += math.Abs(x) * s.weight
			}
			return nil
		}))
		if f == nil {
			have, known := plain[s.Name]
			if plain[s.Name] = want; known && different(have, want, size) {
				s.fail("its log density is %.10g for some values of the discrete variables and %.10g for others, and does "+
					"not depend on them where these are summed out: formulas of discrete variables must be elementwise or "+
					"use them as indices (Take), without sums over all of their elements", want, have)
			}
			return
		}
		size = 0
		dims := make([]int, p.right) // of all plates
		for i := range dims {
			dims[i] = 1
		}
		weight := 1.0
		for _, q := range s.Plates {
			used := q.Used
			if used == 0 {
				used = q.Size
			}
			dims[p.right+q.Dim] = used
			weight *= s.ctx.weigh(q.Size, used)
		}
		at := make([]int, p.right)
		for i := range count(dims) {
			rest := i
			for d := p.right - 1; d >= 0; d-- {
				at[d], rest = rest%dims[d], rest/dims[d]
			}
			cell := 0
			for k, v := range f.vars {
				z := chosen[v.name]
				cell = cell*f.shape[k] + z.x[offset(z.shape, at)]
			}
			right := f.shape[len(f.vars):]
			x := f.values[cell*count(right)+offset(right, at)]
			have, size = have+x*weight, size+math.Abs(x)*weight
		}
		if !different(have, want, size) {
			return
		}
		s.fail("its log density is %.10g for some values of the discrete variables %s, and %.10g where these are summed "+
			"out: formulas of discrete variables must be elementwise or use them as indices (Take), without sums over a plate "+
			"or branches, and a step of a Markov may only use variables of its own step and the last one", want,
			names(f.vars, func(v *variable) string { return v.name }), have)
	})
	inner := alone(c, made, compare, choose)
	inner.run.parts = parts
	m.in(inner)
}

// different says whether two sums of terms, of which the absolute values add up to size, differ by more than rounding.
func different(a, b, size float64) bool {
	return a != b && math.Abs(a-b) > 1e-9*max(1, size) // with NaN it is false
}

// offset is the place of an element in a tensor that broadcasts to the dimensions of at.
func offset(shape, at []int) (n int) {
	for i, size := range shape {
		n *= size
		if size > 1 {
			n += at[len(at)-len(shape)+i]
		}
	}
	return n
}
