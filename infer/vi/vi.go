package vi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// config is what the three methods have in common: their fields, and the family of distributions.
type config struct {
	name            string
	optimizer       infer.Method
	samples         int
	temperature     infer.Schedule
	klWeight        infer.Schedule
	stickTheLanding *bool
	antithetic      bool
	memory          int
	scale           float64 // to start with
	family          family
}

var _ interface {
	infer.Transform
	infer.Seeded
	infer.Restorer
	infer.Sampler
	infer.Noter
} = (*fit)(nil)

// stick says whether the score is left out of the gradient.
func (c *config) stick() bool { return c.stickTheLanding == nil || *c.stickTheLanding }

// fit is the transform of the three methods.
type fit struct {
	config
	target  infer.Target
	method  infer.GradientMethod // the optimiser
	natural bool                 // the default steps of Dense
	data    float64              // N
	model   model
}

// model gives the gradient of the target with its prior weighted, and what its log Jacobian counts.
type model func(weight, temperature float64) (g infer.Gradient, jacobian float64, err error)

// Name is the name of the method in checkpoints.
func (t *fit) Name() string { return t.name }

// build binds a configuration to a target.
func (c config) build(target infer.Target) (infer.Transform, error) {
	isWeighted := c.klWeight != nil
	check := &method.Checks{Name: c.name}
	check.Value("InitScale", &c.scale, 0.1, true)
	check.Require(c.samples >= 0, "Samples", c.samples,
		fmt.Sprintf("it must be at least 1, or 0 for the default of %d", defaultSamples))
	check.Require(!c.antithetic || c.samples%2 == 0, "Samples", c.samples, "with Antithetic it must be even")
	check.Schedule("Temperature", &c.temperature, 1, false)
	check.Schedule("KLWeight", &c.klWeight, 1, false)
	check.Require(c.memory >= 0, "Memory", c.memory, "it must be at least 1, or 0 for 1 GiB")
	check.Require(!isWeighted || target.Parts != nil, "KLWeight", "set",
		"it needs the log prior by itself: make the target with infer.FromParts, or compile a model")
	if err := check.Err(); err != nil {
		return nil, err
	}
	t := &fit{config: c, target: target, data: target.N(), natural: takesNatural(c.family, c.optimizer, c.temperature)}
	if t.natural {
		c.optimizer = optim.SGD{LR: infer.Constant(1)} // adds what natural.step returns
	}
	var err error
	if t.method, err = approx.Optimizer(c.name, c.optimizer); err != nil {
		return nil, err
	}
	byTarget := target
	tempering, stays := level(c.temperature)
	if isWeighted {
		byTarget = target.ByPrior(tempering)
	}
	gradient, err := infer.NewGradient(byTarget)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	t.model = func(weight, temperature float64) (infer.Gradient, float64, error) {
		switch {
		case !isWeighted:
			return gradient, temperature / t.data, nil
		case stays && temperature == tempering:
			return gradient, weight / t.data, nil
		}
		// Code for every temperature of a schedule would take longer to compile than it saves.
		g, err := infer.NewGradient(weighted(target, weight))
		return g, temperature / t.data, err
	}
	return t, nil
}

// level is the value of a temperature at the first update, and whether others have it, as far as can be seen.
func level(temperature infer.Schedule) (first float64, stays bool) {
	if temperature == nil {
		return 1, true
	}
	first = temperature(0)
	for step := 1; step < 1<<20; step *= 2 {
		if temperature(step) != first {
			return first, false
		}
	}
	return first, true
}

// defaultSamples is S where the configuration has none.
const defaultSamples = 8

func (t *fit) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

func (t *fit) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	if err := method.CheckStreams(t.name, p, streams); err != nil {
		return nil, err
	}
	if err := t.fits(p.Layout, p); err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	s := State{Mean: p, Streams: streams, family: t.family, limit: t.limit()}
	err := torch.Do(func(scope *torch.Scope) error {
		layout := torch.Must(t.layout(p.Layout))
		s.Mean.Flat = torch.Must(torch.Copy(p.Flat))
		start := t.family.start(rows(s.Mean.Flat), t.scale, &s.Streams)
		if !p.Batched() {
			start = start.At(0)
		}
		optimizer := torch.Must(t.method.BuildGradient(&objective{}))
		s.Optimizer = torch.Must(optimizer.Init(infer.Params{Layout: layout, Flat: start}))
		method.Keep(scope, s)
		return nil
	})
	if f := (*infer.FieldError)(nil); errors.As(err, &f) && f.Type == t.name { // it has the name
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	return s, nil
}

func (t *fit) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := t.own(state)
	if err != nil {
		return nil, infer.Info{}, err
	}
	step := s.Steps()
	temperature, weight := t.temperature(step), t.klWeight(step)
	if err := method.CheckValue(t.name, fmt.Sprintf("Temperature at update %d", step), temperature, 0,
		false); err != nil {
		return nil, infer.Info{}, err
	}
	if err := method.CheckValue(t.name, fmt.Sprintf("KLWeight at update %d", step), weight, 0, false); err != nil {
		return nil, infer.Info{}, err
	}
	next := State{Mean: s.Mean, Streams: s.Streams, family: t.family, limit: t.limit()}
	tau := temperature / t.data // the temperature of a mean over data
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		o := &objective{family: t.family, layout: s.Mean.Layout, samples: t.count(s.Mean), entropy: tau * weight,
			data: t.data, stick: t.stick()}
		if t.natural {
			o.natural = t.step(s, temperature, weight)
		}
		var err error
		if o.model, o.jacobian, err = t.model(weight, temperature); err != nil {
			return err
		}
		o.noise = t.noise(s.Mean, &next.Streams)
		// The optimiser is built anew around the noise of this update, so that nothing is handed over behind its back.
		optimizer := torch.Must(t.method.BuildGradient(o))
		var moved infer.Info
		if next.Optimizer, moved, err = optimizer.Update(s.Optimizer, b); err != nil {
			return err
		}
		next.Mean.Flat = torch.Must(torch.Copy(next.Optimizer.Position().Get("mean")))
		if o.natural != nil {
			moved.LR = o.natural.rate
		}
		info = infer.Info{LogPosterior: o.logPosterior, GradNorm: o.evaluation.Norms, Diverged: o.evaluation.Diverged(),
			LR: moved.LR, Temperature: temperature, Aux: moved.Aux,
			Stats: map[string][]float64{draws.StatNELBO: o.nelbo}}
		next.trend = s.trend.With(o.nelbo, info.Diverged)
		method.Keep(scope, next)
		method.KeepAux(scope, info.Aux)
		return nil
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return next, info, nil
}

