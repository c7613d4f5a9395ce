package guide

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// latents are the latent variables of a model, laid out on unconstrained space in the order in which it declares them.
type latents struct {
	sites []*site
	dim   int
	start []float64 // a point of unconstrained space

	supports []support.Support
}

// site is a latent variable.
type site struct {
	name     string
	bijector bijector.Bijector
	shape    []int // on the constrained side
	free     []int // on unconstrained space
	from, to int   // its elements in the flat vector
	start    torch.Tensor
}

// begin finds the variables of a model, and checks the standard deviation to start with: 0.1 where none is given.
func begin(who string, model ppl.Model, batch infer.Batch, start ppl.Values, initScale float64) (*latents, float64,
	error) {
	if initScale == 0 {
		initScale = 0.1
	}
	if err := method.CheckValue(who, "InitScale", initScale, 0, true); err != nil {
		return nil, 0, err
	}
	l, err := find(who, model, batch, start)
	return l, initScale, err
}

// site is the variable of a name; nil for none.
func (l *latents) site(name string) *site {
	for _, s := range l.sites {
		if s.name == name {
			return s
		}
	}
	return nil
}

// find runs a model once, at start where that has values and at 0 of unconstrained space where it has none.
func find(who string, model ppl.Model, batch infer.Batch, start ppl.Values) (*latents, error) {
	l := &latents{}
	var left []string
	err := torch.Do(func(scope *torch.Scope) error {
		f := &finder{latents: l, start: start, scope: scope, seen: map[string]bool{}}
		model.Run(batch, nil, nil, f)
		for name := range start {
			if !f.seen[name] {
				left = append(left, name)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", who, err)
	case len(left) > 0:
		slices.Sort(left)
		return nil, &infer.FieldError{Type: who, Field: "Start", Value: fmt.Sprintf("%q", left),
			Allowed: "its names must be those of latent variables of the model"}
	case l.dim == 0:
		return nil, fmt.Errorf("%s: the model has no latent variable: %w", who, infer.ErrConfig)
	}
	return l, nil
}

// finder is the handler that finds the latent variables.
type finder struct {
	*latents
	start ppl.Values
	scope *torch.Scope
	seen  map[string]bool
}

func (f *finder) Process(s *ppl.Site) {
	if s.Kind != ppl.KindSample || s.Observed || s.Value != (torch.Tensor{}) {
		return
	}
	fail := func(format string, args ...any) {
		panic(&ppl.SiteError{Site: s.Name, Distribution: s.Dist.Name(), Message: fmt.Sprintf(format, args...)})
	}
	on := s.Dist.Support()
	if on.Discrete() {
		fail("it is discrete, and an automatic guide is for variables on unconstrained space: sum it out with " +
			"ppl.Enumerate, or write the guide")
	}
	if _, _, known := on.Bounds(); !known {
		fail("its support depends on another variable (%v), which a guide cannot see: write the guide, or the model with "+
			"a variable of a fixed support", on)
	}
	for _, p := range s.Plates {
		if p.Used != p.Size {
			fail("it is in plate %q, of which the batch has a part: write a guide that reads the batch", p.Name)
		}
	}
	if f.seen[s.Name] {
		fail("there are two sites of that name; names must differ within a run")
	}
	f.seen[s.Name] = true
	own := &site{name: s.Name, bijector: torch.Must(bijector.For(on)), from: f.dim,
		shape: append(s.Dist.BatchShape(), s.Dist.EventShape()...)}
	own.free = own.bijector.InverseShape(own.shape)
	x := torch.New(make([]float64, count(own.free)), own.free...)
	if v := f.start[s.Name]; v != (torch.Tensor{}) {
		if have := v.Shape(); !slices.Equal(have, own.shape) {
			fail("Start gives it a value of shape %v, and it has shape %v", have, own.shape)
		}
		if err := on.Check(v); err != nil {
			fail("Start gives it a value outside its support: %v", err)
		}
		x = own.bijector.Inverse(v)
	}
	y := own.bijector.Forward(x).T()
	own.start = torch.Must(torch.Copy(torch.Of(y)))
	f.scope.Keep(own.start)
	f.latents.start = append(f.latents.start, torch.Must(torch.ToSlice[float64](x))...)
	f.dim += count(own.free)
	own.to = f.dim
	f.sites, f.supports = append(f.sites, own), append(f.supports, on)
	s.Value = torch.Of(y)
}

func (*finder) Finish(*ppl.Site) {}

// identity is the name of the map that changes nothing.
var identity = bijector.Identity().Name()

// real says whether unconstrained space is the support itself.
func (s *site) real() bool { return s.bijector.Name() == identity }

// declare gives the variables their values at a point of unconstrained space, of shape [dim]. The density of the point
// is declared by itself.
func (l *latents) declare(c *ppl.Ctx, theta torch.Tensor) {
	for _, s := range l.sites {
		s.declare(c, theta.Slice(0, s.from, s.to))
	}
}

// declare gives a variable its value at x, a flat piece of unconstrained space, and takes the Jacobian of the map from
// the log density.
func (s *site) declare(c *ppl.Ctx, x torch.Tensor) {
	x = x.Reshape(s.free...)
	y := s.bijector.Forward(x)
	c.Deterministic(s.name, y)
	if !s.real() {
		c.Factor("_jacobian "+s.name, bijector.LogDensityChange(s.bijector, x, y).Sum().Neg())
	}
}

// full is n equal numbers.
func full(value float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = value
	}
	return out
}

// diagonal is a matrix, [n, n] row by row, of equal numbers on the diagonal.
func diagonal(value float64, n int) []float64 {
	out := make([]float64, n*n)
	for i := range n {
		out[i*n+i] = value
	}
	return out
}

// normals are n normal numbers of a standard deviation, always the same.
func normals(n int, sd float64) []float64 {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]float64, n)
	for i := range out {
		out[i] = sd * r.NormFloat64()
	}
	return out
}

// tensor is a tensor that lives as long as the guide.
func tensor(values []float64, shape ...int) torch.Tensor {
	return torch.New(values, shape...)
}

func count(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}
