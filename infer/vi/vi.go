package vi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/climb"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
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
	memory          int64
	family          family
}

var _ interface {
	infer.Transform
	infer.Seeded
	infer.Restorer
	infer.Sampler
	infer.Noter
} = (*fit)(nil)

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
	gradient, err := infer.NewGradient(target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	n := target.N()
	if c.klWeight == nil {
		return c.bind(target, func(_, temperature float64) (infer.Gradient, float64, error) {
			return gradient, temperature / n, nil
		})
	}
	if target.Parts == nil {
		return nil, &infer.FieldError{Type: c.name, Field: "KLWeight", Value: "set",
			Allowed: "it needs the log prior by itself: make the target with infer.FromParts, or compile a model"}
	}
	tempering, stays := level(c.temperature)
	if gradient, err = infer.NewGradient(target.ByPrior(tempering)); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return c.bind(target, func(weight, temperature float64) (infer.Gradient, float64, error) {
		if stays && temperature == tempering {
			return gradient, weight / n, nil
		}
		// Code for every temperature of a schedule would take longer to compile than it saves.
		g, err := infer.NewGradient(weighted(target, weight))
		return g, temperature / n, err
	})
}

// level is the value of a temperature at the first update, and whether others have it, as far as can be seen.
func level(temperature infer.Schedule) (first float64, stays bool) {
	if temperature == nil {
		return 1, true
	}
	first = temperature(0)
	for step := int64(1); step < 1<<20; step *= 2 {
		if temperature(step) != first {
			return first, false
		}
	}
	return first, true
}

// defaultSamples is S where the configuration has none.
const defaultSamples = 8

