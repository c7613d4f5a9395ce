package ppl

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Enumerate sums the discrete latent variables of a model out, exactly:
//
//	log p(x, y) = log Σ_z p(x, y, z)
//
// over all values of all variables z whose support is finite: [dist.Categorical], [dist.Bernoulli], [dist.Binomial] and
// any other with two whole numbers as its ends. [dist.Truncated] gives ends to a [dist.Poisson] and others without;
// the program's String says what mass it leaves out. [Compile] does it by itself for a model that has such variables.
//
// A discrete variable of K values stands for all of them: its value has a dimension of size K, in front of those of the
// plates, and all formulas broadcast. So a model uses it elementwise, or as an index: loc.Take(z). The densities are
// tables over the variables that they depend on. Their sums are taken by variable elimination, with logarithms, from
// the innermost plate outwards (Obermeyer et al. 2019, "Tensor variable elimination for plated factor graphs"). Chains
// are declared with [Ctx.Markov]. A discrete variable outside plates is a single one: several are a plate.
//
// Plates may cross. Where a site in two plates depends on discrete variables in the one and in the other together, the
// sum is over all joint values of those in one plate, the one with fewer: its cost grows exponentially with the size of
// that plate.
//
// Compile checks the tables against the model at several values of the discrete variables, and refuses
//
//   - a discrete variable whose support is not finite, or a vector;
//   - a site outside a plate that depends on a discrete variable inside it, whose sum has no short form;
//   - a minibatch of a plate, where a discrete variable outside of it needs all of the plate's data;
//   - tables of more than 2²⁴ numbers, with the variables and their sizes.
//
// In a minibatch of n of the N data of a plate, the logarithms of the sums over variables in the plate count N/n times.
//
// The density of a sum is that of its last observed site: in log likelihoods and cross-validation that site has the
// logarithm of the sum, and other sites of the sum have 0. With observations a sum belongs to the likelihood, else to
// the prior. Values that are computed from a discrete variable are not recorded in draws. Where a model runs with
// random numbers (predictions, draws from the prior) its discrete variables are drawn. [InferDiscrete] finds them from
// the posterior of the others. Handlers that give sites values, scales or masks belong inside of Enumerate.
func Enumerate(m Model) Model { return enumerate(m, &enumerator{}) }

// enumerator is what is kept between the runs of a model whose discrete variables are summed out.
type enumerator struct {
	lock sync.Mutex // while a plan is made
	plan atomic.Pointer[sumPlan]
}

func enumerate(m Model, e *enumerator) Model {
	return func(c *Ctx) {
		switch {
		case c.sum != nil || c.run.sizes.guess:
			m.in(c)
		case c.run.source != nil:
			m.in(c.With(process(func(s *Site) {
				if isDiscrete(s) {
					s.anyPlate = true
				}
			})))
		default:
			plan := e.planFor(m, c)
			if len(plan.classes) == 0 {
				m.in(c)
				return
			}
			if err := newEnumeration(plan, c).sumOut(m, c); err != nil { // another model than the plan's: of other data
				plan = e.renew(m, c)
				if err := newEnumeration(plan, c).sumOut(m, c); err != nil {
					panic(err)
				}
			}
		}
	}
}

// planFor is the plan of an earlier run, or a new one.
func (e *enumerator) planFor(m Model, c *Ctx) *sumPlan {
	if plan := e.plan.Load(); plan != nil {
		return plan
	}
	return e.renew(m, c)
}

func (e *enumerator) renew(m Model, c *Ctx) *sumPlan {
	e.lock.Lock()
	defer e.lock.Unlock()
	plan := makePlan(m, c)
	e.plan.Store(plan)
	return plan
}

// isDiscrete says whether a site is a latent variable to be summed out.
func isDiscrete(s *Site) bool {
	return s.Kind == KindSample && !s.Observed && s.Value == (torch.Tensor{}) && s.Dist.Support().Discrete()
}

// variable is a discrete variable of a run.
type variable struct {
	name   string
	class  string // its name without the steps of loops
	id     int    // in the order in which they are declared
	slot   int    // its dimension is the slot-th in front of those of the plates
	size   int
	plates []Plate
}

// enumeration is one run in which discrete variables are summed out: the handler that gives them all of their values
// and collects the tables.
type enumeration struct {
	plan    *sumPlan
	atOnce  bool           // steps of loops are computed, and summed out, many at a time
	right   int            // dimensions that are plates' and batches'; those of discrete variables lie to the left
	slots   map[string]int // by the class and the loops around
	current []*variable    // that a slot stands for
	values  map[valuesKey]torch.Tensor
	masses  map[massKey]mass         // of discrete variables, likewise
	shared  map[*ts.Tensor]bool      // those of them that are shared
	views   map[viewKey]torch.Tensor // of what is shared
	loops   loopSites
	vars    []*variable
	tables  []*table
	singles int              // variables that a plate was taken apart into
	used    map[string]Plate // how large plates are in this run
	held    []*Site          // that depend on discrete variables, and that outer handlers have not seen
	outer   *Ctx
	reveal  *reveal

	// In the runs that make a plan:
	dry   bool                       // the sums are only counted
	class string                     // the only class that has all of its values; "" is all classes
	fix   func(s *Site) torch.Tensor // the values of the others
	seen  func(s *Site, f *table)    // every table
}

