package ppl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/floats"
)

// PartlyCentred writes normal variables x ~ N(loc, scale²) by others, named x_decentred, of a share λ for each element,
// or of one for all:
//
//	z ~ N(λ loc, scale^(2λ)),  x = loc + scale^(1-λ) (z - λ loc)
//
// λ = 1 is x itself, λ = 0 is [NonCentred] (Papaspiliopoulos, Roberts and Sköld 2003, Bayesian Statistics 7). The
// posterior of x is the same. A site that the model lacks, or that is not normal, is an error of the run.
func PartlyCentred(m Model, shares map[string][]float64) Model {
	return strict("PartlyCentred", m, shares, func(c *Ctx, s *Site, share []float64) bool {
		if s.Kind != KindSample {
			return false
		}
		if s.Observed {
			s.fail("PartlyCentred names it, and it is observed: there is no latent variable to write differently")
		}
		if s.Value == (torch.Tensor{}) {
			(&reparam{outer: c}).partly(s, share)
		}
		return true
	})
}

// normalParams are loc and scale of a normal site, and how many of its dimensions are its event.
func (s *Site) normalParams() (loc, scale torch.Tensor, dims int, ok bool) {
	family := s.Dist
	if i, wide := family.(interface {
		Base() dist.Distribution
		N() int
	}); wide {
		family, dims = i.Base(), i.N()
	}
	with, ok := family.(dist.Parameterised)
	if !ok || family.Name() != "Normal" {
		return loc, scale, 0, false
	}
	p := with.Params()
	return torch.Of(p["loc"]), torch.Of(p["scale"]), dims, true
}

// partly writes a site by a variable that is partly centred.
func (r *reparam) partly(s *Site, share []float64) {
	loc, scale, dims, ok := s.normalParams()
	if !ok {
		s.fail("PartlyCentred needs a normal variable (dist.Normal)")
	}
	shape := append(s.Dist.BatchShape(), s.Dist.EventShape()...)
	lambda := torch.Of(share[0])
	known := !slices.ContainsFunc(s.ctx.plates, func(p *plate) bool { return p.Size == 0 })
	if len(share) != 1 && known {
		if len(share) != count(shape) {
			s.fail("PartlyCentred has %d shares, and it has shape %v", len(share), shape)
		}
		lambda = torch.New(share, shape...)
	}
	of := dist.Normal(loc.Mul(lambda), scale.Pow(lambda)).Expand(shape...)
	z := r.replace(s, "_decentred", dist.Independent(of, dims))
	s.Value = z.Sub(loc.Mul(lambda)).Mul(scale.Pow(torch.Of(1).Sub(lambda))).Add(loc)
}

// AutoReparam compiles a model with each normal variable whose scale is unknown written in the form that suits it,
// element by element: a short run of a method with λ = ½ tells how much the data say of each. With v the variance of x
// given loc and scale, and s² that of its prior,
//
//	λ = 1 - v/s²
//
// as is optimal for normal models (Papaspiliopoulos, Roberts and Sköld 2003; Gorinova, Moore and Hoffman 2020 learn λ
// by a variational fit). The pilot has two chains of 300 updates and 200 draws, with seed 0. A model without such
// variables is compiled as it is.
func AutoReparam(ctx context.Context, m Model, batch infer.Batch, pilot infer.Method) (*Program, error) {
	fail := func(err error) (*Program, error) { return nil, fmt.Errorf("ppl.AutoReparam: %w", err) }
	plain, err := Compile(m, batch)
	if err != nil {
		return nil, err
	}
	names, err := plain.ScaledNormals()
	if err != nil {
		return fail(err)
	}
	if len(names) == 0 {
		return plain, nil
	}
	half := map[string][]float64{}
	for _, name := range names {
		half[name] = []float64{0.5}
	}
	p, err := Compile(PartlyCentred(m, half), batch)
	if err != nil {
		return fail(err)
	}
	r, err := infer.Run(ctx, p, pilot, infer.Options{Chains: 2, Warmup: 300, Draws: 200, Observer: infer.Silent})
	if err != nil {
		return fail(err)
	}
	shares := map[string][]float64{}
	for _, name := range names {
		shares[name] = nil
	}
	if err := p.learnShares(r, shares); err != nil {
		return fail(err)
	}
	for name, share := range shares {
		if slices.Min(share) > 0.9 {
			delete(shares, name) // x itself
		} else if slices.Max(share) < 0.1 {
			shares[name] = []float64{0}
		}
	}
	if len(shares) == 0 {
		return plain, nil
	}
	return Compile(PartlyCentred(m, shares), batch)
}

