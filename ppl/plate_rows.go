package ppl

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/rows"
	"github.com/kelvin-ppl/kelvin/torch"
)

// inNoPlate says whether a site is a term of the likelihood that no plate scales.
func (s *Site) inNoPlate() bool { return len(s.Plates) == 0 && s.Observed && s.counts() }

// repeated are the plates that repeat a factor, which has no dimension for them: each of their data counts it. A plate
// of the size of another for which it has one is none.
func (s *Site) repeated() (out []Plate) {
	if s.Kind != KindFactor || s.shared == (torch.Tensor{}) || s.Scale != s.weight {
		return nil
	}
	have := len(s.ctx.sum.strip(shapeOf(s.shared)))
	for _, q := range s.Plates {
		own := func(o Plate) bool { return o.Size == q.Size && have >= -o.Dim }
		if q.Size > 1 && !slices.ContainsFunc(s.Plates, own) {
			out = append(out, q)
		}
	}
	return out
}

// findTotals finds the sites that add up over the rows of the batch and are in no plate, or have no dimension for it.
// In a minibatch each row would count once, and the posterior would be that of a few data; the plate would count each
// row once for each of its data.
func (p *Program) findTotals() error {
	p.rows = rows.Of(p.batch)
	if p.part != "" {
		for name := range p.values {
			p.loose = append(p.loose, name)
		}
	}
	if len(p.loose) == 0 {
		return nil
	}
	p.totals, p.means = map[string][]rows.Rows{}, map[string]rows.Rows{}
	scales := []float64{0.3, 0}
	for _, r := range p.rows {
		names, means, err := r.Totals(p.batch, p.loose, len(scales),
			func(attempt int, half, other infer.Batch) (before, after map[string]rows.Term) {
				return p.looseTerms(scales[attempt], half), p.looseTerms(scales[attempt], other)
			})
		if err != nil {
			return err
		}
		for _, name := range names {
			p.totals[name] = append(p.totals[name], r)
		}
		for _, name := range means {
			p.means[name] = r
		}
	}
	return p.checkDeclared()
}

// looseTerms are the terms of the sites outside plates, where values are scattered over ±scale; nil where the model
// does not run.
func (p *Program) looseTerms(scale float64, batch infer.Batch) (out map[string]rows.Term) {
	defer func() {
		if recover() != nil {
			out = nil // a function of the user's needs all of the rows
		}
	}()
	out = map[string]rows.Term{}
	err := torch.Do(func(*torch.Scope) error {
		point, err := p.scattered(scale)
		if err != nil {
			return err
		}
		execute(p.model, batch, nil, &evaluator{program: p, point: point, collect: func(s *Site) {
			if slices.Contains(p.loose, s.Name) && (s.inNoPlate() || s.repeated() != nil) {
				out[s.Name] = s.term()
			}
		}})
		return nil
	})
	if err != nil {
		return nil
	}
	return out
}

// term is what a site adds. Of data that are observed only the number of values is looked at.
func (s *Site) term() rows.Term {
	switch {
	case s.density != nil:
		t := rows.Term{Sum: math.NaN(), Rounding: 1e-10}
		for _, x := range s.density.inputs {
			t.Size += count(shapeOf(x))
		}
		_ = torch.Do(func(*torch.Scope) (err error) {
			t.Sum, err = torch.Item(s.direct())
			return err
		})
		return t
	case s.Kind == KindFactor && s.shared != (torch.Tensor{}):
		return rows.TermOf(s.shared.T())
	case s.Kind == KindFactor:
		return rows.TermOf(s.Value.T())
	}
	n := count(s.valueShape())
	return rows.Term{Sum: float64(n), Size: n}
}

