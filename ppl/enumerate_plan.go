package ppl

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// sumPlan is what the runs of a model with discrete variables have in common. It is never changed once it is made.
type sumPlan struct {
	classes map[string]wholeRange // of discrete variables, by their name without steps
	right   int                   // dimensions of plates and batches
	rank    map[string]int        // by name, the order of the sums

	// For messages:
	tables int     // how many there are
	count  int     // how many variables
	peak   float64 // numbers in the largest table
	over   string  // and the variables that it is over
}

// wholeRange is the support of a discrete variable: the size whole numbers from low. left is the mass that a truncation
// leaves out where the plan was made.
type wholeRange struct {
	low, size int
	left      float64
}

// maxTable is the most numbers that a table has: 128 MB, of which a gradient needs several.
const maxTable = 1 << 24

// makePlan runs the model several times, with made-up values of the continuous variables: with one value of each
// discrete variable, to find them; with all values of one class of them at a time, so that tables that are too large
// are found before they are made; with all values of all; and with several single values, to compare.
func makePlan(m Model, c *Ctx) *sumPlan {
	plan := &sumPlan{classes: map[string]wholeRange{}}
	parts := map[string]int{}
	check(torch.Do(func(*torch.Scope) error {
		plan.scout(m, c, parts)
		return nil
	}))
	if len(plan.classes) == 0 {
		return plan
	}
	needs := map[string]map[string]bool{} // of a site: the classes, with the number of their slots
	numel := map[string]float64{}
	var sites []*Site
	for _, class := range slices.Sorted(maps.Keys(plan.classes)) {
		check(torch.Do(func(*torch.Scope) error {
			e := plan.trial(m, c, func(e *enumeration) { e.class = class })
			for _, f := range e.tables {
				s := f.first()
				if needs[s.Name] == nil {
					needs[s.Name], numel[s.Name] = map[string]bool{}, e.numel(nil, f.plates)
					sites = append(sites, s)
				}
				for _, v := range f.vars {
					if !needs[s.Name][v.name] {
						needs[s.Name][v.name] = true
						numel[s.Name] *= float64(v.size)
					}
				}
			}
			return nil
		}))
	}
	for _, s := range sites {
		if numel[s.Name] > maxTable {
			s.fail("its log density is a table of %.3g numbers, over the discrete variables %s: at most %d are summed out",
				numel[s.Name], plan.sizes(slices.Sorted(maps.Keys(needs[s.Name]))), maxTable)
		}
	}
	var seen map[string]*seenTable
	check(torch.Do(func(scope *torch.Scope) error {
		seen = map[string]*seenTable{}
		e := plan.trial(m, c, func(e *enumeration) {
			e.seen = func(s *Site, f *table) {
				seen[s.Name] = &seenTable{shape: f.shape, values: unfilled(f.t).Values(), vars: f.vars, plates: f.plates}
			}
		})
		plan.count, plan.tables = len(e.vars), len(e.tables)
		plan.rank = map[string]int{}
		e.dry = true
		e.contract(e.tables)
		return nil
	}))
	plain := map[string]float64{}
	for attempt := range comparisons {
		check(torch.Do(func(*torch.Scope) error {
			plan.compare(m, c, seen, plain, parts, attempt)
			return nil
		}))
	}
	return plan
}

// check passes an error of a trial on, as the panic of the model that it came from.
func check(err error) {
	var site *SiteError
	switch {
	case err == nil:
	case errors.As(err, &site):
		torch.Must(0, err) // with its line
	default:
		panic(&SiteError{Message: err.Error(), Cause: err})
	}
}

// sizes lists variables by name with their sizes.
func (p *sumPlan) sizes(names []string) string {
	for i, name := range names {
		class, _, _ := strings.Cut(name, "[")
		cut := ""
		if left := p.classes[class].left; left > 1e-15 { // less is rounding
			cut = fmt.Sprintf(", without %.2g of its mass at the point tried", left)
		}
		names[i] = fmt.Sprintf("%s (%d values%s)", name, p.classes[class].size, cut)
	}
	return strings.Join(names, ", ")
}

// alone is a context for a run of the model on its own, with the plates that are open.
func alone(c *Ctx, handlers ...Handler) *Ctx {
	run := &execution{batch: c.run.batch, absent: c.run.absent}
	sizes := *c.run.sizes
	sizes.told = maps.Clone(sizes.told)
	run.sizes = &sizes
	inner := *c
	inner.run, inner.handlers, inner.inside = run, handlers, new(string)
	inner.plates = nil
	for _, p := range c.plates {
		own := *p
		inner.plates = append(inner.plates, &own)
	}
	return &inner
}

// made is the handler that gives continuous variables values: the same in each run of a model.
var made = process(func(s *Site) {
	switch {
	case s.Value != (torch.Tensor{}) || s.density != nil:
	case s.Kind == KindParam:
		s.Value = s.Init
	case s.Kind == KindSample:
		b := torch.Must(bijector.For(s.Dist.Support()))
		shape := b.InverseShape(append(s.Dist.BatchShape(), s.Dist.EventShape()...))
		x := make([]float64, count(shape))
		for i := range x {
			x[i] = 0.4*math.Cos(2.4*float64(i)+float64(len(s.Name))) + 0.1
		}
		s.Value = b.Forward(torch.New(x, append([]int{}, shape...)...))
	}
})

