package main

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// sampler is a method with a name.
type sampler struct {
	name   string
	method infer.Method
}

const lr = 0.01 // every sampler is stable at this step on the target

// samplers are those that are measured. Each draws one normal number for each parameter in an update.
var samplers = []sampler{
	{"SGLD", sgmcmc.SGLD{LR: infer.Constant(lr)}},
	{"PSGLD", sgmcmc.PSGLD{LR: infer.Constant(lr)}},
	{"SGHMC", sgmcmc.SGHMC{LR: infer.Constant(lr)}},
	{"SGHMC, estimated β", sgmcmc.SGHMC{LR: infer.Constant(lr), EstimateBeta: &sgmcmc.Estimate{Batches: 2}}},
	{"SymplecticSGHMC", sgmcmc.SymplecticSGHMC{LR: infer.Constant(lr)}},
	{"SymplecticSGHMC, masses", sgmcmc.SymplecticSGHMC{LR: infer.Constant(lr), Mass: map[string]float64{"theta": 2}}},
	{"BAOA", sgmcmc.BAOA{LR: infer.Constant(lr)}},
	{"SGNHT", sgmcmc.SGNHT{LR: infer.Constant(lr)}},
	{"SGNHT per parameter", sgmcmc.SGNHT{LR: infer.Constant(lr), PerParameter: true}},
	{"ATMC, Gaussian", sgmcmc.ATMC{LR: infer.Constant(lr)}},
	{"ATMC, relativistic", sgmcmc.ATMC{LR: infer.Constant(lr), Speed: 1}},
}

// target is a Gaussian of diagonal precision λ between 1/2 and 3/2, log p(θ) = −½Σλᵢθᵢ², with a start for each chain.
type target struct {
	size
	layout      *infer.Layout
	halved      torch.Tensor // −λ/2, of shape [d]
	start       infer.Params
	evaluations int  // how often the density was asked for: all K chains are one
	libtorch    bool // the bound has libtorch's own noise
}

func newTarget(z size) (*target, error) {
	layout, err := infer.NewLayout(infer.Shapes{"theta": {z.dim}})
	if err != nil {
		return nil, err
	}
	t := &target{size: z, layout: layout}
	err = torch.Do(func(scope *torch.Scope) error {
		precision, start := torch.NewStreams(1, 1), torch.NewStreams(2, z.chains)
		// K chains have a leading dimension. One chain has no such dimension, and needs no vmap.
		shape := []int{z.dim}
		u := torch.Must(precision.Uniform(shape, gotch.Float, torch.CPU)).Reshape(shape...).T()
		t.halved = torch.Of(u.MustAddScalar(ts.FloatScalar(0.5), false).MustMulScalar(ts.FloatScalar(-0.5), false))
		flat := torch.Must(start.Normal(shape, gotch.Float, torch.CPU))
		if z.chains == 1 {
			flat = flat.Reshape(shape...)
		}
		t.start = infer.Params{Layout: layout, Flat: flat}
		scope.Keep(t.halved, flat)
		return nil
	})
	return t, err
}

func (t *target) free() { torch.Free(t.halved, t.start.Flat) }

func (t *target) logPosterior(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	t.evaluations++
	return torch.Of(p.Get("theta").Square().Mul(t.halved).T().MustSum(gotch.Float, false)), nil
}

// pair is a chain, or K, and what its updates are compared with.
type pair struct {
	transform infer.Transform
	gradient  infer.Gradient
	state     infer.State
	streams   torch.Streams // of the bound
	libtorch  bool          // it has libtorch's noise instead
}

func (t *target) pair(s sampler) (*pair, error) {
	p := &pair{streams: torch.NewStreams(3, t.chains), libtorch: t.libtorch}
	var err error
	if p.transform, err = s.method.Build(infer.Sum(t.logPosterior, 1)); err != nil {
		return nil, err
	}
	if p.gradient, err = infer.NewGradient(infer.Sum(t.logPosterior, 1)); err != nil {
		return nil, err
	}
	if p.state, err = infer.Init(p.transform, t.start, 4); err != nil {
		return nil, err
	}
	if preparer, ok := p.transform.(infer.Preparer); ok && preparer.Due(p.state, true) {
		p.state, err = preparer.Prepare(p.state, true, func() (infer.Batch, error) { return nil, nil })
	}
	return p, err
}

func (p *pair) free() { infer.Free(p.state) }

// update moves the sampler on by one update, as a run does.
func (p *pair) update() error {
	next, _, err := infer.Advance(p.transform, p.state, nil)
	if err != nil {
		return err
	}
	p.state = next
	return nil
}

// bound evaluates the gradient where the sampler is and draws the noise of an update. It uses neither.
func (p *pair) bound() error {
	return torch.Do(func(*torch.Scope) error {
		at := p.state.Position()
		if _, err := p.gradient.ValueAndGrad(at, nil, 0); err != nil {
			return err
		}
		if p.libtorch {
			_, err := at.Flat.T().RandnLike(false)
			return err
		}
		_, err := p.streams.NormalLike(at.Flat)
		return err
	})
}