// checkDeclared refuses a site that adds up over the rows of the batch where a plate repeats it, and outside plates
// where the batch of Compile is a minibatch.
func (p *Program) checkDeclared() error {
	if len(p.totals) == 0 {
		return nil
	}
	return torch.Do(func(*torch.Scope) error {
		point, err := p.scattered(0)
		if err != nil {
			return err
		}
		execute(p.model, p.batch, nil, &evaluator{program: p, point: point, collect: func(s *Site) {
			ofPart := func(r rows.Rows) bool { return p.part != "" && r.Size == p.partRows }
			if s.inNoPlate() && s.Scale == 1 && slices.ContainsFunc(p.totals[s.Name], ofPart) {
				s.fail("it is in no plate, and adds up over the rows of the batch, which is a minibatch by plate %q: %s", p.part,
					s.remedy())
			}
			for _, q := range s.repeated() {
				ofPlate := func(r rows.Rows) bool {
					return r.Size == q.Size || q.Name == p.part && (ofPart(r) || p.partRows == 1)
				}
				if slices.ContainsFunc(p.totals[s.Name], ofPlate) {
					s.fail("its value, of shape %v, has no dimension for plate %q, which counts it %d times, once for each datum; "+
						"and it adds up over the rows of the batch: give a term for each row (leave out Sum), or declare it outside the "+
						"plate", shapeOf(s.shared), q.Name, q.Size)
				}
			}
		}})
		return nil
	})
}

// ofEpoch is the weight of a site outside plates in one of the unequal batches of an epoch: N times a mean over rows
// counts as often as these rows, so that its mean over the epoch is that over all rows.
func (p *Program) ofEpoch(s *Site, batch infer.Batch) float64 {
	r, depends := p.means[s.Name]
	per := batch.PerEpoch()
	if per == 0 || !depends || len(s.Plates) > 0 {
		return 1
	}
	all := r.Size
	if p.part != "" && r.Size == p.partRows {
		all = p.partOf
	}
	return float64(per) * float64(r.In(batch)) / float64(all)
}

// checkTotal makes sure that a site outside plates that adds up over the rows of the batch has all of them.
func (s *Site) checkTotal(p *Program, batch infer.Batch) {
	if len(s.Plates) > 0 {
		return
	}
	for _, r := range p.totals[s.Name] {
		if n := r.In(batch); n != r.Size {
			s.fail("it is in no plate, and adds up over the rows of the batch, of which there are %d where there were %d when "+
				"the model was compiled: %s", n, r.Size, s.remedy())
		}
	}
}

// checkRows makes sure that a plate has that part of its data that the batch has of the rows.
func (s *Site) checkRows(p *Program, batch infer.Batch) {
	for _, q := range s.Plates {
		if q.Used == 0 || q.Used == q.Size || p.part != "" {
			continue
		}
		if wrong := rows.Differences(p.rows, batch, q.Name, q.Used, q.Size); wrong != "" {
			s.fail("%s", wrong)
		}
	}
}

// remedy is what to do about a site outside plates that adds up over a minibatch.
func (s *Site) remedy() string {
	switch {
	case s.density != nil:
		return "give all of the data in every update (no Batches), or have its function return N times the mean over the " +
			"rows, or give the likelihood in c.Plate(name, 0, ...) with Observe or Factor; each row of a minibatch counts " +
			"once here"
	case s.Kind == KindFactor:
		return "give a term for each row in c.Plate(name, 0, ...), so that a minibatch counts for all data"
	}
	return "observe it in c.Plate(name, 0, ...), so that a minibatch counts for all data"
}

// RowTerms are the log densities of the observed variables and the factors on a batch, by name, for a run that looks
// whether rows of a batch depend on each other.
func (p *Program) RowTerms(point infer.Params, batch infer.Batch) (map[string]infer.RowTerm, error) {
	out := map[string]infer.RowTerm{}
	e := &evaluator{program: p, point: point, batch: batch, weights: infer.Weights{Prior: 1, Likelihood: 1}}
	e.collect = func(s *Site) {
		if !s.counts() || !s.Observed && s.Kind != KindFactor || s.summed != nil && s.summed.marginal == (torch.Tensor{}) {
			return
		}
		e.checkBatch(s)
		t := rows.RowTermOf(s.elementwise().T())
		t.Averages = len(s.Plates) == 0 && s.Scale == 1
		for _, q := range s.Plates {
			rows.InPlate(&t, p.rows, batch, q.Size, q.Used, q.Name == p.part)
		}
		out[s.Name] = t
	}
	err := torch.Do(func(*torch.Scope) error {
		return torch.NoGrad(func() error {
			execute(p.model, p.converted(point, batch), nil, e)
			e.completeData()
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("ppl.RowTerms: %w", err)
	}
	return out, nil
}
