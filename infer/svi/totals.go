package svi

import (
	"errors"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/rows"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// findTotals finds the factors of the model outside plates that add up over rows of the batch, as ppl.Compile does.
func (p *plan) findTotals(batch infer.Batch) error {
	p.rows = rows.Of(batch)
	if len(p.factors) == 0 {
		return nil
	}
	p.totals = map[string][]rows.Rows{}
	for _, r := range p.rows {
		names, _, err := r.Totals(batch, p.factors, 1,
			func(_ int, half, other infer.Batch) (before, after map[string]rows.Term) {
				values, before := p.factorsOn(half, nil)
				if before == nil {
					return nil, nil
				}
				_, after = p.factorsOn(other, values)
				return before, after
			})
		if err != nil {
			return err
		}
		for _, name := range names {
			p.totals[name] = append(p.totals[name], r)
		}
	}
	return nil
}

// factorsOn are the terms of the factors outside plates, under one draw of the guide, and the values of that draw.
// Known values stay; those of rows that come twice come twice. It is nil where guide or model do not run, or known
// values are of other rows.
func (p *plan) factorsOn(batch infer.Batch, known ppl.Values) (shared ppl.Values, terms map[string]rows.Term) {
	defer func() {
		if recover() != nil {
			shared, terms = nil, nil // a function of the user's needs all of the rows
		}
	}()
	shared, terms = ppl.Values{}, map[string]rows.Term{}
	err := torch.Do(func(scope *torch.Scope) error {
		defer ts.KelvinSetGradMode(ts.KelvinSetGradMode(false))
		values := ppl.Values{}
		for name, q := range p.params {
			x := torch.New(q.start, q.free...).T().MustTotype(p.dtype, false)
			values[name] = q.bijector.Forward(torch.Of(x))
		}
		guide, model := newTrace(nil), newTrace(nil)
		p.guide.Run(batch, torch.NewSource(0, 0), values, guide)
		for _, s := range guide.sites {
			if !given(s) {
				continue
			}
			value := s.Value
			if v := known[s.Name]; v != (torch.Tensor{}) {
				if value = twice(v, s.Value); value == (torch.Tensor{}) {
					return errors.New("other rows have values of their own")
				}
			}
			values[s.Name], shared[s.Name] = value, value
			scope.Keep(value)
		}
		p.model.Run(batch, nil, values, model)
		for _, s := range model.sites {
			if slices.Contains(p.factors, s.Name) && len(s.Plates) == 0 && s.Counts() {
				terms[s.Name] = rows.TermOf(s.LogProbs().T())
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil
	}
	return shared, terms
}

// twice is v in the shape of like: itself, or twice along one dimension; nil where that is another shape.
func twice(v, like torch.Tensor) torch.Tensor {
	from, to := v.Shape(), like.Shape()
	if slices.Equal(from, to) {
		return v
	}
	if len(from) != len(to) {
		return torch.Tensor{}
	}
	along := -1
	for i := range from {
		switch {
		case from[i] == to[i]:
		case along >= 0 || to[i] != 2*from[i]:
			return torch.Tensor{}
		default:
			along = i
		}
	}
	return torch.Of(ts.MustCat([]*ts.Tensor{v.T(), v.T()}, int64(along)))
}

// checkTotal makes sure that a factor outside plates that adds up over rows of the batch has all of them: each row of a
// minibatch would count once.
func (p *plan) checkTotal(s *ppl.Site, batch infer.Batch) {
	for _, r := range p.totals[s.Name] {
		if n := r.In(batch); n != r.Size {
			fail(s.Name, "it is in no plate, and adds up over the rows of the batch, of which there are %d where there were %d "+
				"when the model was compiled: give a term for each row in c.Plate(name, 0, ...), so that a minibatch counts for "+
				"all data, or N times the mean of the terms", n, r.Size)
		}
	}
}
