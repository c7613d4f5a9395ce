package guide

import (
	"fmt"
	"slices"
	"sort"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Structured is a distribution of its own for each variable on unconstrained space, given those that it depends on:
//
//	x_i = μ_i + Σ_j A_ij x_j + L_i ε_i
//
// over the variables j of Depends. It has the correlations that matter, where Dense has too many numbers. The Params of
// a variable x are "guide.x.loc", μ, "guide.x.scale" or "guide.x.scale_tril", L, and "guide.x.on.y", A for the variable
// y.
type Structured struct {
	// Dense names the variables whose elements have any covariance; those of others are independent.
	Dense []string
	// Delta names the variables that are points on unconstrained space, given those that they depend on.
	Delta []string
	// Depends names, for a variable, those that it depends on. They must come before it in the model.
	Depends   map[string][]string
	InitScale float64    // standard deviation at the start; 0 means 0.1
	Start     ppl.Values // where variables start; those not named start at 0 of unconstrained space
}

// Build finds the variables of a model on a batch.
func (g Structured) Build(model ppl.Model, batch infer.Batch) (ppl.Model, error) {
	const who = "guide.Structured"
	l, scale, err := begin(who, model, batch, g.Start, g.InitScale)
	if err != nil {
		return nil, err
	}
	if err := g.check(who, l); err != nil {
		return nil, err
	}
	if err := g.fits(who, l); err != nil {
		return nil, err
	}
	parts := make([]*part, len(l.sites))
	sizes := map[string]int{}
	for i, s := range l.sites {
		n := s.to - s.from
		sizes[s.name] = n
		parts[i] = &part{site: s, loc: tensor(l.start[s.from:s.to], n)}
		for _, other := range g.Depends[s.name] {
			parts[i].on = append(parts[i].on, other)
			parts[i].slopes = append(parts[i].slopes, tensor(full(0, n*sizes[other]), n, sizes[other]))
		}
		switch {
		case slices.Contains(g.Delta, s.name):
		case slices.Contains(g.Dense, s.name):
			parts[i].tril = tensor(diagonal(scale, n), n, n)
		default:
			parts[i].scale = tensor(full(scale, n), n)
		}
	}
	return func(c *ppl.Ctx) {
		known := map[string]torch.Tensor{}
		for _, p := range parts {
			known[p.name] = p.draw(c, known)
			p.declare(c, known[p.name])
		}
	}, nil
}

// check makes sure that all names are those of variables, and that nothing depends on what comes later.
func (g Structured) check(who string, l *latents) error {
	at := map[string]int{}
	for i, s := range l.sites {
		at[s.name] = i
	}
	for field, names := range map[string][]string{"Dense": g.Dense, "Delta": g.Delta} {
		for _, name := range names {
			if _, ok := at[name]; !ok {
				return unknown(who, field, name, l)
			}
		}
	}
	for _, name := range g.Delta {
		if slices.Contains(g.Dense, name) {
			return &infer.FieldError{Type: who, Field: "Delta", Value: fmt.Sprintf("%q", name),
				Allowed: "a point has no covariance: it must not be in Dense too"}
		}
	}
	names := make([]string, 0, len(g.Depends))
	for name := range g.Depends {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		i, ok := at[name]
		if !ok {
			return unknown(who, "Depends", name, l)
		}
		for _, other := range g.Depends[name] {
			if j, ok := at[other]; !ok {
				return unknown(who, "Depends", other, l)
			} else if j >= i {
				return &infer.FieldError{Type: who, Field: "Depends", Value: fmt.Sprintf("%q on %q", name, other),
					Allowed: "a variable depends on those that the model declares before it"}
			}
		}
	}
	return nil
}

// fits refuses matrices L and A that would take too much memory together.
func (g Structured) fits(who string, l *latents) error {
	numbers := 0.0
	for _, s := range l.sites {
		n := float64(s.to - s.from)
		if slices.Contains(g.Dense, s.name) {
			numbers += n * n
		}
		for _, other := range g.Depends[s.name] {
			on := l.site(other)
			numbers += n * float64(on.to-on.from)
		}
	}
	if err := method.CheckMemory("the set of matrices of Dense and Depends", 8*numbers, 0, "",
		"name fewer variables, or smaller ones"); err != nil {
		return fmt.Errorf("%s: %w", who, err)
	}
	return nil
}

func unknown(who, field, name string, l *latents) error {
	var have []string
	for _, s := range l.sites {
		have = append(have, s.name)
	}
	return &infer.FieldError{Type: who, Field: field, Value: fmt.Sprintf("%q", name),
		Allowed: fmt.Sprintf("it must be a latent variable of the model: %q", have)}
}

// part is the distribution of one variable.
type part struct {
	*site
	loc, scale, tril torch.Tensor // scale and tril are nil for a point
	on               []string
	slopes           []torch.Tensor
}

// draw is a draw on unconstrained space, of shape [n], given those of the variables before.
func (p *part) draw(c *ppl.Ctx, known map[string]torch.Tensor) torch.Tensor {
	name := "guide." + p.name
	loc := c.Param(name+".loc", p.loc, support.Real)
	for i, other := range p.on {
		slope := c.Param(name+".on."+other, p.slopes[i], support.Real)
		loc = loc.Add(slope.Mul(known[other]).Sum(-1))
	}
	switch {
	case p.tril != (torch.Tensor{}):
		tril := c.Param(name+".scale_tril", p.tril, support.LowerCholesky)
		return c.Sample("_"+p.name, dist.MultivariateNormalCholesky(loc, tril))
	case p.scale != (torch.Tensor{}):
		scale := c.Param(name+".scale", p.scale, support.Positive)
		return c.Sample("_"+p.name, dist.Independent(dist.Normal(loc, scale), 1))
	}
	return loc
}
