package ppl

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Model is a probabilistic model: a function that declares random variables, plates and data through its context.
type Model func(c *Ctx)

// Ctx is what a model runs in: the batch, the plates that are open, and the handlers that see its sites. A Ctx belongs
// to one run of a model and to one goroutine.
type Ctx struct {
	run      *execution
	plates   []*plate
	handlers []Handler // innermost last
	steps    string    // of the scans around: "[3]", behind the names of sites; "" for none
	inside   *string   // the plate whose function is running, with a context of its own; empty for none

	slot string       // the steps around, those of a Markov as even or odd: which places of discrete variables come again
	sum  *enumeration // of a run that sums discrete variables out; nil in others
}

// execution is what all contexts of one run share.
type execution struct {
	batch  infer.Batch
	source *dist.Source // nil: sampling is an error
	values Values       // of latent variables and params, known from the start
	sizes  *plateSizes  // of the plates that take theirs from the data

	// predict says that observed values are drawn anew: data may be missing, and plates take the sizes of new data.
	predict bool
	absent  map[*ts.Tensor]string // what Data gave for data that are missing, by name

	reveal *reveal        // a run of InferDiscrete; nil in others
	parts  map[string]int // in runs that make a plan of sums, how many data of a plate are in a minibatch; else nil

	indices map[*ts.Tensor]torch.Tensor // values of discrete variables, as steps of a loop share them
	singles map[string]torch.Tensor     // those that are one number, by shape and number
}

// share makes a value of discrete variables an index that looks each table up once.
func (e *execution) share(value torch.Tensor) {
	if e.indices == nil {
		e.indices = map[*ts.Tensor]torch.Tensor{}
	}
	e.indices[value.T()] = value.Remembered()
}

// Handler sees every site of a model. Process runs from the innermost handler outwards, before the site has its value;
// Finish runs in the other direction, when it has.
type Handler interface {
	Process(s *Site)
	Finish(s *Site)
}

// With returns a context in which one more handler sees the sites: the way to write a handler of one's own.
func (c *Ctx) With(h Handler) *Ctx {
	with := *c
	with.handlers = append(append([]Handler{}, c.handlers...), h)
	return &with
}

// Sample declares a latent random variable and returns its value, of shape plates + batch + event.
func (c *Ctx) Sample(name string, d dist.Distribution) torch.Tensor {
	value := c.visit(&Site{Kind: KindSample, Name: name, Dist: d, Scale: 1}).Value
	if c.run.indices != nil {
		if known, ok := c.run.indices[value.T()]; ok {
			return known
		}
	}
	return value
}

// Observe declares a random variable with a known value: a torch.Tensor, a *ts.Tensor or a number.
func (c *Ctx) Observe(name string, d dist.Distribution, value any) {
	s := &Site{Kind: KindSample, Name: name, Dist: d, Observed: true, declared: true, Scale: 1}
	s.Value = s.argument(value)
	if s.Value == (torch.Tensor{}) {
		s.fail("the observed value is nil; a missing value is a latent variable: use Sample")
	}
	if _, ok := c.run.absent[s.Value.T()]; ok {
		s.Value = torch.Tensor{}
	}
	c.visit(s)
}

// Factor adds a term to the log density. Inside a plate it is a term for each repetition: it broadcasts to the plate,
// and is scaled like a log density where the plate is subsampled. Outside plates a sum over the rows of the batch needs
// all of the data: in a minibatch it is an error.
func (c *Ctx) Factor(name string, logp any) {
	s := &Site{Kind: KindFactor, Name: name, Observed: true, Scale: 1}
	s.Value = s.argument(logp)
	c.visit(s)
}

// Deterministic records a value under a name and returns it.
func (c *Ctx) Deterministic(name string, value any) torch.Tensor {
	s := &Site{Kind: KindDeterministic, Name: name, Observed: true, Scale: 1}
	s.Value = s.argument(value)
	return c.visit(s).Value
}

// argument is what a statement was given, as a tensor; the zero value for nil.
func (s *Site) argument(x any) torch.Tensor {
	switch v := x.(type) {
	case nil:
		return torch.Tensor{}
	case *ts.Tensor:
		if v == nil {
			return torch.Tensor{}
		}
		return torch.Of(v)
	case torch.Tensor, float64, int, int64, float32:
		if v := torch.Of(v); v != (torch.Tensor{}) {
			return torch.Of(v.T()) // a number as a tensor: sites hold tensors
		}
		return torch.Tensor{}
	}
	s.fail("its value is a %T; a torch.Tensor, a *ts.Tensor or a number is required", x)
	return torch.Tensor{}
}