type massKey struct {
	slot   int
	size   int
	family string
}

// mass is the last log mass that a distribution was asked for.
type mass struct {
	of   dist.Distribution
	logp torch.Tensor
}

// viewKey is a tensor and which of its dimensions are where in a view of it.
type viewKey struct {
	t      torch.Tensor
	places string
}

type valuesKey struct {
	slot      int
	low, size int
}

// summed marks a site that depends on discrete variables.
type summed struct {
	marginal torch.Tensor // the logarithm of the sum; nil where another site has it
	prior    bool         // nothing in the sum is observed
	with     []string     // of the site that has the marginal: all sites of the sum
	mask     torch.Tensor // that the tables have already
}

func newEnumeration(plan *sumPlan, c *Ctx) *enumeration {
	return &enumeration{plan: plan, atOnce: plan.sumsAtOnce(), right: plan.right,
		slots: map[string]int{}, values: map[valuesKey]torch.Tensor{},
		masses: map[massKey]mass{}, shared: map[*ts.Tensor]bool{},
		views: map[viewKey]torch.Tensor{}, used: map[string]Plate{}, outer: c, reveal: c.run.reveal}
}

// sumOut runs the model and shows the outer handlers what is left of it. The error says that the plan is of another
// model.
func (e *enumeration) sumOut(m Model, c *Ctx) (stale error) {
	defer func() {
		if r := recover(); r != nil {
			if s, ok := r.(*stalePlan); ok {
				stale = s
				return
			}
			panic(r)
		}
	}()
	inner := c.With(e)
	inner.sum = e
	m.in(inner)
	e.loops.finish(e)
	if len(e.tables) > 0 {
		e.show(e.contract(e.tables))
	}
	return nil
}

// stalePlan is the panic of a run whose model differs from that of its plan.
type stalePlan struct{ SiteError }

// has says whether a shape has dimensions of discrete variables. In other runs no shape has.
func (e *enumeration) has(shape []int) bool { return e != nil && len(shape) > e.right }

// strip is a shape without the dimensions of discrete variables.
func (e *enumeration) strip(shape []int) []int {
	if !e.has(shape) {
		return shape
	}
	shape = shape[len(shape)-e.right:]
	for len(shape) > 0 && shape[0] == 1 {
		shape = shape[1:]
	}
	return shape
}

// partial is a distribution with dimensions of discrete variables, as handlers outside see it: without them.
type partial struct {
	dist.Distribution
	batch []int
}

// BatchShape is that of the plates.
func (d partial) BatchShape() []int { return append([]int{}, d.batch...) }

// Process gives discrete variables all of their values, and marks the sites that depend on them.
func (e *enumeration) Process(s *Site) {
	for _, p := range s.Plates {
		if -p.Dim > e.right {
			panic(&stalePlan{SiteError{Site: s.Name, Message: "it is in more plates than when the plan was made"}})
		}
	}
	switch {
	case isDiscrete(s):
		e.open(s)
	case s.Kind == KindDeterministic:
		s.stop = s.stop || e.has(s.valueShape())
	case s.Kind == KindParam && e.has(shapeOf(s.Init)):
		s.fail("its initial value depends on discrete variables that are summed out")
	case s.density != nil:
		for _, x := range s.density.inputs {
			if e.has(shapeOf(x)) {
				s.fail("one of its inputs has shape %v, with a dimension of a discrete variable that is summed out: a Density "+
					"computes one number; write the term with tensors, in a Factor", shapeOf(x))
			}
		}
	case e.depends(s) && s.Observed:
		s.stop = true
	case e.depends(s):
		sup := s.Dist.Support()
		for _, end := range []torch.Tensor{sup.Low, sup.High} {
			if e.has(end.Shape()) {
				s.fail("its support depends on a discrete variable that is summed out, so that its values have no common " +
					"unconstrained space: give it a support that does not")
			}
		}
		s.summed = &summed{}
	}
}

// depends says whether the density of a site has dimensions of discrete variables.
func (e *enumeration) depends(s *Site) bool {
	switch s.Kind {
	case KindFactor:
		return s.density == nil && e.has(s.valueShape())
	case KindSample:
		if _, ok := s.Dist.(partial); ok {
			return true
		}
		if s.Value != (torch.Tensor{}) {
			shape := s.valueShape()
			return e.has(shape[:max(len(shape)-len(s.Dist.EventShape()), 0)])
		}
	}
	return false
}

