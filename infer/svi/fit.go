package svi

import (
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

var _ interface {
	infer.Transform
	infer.Seeded
	infer.Restorer
	infer.Sampler
	infer.Noter
} = (*fit)(nil)

// fit is the transform of [SVI].
type fit struct {
	SVI
	plan   *plan
	method infer.GradientMethod // the optimiser
	batch  infer.Batch          // of the program
	point  *infer.Layout        // of the draws
	data   float64              // N
}

// Name is the name of the method in checkpoints.
func (t *fit) Name() string { return name }

// KeepsTypes says that batches stay as they are: a guide whose Params are float32 reads data of float32.
func (t *fit) KeepsTypes() bool { return t.plan.dtype != gotch.Double }

func (t *fit) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

// InitStreams makes the state of a guide at its start. What p holds of latent variables does not matter; Params of the
// model start there.
func (t *fit) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	if err := method.CheckStreams(name, p, streams); err != nil {
		return nil, err
	}
	if !p.Layout.Equal(t.point) {
		return nil, fmt.Errorf("%s: a point with the sites %v, and the program's are %v: %w", name, p.Layout, t.point,
			infer.ErrLayout)
	}
	s := State{Point: p, Streams: streams, plan: t.plan}
	err := torch.Do(func(scope *torch.Scope) error {
		var err error
		if s.Point.Flat, err = torch.Copy(p.Flat); err != nil {
			return err
		}
		phi, err := t.phi(p)
		if err != nil {
			return err
		}
		optimizer, err := t.method.BuildGradient(&objective{})
		if err != nil {
			return err
		}
		if s.Optimizer, err = optimizer.Init(phi); err != nil {
			return err
		}
		method.Keep(scope, s)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// phi is the start of φ for the chains of p.
func (t *fit) phi(p infer.Params) (infer.Params, error) {
	values, err := p.Values()
	if err != nil {
		return infer.Params{}, err
	}
	var flat []float64
	for row := values; len(row) > 0; row = row[p.Layout.Dim():] {
		own := append([]float64{}, t.plan.start...)
		for _, site := range t.plan.layout.Sites {
			if from, ok := p.Layout.Site(site.Name); ok && t.plan.params[site.Name].model {
				copy(own[site.Offset:site.Offset+site.Size], row[from.Offset:from.Offset+from.Size])
			}
		}
		flat = append(flat, own...)
	}
	shape := []int{p.Chains(), len(t.plan.start)}
	if !p.Batched() {
		shape = shape[1:]
	}
	out := infer.Params{Layout: t.plan.layout}
	out.Flat, err = torch.FromSliceOn(torch.CPU, t.plan.dtype, flat, shape...)
	return out, err
}

func (t *fit) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := t.own(state)
	if err != nil {
		return nil, infer.Info{}, err
	}
	next, info, err := t.update(s, b)
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", name, err)
	}
	return next, info, nil
}

func (t *fit) update(s State, b infer.Batch) (State, infer.Info, error) {
	next := State{Point: s.Point, plan: t.plan}
	o, err := t.objective(s)
	if err != nil {
		return next, infer.Info{}, err
	}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		// The optimiser is built anew around the draws of this update, so that nothing is handed over behind its back.
		optimizer, err := t.method.BuildGradient(o)
		if err != nil {
			return err
		}
		var moved infer.Info
		if next.Optimizer, moved, err = optimizer.Update(s.Optimizer, b); err != nil {
			return err
		}
		if next.Point.Flat, err = torch.Copy(o.point); err != nil {
			return err
		}
		torch.Free(o.point)
		next.Streams, next.average, next.spread = o.streams, o.next, o.nextSpread
		info = infer.Info{LogPosterior: o.logPosterior, GradNorm: o.evaluation.Norms, Diverged: o.evaluation.Diverged(),
			LR: moved.LR, Temperature: o.temperature, Stats: map[string][]float64{draws.StatNELBO: o.nelbo}}
		next.trend = s.trend.With(o.nelbo, info.Diverged)
		method.Keep(scope, next)
		return nil
	})
	return next, info, err
}

// objective is the bound at the next update of a state.
func (t *fit) objective(s State) (*objective, error) {
	step := s.Steps()
	temperature, weight := t.Temperature(step), t.KLWeight(step)
	for field, v := range map[string]float64{"Temperature": temperature, "KLWeight": weight} {
		if err := method.CheckValue(name, fmt.Sprintf("%s at update %d", field, step), v, 0, false); err != nil {
			return nil, err
		}
	}
	if err := t.ELBO.check(temperature); err != nil {
		return nil, err
	}
	return &objective{plan: t.plan, elbo: t.ELBO, samples: t.Samples, temperature: temperature,
		weights: weights{prior: weight, guide: weight * temperature}, data: t.data, streams: s.Streams, layout: t.point,
		average: s.average, spread: s.spread}, nil
}

// own is a state of this method.
func (t *fit) own(state infer.State) (State, error) {
	s, err := method.StateAs[State](state, name)
	if err == nil && (s.Optimizer == nil || !s.Optimizer.Position().Layout.Equal(t.plan.layout)) {
		err = fmt.Errorf("%s: the state is of another guide: %w", name, infer.ErrLayout)
	}
	return s, err
}

