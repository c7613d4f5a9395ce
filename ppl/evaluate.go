package ppl

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/rows"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// density is the log density on unconstrained space, on the scale of the sum over data.
func (p *Program) density() infer.LogPosterior {
	return p.Target().Weigh(infer.Weights{Prior: 1, Likelihood: 1, Jacobian: 1})
}

// Target is the posterior for the methods of inference: the mean over the data of log prior and log likelihood, and the
// log Jacobian of the map from unconstrained space, which temperature leaves alone. Latent variables make the prior;
// observations and factors make the likelihood; [Program.WithLikelihood] parts them otherwise.
func (p *Program) Target() infer.Target {
	jacobian := false
	for _, name := range p.order {
		l := p.latents[name]
		jacobian = jacobian || l.kind == KindSample && (l.bijector == nil || l.bijector.Name() != identityName)
	}
	t := infer.WithParts(p.parts, p.Data(), jacobian)
	t.Program = p
	t.Prior = p.drawPrior
	if p.likelihood != nil {
		t.Prior = p.drawNamedPrior
	}
	return t
}

// parts runs the model and adds up the parts of its log density with weights.
func (p *Program) parts(point infer.Params, b infer.Batch, w infer.Weights) (torch.Tensor, infer.Aux) {
	b = p.converted(point, b)
	e := &evaluator{program: p, point: point, batch: b, weights: w}
	execute(p.model, b, nil, e)
	return e.result(), nil
}

// evaluator is the handler that gives the latent sites the values of a point and adds up the log density.
type evaluator struct {
	program *Program
	point   infer.Params
	batch   infer.Batch
	terms   []torch.Term
	plus    float64 // what is to be added to the terms
	seen    int
	given   int    // observed sites and factors that were there
	more    int    // and those in no plate that were not
	extra   string // the first of those
	names   map[string]bool

	weights infer.Weights // of the parts; not looked at where collect is set

	collect func(s *Site) // nil, or sees every finished site
}

func (e *evaluator) Process(s *Site) {
	if s.Value == (torch.Tensor{}) && (s.Kind == KindParam || s.Kind == KindSample) {
		e.place(s)
	}
}

// place gives a latent site its value and Jacobian.
func (e *evaluator) place(s *Site) {
	l, ok := e.program.latents[s.Name]
	if !ok {
		s.fail("it was not there when the model was compiled: a site that appears only sometimes has no place in the " +
			"layout; declare the same sites in every run")
	}
	b := l.bijector
	if b == nil {
		var err error
		if b, err = bijector.For(s.Dist.Support()); err != nil {
			s.fail("%v", err)
		}
	}
	if l.empty() {
		s.Value = b.Forward(zeros(l.free))
		return
	}
	e.seen++
	x := e.point.Get(s.Name).T()
	if l.support.Discrete() {
		s.Value = l.nearest(torch.Of(x))
		return
	}
	if b.Name() == identityName {
		s.Value = torch.Of(x)
		return
	}
	s.Value = b.Forward(torch.Of(x))
	if s.Kind == KindParam || e.weights.Jacobian == 0 {
		return
	}
	s.Jacobian = sumAll(bijector.LogDensityChange(b, torch.Of(x), s.Value))
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
	switch {
	case s.counts() && e.program.given[s.Name]:
		e.given++
	case s.inNoPlate():
		if e.more++; e.more == 1 {
			e.extra = s.Name
		}
	}
	if e.collect != nil {
		e.collect(s)
		return
	}
	if !s.counts() {
		return
	}
	e.checkBatch(s)
	if s.density != nil {
		e.densityAt(s)
	}
	e.add(s)
	if s.Jacobian != (torch.Tensor{}) {
		e.terms = append(e.terms, torch.Term{Coeff: e.weights.Jacobian, Tensor: s.Jacobian})
	}
}

// checkBatch makes sure that a site has its data, or that part of them that the batch has.
func (e *evaluator) checkBatch(s *Site) {
	// The likelihood alone may be that of single data.
	if s.Scale == 1 && e.weights.Prior != 0 {
		if want, ok := e.program.values[s.Name]; ok && s.Value != (torch.Tensor{}) {
			s.checkValues(want)
		}
		s.checkTotal(e.program, e.batch)
	}
	if s.Observed && e.weights.Prior != 0 && e.weights.Likelihood != 0 {
		s.checkRows(e.program, e.batch)
	}
}