func (c config) bind(target infer.Target, m model) (infer.Transform, error) {
	var err error
	if c.samples < 0 {
		return nil, &infer.FieldError{Type: c.name, Field: "Samples", Value: c.samples,
			Allowed: fmt.Sprintf("it must be at least 1, or 0 for the default of %d", defaultSamples)}
	}
	if c.antithetic && c.samples%2 != 0 {
		return nil, &infer.FieldError{Type: c.name, Field: "Samples", Value: c.samples,
			Allowed: "with Antithetic it must be even"}
	}
	if c.temperature, err = method.CheckSchedule(c.name, "Temperature", c.temperature, infer.Constant(1), 0,
		false); err != nil {
		return nil, err
	}
	if c.klWeight, err = method.CheckSchedule(c.name, "KLWeight", c.klWeight, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	if c.memory < 0 {
		return nil, &infer.FieldError{Type: c.name, Field: "Memory", Value: c.memory,
			Allowed: "it must be at least 1, or 0 for 1 GiB"}
	}
	steps := takesNatural(c.family, c.optimizer, c.temperature)
	if steps {
		c.optimizer = optim.SGD{LR: infer.Constant(1)} // adds what natural.step returns
	}
	method, err := climb.Optimizer(c.name, c.optimizer)
	if err != nil {
		return nil, err
	}
	return &fit{config: c, natural: steps, target: target, method: method, data: target.N(), model: m}, nil
}

func (t *fit) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

func (t *fit) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	if err := method.CheckStreams(t.name, p, streams); err != nil {
		return nil, err
	}
	if err := t.fits(p.Layout, p); err != nil {
		return nil, err
	}
	s := State{Mean: p, Streams: streams, family: t.family, limit: t.limit()}
	err := torch.Do(func(scope *torch.Scope) error {
		layout, err := t.layout(p.Layout)
		if err != nil {
			return err
		}
		if s.Mean.Flat, err = torch.Copy(p.Flat); err != nil {
			return err
		}
		start, err := t.family.start(rows(s.Mean.Flat), &s.Streams)
		if err != nil {
			return err
		}
		if !p.Batched() {
			start = start.MustSelect(0, 0, false)
		}
		optimizer, err := t.method.BuildGradient(&objective{})
		if err != nil {
			return err
		}
		if s.Optimizer, err = optimizer.Init(infer.Params{Layout: layout, Flat: start}); err != nil {
			return err
		}
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
			data: t.data, stick: t.stickTheLanding == nil || *t.stickTheLanding}
		if t.natural {
			o.natural = t.step(s, temperature, weight)
		}
		var err error
		if o.model, o.jacobian, err = t.model(weight, temperature); err != nil {
			return err
		}
		if o.noise, err = t.noise(s.Mean, &next.Streams); err != nil {
			return err
		}
		// The optimiser is built anew around the noise of this update, so that nothing is handed over behind its back.
		optimizer, err := t.method.BuildGradient(o)
		if err != nil {
			return err
		}
		var moved infer.Info
		if next.Optimizer, moved, err = optimizer.Update(s.Optimizer, b); err != nil {
			return err
		}
		if next.Mean.Flat, err = torch.Copy(next.Optimizer.Position().Get("mean").T()); err != nil {
			return err
		}
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
	d := int64(model.Dim())
	what, columns, instead := t.family.matrix(d)
	if err := t.limit().check(what, p, d, columns, instead); err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	return nil
}

func (t *fit) limit() limit { return limit{field: t.name + ".Memory", bytes: t.memory} }

// limit is how many bytes a matrix may take, and the field that says so.
type limit struct {
	field string
	bytes int64
}

// check refuses a matrix for each of the chains of p, in its type.
func (l limit) check(what string, p infer.Params, rows, columns int64, instead string) error {
	size := 8.0
	if p.Flat.DType() == gotch.Float {
		size = 4
	}
	if k := p.Chains(); k > 1 {
		what = fmt.Sprintf("%s, of shape [%d, %d] for each of %d chains,", what, rows, columns, k)
	} else {
		what = fmt.Sprintf("%s, of shape [%d, %d],", what, rows, columns)
	}
	return method.CheckMemory(what, size*float64(rows)*float64(columns)*float64(p.Chains()), l.bytes, l.field, instead)
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
func (t *fit) noise(mean infer.Params, streams *torch.Streams) (*ts.Tensor, error) {
	s := int64(t.count(mean))
	if t.antithetic {
		s /= 2
	}
	shape := []int64{s, t.family.noise(int64(mean.Layout.Dim()))}
	eps, err := streams.Normal(shape, mean.Flat.DType(), torch.Must(torch.DeviceOf(mean.Flat)))
	if err != nil || !t.antithetic {
		return eps, err
	}
	return ts.Cat([]*ts.Tensor{eps, eps.MustNeg(false)}, 1)
}

// layout is that of the variational parameters of a model with a layout.
func (t *fit) layout(model *infer.Layout) (*infer.Layout, error) {
	shapes, err := t.family.sites(int64(model.Dim()))
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
	variational, err := t.layout(layout)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	flat, err := inner.Tensor("params")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	phi := infer.Params{Layout: variational, Flat: flat}
	if err := phi.Check(); err != nil {
		return nil, fmt.Errorf("%s: the saved state is of another method: %w: %w", t.name, err, infer.ErrCheckpoint)
	}
	if err := t.fits(layout, phi); err != nil {
		return nil, err
	}
	optimizer, err := t.method.BuildGradient(&objective{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	s := State{Mean: infer.Params{Layout: layout, Flat: mean}, Streams: saved.Streams, family: t.family,
		limit: t.limit()}
	if s.trend, err = climb.ReadTrend(saved.Extra); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", t.name, err, infer.ErrCheckpoint)
	}
	s.Optimizer, err = optimizer.(infer.Restorer).Restore(variational, inner) // climb.Optimizer has seen that it is one
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	return s, nil
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
	width := t.family.noise(int64(s.Mean.Layout.Dim()))
	apply := func(eps *ts.Tensor) (*ts.Tensor, error) { return s.gaussian().apply(eps), nil }
	out, err := method.DrawGaussians(s.Mean, n, width, streams, apply)
	if err != nil {
		return infer.Params{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return out, nil
}

// rows gives a tensor of one chain, [m], a chain axis: [1, m].
func rows(x *ts.Tensor) *ts.Tensor {
	if x.Dim() > 1 {
		return x
	}
	return x.MustUnsqueeze(0, false)
}