// Param declares a value to be optimised on a support, without a prior: it adds nothing to the log density, not even a
// Jacobian, and starts from init. Plates do not expand it. For a flat prior use Sample with [dist.ImproperUniform].
func (c *Ctx) Param(name string, init any, on support.Support) torch.Tensor {
	s := &Site{Kind: KindParam, Name: name, Scale: 1}
	if s.Init = s.argument(init); s.Init == (torch.Tensor{}) {
		s.fail("its initial value is nil")
	}
	shape := shapeOf(s.Init)
	batch := shape[:max(len(shape)-on.EventDims(), 0)]
	s.Dist = dist.ImproperUniform(on, batch, shape[len(batch):])
	return c.visit(s).Value
}

// Data is a tensor of the batch. Where a [Predictive] runs the model, data that are only observed may be missing.
func (c *Ctx) Data(name string) torch.Tensor {
	s := &Site{Kind: KindData, Name: name, Observed: true, Scale: 1}
	if t := c.run.batch[name]; t != (torch.Tensor{}) {
		s.Value = torch.Of(t.T())
	}
	c.visit(s)
	if s.Value == (torch.Tensor{}) && c.run.predict {
		s.Value = torch.Of(&ts.Tensor{})
		c.run.absent[s.Value.T()] = name
	}
	if s.Value == (torch.Tensor{}) {
		have := make([]string, 0, len(c.run.batch))
		for n, t := range c.run.batch {
			if t != (torch.Tensor{}) {
				have = append(have, n)
			}
		}
		panic(&infer.ModelError{Name: name, What: "batch tensor", Have: sorted(have)})
	}
	return s.Value
}

// visit shows a site to the handlers and gives it a value.
func (c *Ctx) visit(s *Site) *Site {
	if s.Name == "" {
		s.fail("a site needs a name")
	}
	if s.Kind != KindData {
		s.Name += c.steps
	}
	if *c.inside != "" {
		s.fail("it is declared on the context outside plate %q while the plate is open: "+
			"use the context that the plate's function is given", *c.inside)
	}
	switch {
	case s.Kind == KindSample && s.Dist == nil:
		s.fail("the distribution is nil")
	case s.Kind == KindFactor && s.Value == (torch.Tensor{}) && s.density == nil:
		s.fail("the factor is nil")
	case s.Kind == KindDeterministic && s.Value == (torch.Tensor{}):
		s.fail("the value is nil")
	}
	s.ctx, s.given, s.weight = c, s.Dist, 1
	if s.Value == (torch.Tensor{}) {
		s.Value = c.run.given(s)
	}
	if len(c.plates) > 0 && s.Kind != KindData {
		s.Plates, s.before = make([]Plate, len(c.plates)), make([]plate, len(c.plates))
		for i, p := range c.plates {
			s.Plates[i], s.before[i] = p.Plate, *p
		}
	}
	s.mark()
	s.checkMade(s.Dist)
	if s.Kind == KindSample || s.Kind == KindFactor && s.density == nil {
		s.open()
	}
	return c.show(s)
}

// checkMade makes sure that a distribution could be made of what its constructor was given.
func (s *Site) checkMade(d dist.Distribution) {
	if d, ok := d.(interface{ Mistake() error }); ok {
		s.fail("%v", d.Mistake())
	}
}

// show passes a site through the handlers.
func (c *Ctx) show(s *Site) *Site {
	at := len(c.handlers)
	for at > 0 && !s.stop {
		at--
		c.handlers[at].Process(s)
	}
	if s.Value == (torch.Tensor{}) && s.Kind != KindData && s.density == nil {
		c.draw(s)
	}
	for ; at < len(c.handlers); at++ {
		c.handlers[at].Finish(s)
	}
	return s
}

// draw gives a site a value where no handler did.
func (c *Ctx) draw(s *Site) {
	if s.Value = c.run.given(s); s.Value != (torch.Tensor{}) { // of a variable that a handler has put in another's place
		return
	}
	if s.Kind == KindParam {
		s.Value = s.Init
		return
	}
	if c.run.source == nil {
		s.fail("it has no value, and there is no source of random numbers: give it one with Substitute or Condition, or " +
			"run the model with a seed")
	}
	s.Value = torch.Of(s.Dist.Sample(c.run.source).T())
}

