package svi

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/rows"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// plan is what one run of guide and model has shown.
type plan struct {
	model, guide ppl.Model
	params       map[string]*param
	latents      map[string]*latent
	order        []string        // of the latents, as the model declares them
	layout       *infer.Layout   // φ: the params of both on unconstrained space
	start        []float64       // φ at the start
	dtype        gotch.DType     // of φ
	scored       map[string]bool // variables of the guide whose draws have no gradient
	data         int             // N
	given        map[string]bool // the observed variables and the factors of the model
	outside      map[string]int  // how many values the observed variables outside plates had
	part         string          // a plate of which the batch has a part; empty for none
	short        ppl.Plate       // that plate
	sizes        map[string]int  // of the plates around observed variables

	rows    []rows.Rows            // of the batch that the model was compiled on
	factors []string               // of the model, outside plates
	totals  map[string][]rows.Rows // of them, those that add up over rows of the batch

	likelihood func(s *ppl.Site) bool // whether a site of the model is in the likelihood
	landing    bool                   // log q needs no gradient but through the draws
}

// param is a Param of guide or model.
type param struct {
	bijector bijector.Bijector
	model    bool
	shape    []int // on the constrained side
	free     []int
	start    []float64
}

// latent is a latent variable of the model.
type latent struct {
	shape    []int // batch and event
	free     []int // on unconstrained space; shape where the variable is discrete
	bijector bijector.Bijector
	moving   bool // the support depends on other variables
	discrete bool
	local    bool // in a plate of which the batch has a part
	along    int  // the dimension of that plate, counted from the end of shape
}

// survey runs guide and model, compares their variables, and finds what adds up over the rows of the batch.
func survey(model, guide ppl.Model, batch infer.Batch) (*plan, error) {
	p, err := look(model, guide, batch)
	if err != nil {
		return nil, err
	}
	return p, p.findTotals(batch)
}

// look runs guide and model once and compares their variables.
func look(model, guide ppl.Model, batch infer.Batch) (*plan, error) {
	if guide == nil {
		return nil, fmt.Errorf("the guide is nil: %w", infer.ErrConfig)
	}
	p := &plan{model: model, guide: guide, params: map[string]*param{}, latents: map[string]*latent{},
		scored: map[string]bool{}, given: map[string]bool{}, outside: map[string]int{}, sizes: map[string]int{},
		likelihood: func(s *ppl.Site) bool { return !s.Prior() }}
	err := torch.Do(func(*torch.Scope) error {
		defer ts.KelvinSetGradMode(ts.KelvinSetGradMode(true))
		return p.run(batch)
	})
	return p, err
}

