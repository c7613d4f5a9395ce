// Package rows tells what adds up over the rows of a batch: terms of a model outside plates, in which each row of a
// minibatch would count once. It runs no model: who asks gives a trial of one.
package rows

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Rows are the tensors of a batch that have one number of rows.
type Rows struct {
	Size  int
	Names []string // sorted
}

// Of are the rows of a batch, by their number. A single row has no parts.
func Of(batch infer.Batch) (out []Rows) {
	for _, name := range slices.Sorted(maps.Keys(batch)) {
		n := count(batch[name])
		if n < 2 {
			continue
		}
		i := slices.IndexFunc(out, func(r Rows) bool { return r.Size == n })
		if i < 0 {
			i, out = len(out), append(out, Rows{Size: n})
		}
		out[i].Names = append(out[i].Names, name)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Size < out[j].Size })
	return out
}

// count is the size of the first dimension, 0 where there is none.
func count(t torch.Tensor) int {
	if shape := t.Shape(); len(shape) > 0 {
		return shape[0]
	}
	return 0
}

// In is how many of the rows a batch has: all where one of the tensors has all.
func (r Rows) In(batch infer.Batch) (n int) {
	for _, name := range r.Names {
		if n = count(batch[name]); n == r.Size {
			return n
		}
	}
	return n
}

// Loops is what to do where sites come and go: a loop over the rows of a minibatch has fewer than one over all rows.
const Loops = "what is declared in a loop over the rows of the data needs all of them in every update (no Batches), " +
	"or observe the rows as one site in c.Plate(name, 0, ...); what is declared only sometimes has to be there in " +
	"every run"

// Differences says what is wrong with a plate that has used of its size data, where the batch has no such part of any
// of its rows, and other parts: a plate of n - 1 differences of n rows has another one. A minibatch of rows in any
// order is then no sample of what is in the plate. It is empty where nothing is wrong.
func Differences(all []Rows, batch infer.Batch, plate string, used, size int) string {
	wrong := ""
	for _, r := range all {
		if r.In(batch) == r.Size {
			continue
		}
		for _, name := range r.Names {
			n := count(batch[name])
			switch {
			case n == 0: // the model does not use it, and the batch has it not
			case n*size == used*r.Size:
				return ""
			default:
				wrong = fmt.Sprintf("plate %q has %d of its %d, and the batch %d of %d rows: what is in the plate is computed "+
					"of several rows, as differences or lags are, or left out in some, and needs all of them in every update (no "+
					"Batches); or make the data before, one row for each element of the plate", plate, used, size, n, r.Size)
			}
		}
	}
	return wrong
}

// Term is what a site adds to the log density.
type Term struct {
	Sum      float64 // NaN where it is not known
	Rounding float64 // of the sum, relative
	Size     int     // how many values it has
}

// TermOf is the term that adds up values.
func TermOf(value *ts.Tensor) Term {
	t := Term{Rounding: 1e-10, Size: 1}
	for _, n := range torch.Of(value).Shape() {
		t.Size *= n
	}
	t.Sum = torch.Of(value.MustSum(gotch.Double, false)).Item()
	if value.DType() != gotch.Double {
		t.Rounding = 1e-4
	}
	return t
}

// Totals are those of the named sites that add up over the rows, and means those that depend on them otherwise. The
// model runs on half of the rows, and on those rows twice: a sum is another one then. A mean over rows stays, and so
// does N times the mean, which a minibatch estimates without bias. Where rows that come twice tell nothing, fewer rows
// do, and then the number of values.
//
// trial runs the model on two batches, at the points of an attempt, of the number of attempts given; nil stands for a
// batch on which it does not run. It is called inside a scope.
func (r Rows) Totals(batch infer.Batch, names []string, attempts int,
	trial func(attempt int, half, other infer.Batch) (before, after map[string]Term)) (totals, means []string,
	err error) {
	err = torch.Do(func(*torch.Scope) error {
		half, others, err := r.parts(batch)
		if err != nil {
			return err
		}
		left, resized := slices.Clone(names), map[string]bool{}
		for _, other := range others {
			for attempt := 0; attempt < attempts && len(left) > 0; attempt++ {
				before, after := trial(attempt, half, other)
				left = slices.DeleteFunc(left, func(name string) bool {
					a, found := before[name]
					b, both := after[name]
					if !found || !both {
						return false
					}
					resized[name] = resized[name] || a.Size != b.Size
					known, differs := a.differs(b)
					if known && differs {
						totals = append(totals, name)
					}
					return known
				})
			}
		}
		for _, name := range left {
			if resized[name] {
				totals = append(totals, name)
			}
		}
		before, after := trial(0, half, others[1])
		for _, name := range names {
			a, found := before[name]
			b, both := after[name]
			if _, differs := a.differs(b); found && both && differs && !slices.Contains(totals, name) {
				means = append(means, name)
			}
		}
		return nil
	})
	return totals, means, err
}

// differs says whether two terms have different sums, where that is known.
func (t Term) differs(other Term) (known, differs bool) {
	change := math.Abs(other.Sum - t.Sum)
	return !math.IsNaN(change) && !math.IsInf(change, 0), change > t.Rounding*(1+math.Abs(t.Sum))
}

// parts are the batch with half of the rows, scattered over all, with those twice, and with half of those.
func (r Rows) parts(batch infer.Batch) (half infer.Batch, others []infer.Batch, err error) {
	all := infer.Batch{}
	for _, name := range r.Names {
		all[name] = batch[name]
	}
	take := func(n int) (infer.Batch, error) {
		parts, err := infer.Minibatches(all, infer.MinibatchOptions{Size: n})
		if err != nil {
			return nil, err
		}
		part, err := parts.Next()
		if err != nil {
			return nil, err
		}
		out := maps.Clone(batch)
		maps.Copy(out, part)
		return out, nil
	}
	n := r.Size / 2
	if half, err = take(n); err != nil {
		return nil, nil, err
	}
	fewer, err := take((n + 1) / 2)
	if err != nil {
		return nil, nil, err
	}
	twice := maps.Clone(half)
	for _, name := range r.Names {
		twice[name] = torch.Of(ts.MustCat([]*ts.Tensor{half[name].T(), half[name].T()}, 0))
	}
	return half, []infer.Batch{twice, fewer}, nil
}
