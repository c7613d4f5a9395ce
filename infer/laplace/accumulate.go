package laplace

import (
	"fmt"
	"maps"
	"math"
	"reflect"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// accumulator is the transform of all methods: they differ in the curvature of a batch, and in its structure.
type accumulator struct {
	options
	structure structure
	// curvature is that of a batch at a single point, as the structure's sums, and how many data it is of. It is called
	// inside torch.Do, and may panic with errors that this returns.
	curvature func(p infer.Params, b infer.Batch) (c []torch.Tensor, data float64)
	// mean says that a batch's curvature is an estimate of the whole: the state has their mean, weighted by their data,
	// instead of their sum.
	mean bool
	// all is how many data there must be in a complete state, times Scale; 0 where that is not known.
	all float64
}

func (t *accumulator) Init(p infer.Params) (infer.State, error) {
	start, err := approx.Start(t.name, p)
	if err != nil {
		return nil, err
	}
	g := Gaussian{Params: start, Damping: t.damping}
	if g.Temperature, err = t.at(0); err != nil {
		return nil, err
	}
	err = torch.Do(func(scope *torch.Scope) error {
		what, numbers, instead := t.structure.size(t.name, p)
		checkMemory(t.name, what, p, numbers, t.memory, t.name+".Memory", instead)
		g.Prior = t.structure.prior(t.name, start, t.prior)
		g.Gradient = torch.Of(start.Flat.T().MustZerosLike(false))
		g.Data = torch.Of(g.Gradient.T().MustSelect(-1, 0, false).MustZerosLike(false))
		if q, ok := t.structure.(kronecker); ok {
			zeros := func(n int) torch.Tensor {
				shape := append(g.Data.T().MustSize(), int64(n))
				return torch.Of(ts.MustZeros(shape, g.Data.T().DType(), torch.Must(torch.DeviceOf(g.Data))))
			}
			a, b := q.numbers(p.Layout)
			g.Layers, g.Inputs, g.Outputs = q.layers, zeros(a), zeros(b)
		} else {
			g.Curvature = torch.Of(g.Prior.T().MustZerosLike(false))
		}
		torch.Detach(g.Prior) // for all states to come, whatever scopes they are of
		method.Keep(scope, g)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t.structure.state(g), nil
}

// take is a state of this method's structure.
func (t *accumulator) take(s infer.State) (Gaussian, error) {
	if want := t.structure.state(Gaussian{}); reflect.TypeOf(s) != reflect.TypeOf(want) {
		return Gaussian{}, fmt.Errorf("%s: the state is a %T, expected %T: it was made by another method", t.name, s, want)
	}
	return s.(Posterior).gaussian(), nil
}

// CheckRows refuses data that the method cannot take one by one, before a run looks for the mode.
func (t *accumulator) CheckRows(b infer.Batch) error {
	if t.mean { // of the whole log posterior
		return nil
	}
	return t.checkRows(b)
}

func (t *accumulator) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := t.take(state)
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
			t.begin(&next, b)
		}
		share := t.add(&next, s, b, info.Diverged)
		// The mean gradient of the batches so far, on the scale of the sum over data; diverged chains keep theirs.
		gradient := towards(s.Gradient, scaled(t.target.N(), e.Grad), share)
		if next.Gradient, err = method.Hold(s.Gradient, gradient, info.Diverged); err != nil {
			return err
		}
		next.Params.Flat = approx.Copy(s.Params.Flat)
		method.Keep(scope, next)
		method.KeepAux(scope, info.Aux)
		return nil
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return t.structure.state(next), info, nil
}

// add adds the curvature of a batch and its data to a state. share is that of the batch in the data so far; a chain
// without data, old or new, has share 0.
func (t *accumulator) add(next *Gaussian, old Gaussian, b infer.Batch, diverged []bool) (share torch.Tensor) {
	names, p := t.structure.sums(), old.Params
	sums, data := make([][]torch.Tensor, len(names)), make([]float64, p.Chains())
	was, _ := old.parts()
	for k := range data {
		c := make([]torch.Tensor, len(names))
		if diverged != nil && diverged[k] {
			for i, name := range names {
				c[i] = torch.Of(approx.Chain(p, *was[name], k).T().MustZerosLike(false))
			}
		} else {
			c, data[k] = t.curvature(approx.Point(p, k), b)
		}
		for i := range names {
			sums[i] = append(sums[i], c[i])
		}
	}
	more := torch.Must(torch.FromSliceOn(torch.Must(torch.DeviceOf(old.Data)), old.Data.T().DType(), data))
	if !p.Batched() {
		more = more.At(0)
	}
	all := old.Data.Add(more).T()
	share = more.Div(all.MustClampMin(ts.FloatScalar(1e-30), false))
	if next.Data = torch.Of(all); old.Inputs != (torch.Tensor{}) {
		next.Data = plus(1, old.Data, t.scale, more)
	}
	to, _ := next.parts()
	for i, name := range names {
		if c := approx.Stack(p, sums[i]); t.mean {
			*to[name] = towards(*was[name], c, share)
		} else {
			*to[name] = plus(1, *was[name], t.scale, c)
		}
	}
	return share
}

// begin adds what the target says of the prior and the Jacobian, which needs a batch: at the first one.
func (t *accumulator) begin(g *Gaussian, b infer.Batch) {
	_, dense := t.structure.(matrix)
	of := func(what string, f infer.LogPosterior) (c torch.Tensor) {
		if err := torch.Do(func(scope *torch.Scope) error {
			c = approx.Curvature(f, g.Params, b, dense, t.memory, t.name)
			scope.Keep(c)
			return nil
		}); err != nil {
			approx.Fail("the curvature of the %s: %w", what, err)
		}
		return c
	}
	if t.inferred && !t.mean {
		g.Prior = of("prior", approx.Prior(t.target, 0))
		if q, ok := t.structure.(kronecker); ok {
			g.Prior = q.priorOfLayers(t.name, g.Params.Layout, g.Prior)
		}
	}
	if t.target.LogJacobian != nil {
		g.Jacobian = of("log Jacobian", t.target.LogJacobian)
	}
	torch.Detach(g.Prior, g.Jacobian)
}

// towards is old + share·(to − old), with a share for each chain.
func towards(old, to, share torch.Tensor) torch.Tensor {
	shape := share.T().MustSize()
	for len(shape) < len(old.T().MustSize()) {
		shape = append(shape, 1)
	}
	share = share.Reshape(torch.Ints(shape)...)
	return old.Add(to.Sub(old).Mul(share).T())
}

// Sample draws n points from N(θ̂, T P⁻¹), a tensor of shape [n, d]. With K chains draw i is of chain i mod K.
func (t *accumulator) Sample(state infer.State, n int, streams *torch.Streams) (infer.Params, error) {
	s, err := t.take(state)
	if err != nil {
		return infer.Params{}, err
	}
	if s.Step == 0 && n >= 1 && streams != nil { // what else is wrong with the request is said by draw
		return infer.Params{}, fmt.Errorf("%s: Sample of a state that has seen no batch: make one pass of updates over "+
			"the data first: %w", t.name, infer.ErrConfig)
	}
	if err := t.complete(s); err != nil {
		return infer.Params{}, err
	}
	return s.draw(n, streams)
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
	if q, ok := t.structure.(kronecker); ok {
		g.Layers = q.layers
	}
	parts, shared := g.parts()
	maps.Copy(parts, shared)
	for _, name := range append(t.structure.sums(), "params", "data", "gradient", "prior", "jacobian") {
		to := parts[name]
		if x, ok := saved.Shared[name]; ok {
			*to = x
		} else if *to, err = saved.Tensor(name); err != nil && name != "jacobian" { // a checkpoint holds all in one
			return nil, err
		}
	}
	return t.structure.state(g), nil
}
