package ppl

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/rows"
	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Program is a compiled model: its latent variables laid out on unconstrained space, and the functions between that
// space and the model. It is immutable; any number of goroutines may use it.
type Program struct {
	densities map[string][]bool // of each Density, which inputs depend on latent variables
	observed  []string          // the variables of Observe

	keeps    bool        // discrete latent variables are coordinates, as CompileDiscrete has it
	discrete bool        // a run has found a discrete latent variable
	sums     *enumerator // sums them out; nil where there are none

	model   Model
	open    Model // whose plates take their sizes from the data at hand
	batch   infer.Batch
	layout  *infer.Layout
	latents map[string]*latent
	order   []string         // of the latent sites, as they run
	data    int              // N, the population of the observations
	values  map[string]int   // how many values the observed sites outside plates had
	given   map[string]bool  // the observed sites and the factors
	hasData bool             // one of them has data
	noData  error            // one of them has a plate without data
	rows    []rows.Rows      // of the batch of Compile
	memos   map[string]*memo // of the sites whose short sum agrees with the long one
	whole   map[string]whole // the tensors of the batch that are calculated with, converted

	loose    []string               // the terms without a plate's dimension that may be sums over rows of the batch
	totals   map[string][]rows.Rows // of them, those that are
	means    map[string]rows.Rows   // those that depend on rows otherwise
	part     string                 // a plate that Minibatch declares, and of which the batch has a part
	partRows int                    // of it in the batch
	partOf   int                    // its size

	types   map[string]gotch.DType // of the data that evaluations get, by name
	indices map[string]bool        // the data of types with fractions that are used as indices

	counted    []counted       // the sites that have a density, as they run
	likelihood map[string]bool // of them, those that WithLikelihood has named; nil is what is observed

	laplace *laplace // of MarginalLaplace
}

func newProgram(m Model, batch infer.Batch) *Program {
	return &Program{model: m, batch: batch, latents: map[string]*latent{}, memos: map[string]*memo{},
		values: map[string]int{}, given: map[string]bool{}}
}

// latent is what is known of a latent site.
type latent struct {
	name     string
	kind     Kind
	support  support.Support
	shape    []int             // on the constrained side: batch and event
	free     []int             // on the unconstrained side
	bijector bijector.Bijector // nil when the support depends on other sites
	start    []float64         // of params: where they start, on the unconstrained side
	dims     []string          // of shape: the plate of each dimension, empty where it is in none
	ends     [2]float64        // of a discrete variable: its least and its largest value, infinite where there is none
}

// Compile runs a model on a batch, at 0 of unconstrained space (and where that fails, at two other points), and finds
// its latent sites, their supports and shapes. Nothing is generated: the program runs the model. Parameters, observed
// values and shapes are checked here, once, and not at every evaluation. A model is refused if a parameter that must be
// positive is not at points of either sign, if one of any kind is allowed at none of several points, if it reads the
// value of a tensor that depends on a latent variable, or if its log density differs between two runs at one point: it
// draws random numbers of its own, or keeps state.
//
// Discrete latent variables are summed out, as [Enumerate] does; the program's String says which. [CompileDiscrete]
// keeps them.
//
// Whole numbers and float32 of the batch that the model calculates with are converted to float64 here, once, for
// evaluations on that batch; whole numbers that it uses as indices stay what they are. Runs convert the parts of their
// own batches alike, once for each batch: see [Program.ConvertBatch].
//
// Variables of the program that the model reads must not change while it is used: runs compile its gradient once, with
// what they are then ([infer.Options].Native says how), and note where a comparison with the model finds another.
//
// Tensors of a batch may be changed in place by operations of libtorch. Memory that was lent to one with torch.Borrow
// or torch.View must not be: what is kept of the data would not notice.
func Compile(m Model, batch infer.Batch) (*Program, error) {
	p, err := compile(m, batch, false)
	if err != nil {
		return nil, fmt.Errorf("ppl.Compile: %w", p.advised(err, m))
	}
	return p, nil
}

