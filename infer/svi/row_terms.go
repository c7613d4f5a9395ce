package svi

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/rows"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// RowTerms are the log densities of the model's sites on a batch, by name, for a run that looks whether rows of a batch
// depend on each other. Variables of all data have the values of the point, discrete ones those of a draw of the guide.
// A variable of a single datum has a value that the numbers of its row choose among the guide's draws: a row has the
// same in every batch.
func (p *Program) RowTerms(point infer.Params, batch infer.Batch) (out map[string]infer.RowTerm, err error) {
	out = map[string]infer.RowTerm{}
	err = torch.Do(func(*torch.Scope) error {
		return torch.NoGrad(func() error {
			values := p.held(batch)
			model := newTrace(nil)
			p.plan.model.Run(batch, nil, values, model, placer{p, point})
			p.plan.resize(model)
			p.plan.checkValues(model, batch)
			for _, s := range model.sites {
				if s.Counts() && (s.Observed || s.Kind == ppl.KindFactor || p.local(s.Name)) {
					out[s.Name] = p.rowTerm(s, batch)
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("svi.RowTerms: %w", err)
	}
	return out, nil
}

func (p *Program) local(name string) bool {
	l := p.plan.latents[name]
	return l != nil && l.local
}

// rowTerm is what a site adds on a batch.
func (p *Program) rowTerm(s *ppl.Site, batch infer.Batch) infer.RowTerm {
	t := rows.RowTermOf(s.LogProbs().T())
	t.Averages = len(s.Plates) == 0 && s.Scale == 1
	for _, q := range s.Plates {
		rows.InPlate(&t, p.plan.rows, batch, q.Size, q.Used, q.Name == p.plan.part)
	}
	return t
}

// held are the values of the guide's variables that no point has: the discrete ones, and those of single data.
func (p *Program) held(batch infer.Batch) ppl.Values {
	params := ppl.Values{}
	for name, q := range p.plan.params {
		x := torch.New(q.start, q.free...).T().MustTotype(p.plan.dtype, false)
		params[name] = q.bijector.Forward(torch.Of(x))
	}
	values, source := ppl.Values{}, torch.NewSource(0, 0)
	drawn := map[string][]torch.Tensor{} // of single data
	for range 16 {
		guide := newTrace(nil)
		p.plan.guide.Run(p.batch, source, params, guide)
		for _, s := range guide.sites {
			l := p.plan.latents[s.Name]
			switch {
			case l == nil || !given(s):
			case l.local:
				drawn[s.Name] = append(drawn[s.Name], s.Value)
			case l.discrete:
				values[s.Name] = s.Value
			}
		}
	}
	for name, draws := range drawn {
		values[name] = p.chosen(torch.Cat(int(draws[0].T().Dim())+p.plan.latents[name].along, draws), name,
			batch)
	}
	return values
}

// chosen are the values of a variable of single data for the rows of a batch: each is one of those that the guide drew
// for rows of the batch of Compile.
func (p *Program) chosen(drawn torch.Tensor, name string, batch infer.Batch) torch.Tensor {
	shape := drawn.Shape()
	dim := len(shape) + p.plan.latents[name].along
	index := numbered(p.plan.short.Used, p.plan.rows, batch)
	for i := range index {
		index[i] %= shape[dim]
	}
	return torch.Of(drawn.T().MustIndexSelect(int64(dim), torch.New(index).T(), false))
}

// numbered is a number for each row of a batch, which depends on the numbers of that row alone. The rows are those of
// the tensors that had so many rows.
func numbered(size int, all []rows.Rows, batch infer.Batch) (out []int) {
	at := slices.IndexFunc(all, func(r rows.Rows) bool { return r.Size == size })
	if at < 0 {
		panic(&ppl.SiteError{Message: fmt.Sprintf("no tensor of the batch has %d rows", size)})
	}
	for _, name := range all[at].Names {
		x := torch.Must(torch.ToSlice[float64](torch.Of(batch[name].T().MustTotype(gotch.Double, false))))
		n := batch[name].Shape()[0]
		if out == nil {
			out = make([]int, n)
		}
		for i := range out {
			for _, v := range x[i*len(x)/n : (i+1)*len(x)/n] {
				out[i] = (out[i]*31 + int(math.Float64bits(v)%1000003)) & (1<<40 - 1)
			}
		}
	}
	return out
}
