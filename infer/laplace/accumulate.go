package laplace

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Gaussian is what [DiagState] and [DenseState] hold. Curvature and Prior have the shape of the precision.
type Gaussian struct {
	Params      infer.Params // θ̂, of shape [d] or [K, d]; no update moves it
	Curvature   *ts.Tensor   // of the data so far, without the prior
	Prior       *ts.Tensor   // prior precision
	Damping     float64      // δ, added to the diagonal of the precision
	Temperature float64      // T
	Step        int64        // updates so far
}

// Position is θ̂.
func (s Gaussian) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s Gaussian) Steps() int64 { return s.Step }

// Save names the parts of the state. All states of a pass share the prior.
func (s Gaussian) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Tensors: infer.Tensors{"params": s.Params.Flat, "curvature": s.Curvature}, Shared: infer.Tensors{"prior": s.Prior}}
}

func (s Gaussian) tempering() float64 { return s.Temperature }

// of is chain k.
func (s Gaussian) of(k int) Gaussian {
	p := s.Params
	s.Params, s.Curvature, s.Prior = point(p, k), chain(p, s.Curvature, k), chain(p, s.Prior, k)
	return s
}

// accumulator is the transform of all methods but KFAC: they differ in the curvature of a batch.
type accumulator struct {
	options
	dense     bool
	curvature func(p infer.Params, b infer.Batch) (*ts.Tensor, error) // at a single point, [d] or [d, d]
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
		g.Curvature = g.Prior.MustZerosLike(false)
		scope.Keep(g.Curvature)
		torch.Detach(g.Prior) // for all states to come, whatever scopes they are of
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t.state(g), nil
}

func (t *accumulator) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := t.gaussian(state)
	if err != nil {
		return nil, infer.Info{}, err
	}
	next := s
	next.Step++
	if next.Temperature, err = t.at(next.Step); err != nil {
		return nil, infer.Info{}, err
	}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		e, err := t.gradient.ValueAndGrad(s.Params, b, 0)
		if err != nil {
			return err
		}
		info = method.NewInfo(e, 0, s.Temperature)
		parts := make([]*ts.Tensor, s.Params.Chains())
		for k := range parts {
			if info.Diverged != nil && info.Diverged[k] {
				parts[k] = chain(s.Params, s.Curvature, k).MustZerosLike(false)
			} else if parts[k], err = t.curvature(point(s.Params, k), b); err != nil {
				return err
			}
		}
		next.Curvature, err = torch.Combine(torch.Term{Coeff: 1, Tensor: s.Curvature}, torch.Term{Coeff: t.scale, Tensor: stack(s.Params, parts)})
		next.Params.Flat = same(s.Params.Flat)
		scope.Keep(next.Params.Flat, next.Curvature)
		method.KeepAux(scope, info.Aux)
		return err
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return t.state(next), info, nil
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
	return draw(t.state(s).(Posterior), n, streams)
}

func (t *accumulator) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	g := Gaussian{Params: infer.Params{Layout: layout}, Damping: t.damping, Step: saved.Steps}
	var err error
	if g.Temperature, err = t.at(g.Step); err != nil {
		return nil, err
	}
	for name, to := range map[string]**ts.Tensor{"params": &g.Params.Flat, "curvature": &g.Curvature, "prior": &g.Prior} {
		if shared, ok := saved.Shared[name]; ok {
			*to = shared
		} else if *to, err = saved.Tensor(name); err != nil { // a checkpoint holds all in one
			return nil, err
		}
	}
	return t.state(g), nil
}

// fisher builds a Fisher method and ggn a Gauss-Newton method; matrix is the function of package curvature.
func fisher(o options, dense bool, logLikelihood curvature.PerDatum, logPosterior infer.LogPosterior,
	matrix func(curvature.PerDatum, infer.Params, infer.Batch, curvature.Options) (*ts.Tensor, error)) (*accumulator, error) {
	if logLikelihood == nil {
		return nil, &infer.FieldError{Type: o.name, Field: "LogLikelihood", Value: "nil", Allowed: "it is needed: the log likelihood of each datum, " +
			"of shape [n]; curvature.PerSample makes one from a log likelihood of one datum"}
	}
	if err := o.report(logPosterior, logLikelihood); err != nil {
		return nil, err
	}
	return &accumulator{options: o, dense: dense, curvature: func(p infer.Params, b infer.Batch) (*ts.Tensor, error) {
		return matrix(logLikelihood, p, b, curvature.Options{Memory: o.memory, MemoryField: o.name + ".Memory", Tables: o.tables})
	}}, nil
}

func ggn(o options, dense bool, f curvature.Forward, outer curvature.Outer, logPosterior infer.LogPosterior,
	matrix func(curvature.Forward, curvature.Outer, infer.Params, infer.Batch, curvature.Options) (*ts.Tensor, error)) (*accumulator, error) {
	if f == nil {
		return nil, &infer.FieldError{Type: o.name, Field: "Forward", Value: "nil", Allowed: "it is needed: the outputs z = f(θ, x), of shape [n, ...]"}
	}
	if outer == nil {
		return nil, &infer.FieldError{Type: o.name, Field: "Outer", Value: "nil", Allowed: "it is needed: the log likelihoods log p(y_i|z_i), of shape [n]"}
	}
	if err := o.report(logPosterior, curvature.Likelihood(f, outer)); err != nil {
		return nil, err
	}
	return &accumulator{options: o, dense: dense, curvature: func(p infer.Params, b infer.Batch) (*ts.Tensor, error) {
		return matrix(f, outer, p, b, curvature.Options{Memory: o.memory, MemoryField: o.name + ".Memory", Tables: o.tables})
	}}, nil
}

// Tensors are what the state owns, and what it shares with others.
func (s Gaussian) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