// scout finds the discrete variables, their supports, how many dimensions plates and batches have, and how many data of
// plates the batch has.
func (p *sumPlan) scout(m Model, c *Ctx, parts map[string]int) {
	find := process(func(s *Site) {
		if s.Kind == KindData || s.density != nil {
			return
		}
		if isDiscrete(s) {
			r := rangeOf(s)
			if old, ok := p.classes[s.class()]; ok {
				low := min(old.low, r.low)
				r = wholeRange{low, max(old.low+old.size, r.low+r.size) - low, max(old.left, r.left)}
			}
			p.classes[s.class()] = r
			s.Value = single(s, func(int) int { return r.low })
			s.stop = true
		}
	})
	measure := finish(func(s *Site) {
		for _, q := range s.Plates {
			p.right = max(p.right, -q.Dim)
			parts[q.key()] = max(parts[q.key()], q.Used)
		}
		switch {
		case s.Kind == KindSample:
			p.right = max(p.right, len(s.Dist.BatchShape()))
			if s.Value != (torch.Tensor{}) {
				p.right = max(p.right, len(s.valueShape())-len(s.Dist.EventShape()))
			}
		case s.Kind == KindFactor && s.density == nil, s.Kind == KindDeterministic:
			p.right = max(p.right, len(s.valueShape()))
		}
	})
	inner := alone(c, made, measure, find)
	inner.run.parts = parts
	m.in(inner)
}

// rangeOf is the support of a discrete variable, which must be finite.
func rangeOf(s *Site) wholeRange {
	sup := s.Dist.Support()
	switch {
	case len(s.Dist.EventShape()) > 0 || sup.Kind == support.KindCounts:
		s.fail("a discrete latent variable of shape %v is not summed out: its values are not single numbers (%v); declare "+
			"its elements in a plate", s.Dist.EventShape(), sup)
	case sup.Kind == support.KindBoolean:
		sup.Low, sup.High = torch.Of(0), torch.Of(1)
	}
	low, high := slices.Min(torch.Of(sup.Low.T()).Values()), slices.Max(torch.Of(sup.High.T()).Values())
	if math.IsInf(low, 0) || math.IsInf(high, 0) || math.IsNaN(low+high) || high < low {
		s.fail("a discrete latent variable whose support is not finite (%v) cannot be summed out: state up to where it is "+
			"to be cut, dist.Truncated(d, 0, n), where LeftOut is the mass above n; or write it as a continuous mixture, as "+
			"the negative binomial is one of Poissons", sup)
	}
	for i, n := range s.Dist.BatchShape() {
		at := i - len(s.Dist.BatchShape())
		if n > 1 && !slices.ContainsFunc(s.Plates, func(p Plate) bool { return p.Dim == at }) {
			s.fail("a discrete latent variable of batch shape %v, with size %d at dimension %d, which is no plate's: several "+
				"variables that are summed out are declared in a plate", s.Dist.BatchShape(), n, at)
		}
	}
	r := wholeRange{low: int(low), size: int(high-low) + 1}
	if cut, ok := s.Dist.(interface{ LeftOut() torch.Tensor }); ok {
		r.left = slices.Max(cut.LeftOut().Values())
	}
	return r
}

// single gives each element of a discrete variable one value. Variables of one element share it: a long chain has many.
func single(s *Site, value func(i int) int) torch.Tensor {
	shape := s.Dist.BatchShape()
	x := make([]float64, count(shape))
	for i := range x {
		x[i] = float64(value(i))
	}
	if len(x) != 1 {
		return torch.New(x, shape...)
	}
	run, key := s.ctx.run, fmt.Sprint(shape, x)
	if run.singles == nil {
		run.singles = map[string]torch.Tensor{}
	}
	if _, ok := run.singles[key]; !ok {
		run.singles[key] = torch.New(x, shape...)
		run.share(run.singles[key])
	}
	return run.singles[key]
}

// trial is a run of the model with all values of discrete variables, without the sums.
func (p *sumPlan) trial(m Model, c *Ctx, with func(e *enumeration)) *enumeration {
	e := newEnumeration(p, c)
	e.reveal = nil
	e.fix = func(s *Site) torch.Tensor {
		return single(s, func(int) int { return p.classes[s.class()].low })
	}
	with(e)
	inner := alone(c, made, e)
	inner.sum = e
	defer func() {
		if r := recover(); r != nil {
			panic(e.explain(r))
		}
	}()
	m.in(inner)
	return e
}

// explain says of a mistake in a run with all values of discrete variables, in which one with single values has none,
// that these are there.
func (e *enumeration) explain(r any) any {
	var cause error
	switch failure := r.(type) {
	case *torch.Error:
		if failure.Op == "Float64Value" {
			failure.Message += ". The model reads the value of a tensor, perhaps to branch on it, and a discrete " +
				"variable that is summed out has all of its values at once: use it elementwise, as an index (Take), or in " +
				"torch.Where"
		}
		if failure.Op == "Float64Value" || strings.HasPrefix(failure.Message, "the index") {
			return r
		}
		cause = failure
	case *dist.Error:
		cause = failure
	case *SiteError:
		if strings.Contains(failure.Message, "discrete variable") {
			return r
		}
		cause = failure
	default:
		return r
	}
	if len(e.vars) == 0 {
		return r
	}
	v := e.vars[len(e.vars)-1]
	shape := append([]int{v.size}, slices.Repeat([]int{1}, v.slot+e.right)...)
	var plates []string
	for _, p := range v.plates {
		plates = append(plates, p.Name)
	}
	return &SiteError{Site: v.name, Plates: plates, Cause: cause, Message: fmt.Sprintf("it is a discrete variable that "+
		"is summed out: its value has all of its %d values at once, in dimension %d, and the shape %v. Formulas must let "+
		"this dimension through: write them elementwise, with the variable as an index (table.Take(z)) or in torch.Where, "+
		"and a product of a matrix and a vector as x.Mul(w).Sum(-1), so that vectors are the last dimension "+
		"(z.Unsqueeze(-1)); what cannot be written so has a site with data or a continuous one. What failed: %v",
		v.size, -len(shape), shape, cause)}
}