// add adds the log density of a site without the Jacobian: by the distribution's own short way where Compile has found
// that it has one.
func (e *evaluator) add(s *Site) {
	scale := s.Scale * e.weights.Prior
	if e.program.IsLikelihood(s) {
		scale = s.Scale * e.weights.Likelihood
	}
	if scale == 0 || s.summed != nil && s.summed.marginal == (torch.Tensor{}) {
		return
	}
	scale *= e.program.ofEpoch(s, e.batch)
	if m := e.program.memos[s.Name]; m != nil && s.Mask == (torch.Tensor{}) {
		known := m.known(s, e.batch, e.point.Alone())
		if terms, constant, ok := s.Dist.(dist.Summer).SumLogProb(s.Value, known); ok {
			for _, t := range terms {
				e.terms = append(e.terms, torch.Term{Coeff: t.Coeff * scale, Tensor: t.Tensor})
			}
			e.plus += constant * scale
			return
		}
	}
	e.terms = append(e.terms, torch.Term{Coeff: scale, Tensor: sumAll(s.elementwise())})
}

func (e *evaluator) result() torch.Tensor {
	e.complete()
	if len(e.terms) == 0 { // flat, or fixed: a constant, which still has a gradient
		e.terms = []torch.Term{{Coeff: 0, Tensor: sumAll(e.point.Flat)}}
	}
	sum := torch.Must(combine(e.terms))
	if e.plus != 0 {
		// A constant has no part in the gradient: added in place, without recording.
		torch.Must(sum, torch.NoGrad(func() error { sum.T().MustAddScalar_(ts.FloatScalar(e.plus)); return nil }))
	}
	return sum
}

// combine adds terms up. The one call adds in place, which fails where vmap maps a term and not the first two.
func combine(terms []torch.Term) (torch.Tensor, error) {
	sum, err := torch.Combine(terms...)
	if err == nil {
		return sum, nil
	}
	for i, t := range terms {
		term, err := t.Tensor.T().MulScalar(ts.FloatScalar(t.Coeff), false)
		if err == nil && i > 0 {
			term, err = sum.T().Add(term, false)
		}
		if err != nil {
			return torch.Tensor{}, err
		}
		sum = torch.Of(term)
	}
	return sum, nil
}

// complete makes sure that every latent site of the layout was there, and all that is observed.
func (e *evaluator) complete() {
	if e.weights.Prior != 0 && e.weights.Likelihood != 0 { // either alone may be that of single data
		e.completeData()
	}
	if e.seen == len(e.program.order) {
		return
	}
	for _, name := range e.program.order {
		if !e.names[name] {
			panic(&SiteError{Site: name, Message: "it was there when the model was compiled and is not in this run: " +
				"a site that appears only sometimes; declare the same sites in every run"})
		}
	}
}

// completeData makes sure that all that was observed is observed again, and in no plate nothing else. A Go loop,
// c.Markov or c.Scan over the rows of a minibatch has fewer sites, and the others would not count.
func (e *evaluator) completeData() {
	if e.given < len(e.program.given) {
		for _, name := range slices.Sorted(maps.Keys(e.program.given)) {
			if !e.names[name] {
				panic(&SiteError{Site: name, Message: "it was there when the model was compiled and is not in this run: " +
					rows.Loops})
			}
		}
	}
	if e.more > 0 {
		panic(&SiteError{Message: fmt.Sprintf("%d observed sites and factors in no plate were not there when the model was "+
			"compiled, the first %q: %s", e.more, e.extra, rows.Loops)})
	}
}

func sumAll(t torch.Tensor) torch.Tensor {
	if len(shapeOf(t)) == 0 {
		return t
	}
	return torch.Of(t.T().MustSum(t.T().DType(), false))
}

// identityName is what the bijector that changes nothing calls itself.
var identityName = bijector.Identity().Name()