// fits refuses a model whose matrices would be too large, before any is made; p has the chains and the type.
func (t *fit) fits(model *infer.Layout, p infer.Params) error {
	d := model.Dim()
	what, columns, instead := t.family.matrix(d)
	return t.limit().check(what, p, d, columns, instead)
}

func (t *fit) limit() limit { return limit{field: t.name + ".Memory", bytes: t.memory} }

// limit is how many bytes a matrix may take, and the field that says so.
type limit struct {
	field string
	bytes int
}

// check refuses a matrix for each of the chains of p, in its type.
func (l limit) check(what string, p infer.Params, rows, columns int, instead string) error {
	k, each := p.Chains(), ""
	if k > 1 {
		each = fmt.Sprintf(" for each of %d chains", k)
	}
	what = fmt.Sprintf("%s, of shape [%d, %d]%s,", what, rows, columns, each)
	bytes := float64(p.Flat.T().DType().Size()) * float64(rows) * float64(columns) * float64(k)
	return method.CheckMemory(what, bytes, l.bytes, l.field, instead)
}

// own is a state of this method's family.
func (t *fit) own(state infer.State) (State, error) {
	s, err := method.StateAs[State](state, t.name)
	if err == nil && (s.empty() || s.family.name() != t.family.name()) {
		err = fmt.Errorf("%s: the state is of another family of distributions: it was made by another method", t.name)
	}
	return s, err
}

// noise draws ε for an update: [K, S, n].
func (t *fit) noise(mean infer.Params, streams *torch.Streams) torch.Tensor {
	s := t.count(mean)
	if t.antithetic {
		s /= 2
	}
	shape := []int{s, t.family.noise(mean.Layout.Dim())}
	eps := torch.Must(streams.Normal(shape, mean.Flat.T().DType(), torch.Must(torch.DeviceOf(mean.Flat))))
	if t.antithetic {
		eps = torch.Of(ts.MustCat([]*ts.Tensor{eps.T(), eps.Neg().T()}, 1))
	}
	return eps
}

// layout is that of the variational parameters of a model with a layout.
func (t *fit) layout(model *infer.Layout) (*infer.Layout, error) {
	shapes, err := t.family.sites(model.Dim())
	if err != nil {
		return nil, err
	}
	return infer.NewLayout(shapes)
}

func (t *fit) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	mean, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	inner := infer.Saved{Steps: saved.Steps, Tensors: infer.Tensors{}}
	for name, x := range saved.Tensors {
		if own, ok := strings.CutPrefix(name, prefix(t.family)); ok {
			inner.Tensors[own] = x
		}
	}
	s := State{Mean: infer.Params{Layout: layout, Flat: mean}, Streams: saved.Streams, family: t.family, limit: t.limit()}
	if s.trend, err = approx.ReadTrend(saved.Extra); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", t.name, err, infer.ErrCheckpoint)
	}
	if s.Optimizer, err = t.restoreOptimizer(layout, inner); err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	return s, nil
}

func (t *fit) restoreOptimizer(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	variational, err := t.layout(layout)
	if err != nil {
		return nil, err
	}
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	phi := infer.Params{Layout: variational, Flat: flat}
	if err := phi.Check(); err != nil {
		return nil, fmt.Errorf("the saved state is of another method: %w: %w", err, infer.ErrCheckpoint)
	}
	if err := t.fits(layout, phi); err != nil {
		return nil, err
	}
	optimizer, err := t.method.BuildGradient(&objective{})
	if err != nil {
		return nil, err
	}
	return optimizer.(infer.Restorer).Restore(variational, saved) // approx.Optimizer has seen that it is one
}

// Sample draws n points from q, a tensor of shape [n, d]. With K chains point i is from that of chain i mod K.
func (t *fit) Sample(state infer.State, n int, streams *torch.Streams) (infer.Params, error) {
	s, err := t.own(state)
	if err != nil {
		return infer.Params{}, err
	}
	if err := method.CheckDraws(t.name, n, streams); err != nil {
		return infer.Params{}, err
	}
	width := t.family.noise(s.Mean.Layout.Dim())
	apply := func(eps torch.Tensor) (torch.Tensor, error) { return s.gaussian().apply(eps), nil }
	out, err := method.DrawGaussians(s.Mean, n, width, streams, apply)
	if err != nil {
		return infer.Params{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return out, nil
}

// rows gives a tensor of one chain, [m], a chain axis: [1, m].
func rows(x torch.Tensor) torch.Tensor {
	if x.T().Dim() > 1 {
		return x
	}
	return x.Unsqueeze(0)
}