// execute runs a model once, inside the caller's scope.
func execute(m Model, batch infer.Batch, source *dist.Source, handlers ...Handler) {
	run(m, &execution{batch: batch, source: source}, handlers)
}

// predict runs a model once with its observed values drawn anew.
func predict(m Model, batch infer.Batch, source *dist.Source, handlers ...Handler) {
	run(m, &execution{batch: batch, source: source, predict: true, absent: map[*ts.Tensor]string{}}, handlers)
}

func run(m Model, e *execution, handlers []Handler) {
	if m == nil {
		panic(&SiteError{Message: "the model is nil"})
	}
	defer e.explain()
	if !slices.ContainsFunc(handlers, func(h Handler) bool { _, ok := h.(*evaluator); return ok }) {
		defer thread.GradientOnly()() // only of an evaluation are second derivatives taken
	} else {
		defer thread.Evaluate()()
	}
	if e.sizes == nil {
		e.sizes = &plateSizes{told: map[string]int{}}
	}
	e.sizes.model = m
	m(&Ctx{run: e, handlers: handlers, inside: new(string)})
	mark("in the gradient of the model")
}

// explain names the data that are missing where an operation failed on what stands for them, and those that have an
// index which is out of range or not whole.
func (e *execution) explain() {
	if len(e.absent) == 0 && len(e.batch) == 0 {
		return
	}
	r := recover()
	if r == nil {
		return
	}
	if failure, ok := r.(*torch.Error); ok {
		e.nameIndex(failure)
	}
	if len(e.absent) == 0 {
		panic(r)
	}
	if failure, ok := r.(*torch.Error); ok && strings.Contains(failure.Error(), "freed") {
		var names, have []string
		for _, name := range e.absent {
			names = append(names, name)
		}
		for name := range e.batch {
			have = append(have, name)
		}
		panic(&SiteError{Message: fmt.Sprintf(
			"the batch has no %q (it has %q), which may be missing only where Observe takes it directly",
			sorted(names), sorted(have)), Cause: failure})
	}
	panic(r)
}

// nameIndex adds to an error of an index that is out of range, or not whole, which data have it: at the same element,
// or else, since the model may look up a part of them, data of a type of whole numbers anywhere.
func (e *execution) nameIndex(failure *torch.Error) {
	var index float64
	var at int
	if n, _ := fmt.Sscanf(failure.Message, "the index %g at element %d", &index, &at); n != 2 ||
		strings.HasSuffix(failure.Message, indexedBy) {
		return
	}
	same := func(v float64) bool { return v == index || math.IsNaN(v) && math.IsNaN(index) }
	var here, anywhere []string
	for name, t := range e.batch {
		dtype, err := torch.DTypeOfTensor(t)
		if err != nil {
			continue
		}
		values, err := torch.ToSlice[float64](t)
		switch {
		case err != nil:
		case at < len(values) && same(values[at]):
			here = append(here, fmt.Sprintf("%q", name))
		case rank[dtype] > 0 && slices.ContainsFunc(values, same):
			anywhere = append(anywhere, fmt.Sprintf("%q", name))
		}
	}
	if len(here) == 0 {
		here = anywhere
	}
	if len(here) > 0 {
		failure.Message += "; of the data, " + strings.Join(sorted(here), " and ") + indexedBy
	}
}

// indexedBy ends an error that [execution.nameIndex] has seen.
const indexedBy = " has it"

// shapeOf is the shape of a tensor inside a model.
func shapeOf(t torch.Tensor) []int { return t.Shape() }

// Run runs the model once inside the caller's torch.Do, and shows its sites to handlers, the innermost last: what
// methods of inference outside of this package are made of. It may run mapped over points.
//
// Latent variables and params that values names have their values there, also before handlers see them. A plate with a
// latent variable inside takes as many of its data as the value has: the rest of a subsampled plate is not there. What
// has no value is drawn from the source, params start; without a source it is a mistake. A mistake is a panic with a
// typed error, which torch.Do returns.
func (m Model) Run(batch infer.Batch, source *dist.Source, values Values, handlers ...Handler) {
	if slices.Contains(handlers, nil) {
		panic(&SiteError{Message: "a handler is nil"})
	}
	run(m, &execution{batch: batch, source: source, values: values}, handlers)
}

// given is the value that the run knows for a site, nil where it knows none.
func (e *execution) given(s *Site) torch.Tensor {
	if s.Observed || s.Kind != KindSample && s.Kind != KindParam {
		return torch.Tensor{}
	}
	return e.values[s.Name]
}
