package path

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Path says which targets lie between the start and the posterior; see the package. The zero value is the path of
// likelihood powers, from the prior. At most one of the fields is set.
type Path struct {
	// Full tempers prior and likelihood together: β = 1/T. At β = 0 it has no normalizer, so that it serves replica
	// exchange and not evidence.
	Full bool
	// Normalizer tempers the density of each datum and normalizes it anew: Σ log Z_i(θ, β) = Σ log ∫ p(y|x_i,θ)^β dy over
	// the data, a tensor of shape [], on the scale of the sum over data. β is a tensor of shape []. For a classifier with
	// logits z it is Σ logsumexp(βz) − β logsumexp(z). The slope is differentiated through it.
	Normalizer func(p infer.Params, b infer.Batch, beta torch.Tensor) torch.Tensor
	// Reference is the start, a normal density on unconstrained space, in a box or not (Baldock and Marzari 2019).
	Reference *Harmonic
}

// name is what errors call it.
const name = "path.Path"

// On binds the path to a program and its data, in a tier of package native: native.Auto is the fastest. The errors are
// a Path with more than one field, a target that cannot tell its parts where they are needed, and those of compiling.
func (p Path) On(program infer.Program, tier native.Tier) (*Evaluator, error) {
	if program == nil {
		return nil, fmt.Errorf("%s: the program is nil: %w", name, infer.ErrConfig)
	}
	start, err := program.Start(program.Batch(), 1, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	e, at, err := p.bind(program.Target(), start, program.Batch())
	if err != nil {
		return nil, err
	}
	if err := tier.Check(); err != nil {
		return nil, &infer.FieldError{Type: name, Field: "tier", Value: fmt.Sprintf("%q", tier), Allowed: err.Error()}
	}
	f, report, err := infer.Compile(e.target, at, e.batch, native.Options{Tier: tier})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return e, e.by(f, e.target.Compiled(report.Tier))
}

// OnJob binds the path to the target that a method was built with, in its run: its tier is the run's. See
// [infer.Driver].
func (p Path) OnJob(target infer.Target, job infer.Job) (*Evaluator, error) {
	e, at, err := p.bind(target, job.Start, job.Batch)
	if err != nil {
		return nil, err
	}
	job.Start = at
	f, err := job.Compile(e.target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return e, e.by(f, e.target)
}

// by takes the function, or where that is no plan the gradient, that evaluates the target.
func (e *Evaluator) by(f *native.Func, target infer.Target) (err error) {
	if f != nil && f.Planned() {
		e.f = f
		return nil
	}
	e.gradient, err = infer.NewGradient(target)
	return err
}

// Check returns an error unless at most one field is set, and the reference is one.
func (p Path) Check() error {
	set := 0
	for _, is := range []bool{p.Full, p.Normalizer != nil, p.Reference != nil} {
		if is {
			set++
		}
	}
	if set > 1 {
		return &infer.FieldError{Type: name, Field: "Full, Normalizer, Reference", Value: fmt.Sprintf("%d of them set", set),
			Allowed: "at most one of them says what the path is"}
	}
	if p.Reference != nil {
		return p.Reference.check()
	}
	return nil
}

// sited is the name of β in a layout: no name of a site comes after it.
const sited = "\U0010ffff inverse temperature"

// bind makes an evaluator that has no function yet, and the first point with a β.
func (p Path) bind(target infer.Target, start infer.Params, b infer.Batch) (*Evaluator, infer.Params, error) {
	fail := func(err error) (*Evaluator, infer.Params, error) { return nil, infer.Params{}, err }
	if err := p.Check(); err != nil {
		return fail(err)
	}
	if start.Layout == nil || target.LogPosterior == nil {
		return fail(fmt.Errorf("%s: the layout or the log posterior is nil: %w", name, infer.ErrConfig))
	}
	if target.Parts == nil && !p.Full && p.Reference == nil {
		return fail(fmt.Errorf("%s: the target cannot tell its prior and likelihood apart: make it with infer.FromParts, "+
			"compile a model, or walk from a Reference: %w", name, infer.ErrConfig))
	}
	d := start.Layout.Dim()
	if h := p.Reference; h != nil && len(h.Mean) != d {
		return fail(&infer.FieldError{Type: "path.Harmonic", Field: "Mean", Value: fmt.Sprintf("of length %d", len(h.Mean)),
			Allowed: fmt.Sprintf("the program has %d dimensions", d)})
	}
	values, err := start.Values()
	if err != nil {
		return fail(err)
	}
	device, err := torch.DeviceOf(start.Flat)
	if err != nil {
		return fail(err)
	}
	e := &Evaluator{path: p, d: d, device: device, layout: start.Layout, batch: b, base: target,
		wide: &infer.Layout{Sites: append(slices.Clone(start.Layout.Sites),
			infer.Site{Name: sited, Shape: []int{}, Offset: d, Size: 1})}}
	e.target = target.Replaced(e.density)
	at, err := infer.NewParams(e.wide, append(slices.Clone(values[:d]), 0.5))
	if err == nil && device != torch.CPU {
		at, err = at.To(device, gotch.Double)
	}
	return e, at, err
}

// density is the log density of a point with its β as last coordinate.
func (e *Evaluator) density(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *infer.External: // it is asked for at the point with its β
			panic(&infer.External{Site: v.Site, Evaluate: func(p infer.Params, b infer.Batch) (infer.Tensors, error) {
				x, err := p.Flat.T().Narrow(-1, 0, int64(e.d), false)
				if err != nil {
					return nil, err
				}
				return v.Evaluate(infer.Params{Layout: e.layout, Flat: torch.Of(x)}, b)
			}})
		default:
			panic(v)
		}
	}()
	x := infer.Params{Layout: e.layout, External: p.External,
		Flat: torch.Of(torch.Must(p.Flat.T().Narrow(-1, 0, int64(e.d), false)))}
	x = torch.Must(x.Split())
	beta := p.Get(sited)
	part := func(prior, likelihood, jacobian float64) torch.Tensor {
		v, _ := e.base.Weigh(infer.Weights{Prior: prior, Likelihood: likelihood, Jacobian: jacobian})(x, b)
		return v
	}
	switch h := e.path.Reference; {
	case e.path.Full:
		return part(0, 0, 1).Add(part(1, 1, 0).Mul(beta)), nil
	case h != nil:
		from := h.logDensity(x.Flat)
		return from.Add(part(1, 1, 1).Sub(from).Mul(beta)), nil
	}
	v := part(1, 0, 1).Add(part(0, 1, 0).Mul(beta))
	if f := e.path.Normalizer; f != nil {
		v = v.Sub(f(x, b, beta))
	}
	return v, nil
}
