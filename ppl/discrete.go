package ppl

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// CompileDiscrete is [Compile] of a model whose discrete latent variables stay: each is a site of the layout whose
// coordinates are its values, as they are. It is for models whose discrete variables cannot be summed out, or are too
// many, and for methods that move whole numbers: package infer/gibbs. The log density has no gradient in them.
//
// An evaluation rounds a coordinate to the nearest whole number of the support. Chains start at values drawn from the
// prior, or where [FromValues] says.
func CompileDiscrete(m Model, batch infer.Batch) (*Program, error) {
	p, err := compile(m, batch, true)
	if err != nil {
		return nil, fmt.Errorf("ppl.CompileDiscrete: %w", err)
	}
	return p, nil
}

// Discrete are the names of the discrete latent variables that are sites of the layout, in the order in which the model
// declares them; nil but for a program of [CompileDiscrete].
func (p *Program) Discrete() (names []string) {
	for _, name := range p.order {
		if p.latents[name].support.Discrete() {
			names = append(names, name)
		}
	}
	return names
}

// Ends are the least and the largest value of a discrete latent variable, infinite where it has none, or where they
// depend on other variables. ok is false for other names.
func (p *Program) Ends(name string) (low, high float64, ok bool) {
	l := p.latents[name]
	if l == nil || !l.support.Discrete() {
		return 0, 0, false
	}
	return l.ends[0], l.ends[1], true
}

// Rows runs the model at a point, inside the caller's torch.Do, and adds up the terms of its log density that are in a
// plate of n, for each of the n rows alone, on the scale of the sum over data: [n], or the number 0 without such terms.
func (p *Program) Rows(point infer.Params, b infer.Batch, plate string, n int) torch.Tensor {
	b = p.converted(point, b)
	sum := torch.Of(0)
	e := &evaluator{program: p, point: point, batch: b, collect: func(s *Site) {
		i := slices.IndexFunc(s.Plates, func(p Plate) bool { return p.Name == plate })
		if !s.counts() || i < 0 {
			return
		}
		logp := s.elementwise()
		shape := shapeOf(logp)
		at, others := len(shape)+s.Plates[i].Dim, []int{}
		if at < 0 || shape[at] != n {
			return
		}
		for j := range shape {
			if j != at {
				others = append(others, j)
			}
		}
		rows := logp
		if len(others) > 0 {
			rows = rows.Sum(others...)
		}
		sum = sum.Add(rows.Mul(s.Scale))
	}}
	execute(p.model, b, nil, e)
	return sum
}

// onto is the map from unconstrained space to a support: none for whole numbers.
func (s *Site) onto(sup support.Support) (bijector.Bijector, error) {
	if !sup.Discrete() {
		return bijector.For(sup)
	}
	if sup.EventDims() > 0 {
		return nil, fmt.Errorf("its values are %v: a vector of whole numbers with a sum cannot be a coordinate; write it as "+
			"single variables", sup)
	}
	return bijector.Identity(), nil
}

// endsOf are the ends of a support of whole numbers.
func endsOf(sup support.Support) [2]float64 {
	if sup.Kind == support.KindBoolean {
		return [2]float64{0, 1}
	}
	if low, high, ok := sup.Bounds(); ok {
		return [2]float64{low, high}
	}
	return [2]float64{math.Inf(-1), math.Inf(1)}
}

// nearest is the value of the support that is nearest, without a gradient.
func (l *latent) nearest(x torch.Tensor) torch.Tensor {
	x = torch.Of(x.T().MustDetach(false).MustRound(false))
	if low := l.ends[0]; !math.IsInf(low, -1) {
		x = torch.Of(x.T().MustClampMin(ts.FloatScalar(low), false))
	}
	if high := l.ends[1]; !math.IsInf(high, 1) {
		x = torch.Of(x.T().MustClampMax(ts.FloatScalar(high), false))
	}
	return x
}

// inverse is a value on unconstrained space, of float64 where it is discrete.
func (l *latent) inverse(b bijector.Bijector, value torch.Tensor) torch.Tensor {
	if l.support.Discrete() {
		return torch.Of(value.T().MustTotype(gotch.Double, false))
	}
	return b.Inverse(value)
}

// advised adds to the error of a model whose discrete variables cannot be summed out which they are, and what to write,
// where the model is sound with them.
func (p *Program) advised(err error, m Model) error {
	if p == nil || p.sums == nil {
		return err
	}
	p, other := compile(m, p.batch, true)
	if other != nil || len(p.Discrete()) == 0 {
		return err
	}
	names := p.Discrete()
	text := fmt.Sprintf("variable %q", names[0])
	if len(names) > 1 {
		text = fmt.Sprintf("variables %q", names)
	}
	rest := ""
	if len(names) < len(p.order) {
		rest = ", {Sites: []string{gibbs.Rest}, Method: hmc.NUTS{}}"
	}
	return fmt.Errorf("the discrete %s cannot be summed out as the model is written: %w. To sample instead, compile "+
		"with ppl.CompileDiscrete and give the method gibbs.Blocks{{Sites: []string{%s}, Method: gibbs.Discrete{}}%s}",
		text, err, `"`+strings.Join(names, `", "`)+`"`, rest)
}