// compile is [Compile], or [CompileDiscrete] where keep says so.
func compile(m Model, batch infer.Batch, keep bool) (*Program, error) {
	batch = batch.Tensors()
	// What is asked here the first steps of a long series answer as well.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer thread.Shorten(fewSteps)()
	var p *Program
	var first error
	var sums *enumerator
	for attempt := 0; attempt < compileAttempts; attempt++ {
		p = newProgram(m, batch)
		p.sums, p.keeps = sums, keep
		e := &execution{batch: batch}
		err := torch.Do(func(*torch.Scope) error {
			run(m, e, []Handler{&compiler{program: p, recorder: newRecorder(), attempt: attempt}})
			p.open, p.model = m, withSizes(m, e.sizes.told)
			return nil
		})
		if err == nil {
			first = nil
			break
		}
		if p.discrete && sums == nil && !keep {
			sums = &enumerator{}
			m = enumerate(m, sums)
			attempt = -1 // once more from the start, with the discrete variables summed out
			continue
		}
		if first == nil {
			first = err
		}
	}
	if first == nil && !p.hasData {
		first = p.noData
	}
	if first == nil {
		first = p.checkSigns(m, batch)
	}
	if first == nil {
		first = p.checkGeneric(m, batch)
	}
	if first != nil {
		return p, withTypes(first, batch)
	}
	shapes := infer.Shapes{}
	for name, l := range p.latents {
		if !l.empty() {
			shapes[name] = l.free
		}
	}
	if len(shapes) == 0 {
		return nil, fmt.Errorf("the model has no latent variable: nothing is left to infer: %w", infer.ErrConfig)
	}
	var err error
	if p.layout, err = infer.NewLayout(shapes); err != nil {
		return nil, err
	}
	if err := p.examine(); err != nil {
		return nil, err
	}
	return p, nil
}

// examine finds out what more runs of the model tell.
func (p *Program) examine() error {
	point, err := p.scattered(0.3)
	if err != nil {
		return err
	}
	defer torch.Free(point.Flat)
	value, ok, err := p.checkRepeats(point)
	if err != nil {
		return err
	}
	if err := p.checkReads(); err != nil {
		return err
	}
	if err := p.convertWhole(point, value, ok); err != nil {
		return err
	}
	if err := p.findIndices(point); err != nil {
		return err
	}
	return p.findTotals()
}

// compileAttempts is at how many points a model is tried. A parameter may be out of its domain by accident at one of
// them (a scale of |x| at x = 0), but not a mistake.
const compileAttempts = 3

// fewSteps are those of a long series that are evaluated where all are more of the same.
const fewSteps = 23

// empty says whether a variable has nothing to infer: the simplex of one number, for example.
func (l *latent) empty() bool { return slices.Contains(l.free, 0) }

// onto is the map onto the support of the variable at its site.
func (l *latent) onto(s *Site) bijector.Bijector {
	if l.bijector != nil {
		return l.bijector
	}
	return torch.Must(bijector.For(s.Dist.Support()))
}

// compiler is the handler that finds the latent sites. It gives each the value at a point of unconstrained space, which
// every support has, so that no site has to be sampled.
type compiler struct {
	program *Program
	recorder
	attempt int
	sign    float64 // of all values in checkSigns; 0 otherwise

	// In checkSigns: variables on the real line are far away, and turns says that every other one is on the other side.
	far, turns bool
	onLine     bool // a variable on the real line was there
	computed   bool // a parameter that may have to be positive depends on latent variables
}

// at is where the latent variables are: 0 of unconstrained space, and then other points. They start graphs of their
// own, so that what depends on them can be told from what is constant.
func (c *compiler) at(shape []int) torch.Tensor {
	x := make([]float64, count(shape))
	for i := range x {
		x[i] = 0.7 * float64(c.attempt) * math.Cos(2.4*float64(i+c.attempt))
		if c.sign != 0 {
			x[i] = c.sign * (1 + 0.3*math.Cos(2.4*float64(i)))
		}
	}
	return torch.Must(torch.Leaf(torch.New(x, append([]int{}, shape...)...)))
}

// large says whether a shape has more than 2^31 elements, as no kernel takes.
func large(shape []int) bool {
	n := 1
	for _, s := range shape {
		if s > 0 && n > (1<<31)/s {
			return true
		}
		n *= s
	}
	return false
}

