package laplace

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/parts"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Gaussian is what [DiagState] and [DenseState] hold. Curvature, Prior and Jacobian have the shape of the precision.
type Gaussian struct {
	Params      infer.Params // θ̂, of shape [d] or [K, d]; no update moves it
	Curvature   *ts.Tensor   // of the data, without the prior where that is known by itself
	Prior       *ts.Tensor   // prior precision
	Jacobian    *ts.Tensor   // −∇² log |Jacobian|, which the precision has T times; nil where there is no Jacobian
	Data        *ts.Tensor   // number of data so far, of shape [] or [K]
	Gradient    *ts.Tensor   // of the log density at temperature T, on the scale of the sum over data: 0 at a mode
	Damping     float64      // δ, added to the diagonal of the precision
	Temperature float64      // T
	Step        int64        // updates so far
}

// Position is θ̂.
func (s Gaussian) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s Gaussian) Steps() int64 { return s.Step }

// Tensors are what the state owns, and what it shares with others: all states of a pass share the
// prior and the Jacobian.
func (s Gaussian) Tensors() (owned, shared infer.Tensors) {
	owned = infer.Tensors{"params": s.Params.Flat, "curvature": s.Curvature, "data": s.Data, "gradient": s.Gradient}
	shared = infer.Tensors{"prior": s.Prior}
	if s.Jacobian != nil {
		shared["jacobian"] = s.Jacobian
	}
	return owned, shared
}

// Save names the parts of the state.
func (s Gaussian) Save() infer.Saved {
	owned, shared := s.Tensors()
	return infer.Saved{Steps: s.Step, Tensors: owned, Shared: shared}
}

func (s Gaussian) tempering() float64 { return s.Temperature }

func (s Gaussian) slope() *ts.Tensor { return s.Gradient }

// of is chain k.
func (s Gaussian) of(k int) Gaussian {
	p := s.Params
	s.Params, s.Curvature, s.Prior = point(p, k), chain(p, s.Curvature, k), chain(p, s.Prior, k)
	s.Data, s.Gradient = chain(p, s.Data, k), chain(p, s.Gradient, k)
	if s.Jacobian != nil {
		s.Jacobian = chain(p, s.Jacobian, k)
	}
	return s
}

// own gives the state tensors of its own, so that freeing another leaves it whole.
func (s *Gaussian) own() {
	s.Params.Flat, s.Curvature, s.Data, s.Gradient = same(s.Params.Flat), same(s.Curvature), same(s.Data),
		same(s.Gradient)
}

// sum is the curvature of the log density at temperature T: of the data, the Jacobian and the prior.
func (s Gaussian) sum() *ts.Tensor { return s.likelihood().MustAdd(s.Prior, false) }

// likelihood is the curvature of the data and the Jacobian.
func (s Gaussian) likelihood() *ts.Tensor {
	if s.Jacobian == nil || s.Temperature == 0 {
		return s.Curvature
	}
	return plus(1, s.Curvature, s.Temperature, s.Jacobian)
}

// bayes is the state at temperature 1, without damping: what another model takes for its prior.
func (s Gaussian) bayes() Gaussian {
	s.Temperature, s.Damping = 1, 0
	return s
}

var _ interface {
	infer.Transform
	infer.Restorer
	infer.Sampler
	infer.ModeFinder
	infer.Passer
	infer.Noter
} = (*accumulator)(nil)

// accumulator is the transform of all methods but KFAC: they differ in the curvature of a batch.
type accumulator struct {
	options
	dense bool
	// curvature is that of a batch at a single point, [d] or [d, d], and how many data it is of.
	curvature func(p infer.Params, b infer.Batch) (c *ts.Tensor, data float64, err error)
	// mean says that a batch's curvature is an estimate of the whole: the state has their mean, weighted by their data,
	// instead of their sum.
	mean bool
	// all is how many data there must be in a complete state, times Scale; 0 where that is not known.
	all float64
}

// state is the state of the transform's structure.
func (t *accumulator) state(g Gaussian) infer.State {
	if t.dense {
		return DenseState{g}
	}
	return DiagState{g}
}

