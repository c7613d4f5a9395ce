package ppl

import (
	"fmt"
	"math"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Constrain maps unconstrained parameters ([d], or [K, d]) to the values of the model's latent variables, params and
// deterministic sites, by name, with a leading dimension of K where there are chains.
func (p *Program) Constrain(point infer.Params, batch infer.Batch) (Values, error) {
	values := Values{}
	err := p.each(point, batch, func(point infer.Params) (names []string, out []torch.Tensor) {
		e := &evaluator{program: p, point: point, collect: func(s *Site) {
			if !s.Observed || s.Kind == KindDeterministic {
				names, out = append(names, s.Name), append(out, s.Value)
			}
		}}
		execute(p.model, batch, nil, e)
		e.complete()
		return names, out
	}, values)
	if err != nil {
		return nil, fmt.Errorf("ppl.Constrain: %w", err)
	}
	return values, nil
}

// each runs f at a point, or mapped over the K points, and collects its named results.
func (p *Program) each(point infer.Params, _ infer.Batch, f func(infer.Params) ([]string, []torch.Tensor),
	into Values) error {
	return torch.Do(func(scope *torch.Scope) error {
		var names []string
		var out []torch.Tensor
		var err error
		if point.Batched() {
			out, err = torch.Vmap(func(in []torch.Tensor) (o []torch.Tensor, err error) {
				names, o = f(infer.Params{Layout: point.Layout, Flat: in[0]})
				return o, nil
			}, []torch.Tensor{point.Flat}, nil)
			if err != nil {
				return err
			}
		} else {
			names, out = f(point)
		}
		for i, name := range names {
			if into[name], err = raw.Of(out[i].T().Detach(false)); err != nil {
				return err
			}
			scope.Keep(into[name])
		}
		return nil
	})
}

// Unconstrain maps values of all latent variables and params to a point of unconstrained space.
func (p *Program) Unconstrain(values Values, batch infer.Batch) (point infer.Params, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		free := map[string]torch.Tensor{}
		execute(p.model, batch, nil, process(func(s *Site) {
			l, ok := p.latents[s.Name]
			if !ok || s.Observed || s.Value != (torch.Tensor{}) {
				return
			}
			if s.Value = values[s.Name]; s.Value == (torch.Tensor{}) {
				s.fail("no value was given for it; all latent variables need one: %q", p.order)
			}
			if !broadcastsTo(shapeOf(s.Value), l.shape) {
				s.fail("a value of shape %v was given for it, and it has shape %v", shapeOf(s.Value), l.shape)
			}
			if err := s.Dist.Support().Check(s.Value); err != nil {
				s.fail("the value is outside the support: %v", err)
			}
			b := l.onto(s)
			free[s.Name] = l.inverse(b, s.Value.Expand(l.shape...)).Reshape(l.free...)
		}))
		point, err = infer.FromTensors(free)
		scope.Keep(point.Flat)
		return err
	})
	if err != nil {
		return infer.Params{}, fmt.Errorf("ppl.Unconstrain: %w", err)
	}
	return point, nil
}

// constrainRows is how many draws are mapped at once.
const constrainRows = 4096

// Draws maps draws on unconstrained space, as infer.Run collects them, to draws of the model's latent variables, params
// and deterministic sites. The statistics of the draws are kept. Draws that are known to be named values are an
// [draws.ErrLayout].
func (p *Program) Draws(unconstrained *draws.Draws, batch infer.Batch) (*draws.Draws, error) {
	if unconstrained == nil {
		return nil, fmt.Errorf("ppl.Draws: the draws are nil: %w", draws.ErrNoDraws)
	}
	if unconstrained.Space() == draws.Named {
		return nil, fmt.Errorf("ppl.Draws: the draws are named values, constrained already: give those on "+
			"unconstrained space, Unconstrained of an infer.Result: %w", draws.ErrLayout)
	}
	if err := p.checkSites(unconstrained.Sites()); err != nil {
		return nil, fmt.Errorf("ppl.Draws: %w", err)
	}
	if p.laplace != nil {
		out, err := p.laplace.draws(p, unconstrained, batch)
		if err != nil {
			return nil, fmt.Errorf("ppl.Draws: %w", err)
		}
		return out, nil
	}
	var out *draws.Draws
	for chain := range unconstrained.Chains() {
		n := unconstrained.Len(chain)
		stats := make([][]float64, len(unconstrained.Stats())) // copies of the whole chain: once, not for each part
		for i, name := range unconstrained.Stats() {
			var err error
			if stats[i], err = unconstrained.Stat(name, chain); err != nil {
				return nil, fmt.Errorf("ppl.Draws: %w", err)
			}
		}
		for from := 0; from < n; from += constrainRows {
			to := min(from+constrainRows, n)
			if err := p.mapDraws(unconstrained, batch, stats, chain, from, to, &out); err != nil {
				return nil, fmt.Errorf("ppl.Draws: %w", err)
			}
		}
	}
	if out == nil {
		return nil, fmt.Errorf("ppl.Draws: there are no draws: %w", draws.ErrNoDraws)
	}
	out.SetSpace(draws.Named)
	return out, nil
}

