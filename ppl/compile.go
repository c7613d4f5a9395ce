package ppl

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Program is a compiled model: its latent variables laid out on unconstrained space, and the functions between that space
// and the model. It is immutable; any number of goroutines may use it.
type Program struct {
	model   Model
	layout  *infer.Layout
	latents map[string]*latent
	order   []string // of the latent sites, as they run
	data    int64    // N, the population of the observations
}

// latent is what is known of a latent site.
type latent struct {
	name     string
	kind     Kind
	support  support.Support
	shape    []int64           // on the constrained side: batch and event
	free     []int64           // on the unconstrained side
	bijector bijector.Bijector // nil when the support depends on other sites
}

// Compile runs a model once on a batch and finds its latent sites, their supports and shapes. Nothing is generated: the
// program runs the model. Parameters, observed values and shapes are checked here, once, and not at every evaluation.
func Compile(m Model, batch infer.Batch) (*Program, error) {
	p := &Program{model: m, latents: map[string]*latent{}}
	err := torch.Do(func(*torch.Scope) error {
		c := &compiler{program: p, recorder: newRecorder()}
		execute(m, batch, nil, c)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ppl.Compile: %w", err)
	}
	shapes := infer.Shapes{}
	for name, l := range p.latents {
		shapes[name] = l.free
	}
	if p.layout, err = infer.NewLayout(shapes); err != nil {
		return nil, fmt.Errorf("ppl.Compile: the model has no latent variable: %w", err)
	}
	return p, nil
}

// compiler is the handler that finds the latent sites. It gives each the value at 0 of unconstrained space, which every
// support has, so that no site has to be sampled.
type compiler struct {
	program *Program
	recorder
}

func (c *compiler) Process(s *Site) {
	if s.Kind != KindSample && s.Kind != KindParam {
		return
	}
	if err := s.Dist.Validate(); err != nil {
		s.fail("%v", err)
	}
	if s.Value != nil {
		if s.Observed && s.Kind == KindSample {
			if err := s.Dist.Support().Check(s.Value); err != nil {
				s.fail("the observed value is outside the support: %v", err)
			}
			c.program.data = max(c.program.data, population(s))
		}
		if s.Observed {
			return
		}
	}
	sup := s.Dist.Support()
	if sup.Discrete() {
		s.fail("a latent variable that is discrete (%v) has no gradient: sum it out (dist.Mixture for a finite choice, or a log-sum-exp "+
			"in a Factor), or observe it", sup)
	}
	b, err := bijector.For(sup)
	if err != nil {
		s.fail("%v", err)
	}
	l := &latent{name: s.Name, kind: s.Kind, support: sup, shape: append(s.Dist.BatchShape(), s.Dist.EventShape()...)}
	l.free = b.InverseShape(l.shape)
	if sup.LowT == nil && sup.HighT == nil {
		l.bijector = b
	}
	if _, ok := c.program.latents[s.Name]; ok {
		s.fail("there are two sites of that name; names must differ within a run")
	}
	c.program.latents[s.Name] = l
	c.program.order = append(c.program.order, s.Name)
	if s.Value == nil {
		s.Value = b.Forward(zeros(l.free))
	}
}

// population is the number of data behind an observed site: the sizes of its plates, or of its batch where it is in none.
func population(s *Site) int64 {
	n := int64(1)
	for _, p := range s.Plates {
		n *= p.Size
	}
	if len(s.Plates) == 0 {
		for _, b := range s.elementShape() {
			n *= b
		}
	}
	return n
}

// elementShape is the shape of a site's log density before it is summed.
func (s *Site) elementShape() []int64 { return shapeOf(s.elementwise()) }

func zeros(shape []int64) *ts.Tensor {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return torch.Must(torch.FromSliceOn(torch.CPU, gotch.Double, make([]float64, n), append([]int64{}, shape...)...))
}

// Layout is the layout of the unconstrained parameters: one site for each latent variable and param.
func (p *Program) Layout() *infer.Layout { return p.layout }

// Latents are the names of the latent variables and params, in the order in which the model declares them.
func (p *Program) Latents() []string { return append([]string{}, p.order...) }

// Data is N, the number of data: the largest product of the plate sizes around an observed site.
func (p *Program) Data() int64 { return max(p.data, 1) }

// LogPosterior is the log posterior density on unconstrained space, up to a constant: the sum of the log priors, the
// log likelihoods (scaled up where a plate is subsampled) and the log Jacobians. It goes with temperature 1.
func (p *Program) LogPosterior() infer.LogPosterior {
	return func(point infer.Params, b infer.Batch) (*ts.Tensor, infer.Aux) {
		e := &evaluator{program: p, point: point}
		execute(p.model, b, nil, e)
		return e.result(), nil
	}
}

// MeanLogPosterior is the log posterior divided by the number of data. It goes with temperature 1/N, and with step sizes that
// do not depend on N.
func (p *Program) MeanLogPosterior() infer.LogPosterior {
	sum, scale := p.LogPosterior(), 1/float64(p.Data())
	return func(point infer.Params, b infer.Batch) (*ts.Tensor, infer.Aux) {
		logp, aux := sum(point, b)
		return logp.MustMulScalar(ts.FloatScalar(scale), false), aux
	}
}

// evaluator is the handler that gives the latent sites the values of a point and adds up the log density.
type evaluator struct {
	program *Program
	point   infer.Params
	sum     *ts.Tensor
	seen    int
	names   map[string]bool
	collect func(s *Site) // nil, or sees every finished site
}

func (e *evaluator) Process(s *Site) {
	if s.Kind == KindParam || (s.Kind == KindSample && !s.Observed && s.Value == nil) {
		e.place(s)
	}
}

// place gives a latent site its value and Jacobian.
func (e *evaluator) place(s *Site) {
	l, ok := e.program.latents[s.Name]
	if !ok {
		s.fail("it was not there when the model was compiled: a site that appears only sometimes has no place in the layout; " +
			"declare the same sites in every run")
	}
	e.seen++
	b := l.bijector
	if b == nil {
		var err error
		if b, err = bijector.For(s.Dist.Support()); err != nil {
			s.fail("%v", err)
		}
	}
	x := e.point.Get(s.Name)
	if b.Name() == identityName {
		s.Value = x
		if s.Kind == KindParam {
			s.hidden = true
		}
		return
	}
	s.Value = b.Forward(x)
	s.Jacobian = sumAll(bijector.LogDensityChange(b, x, s.Value))
}

func (e *evaluator) Finish(s *Site) {
	if e.names == nil {
		e.names = map[string]bool{}
	}
	if s.Kind != KindData {
		if e.names[s.Name] {
			s.fail("there are two sites of that name; names must differ within a run")
		}
		e.names[s.Name] = true
	}
	if e.collect != nil {
		e.collect(s)
		return
	}
	if !s.counts() {
		return
	}
	logp := s.LogProb()
	if e.sum != nil {
		logp = e.sum.MustAdd(logp, false)
	}
	e.sum = logp
}

func (e *evaluator) result() *ts.Tensor {
	e.complete()
	if e.sum == nil {
		panic(&SiteError{Message: "the model has no random variable and no factor"})
	}
	return e.sum
}

// complete makes sure that every latent site of the layout was there.
func (e *evaluator) complete() {
	if e.seen == len(e.program.order) {
		return
	}
	for _, name := range e.program.order {
		if !e.names[name] {
			panic(&SiteError{Site: name, Message: "it was there when the model was compiled and is not in this run: a site that appears only " +
				"sometimes; declare the same sites in every run"})
		}
	}
}

func sumAll(t *ts.Tensor) *ts.Tensor {
	if len(shapeOf(t)) == 0 {
		return t
	}
	return t.MustSum(t.DType(), false)
}

// identityName is what the bijector that changes nothing calls itself.
var identityName = bijector.Identity().Name()
