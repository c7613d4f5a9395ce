package ppl

import (
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// rows are the tensors of the batch of Compile that have one number of rows.
type rows struct {
	size  int64
	names []string // sorted
}

// rowsOf are the rows of a batch, by their number. A single row has no parts.
func rowsOf(batch infer.Batch) (out []rows) {
	names := make([]string, 0, len(batch))
	for name := range batch {
		names = append(names, name)
	}
	for _, name := range sorted(names) {
		n := rowCount(batch[name])
		if n < 2 {
			continue
		}
		i := slices.IndexFunc(out, func(r rows) bool { return r.size == n })
		if i < 0 {
			i, out = len(out), append(out, rows{size: n})
		}
		out[i].names = append(out[i].names, name)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].size < out[j].size })
	return out
}

// rowCount is the size of the first dimension, 0 where there is none.
func rowCount(t *ts.Tensor) int64 {
	if t == nil {
		return 0
	}
	if shape := shapeOf(t); len(shape) > 0 {
		return shape[0]
	}
	return 0
}

// inNoPlate says whether a site is a term of the likelihood that no plate scales.
func (s *Site) inNoPlate() bool { return len(s.Plates) == 0 && s.Observed && s.counts() }

// findTotals finds the sites outside plates that add up over the rows of the batch: in a minibatch each row would count
// once, and the posterior would be that of a few data. The model runs on half of the rows, and on those rows twice: a
// sum is then another one. A mean over the rows stays, and so does N times the mean, which a minibatch estimates
// without bias. Where rows that come twice tell nothing, fewer rows do, and then the number of values.
func (p *Program) findTotals() error {
	if p.part != "" {
		for name := range p.values {
			p.loose = append(p.loose, name)
		}
	}
	if len(p.loose) == 0 {
		return nil
	}
	p.totals = map[string][]rows{}
	for _, r := range rowsOf(p.batch) {
		err := torch.Do(func(*torch.Scope) error {
			n := r.size / 2
			half, err := p.take(r, n)
			if err != nil {
				return err
			}
			fewer, err := p.take(r, (n+1)/2)
			if err != nil {
				return err
			}
			twice := maps.Clone(half)
			for _, name := range r.names {
				twice[name] = ts.MustCat([]*ts.Tensor{half[name], half[name]}, 0)
			}
			p.compare(r, half, twice, fewer)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return p.checkDeclared()
}

// compare notes which sites have other values on other batches.
func (p *Program) compare(r rows, batch infer.Batch, others ...infer.Batch) {
	left, resized := slices.Clone(p.loose), map[string]bool{}
	for _, other := range others {
		for _, scale := range []float64{0.3, 0} {
			if len(left) == 0 {
				return
			}
			before, after := p.looseTerms(scale, batch), p.looseTerms(scale, other)
			left = slices.DeleteFunc(left, func(name string) bool {
				a, found := before[name]
				b, both := after[name]
				if !found || !both {
					return false
				}
				resized[name] = resized[name] || a.size != b.size
				change := math.Abs(b.sum - a.sum)
				if math.IsNaN(change) || math.IsInf(change, 0) {
					return false
				}
				if change > a.rounding*(1+math.Abs(a.sum)) {
					p.totals[name] = append(p.totals[name], r)
				}
				return true
			})
		}
	}
	for _, name := range left {
		if resized[name] {
			p.totals[name] = append(p.totals[name], r)
		}
	}
}

// take is the batch of Compile with n of the rows, which are scattered over all.
func (p *Program) take(r rows, n int64) (infer.Batch, error) {
	all := infer.Batch{}
	for _, name := range r.names {
		all[name] = p.batch[name]
	}
	parts, err := infer.Minibatches(all, infer.MinibatchOptions{Size: n})
	if err != nil {
		return nil, err
	}
	part, err := parts.Next()
	if err != nil {
		return nil, err
	}
	out := maps.Clone(p.batch)
	maps.Copy(out, part)
	return out, nil
}

// looseTerm is what a site outside plates adds to the log density.
type looseTerm struct {
	sum      float64 // NaN where it is not known
	rounding float64 // of sum, relative
	size     int64   // how many values it has, or its inputs have
}

// looseTerms are the terms of the sites outside plates, where values are scattered over ±scale; nil where the model
// does not run.
func (p *Program) looseTerms(scale float64, batch infer.Batch) (out map[string]looseTerm) {
	defer func() {
		if recover() != nil {
			out = nil // a function of the user's needs all of the rows
		}
	}()
	out = map[string]looseTerm{}
	err := torch.Do(func(*torch.Scope) error {
		point, err := p.scattered(scale)
		if err != nil {
			return err
		}
		execute(p.model, batch, nil, &evaluator{program: p, point: point, collect: func(s *Site) {
			if slices.Contains(p.loose, s.Name) && s.inNoPlate() {
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
func (s *Site) term() looseTerm {
	t := looseTerm{sum: math.NaN(), rounding: 1e-10}
	switch {
	case s.density != nil:
		for _, x := range s.density.inputs {
			t.size += count(shapeOf(x))
		}
		_ = torch.Do(func(*torch.Scope) (err error) {
			t.sum, err = torch.Item(s.direct())
			return err
		})
	case s.Kind == KindFactor:
		t.size = count(s.valueShape())
		t.sum = torch.Must(torch.Item(s.Value.MustSum(gotch.Double, false)))
		if s.Value.DType() != gotch.Double {
			t.rounding = 1e-4
		}
	default:
		t.size = count(s.valueShape())
		t.sum = float64(t.size)
	}
	return t
}

// checkDeclared refuses a site outside plates that adds up over the rows of the batch where the batch of Compile is a
// minibatch.
func (p *Program) checkDeclared() error {
	if p.part == "" || len(p.totals) == 0 {
		return nil
	}
	return torch.Do(func(*torch.Scope) error {
		point, err := p.scattered(0)
		if err != nil {
			return err
		}
		execute(p.model, p.batch, nil, &evaluator{program: p, point: point, collect: func(s *Site) {
			if len(p.totals[s.Name]) > 0 {
				s.fail("it is in no plate, and adds up over the rows of the batch, which is a minibatch by plate %q: %s", p.part,
					s.remedy())
			}
		}})
		return nil
	})
}

// checkTotal makes sure that a site outside plates that adds up over the rows of the batch has all of them.
func (s *Site) checkTotal(p *Program, batch infer.Batch) {
	for _, r := range p.totals[s.Name] {
		n := r.size
		for _, name := range r.names {
			t := batch[name]
			if t == p.batch[name] || t == p.whole[name].to && t != nil {
				n = r.size
				break
			}
			if n = rowCount(t); n == r.size {
				break
			}
		}
		if n != r.size {
			s.fail("it is in no plate, and adds up over the rows of the batch, of which there are %d where there were %d when "+
				"the model was compiled: %s", n, r.size, s.remedy())
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