// Notes are what a run says of its fit: whether the ELBO has settled, whether the chains found the same optimum, and
// how near the guide is to the posterior.
func (t *fit) Notes(state infer.State, run infer.RunSummary) []draws.Note {
	s, err := t.own(state)
	if err != nil || s.trend == nil {
		return nil
	}
	notes, _ := s.trend.Notes(name, approx.Decay, approx.LongerSteps(name), s.Steps(), run.Info.Temperature)
	if len(notes) > 0 || t.KLWeight(max(s.Steps()-1, 0)) != 1 || t.plan.part != "" {
		return notes // the fit is of another distribution, or what the program was made with is a part of the data
	}
	return approx.Closeness(approx.Fit{Name: name, Target: infer.Target{Data: int(t.data)},
		Temperature: run.Info.Temperature, Mean: s.Point, Advice: far,
		Draw: func(chains, n int) (torch.Tensor, []float64, error) {
			return t.ratios(s, run.Batch, run.Info.Temperature, chains, n)
		}})
}

// far is what to do about a fit that is far from the posterior.
const far = "compare with hmc.NUTS, or give a richer Guide, such as one of guide.Dense or a flow; a hierarchical " +
	"model is nearer to a normal distribution in its non-centred form."

// ratios draws n points of the guide of each of the first chains, [chains·n, d], and their log p(y, z)/T − log q(z).
// Params of the model are points and not draws: they count as 0.
func (t *fit) ratios(s State, b infer.Batch, temperature float64, chains, n int) (x torch.Tensor, ratios []float64,
	err error) {
	const block = 250
	n -= n % block
	phi := s.Optimizer.Position()
	d := phi.Layout.Dim()
	streams := torch.NewStreams(0, chains)
	for k := range streams.Chains {
		streams.Chains[k] += 1 << 40 // of its own
	}
	err = torch.Do(func(scope *torch.Scope) error {
		return torch.NoGrad(func() error {
			flat := phi.Flat.Reshape(phi.Chains(), 1, d).T()
			flat = flat.MustNarrow(0, 0, int64(chains), false)
			flat = flat.MustExpand([]int64{int64(chains), block, int64(d)}, true, false)
			flat = flat.MustReshape([]int64{int64(chains * block), int64(d)}, false)
			var all []torch.Tensor
			for range n / block {
				f := func(phi infer.Params, source *torch.Source) []torch.Tensor {
					shot := t.plan.shoot(phi, b, source)
					pieces := shot.point(t.point, phi)
					for i, site := range t.point.Sites {
						if t.plan.params[site.Name] != nil {
							pieces[i] = torch.Of(pieces[i].T().MustZerosLike(false))
						}
					}
					return append(pieces, total(shot.terms(weights{prior: 1, guide: temperature}, false)))
				}
				out, err := mapped(torch.Of(flat), phi.Layout, &streams, block, f)
				if err != nil {
					return err
				}
				last := len(out) - 1
				all = append(all, torch.Cat(1, out[:last]))
				values, err := torch.ToSlice[float64](out[last])
				if err != nil {
					return err
				}
				for _, v := range values {
					ratios = append(ratios, v/temperature)
				}
			}
			x = torch.Cat(0, all)
			scope.Keep(x)
			return nil
		})
	})
	return x, ratios, err
}

func (t *fit) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	point, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	inner := infer.Saved{Steps: saved.Steps, Tensors: infer.Tensors{}}
	for key, x := range saved.Tensors {
		if own, ok := strings.CutPrefix(key, prefix); ok {
			inner.Tensors[own] = x
		}
	}
	flat, err := inner.Tensor("params")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	phi := infer.Params{Layout: t.plan.layout, Flat: flat}
	if err := phi.Check(); err != nil {
		return nil, fmt.Errorf("%s: the saved state is of another guide: %w: %w", name, err, infer.ErrCheckpoint)
	}
	optimizer, err := t.method.BuildGradient(&objective{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s := State{Point: infer.Params{Layout: layout, Flat: point}, Streams: saved.Streams, plan: t.plan}
	if err := s.readExtra(saved.Extra); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, err, infer.ErrCheckpoint)
	}
	s.Optimizer, err = optimizer.(infer.Restorer).Restore(t.plan.layout, inner) // approx.Optimizer has seen that it is one
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// Sample draws n points from the guide, a tensor of shape [n, d]. With K chains point i is from that of chain i mod K.
func (t *fit) Sample(state infer.State, n int, streams *torch.Streams) (infer.Params, error) {
	s, err := t.own(state)
	if err != nil {
		return infer.Params{}, err
	}
	if err := method.CheckDraws(name, n, streams); err != nil {
		return infer.Params{}, err
	}
	out := infer.Params{Layout: t.point}
	err = torch.Do(func(scope *torch.Scope) error {
		phi := s.Optimizer.Position()
		k := phi.Chains()
		flat := phi.Flat.Reshape(k, -1).T().MustRepeat([]int64{int64((n + k - 1) / k), 1}, false)
		own := torch.Streams{Seed: streams.Seed, Offset: streams.Offset, Chains: streams.Chains[:1]}
		pieces, err := mapped(torch.Of(flat.MustNarrow(0, 0, int64(n), false)), phi.Layout, &own, n,
			func(phi infer.Params, source *torch.Source) []torch.Tensor {
				return t.plan.draw(phi, t.batch, source).point(t.point, phi)
			})
		if err != nil {
			return err
		}
		streams.Offset = own.Offset
		out.Flat = torch.Of(torch.Cat(1, pieces).T().MustContiguous(false))
		scope.Keep(out.Flat)
		return nil
	})
	if err != nil {
		return infer.Params{}, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}
