package ppl

import (
	"fmt"

	checks "github.com/kelvin-ppl/kelvin/diag/check"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// PowerScaling is how strongly the posterior of each parameter moves when the prior or the likelihood is raised to a
// power: [checks.PowerScaling] of the log prior and the log likelihood of every draw, on the data that the model was
// compiled on. The draws must have all latent variables and params. Latent variables make the prior; observations and
// factors make the likelihood; [Program.WithLikelihood] parts them otherwise. Deterministic sites among the draws are
// judged too.
func (p *Program) PowerScaling(posterior *draws.Draws) ([]checks.Sensitivity, error) {
	fail := func(err error) ([]checks.Sensitivity, error) { return nil, fmt.Errorf("ppl.PowerScaling: %w", err) }
	if posterior == nil || posterior.Total() == 0 {
		return fail(fmt.Errorf("there are no draws: %w", draws.ErrNoDraws))
	}
	if err := checkNamed(posterior); err != nil {
		return fail(err)
	}
	var parts [2][]float64
	var gradients [2]infer.Gradient
	for i, w := range []infer.Weights{{Prior: 1}, {Likelihood: 1}} {
		var err error
		if gradients[i], err = infer.NewGradient(p.Target().Weighted(w)); err != nil {
			return fail(err)
		}
	}
	size := int(max(1, min(constrainRows, blockElements/p.Data())))
	for c := range posterior.Chains() {
		for from := 0; from < posterior.Len(c); from += size {
			n := min(size, posterior.Len(c)-from)
			flat := make([]float64, 0, n*p.layout.Dim())
			for i := from; i < from+n; i++ {
				x, err := p.unconstrained(posterior, c, i)
				if err != nil {
					return fail(fmt.Errorf("draw %d of chain %d: %w", i, c, err))
				}
				flat = append(flat, x...)
			}
			points, err := infer.NewParams(p.layout, flat)
			if err != nil {
				return fail(err)
			}
			for i, g := range gradients {
				e, err := g.ValueAndGrad(points, p.batch, 0)
				if err != nil {
					return fail(err)
				}
				for _, v := range e.Values {
					parts[i] = append(parts[i], v*float64(p.Data())) // a target is a mean over the data
				}
			}
		}
	}
	out, err := checks.PowerScaling(posterior, parts[0], parts[1])
	if err != nil {
		return fail(err)
	}
	return out, nil
}

// unconstrained is a draw as a point of unconstrained space.
func (p *Program) unconstrained(d *draws.Draws, chain, draw int) (x []float64, err error) {
	row := d.Row(chain, draw)
	err = torch.Do(func(*torch.Scope) error {
		values := Values{}
		for _, name := range p.order {
			s, err := d.Site(name)
			if err != nil {
				return fmt.Errorf("they must have the latent variables %q: %w", p.order, err)
			}
			t, err := torch.FromSlice(row[s.Offset : s.Offset+s.Size])
			if err != nil {
				return err
			}
			values[name] = t.Reshape(s.Shape...)
		}
		point, err := p.Unconstrain(values, p.batch)
		if err != nil {
			return err
		}
		x, err = torch.ToSlice[float64](point.Flat)
		return err
	})
	return x, err
}