// open gives a discrete variable a dimension, and all values along it.
func (e *enumeration) open(s *Site) {
	s.stop = true
	class := s.class()
	if e.fix != nil && class != e.class && e.class != "" {
		s.Value = e.fix(s)
		return
	}
	range_, ok := e.plan.classes[class]
	if !ok {
		panic(&stalePlan{SiteError{Site: s.Name, Message: "it is a discrete variable that was not there before"}})
	}
	key := class + s.ctx.slot
	slot, ok := e.slots[key]
	if !ok {
		slot = len(e.slots)
		e.slots[key] = slot
		e.current = append(e.current, nil)
		if slot >= maxSlots {
			s.fail("it is the discrete variable number %d outside of loops: more than %d at a time are not summed out. A chain "+
				"of variables is a loop of Ctx.Markov, independent ones are a plate", slot+1, maxSlots)
		}
	}
	v := &variable{name: s.Name, class: class, id: len(e.vars), slot: slot, size: range_.size, plates: e.note(s)}
	e.vars, e.current[slot] = append(e.vars, v), v
	at := valuesKey{slot, range_.low, range_.size}
	if e.values[at] == (torch.Tensor{}) {
		values := make([]float64, range_.size)
		for i := range values {
			values[i] = float64(range_.low + i)
		}
		shape := make([]int, slot+1+e.right)
		for i := range shape {
			shape[i] = 1
		}
		shape[0] = range_.size
		e.values[at] = torch.New(values, shape...)
		s.ctx.run.share(e.values[at])
	}
	s.Value = e.values[at]
}

// maxSlots is how many discrete variables have dimensions of their own: libtorch has 64 dimensions.
const maxSlots = 40

// class is the name of a site without the steps of the loops around it.
func (s *Site) class() string { return s.Name[:len(s.Name)-len(s.ctx.steps)] }

// note remembers the sizes of a site's plates.
func (e *enumeration) note(s *Site) []Plate {
	plates := append([]Plate{}, s.Plates...)
	for _, p := range plates {
		if e.used[p.key()].Used <= p.Used { // a term that is the same for all has 1
			e.used[p.key()] = p
		}
		if e.reveal != nil && p.Used > 1 && p.Used != p.Size {
			s.fail("plate %q has %d of its %d in this batch, and all are needed to infer the discrete variables", p.Name, p.Used,
				p.Size)
		}
	}
	return plates
}

func (p Plate) key() string { return fmt.Sprintf("%s %d", p.Name, p.Dim) }

// Finish makes the table of a site that depends on discrete variables.
func (e *enumeration) Finish(s *Site) {
	switch {
	case s.Kind == KindSample && !s.Observed && s.stop && s.summed == nil && s.Dist.Support().Discrete():
		if e.fix == nil || e.class == "" || s.class() == e.class {
			e.add(s, e.own(s), e.current[e.slots[s.class()+s.ctx.slot]])
		}
	case s.Kind != KindSample && s.Kind != KindFactor || !e.depends(s):
	default:
		if s.Observed {
			e.held = append(e.held, s)
		}
		switch {
		case s.hidden || e.loops.take(e, s):
		case e.fix == nil:
			e.add(s, e.logProb(s), nil)
		default: // the numbers are seen, and not summed
			check(torch.Do(func(*torch.Scope) error {
				e.add(s, e.logProb(s), nil)
				e.tables[len(e.tables)-1].t = torch.Tensor{}
				return nil
			}))
		}
	}
}

// logProb is the log density of a site with the dimensions of discrete variables, and those of plates only where it
// changes along them.
func (e *enumeration) logProb(s *Site) torch.Tensor {
	own, marked := s.Dist, s.summed
	if s.Kind == KindSample {
		s.Dist = s.given
	}
	s.summed = nil
	logp := s.elementwise()
	s.Dist, s.summed = own, marked
	return logp
}

// own is the log mass of a discrete variable at all of its values. Where a mask leaves the variable out they are
// equally likely, so that the sum over them is 1.
func (e *enumeration) own(s *Site) torch.Tensor {
	v := e.current[e.slots[s.class()+s.ctx.slot]]
	if mask := s.Mask; mask != (torch.Tensor{}) {
		s.Mask = torch.Tensor{}
		logp := e.logProb(s)
		s.Mask = mask
		return torch.Choose(mask, logp, -logOf(v.size))
	}
	key := massKey{v.slot, v.size, s.given.Name()}
	if known, ok := e.masses[key]; ok && same(reflect.ValueOf(known.of), reflect.ValueOf(s.given)) {
		return known.logp
	}
	var logp torch.Tensor
	if all, ok := s.given.(interface{ EnumerateLogProb() torch.Tensor }); ok {
		logp = e.place(all.EnumerateLogProb(), v.slot+1+e.right)
	} else {
		logp = e.logProb(s)
	}
	e.masses[key], e.shared[logp.T()] = mass{s.given, logp}, true
	return logp
}

// place moves the first dimension to dimension −at, where the others have size 1 or end.
func (e *enumeration) place(logp torch.Tensor, at int) torch.Tensor {
	shape := logp.Shape()
	batch := shape[1:]
	if len(batch) < at {
		wide := make([]int, at)
		for i := range wide {
			wide[i] = 1
		}
		wide[0] = shape[0]
		copy(wide[at-len(batch):], batch)
		return logp.Reshape(wide...)
	}
	to := len(batch) - at
	moved := logp.T().MustMovedimInt(0, int64(to), false)
	return torch.Of(moved.MustSqueezeDim(int64(to+1), false))
}