func count(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

func (c *compiler) Process(s *Site) {
	if s.Kind != KindSample && s.Kind != KindParam {
		return
	}
	if err := s.Dist.Validate(); err != nil {
		if fault := faultOf(c.program.batch, s); fault != "" {
			s.fail("%v; %s", err, fault)
		}
		s.fail("%v%s", err, adviceOn(err))
	}
	c.computed = c.computed || c.sign != 0 && !c.far && isComputed(s.Dist)
	if s.Value != (torch.Tensor{}) { // observed, or substituted
		if s.Kind == KindSample {
			what := "substituted"
			if s.Observed {
				what = "observed"
			}
			if sup := s.Dist.Support(); !depends(sup) && !s.variesBySum(sup) {
				if err := sup.Check(s.unmasked()); err != nil {
					s.fail("the %s value is outside the support: %v", what, err)
				}
			}
		}
		if s.Observed && !s.hidden {
			c.program.data = max(c.program.data, population(s))
		}
		return
	}
	for _, p := range s.Plates {
		if s.Kind == KindSample && p.Used != p.Size {
			s.fail("plate %q has size %d, and this latent variable has size %d there: it needs a value for each of the %d, "+
				"since in another batch it would be other variables", p.Name, p.Size, p.Used, p.Size)
		}
	}
	sup := s.Dist.Support()
	if c.program.discrete = c.program.discrete || sup.Discrete(); sup.Discrete() && !c.program.keeps {
		s.fail("a latent variable that is discrete (%v) has no gradient: ppl.Enumerate sums it out", sup)
	}
	if sup.Atoms {
		s.fail("%s has a probability at single numbers, and no density there: it is for Observe; give a latent variable "+
			"what it is made of, or dist.Truncated", s.Dist.Name())
	}
	b, err := s.onto(sup)
	if err != nil {
		s.fail("%v", err)
	}
	l := &latent{
		name:    s.Name,
		kind:    s.Kind,
		support: sup,
		shape:   append(s.Dist.BatchShape(), s.Dist.EventShape()...),
		dims:    dims(s),
	}
	l.free = b.InverseShape(l.shape)
	if _, _, known := sup.Bounds(); known || sup.Discrete() {
		l.bijector = b
	}
	if _, ok := c.program.latents[s.Name]; ok {
		s.fail("there are two sites of that name; names must differ within a run")
	}
	c.program.latents[s.Name] = l
	if !l.empty() {
		c.program.order = append(c.program.order, s.Name)
	}
	if s.Kind == KindParam {
		if err := sup.Check(s.Init); err != nil {
			s.fail("its initial value is outside the support: %v", err)
		}
		l.start = torch.Must(torch.ToSlice[float64](b.Inverse(s.Init)))
		s.Value = s.Init
		return
	}
	if large(l.free) {
		s.fail("it has %v numbers to infer: there may be at most 2^31", l.free)
	}
	x := c.at(l.free)
	if sup.Discrete() {
		l.ends = endsOf(sup)
		x = torch.Must(torch.Leaf(l.nearest(x)))
	} else if b.Name() == identityName {
		c.onLine = true
		if c.far {
			x = c.away(x)
		}
	}
	s.Value = b.Forward(x)
}

// away moves the values of a variable far from 0.
func (c *compiler) away(x torch.Tensor) torch.Tensor {
	by := float64(farAway)
	if c.turns && len(c.program.latents)%2 == 0 {
		by = -by
	}
	return torch.Of(x.T().MustMulScalar(ts.FloatScalar(by), false))
}

// depends says whether a support's ends depend on latent variables: then they are not known when a model is compiled.
func depends(s support.Support) bool {
	for _, end := range []torch.Tensor{s.Low, s.High} {
		if _, isNumber := end.Number(); !isNumber && end.T().MustRequiresGrad() {
			return true
		}
	}
	return false
}

// variesBySum says whether a support's ends depend on a discrete variable that is summed out: a value may then be
// outside for some of its values, where its density is 0.
func (s *Site) variesBySum(on support.Support) bool {
	shape := s.valueShape()
	return s.summed != nil && !(broadcastsTo(on.Low.Shape(), shape) && broadcastsTo(on.High.Shape(), shape))
}

func (c *compiler) Finish(s *Site) {
	c.recorder.Finish(s)
	if !s.counts() || c.far {
		return
	}
	s.checkWhole()
	if s.Observed || s.Kind == KindFactor {
		c.program.given[s.Name] = true
		at := slices.IndexFunc(s.Plates, func(p Plate) bool { return p.Size == 0 })
		c.program.hasData = c.program.hasData || at < 0 && (s.Kind != KindFactor || len(s.Plates) > 0)
		if at >= 0 && c.program.noData == nil {
			c.program.noData = s.mistake("plate %q has no data, and neither has any other: the posterior would be the prior; "+
				"give it at least one datum", s.Plates[at].Name)
		}
	}
	c.program.remember(s)
	for i, p := range s.Plates {
		if s.ctx.plates[i].minibatch && p.Used != 0 && p.Used != p.Size {
			c.program.part, c.program.partRows, c.program.partOf = p.Name, p.Used, p.Size
		}
	}
	if s.Kind == KindFactor && (s.inNoPlate() || s.repeated() != nil) {
		c.program.loose = append(c.program.loose, s.Name)
	}
	if s.density != nil {
		c.compileDensity(s)
	}
	if s.declared && s.Observed {
		c.program.observed = append(c.program.observed, s.Name)
	}
	if len(s.Plates) == 0 && s.Observed && s.Kind == KindSample {
		c.program.values[s.Name] = count(s.valueShape())
	}
	s.tryDensity()
	if s.Kind == KindFactor && len(s.Plates) > 0 {
		c.program.data = max(c.program.data, population(s))
	}
	if m := (&memo{}); s.Kind == KindSample && s.Mask == (torch.Tensor{}) && s.agrees(m) {
		c.program.memos[s.Name] = m
	}
}

// tryDensity evaluates the density once, so that an error in it names the site.
func (s *Site) tryDensity() {
	err := torch.Do(func(*torch.Scope) error {
		s.elementwise()
		return nil
	})
	var site *SiteError
	var external *infer.External
	switch {
	case err == nil:
	case errors.As(err, &site):
		panic(site)
	case errors.As(err, &external):
		panic(external)
	default:
		s.fail("%v", err)
	}
}

// agrees says whether the distribution's short sum is there and is what LogProb sums to, to rounding: at values that
// the short way cannot bear the long one is taken.
func (s *Site) agrees(m *memo) bool {
	d, ok := s.Dist.(dist.Summer)
	if !ok || s.summed != nil {
		return false
	}
	terms, short, ok := d.SumLogProb(s.Value, m.known(s, nil, false))
	if !ok {
		return false
	}
	logp := s.elementwise()
	tolerance := 1e-9
	for _, t := range terms {
		short += t.Coeff * t.Tensor.Item()
		if t.Tensor.T().DType() != gotch.Double {
			tolerance = 1e-3
		}
	}
	long := torch.Of(logp.T().MustSum(gotch.Double, false)).Item()
	size := torch.Of(logp.Abs().T().MustSum(gotch.Double, false)).Item()
	return math.Abs(short-long) <= tolerance*max(1, size)
}

// dims names the dimensions of a site's value after its plates.
func dims(s *Site) []string {
	batch := len(s.Dist.BatchShape())
	out := make([]string, batch+len(s.Dist.EventShape()))
	for _, p := range s.Plates {
		if at := batch + p.Dim; at >= 0 && s.Kind == KindSample {
			out[at] = p.Name
		}
	}
	return out
}

// population is the number of data behind an observed site: the sizes of its plates, or of its batch where
// it is in none.
func population(s *Site) int {
	n := 1
	for _, p := range s.Plates {
		n *= p.Size
	}
	if len(s.Plates) == 0 && s.summed != nil {
		n = count(s.valueShape())
	} else if len(s.Plates) == 0 {
		n = count(shapeOf(s.elementwise()))
	}
	return n
}

func zeros(shape []int) torch.Tensor {
	return torch.New(make([]float64, count(shape)), append([]int{}, shape...)...)
}

// String describes the program: its latent variables with their shapes, how many data there are, and which discrete
// variables are summed out, with the number of their tables and the largest one.
func (p *Program) String() string {
	if p.layout == nil {
		return "a program that Compile has not made"
	}
	data := "data"
	if p.Data() == 1 {
		data = "datum"
	}
	text := fmt.Sprintf("a model of %d %s with the latent variables", p.Data(), data)
	for i, name := range p.order {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s %v", name, p.latents[name].shape)
	}
	if p.sums != nil {
		text += "; " + p.sums.plan.Load().String()
	}
	if names := p.Discrete(); len(names) > 0 {
		text += fmt.Sprintf("; %s discrete, as coordinates", strings.Join(names, ", "))
	}
	return text
}

// Layout is the layout of the unconstrained parameters: one site for each latent variable and param.
func (p *Program) Layout() *infer.Layout { return p.layout }

// Batch is the batch that the model was compiled on.
func (p *Program) Batch() infer.Batch { return p.batch }

// Latents are the names of the latent variables and params, in the order in which the model declares them.
func (p *Program) Latents() []string { return append([]string{}, p.order...) }

// Dims names the dimensions of a latent variable's value: the plate that each belongs to, or an empty string. An
// unknown name gives nil.
func (p *Program) Dims(name string) []string {
	if l, ok := p.latents[name]; ok {
		return append([]string{}, l.dims...)
	}
	return nil
}

// Data is N, the number of data: the largest product of the plate sizes around an observed site or a factor, or the
// number of elements of an observed site that is in no plate.
func (p *Program) Data() int { return max(p.data, 1) }

// Model is the model as it was compiled: discrete variables that Compile sums out are summed out.
func (p *Program) Model() Model { return p.model }