// ScaledNormals are the latent normal variables whose scale is unknown: those that [AutoReparam] may write in another
// form. They are found by the scales at two points.
func (p *Program) ScaledNormals() (names []string, err error) {
	scales := [2]map[string][]float64{{}, {}}
	for k, by := range []float64{0.3, -0.5} {
		err := torch.Do(func(*torch.Scope) error {
			point, err := p.scattered(by)
			if err != nil {
				return err
			}
			execute(p.model, p.batch, nil, &evaluator{program: p, point: point, collect: func(s *Site) {
				if _, latent := p.latents[s.Name]; !latent || s.Kind != KindSample || s.Observed {
					return
				}
				if _, scale, _, ok := s.normalParams(); ok {
					scales[k][s.Name] = scale.Values()
				}
			}})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, name := range p.order {
		if a, ok := scales[0][name]; ok && !slices.Equal(a, scales[1][name]) {
			names = append(names, name)
		}
	}
	return names, nil
}

// course is what the pilot has seen of a variable: a row for each draw.
type course struct{ x, loc, logScale [][]float64 }

// learnShares gives each variable its λ by the draws of a pilot.
func (p *Program) learnShares(r *infer.Result, shares map[string][]float64) error {
	if r.Unconstrained == nil || r.Unconstrained.Total() < 20 {
		return errors.New("the pilot has made too few draws")
	}
	seen := map[string]*course{}
	for name := range shares {
		seen[name] = &course{}
	}
	for _, row := range r.Unconstrained.Rows() {
		err := torch.Do(func(*torch.Scope) error {
			point, err := infer.NewParams(p.layout, row[:p.layout.Dim()])
			if err != nil {
				return err
			}
			execute(p.model, p.batch, nil, &evaluator{program: p, point: point, collect: func(s *Site) {
				if c := seen[s.Name]; c != nil {
					c.add(s)
				}
			}})
			return nil
		})
		if err != nil {
			return err
		}
	}
	for name, c := range seen {
		for i := range c.x[0] {
			shares[name] = append(shares[name], c.share(i))
		}
	}
	return nil
}

// add notes a draw.
func (c *course) add(s *Site) {
	loc, scale, _, _ := s.normalParams()
	shape := shapeOf(s.Value)
	c.x = append(c.x, s.Value.Values())
	c.loc = append(c.loc, loc.Expand(shape...).Values())
	c.logScale = append(c.logScale, scale.Log().Expand(shape...).Values())
}

// share is λ = 1 - v/s² of an element, from 0 to 1: v is what remains of its variance after a least-squares fit on loc
// and log scale, and s the geometric mean of its scales.
func (c *course) share(i int) float64 {
	n := len(c.x)
	columns := [3][]float64{make([]float64, n), make([]float64, n), make([]float64, n)}
	mean := 0.0
	for k := range n {
		columns[0][k], columns[1][k], columns[2][k] = c.loc[k][i], c.logScale[k][i], c.x[k][i]
		mean += c.logScale[k][i] / float64(n)
	}
	for j := range columns { // Gram and Schmidt, after the constant
		floats.AddConst(-floats.Sum(columns[j])/float64(n), columns[j])
		before := floats.Dot(columns[j], columns[j])
		for _, other := range columns[:j] {
			if square := floats.Dot(other, other); square > 0 {
				along := floats.Dot(columns[j], other) / square
				floats.AddScaled(columns[j], -along, other)
			}
		}
		if j < 2 && floats.Dot(columns[j], columns[j]) < 1e-12*before { // it is a function of the others
			clear(columns[j])
		}
	}
	v := floats.Dot(columns[2], columns[2]) / float64(n)
	return min(max(1-v/math.Exp(2*mean), 0), 1)
}