func (p *plan) run(batch infer.Batch) error {
	source, values := torch.NewSource(0, 0), ppl.Values{}
	drawn := newTrace(nil)
	err := torch.Do(func(scope *torch.Scope) error {
		p.guide.Run(batch, source, nil, &starter{plan: p, values: values}, drawn)
		for _, s := range drawn.sites {
			p.learn(s)
			if given(s) {
				values[s.Name] = s.Value
			}
		}
		for _, v := range values {
			scope.Keep(v)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the guide: %w", err)
	}
	found := &finder{plan: p, guide: drawn.byName, source: source}
	err = torch.Do(func(*torch.Scope) error {
		p.model.Run(batch, nil, values, &starter{plan: p, values: values, model: true}, found)
		p.findLanding(batch, drawn, values)
		return nil
	})
	if mismatch := found.mismatch(); mismatch != nil && (err == nil || len(found.missing) > 0) {
		return mismatch
	}
	if err != nil {
		return fmt.Errorf("the model under the guide's values: %w", err)
	}
	return p.lay()
}

// learn looks at a site of the guide.
func (p *plan) learn(s *ppl.Site) {
	if s.Kind != ppl.KindSample || !s.Counts() {
		return
	}
	if s.Observed {
		fail(s.Name, "the guide observes it: data are the model's, a guide only draws")
	}
	if reparameterised(s) {
		return
	}
	if s.LogProbs().T().MustRequiresGrad() {
		p.scored[s.Name] = true
	} else if s.Dist.Support().Discrete() {
		fail(s.Name, "the guide draws it from a %s whose parameters depend on no Param: draws have no gradient, and the "+
			"log density has none for the score function, so that nothing fits it; make a parameter of it a Param, or a "+
			"function of one", s.Dist.Name())
	} // else it is fixed, and left as it is
}

// partly are the families whose draws have a gradient, but not all of it: a choice between parts has none.
var partly = []string{"Mixture", "InverseGaussian", "VonMises"}

// reparameterised says whether the gradient of a function of the draw goes to the Params through the draw.
func reparameterised(s *ppl.Site) bool {
	if !s.Value.T().MustRequiresGrad() || s.Dist.Support().Discrete() {
		return false
	}
	name := s.Dist.Name() // of transformed distributions it has the name of the base
	return !slices.ContainsFunc(partly, func(family string) bool { return strings.Contains(name, family) })
}

// given says whether a site of the guide is the value of a variable of the model: a random variable, or a value that
// the guide computes, whose density is that of others.
func given(s *ppl.Site) bool {
	return s.Kind == ppl.KindSample || s.Kind == ppl.KindDeterministic
}

// auxiliary says whether a random variable of the guide is its own, which the model need not have.
func auxiliary(name string) bool { return strings.HasPrefix(name, "_") }

// starter gives params the value that they start from, as functions of leaves, and remembers them.
type starter struct {
	plan   *plan
	values ppl.Values
	model  bool
}

func (h *starter) Process(s *ppl.Site) {
	if s.Kind != ppl.KindParam {
		return
	}
	if known, ok := h.plan.params[s.Name]; ok {
		known.model = known.model || h.model
		want := append(s.Dist.BatchShape(), s.Dist.EventShape()...)
		if !slices.Equal(known.shape, want) {
			fail(s.Name, "guide and model share the Param, and in one it has shape %v, in the other %v", known.shape, want)
		}
		return // its value is known
	}
	support := s.Dist.Support()
	b := torch.Must(bijector.For(support))
	if err := support.Check(s.Init); err != nil {
		fail(s.Name, "its initial value is outside the support: %v", err)
	}
	x := b.Inverse(s.Init).T()
	dtype := x.DType()
	if len(h.plan.params) == 0 {
		h.plan.dtype = dtype
	}
	if dtype != h.plan.dtype {
		fail(s.Name, "it is of type %v, and other Params are of type %v: they are moved together, and must be of one type",
			dtype, h.plan.dtype)
	}
	known := &param{bijector: b, model: h.model, free: torch.Of(x).Shape(),
		shape: append(s.Dist.BatchShape(), s.Dist.EventShape()...), start: torch.Must(torch.ToSlice[float64](torch.Of(x)))}
	h.plan.params[s.Name] = known
	s.Value = b.Forward(torch.Must(torch.Leaf(torch.Of(x))))
	h.values[s.Name] = s.Value
}

func (*starter) Finish(*ppl.Site) {}

// finder compares the variables of the model with those of the guide.
type finder struct {
	plan    *plan
	guide   map[string]*ppl.Site
	source  *torch.Source // of values for what is missing, so that the run goes on
	missing []string
	summed  bool // one that is missing is discrete
	model   map[string]bool
}

func (f *finder) Process(s *ppl.Site) {
	if s.Kind == ppl.KindSample && !s.Observed && s.Value == (torch.Tensor{}) {
		f.missing = append(f.missing, s.Name)
		f.summed = f.summed || s.Dist.Support().Discrete()
		s.Value = torch.Of(s.Dist.Sample(f.source).T())
	}
}

func (f *finder) Finish(s *ppl.Site) {
	if f.model == nil {
		f.model = map[string]bool{}
	}
	if s.Kind == ppl.KindData || s.Kind == ppl.KindDeterministic {
		return
	}
	if f.model[s.Name] {
		fail(s.Name, "there are two sites of that name; names must differ within a run")
	}
	q := f.guide[s.Name]
	if q != nil && s.Kind == ppl.KindSample && s.Observed && s.Counts() {
		fail(s.Name, "the guide draws it, and the model observes it")
	}
	if q != nil && (q.Kind == ppl.KindParam) != (s.Kind == ppl.KindParam) {
		fail(s.Name, "it is a Param in one of guide and model, and a random variable in the other")
	}
	f.model[s.Name] = true
	f.count(s)
	if s.Kind != ppl.KindSample || s.Observed || q == nil {
		return
	}
	l := &latent{shape: append(s.Dist.BatchShape(), s.Dist.EventShape()...)}
	if have := s.Value.Shape(); !slices.Equal(have, l.shape) {
		fail(s.Name, "the guide gives it a value of shape %v, and in the model it has shape %v", have, l.shape)
	}
	on := s.Dist.Support()
	if q.Kind == ppl.KindSample && wider(q.Dist.Support(), on) {
		fail(s.Name, "the guide draws it from a %s, whose draws are %v, and in the model each is %v: those outside have no "+
			"density; take a distribution of the model's support, such as LogNormal or Gamma for a positive variable and "+
			"Beta for one between 0 and 1", q.Dist.Name(), q.Dist.Support(), on)
	}
	if err := on.Check(s.Value); err != nil {
		fail(s.Name, "a draw of the guide is outside its support in the model: %v", err)
	}
	if l.discrete = on.Discrete(); l.discrete {
		l.free = l.shape
	} else {
		l.bijector = torch.Must(bijector.For(on))
		l.free = l.bijector.InverseShape(l.shape)
		_, _, known := on.Bounds()
		l.moving = !known
	}
	for _, plate := range s.Plates {
		if plate.Used != plate.Size {
			l.local, l.along = true, plate.Dim-len(s.Dist.EventShape())
			f.plan.part, f.plan.short = plate.Name, plate
		}
	}
	f.plan.latents[s.Name] = l
	f.plan.order = append(f.plan.order, s.Name)
}

// count finds N, as ppl.Program.Data does.
func (f *finder) count(s *ppl.Site) {
	if s.Observed && s.Counts() {
		f.plan.given[s.Name] = true
	}
	if s.Observed && s.Counts() && s.Kind == ppl.KindFactor && len(s.Plates) == 0 {
		f.plan.factors = append(f.plan.factors, s.Name)
		return
	}
	if !s.Observed || !s.Counts() {
		return
	}
	n := 1
	for _, plate := range s.Plates {
		n *= plate.Size
		f.plan.sizes[plate.Name] = plate.Size
		if plate.Used != 0 && plate.Used != plate.Size {
			f.plan.part, f.plan.short = plate.Name, plate
		}
	}
	if len(s.Plates) == 0 {
		n = size(s.LogProbs().Shape())
		if s.Kind == ppl.KindSample {
			f.plan.outside[s.Name] = size(s.Value.Shape())
		}
	}
	f.plan.data = max(f.plan.data, n)
}

// wider says whether numbers of a guide's support may lie outside the ends of the model's. Ends that are tensors are
// not compared.
func wider(guide, model support.Support) bool {
	low, high, known := model.Bounds()
	if model.Kind != support.KindInterval || !known {
		return false
	}
	from, to := math.Inf(-1), math.Inf(1)
	switch guide.Kind {
	case support.KindReal:
	case support.KindInterval:
		if from, to, known = guide.Bounds(); !known {
			return false
		}
	default:
		return false
	}
	return from < low || to > high
}

// mismatch is the error that names the variables that only one of the two has.
func (f *finder) mismatch() error {
	var extra []string
	for name, s := range f.guide {
		if s.Kind == ppl.KindSample && !f.model[name] && !auxiliary(name) && !slices.Contains(f.missing, name) {
			extra = append(extra, name)
		}
	}
	sort.Strings(extra)
	var text []string
	if len(f.missing) > 0 {
		text = append(text, fmt.Sprintf("the guide lacks %q of the model", f.missing))
	}
	if len(extra) > 0 && (len(f.missing) > 0 || f.model != nil) {
		text = append(text, fmt.Sprintf("the guide has %q, which the model does not have", extra))
	}
	if len(text) == 0 {
		return nil
	}
	advice := "each latent variable of the model needs one of its name in the guide, and no other; " +
		"a variable of the guide alone has a name that begins with _"
	if f.summed {
		advice += "; ppl.Enumerate sums discrete variables out"
	}
	return fmt.Errorf("%s: %s: %w", strings.Join(text, ", and "), advice, infer.ErrConfig)
}

// lay lays out φ.
func (p *plan) lay() error {
	if len(p.params) == 0 {
		return fmt.Errorf("neither guide nor model has a Param: there is nothing to fit: %w", infer.ErrConfig)
	}
	shapes := infer.Shapes{}
	for name, q := range p.params {
		shapes[name] = q.free
	}
	var err error
	if p.layout, err = infer.NewLayout(shapes); err != nil {
		return err
	}
	for _, site := range p.layout.Sites {
		p.start = append(p.start, p.params[site.Name].start...)
	}
	return nil
}

// holds makes sure that the guide gives all of a point: its sites are the variables and params of the model.
func (p *plan) holds(point *infer.Layout) error {
	for _, site := range point.Sites {
		q, l := p.params[site.Name], p.latents[site.Name]
		switch {
		case q != nil && slices.Equal(q.free, site.Shape):
		case l != nil && !l.local && slices.Equal(l.free, site.Shape):
		default:
			return fmt.Errorf("the program has %q, of shape %v on unconstrained space, and the guide does not give it: %w",
				site.Name, site.Shape, infer.ErrLayout)
		}
	}
	return nil
}

// fail is the panic of a mistake at a site, which torch.Do returns.
func fail(site, format string, args ...any) {
	panic(&ppl.SiteError{Site: site, Message: fmt.Sprintf(format, args...)})
}

// size is the number of elements of a shape.
func size(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// base takes the distribution out of those that only widen its events.
func base(d dist.Distribution) dist.Distribution {
	for {
		i, ok := d.(interface {
			Base() dist.Distribution
			N() int
		})
		if !ok {
			return d
		}
		d = i.Base()
	}
}