// UnconstrainDraws maps named draws back to unconstrained space, as [Program.Draws] takes them. It leaves out their
// statistics.
func (p *Program) UnconstrainDraws(named *draws.Draws, batch infer.Batch) (*draws.Draws, error) {
	if named == nil {
		return nil, fmt.Errorf("ppl.UnconstrainDraws: the draws are nil: %w", draws.ErrNoDraws)
	}
	for _, name := range p.order {
		s, err := named.Site(name)
		if err != nil {
			return nil, fmt.Errorf("the draws must have the latent variables %q: %w", p.order, err)
		}
		if s.Size != count(p.latents[name].shape) {
			return nil, fmt.Errorf("site %q: the draws have shape %v, and the model has shape %v: %w", name, s.Shape,
				p.latents[name].shape, draws.ErrLayout)
		}
		if p.latents[name].support.Kind == support.KindUnitVector {
			return nil, fmt.Errorf("site %q is a unit vector, of which named draws do not have the length on unconstrained "+
				"space: %w", name, infer.ErrLayout)
		}
	}
	out, err := draws.New(p.layout.Sites, nil, named.Chains())
	if err != nil {
		return nil, err
	}
	for chain := range named.Chains() {
		n := named.Len(chain)
		for from := 0; from < n; from += constrainRows {
			to := min(from+constrainRows, n)
			flat, err := p.unconstrainRows(named, batch, chain, from, to)
			if err != nil {
				return nil, err
			}
			d := out.Dim()
			for i := range to - from {
				x := flat[i*d : (i+1)*d]
				for j, v := range x {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						return nil, fmt.Errorf("draw %d of chain %d: %s is outside its support, or at an end of it, where rounding "+
							"put it: %w", from+i, chain, p.layout.At(j), infer.ErrNonFinite)
					}
				}
				if err := out.AppendChain(chain, x, nil); err != nil {
					return nil, err
				}
			}
		}
	}
	out.SetSpace(draws.Unconstrained)
	return out, nil
}

// unconstrainRows is [Program.Unconstrain] of the draws from to to-1 of a chain, without its checks.
func (p *Program) unconstrainRows(named *draws.Draws, batch infer.Batch, chain, from, to int) (flat []float64,
	err error) {
	err = torch.Do(func(*torch.Scope) error {
		in := make([]torch.Tensor, len(p.order))
		for i, name := range p.order {
			s, err := named.Site(name)
			if err != nil {
				return err
			}
			var column []float64
			for k := from; k < to; k++ {
				column = append(column, named.Row(chain, k)[s.Offset:s.Offset+s.Size]...)
			}
			if in[i], err = torch.FromSlice(column, append([]int{to - from}, p.latents[name].shape...)...); err != nil {
				return err
			}
		}
		out, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			given, free := Values{}, map[string]torch.Tensor{}
			for i, name := range p.order {
				given[name] = in[i]
			}
			execute(p.model, batch, nil, process(func(s *Site) {
				l, ok := p.latents[s.Name]
				if !ok || s.Observed || s.Value != (torch.Tensor{}) {
					return
				}
				b := l.onto(s)
				if l.empty() { // it has one value, which no draw need have
					s.Value = b.Forward(zeros(l.free))
					return
				}
				s.Value = given[s.Name]
				free[s.Name] = b.Inverse(s.Value)
			}))
			parts := make([]torch.Tensor, len(p.layout.Sites))
			for i, site := range p.layout.Sites {
				if free[site.Name] == (torch.Tensor{}) {
					return nil, fmt.Errorf("the model has no %q on this batch: %w", site.Name, infer.ErrLayout)
				}
				parts[i] = free[site.Name].Reshape(-1)
			}
			return []torch.Tensor{torch.Of(torch.Must(ts.Cat(raw.Pointers(parts), 0)))}, nil
		}, in, nil)
		if err != nil {
			return err
		}
		flat, err = torch.ToSlice[float64](out[0])
		return err
	})
	return flat, err
}

// checkSites makes sure that draws are on the program's unconstrained space.
func (p *Program) checkSites(have []draws.Site) error {
	same := len(have) == len(p.layout.Sites)
	for i := 0; same && i < len(have); i++ {
		h, w := have[i], p.layout.Sites[i]
		same = h.Name == w.Name && h.Offset == w.Offset && h.Size == w.Size
	}
	if same {
		return nil
	}
	var names []string
	for _, h := range have {
		names = append(names, fmt.Sprintf("%s%v", h.Name, h.Shape))
	}
	return fmt.Errorf("the draws have the sites %s, and the program's unconstrained space is %v: draws of another "+
		"model, or constrained already: %w",
		strings.Join(names, " "), p.layout, draws.ErrLayout)
}

func (p *Program) mapDraws(in *draws.Draws, batch infer.Batch, stats [][]float64, chain, from, to int,
	out **draws.Draws) error {
	flat := make([]float64, 0, (to-from)*in.Dim())
	for i := from; i < to; i++ {
		flat = append(flat, in.Row(chain, i)[:in.Dim()]...)
	}
	return torch.Do(func(*torch.Scope) error {
		t, err := torch.FromSlice(flat, to-from, in.Dim())
		if err != nil {
			return err
		}
		values, err := p.Constrain(infer.Params{Layout: p.layout, Flat: t}, batch)
		if err != nil {
			return err
		}
		if *out == nil {
			if *out, err = drawsOf(values, in.Stats(), in.Chains()); err != nil {
				return err
			}
		}
		return appendDraws(*out, values, stats, chain, from, to)
	})
}

func appendDraws(out *draws.Draws, values Values, stats [][]float64, chain, from, to int) error {
	columns := map[string][]float64{}
	for name, t := range values {
		var err error
		if columns[name], err = torch.ToSlice[float64](t); err != nil {
			return err
		}
	}
	x, row, sites := make([]float64, out.Dim()), make([]float64, len(stats)), out.Sites()
	for i := from; i < to; i++ {
		for _, s := range sites {
			copy(x[s.Offset:s.Offset+s.Size], columns[s.Name][(i-from)*s.Size:])
		}
		for j := range stats {
			row[j] = stats[j][i]
		}
		if err := out.AppendChain(chain, x, row); err != nil {
			return err
		}
	}
	return nil
}

func sortedNames(values Values) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	return sorted(names)
}