func (t *accumulator) gaussian(s infer.State) (Gaussian, error) {
	if t.dense {
		d, err := method.StateAs[DenseState](s, t.name)
		return d.Gaussian, err
	}
	d, err := method.StateAs[DiagState](s, t.name)
	return d.Gaussian, err
}

func (t *accumulator) Init(p infer.Params) (infer.State, error) {
	start, err := copyOf(t.name, p)
	if err != nil {
		return nil, err
	}
	d := p.Layout.Dim()
	if t.dense {
		what := fmt.Sprintf("a precision of shape [%d, %d] for each of %d chains", d, d, p.Chains())
		if err := checkMemory(t.name, what, p, float64(d)*float64(d)*float64(p.Chains()), t.memory, t.name+".Memory",
			"use a diagonal method or KFAC, or the last layer alone by infer.Subspace"); err != nil {
			return nil, err
		}
	}
	g := Gaussian{Params: start, Damping: t.damping}
	if g.Temperature, err = t.at(0); err != nil {
		return nil, err
	}
	err = torch.Do(func(scope *torch.Scope) error {
		if t.dense {
			g.Prior, err = t.prior.matrix(t.name, start)
		} else {
			g.Prior, err = t.prior.diagonal(t.name, start)
		}
		if err != nil {
			return err
		}
		g.Curvature, g.Gradient = g.Prior.MustZerosLike(false), start.Flat.MustZerosLike(false)
		g.Data = start.Flat.MustSelect(-1, 0, false).MustZerosLike(false)
		scope.Keep(g.Curvature, g.Gradient, g.Data)
		torch.Detach(g.Prior) // for all states to come, whatever scopes they are of
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t.state(g), nil
}

// CheckRows refuses data that the method cannot take one by one, before a run looks for the mode.
func (t *accumulator) CheckRows(b infer.Batch) error {
	if t.mean { // of the whole log posterior
		return nil
	}
	return t.checkRows(b)
}

func (t *accumulator) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := t.gaussian(state)
	if err != nil {
		return nil, infer.Info{}, err
	}
	if err := t.CheckRows(b); err != nil {
		return nil, infer.Info{}, err
	}
	next := s
	next.Step++
	if next.Temperature, err = t.at(next.Step); err != nil {
		return nil, infer.Info{}, err
	}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		e, err := t.gradient.ValueAndGrad(s.Params, b, next.Temperature/t.target.N())
		if err != nil {
			return err
		}
		info = method.NewInfo(e, 0, next.Temperature)
		if s.Step == 0 {
			if err := t.begin(&next, b); err != nil {
				return err
			}
		}
		blocks, data := make([]*ts.Tensor, s.Params.Chains()), make([]float64, s.Params.Chains())
		for k := range blocks {
			if info.Diverged != nil && info.Diverged[k] {
				blocks[k] = chain(s.Params, s.Curvature, k).MustZerosLike(false)
			} else if blocks[k], data[k], err = t.curvature(point(s.Params, k), b); err != nil {
				return err
			}
		}
		var share *ts.Tensor // of the batch in the data so far
		if next.Data, share, err = counted(s.Params, s.Data, data); err != nil {
			return err
		}
		more := stack(s.Params, blocks)
		if t.mean {
			next.Curvature = towards(s.Curvature, more, share)
		} else {
			next.Curvature = plus(1, s.Curvature, t.scale, more)
		}
		if next.Gradient, err = t.slopes(s.Gradient, e, share, info.Diverged); err != nil {
			return err
		}
		next.Params.Flat = same(s.Params.Flat)
		scope.Keep(next.Params.Flat, next.Curvature, next.Data, next.Gradient)
		method.KeepAux(scope, info.Aux)
		return nil
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return t.state(next), info, nil
}

// begin adds what the target says of the prior and the Jacobian, which needs a batch: at the first one.
func (t *accumulator) begin(g *Gaussian, b infer.Batch) error {
	if t.inferred && !t.mean {
		prior, err := parts.Curvature(parts.Prior(t.target, 0), g.Params, b, t.dense, t.memory, t.name)
		if err != nil {
			return fmt.Errorf("the curvature of the prior: %w", err)
		}
		torch.Detach(prior)
		g.Prior = prior
	}
	if t.target.LogJacobian == nil {
		return nil
	}
	jacobian, err := parts.Curvature(t.target.LogJacobian, g.Params, b, t.dense, t.memory, t.name)
	if err != nil {
		return fmt.Errorf("the curvature of the log Jacobian: %w", err)
	}
	torch.Detach(jacobian)
	g.Jacobian = jacobian
	return nil
}

// slopes is the mean gradient of the batches so far, on the scale of the sum over data; diverged chains keep theirs.
func (o *options) slopes(old *ts.Tensor, e infer.Evaluation, share *ts.Tensor, diverged []bool) (*ts.Tensor, error) {
	return method.Hold(old, towards(old, scaled(o.target.N(), e.Grad), share), diverged)
}

// counted adds data to the number so far, for each chain. share is the share of the new data in the sum; a chain
// without data, old or new, has share 0.
func counted(p infer.Params, old *ts.Tensor, data []float64) (next, share *ts.Tensor, err error) {
	more, err := torch.FromSliceOn(torch.Must(torch.DeviceOf(old)), old.DType(), data)
	if err != nil {
		return nil, nil, err
	}
	if !p.Batched() {
		more = more.MustSelect(0, 0, false)
	}
	next = old.MustAdd(more, false)
	return next, more.MustDiv(next.MustClampMin(ts.FloatScalar(1e-30), false), false), nil
}

// towards is old + share·(to − old), with a share for each chain.
func towards(old, to, share *ts.Tensor) *ts.Tensor {
	shape := share.MustSize()
	for len(shape) < len(old.MustSize()) {
		shape = append(shape, 1)
	}
	share = share.MustReshape(shape, false)
	return old.MustAdd(to.MustSub(old, false).MustMul(share, false), false)
}

// Sample draws n points from N(θ̂, T P⁻¹), a tensor of shape [n, d]. With K chains draw i is of chain i mod K.
func (t *accumulator) Sample(state infer.State, n int, streams *torch.Streams) (infer.Params, error) {
	s, err := t.gaussian(state)
	if err != nil {
		return infer.Params{}, err
	}
	if err := t.seen(s.Step, n, streams); err != nil {
		return infer.Params{}, err
	}
	if err := t.complete(s); err != nil {
		return infer.Params{}, err
	}
	return draw(t.state(s).(Posterior), n, streams)
}

// complete refuses a state that does not have all of the target's data, where their number is known.
func (t *accumulator) complete(s Gaussian) error {
	if t.all == 0 {
		return nil
	}
	data, err := torch.ToSlice[float64](s.Data)
	if err != nil {
		return err
	}
	for k, n := range data {
		if n *= t.scale; math.Abs(n-t.all) > 1e-3*t.all {
			return fmt.Errorf("%s: chain %d has seen %g data of %g: make one pass over all of them, "+
				"or set Scale to make up for what is left out; where a datum is a group, give LogLikelihood, "+
				"or use laplace.DenseHessian: %w", t.name, k, n/t.scale, t.all, infer.ErrConfig)
		}
	}
	return nil
}

func (t *accumulator) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	g := Gaussian{Params: infer.Params{Layout: layout}, Damping: t.damping, Step: saved.Steps}
	var err error
	if g.Temperature, err = t.at(g.Step); err != nil {
		return nil, err
	}
	for name, to := range map[string]**ts.Tensor{"params": &g.Params.Flat, "curvature": &g.Curvature, "data": &g.Data,
		"gradient": &g.Gradient, "prior": &g.Prior, "jacobian": &g.Jacobian} {
		if shared, ok := saved.Shared[name]; ok {
			*to = shared
		} else if *to, err = saved.Tensor(name); err != nil && name != "jacobian" { // a checkpoint holds all in one
			return nil, err
		}
	}
	return t.state(g), nil
}
