package ppl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// WithLikelihood is the program with other parts: the log densities of the named sites are its likelihood, and those of
// all other sites its prior. The posterior stays as it is. What weighs the parts apart then weighs those sites:
// [infer.TemperLikelihood] and [infer.TemperPrior], package infer/path, replica exchange along a path, and the KLWeight
// of package infer/svi.
//
//	counts, err := program.WithLikelihood("counts")
//	half, err := infer.TemperLikelihood(counts.Target(), 2) // the counts to the power 1/2, all other data as they are
//
// The sites are variables of Observe, factors, or latent variables. A name without the step of a loop stands for all of
// its steps. Sites whose densities are one sum over discrete variables go together. Draws from the prior, and with them
// the evidence, are an error that names a site where the prior then has data, or lacks a latent variable: a path from
// there starts at a Reference. Without names nothing is in the likelihood.
func (p *Program) WithLikelihood(sites ...string) (*Program, error) {
	fail := func(format string, args ...any) (*Program, error) {
		return nil, fmt.Errorf("ppl.WithLikelihood: "+format+": %w", append(args, infer.ErrConfig)...)
	}
	if p.layout == nil {
		return fail("Compile has not made the program")
	}
	q := *p
	q.likelihood = map[string]bool{}
	for _, name := range sites {
		found := false
		for _, c := range p.counted {
			if c.name == name || c.class == name {
				q.likelihood[c.name], found = true, true
			}
		}
		if !found {
			return fail("the model has no density of the name %q; it has %s", name, p.densityNames())
		}
	}
	for _, c := range p.counted {
		// The sum is evaluated at its last observed site, and has the others in it.
		for _, other := range c.with {
			if i := slices.IndexFunc(p.counted, func(o counted) bool { return o.name == other }); i >= 0 &&
				p.counted[i].observed && q.likelihood[other] != q.likelihood[c.name] {
				return fail("%q and %q are in one sum over discrete variables: name both of them or none", other, c.name)
			}
		}
	}
	return &q, nil
}

// counted is a site that has a density.
type counted struct {
	name, class string
	observed    bool
	with        []string // the sites that are in one sum with it, where it has the sum's logarithm
}

// remember notes a site that has a density.
func (p *Program) remember(s *Site) {
	c := counted{name: s.Name, class: s.class(), observed: s.Observed}
	if s.summed != nil {
		c.with = s.summed.with
		c.observed = c.observed && !s.summed.prior
	}
	p.counted = append(p.counted, c)
}

func (p *Program) densityNames() string {
	var out []string
	for _, c := range p.counted {
		if !slices.Contains(out, c.class) {
			out = append(out, c.class)
		}
	}
	return strings.Join(out, ", ")
}

// IsLikelihood says whether the density of a site of the program's model counts as likelihood, not as prior: where
// [Program.WithLikelihood] names no sites it does if data enter it. No site is no likelihood.
func (p *Program) IsLikelihood(s *Site) bool {
	switch {
	case s == nil:
		return false
	case p.likelihood != nil:
		return p.likelihood[s.Name]
	}
	return !s.Prior()
}

// drawNamedPrior is drawPrior, or an error where the prior is not that of the latent variables.
func (p *Program) drawNamedPrior(batch infer.Batch, streams torch.Streams) (infer.Params, error) {
	for _, c := range p.counted {
		switch in := p.likelihood[c.name]; {
		case c.observed && !in:
			return infer.Params{}, fmt.Errorf("prior draws: site %q has data and is in the prior, by WithLikelihood: the "+
				"prior cannot be drawn from, and the evidence is not defined; walk a path from a Reference: %w", c.name,
				infer.ErrConfig)
		case !c.observed && in:
			return infer.Params{}, fmt.Errorf("prior draws: the latent variable %q is in the likelihood, by WithLikelihood: "+
				"the prior is not normalized, and the evidence is not defined: %w", c.name, infer.ErrConfig)
		}
	}
	return p.drawPrior(batch, streams)
}
