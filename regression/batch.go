package regression

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/kelvin-ppl/kelvin/torch"
)

// add puts the tensors of a predictor into a batch. Effects of new levels of a group follow those of known ones.
func (m *Model) add(out infer.Batch, rows *formula.Rows, p *predictor) (err error) {
	put := func(key string, t torch.Tensor, e error) {
		if err == nil {
			out[key], err = t, e
			if e == nil {
				torch.Detach(t)
			}
		}
	}
	numbers := func(key string, x []float64, shape ...int) {
		t, e := torch.FromSlice(x, shape...)
		put(key, t, e)
	}
	part := p.part()
	if err := part.Within(rows); err != nil {
		return err
	}
	for _, in := range part.Numbers(rows) {
		shape := []int{rows.N}
		if in.Width > 0 {
			shape = append(shape, in.Width)
		}
		if in.Index {
			index := make([]int, rows.N)
			for i, v := range in.Values {
				index[i] = int(v)
			}
			t, e := torch.FromSlice(index)
			put(in.Name, t, e)
		} else {
			numbers(in.Name, in.Values, shape...)
		}
	}
	for i, s := range p.design.Smooths() {
		if s.Kind != "gp" {
			continue
		}
		flat, e := p.process[i].basis(formula.Every(rows.Smooths[i], 0, s.Columns))
		if e != nil {
			return e
		}
		for j := range flat {
			if s.Columns > 1 {
				flat[j] *= rows.Smooths[i][2*(j/s.K)+1]
			}
		}
		for _, at := range []string{p.data("at%d", i), p.data("by%d", i)} {
			torch.Free(out[at])
			delete(out, at)
		}
		numbers(p.data("z%d", i), flat, rows.N, s.K)
	}
	if p == m.predictors[0] {
		m.addOutcome(rows, numbers)
	}
	return err
}

// part is the predictor as what makes its data of rows.
func (p *predictor) part() formula.Part {
	out := formula.Part{Design: p.design, Means: p.means, Reach: map[int][2]float64{}}
	if !p.shared {
		out.Suffix = p.suffix()
	}
	for i, s := range p.design.Smooths() {
		if of := p.process[i]; s.Kind == "gp" {
			out.Reach[i] = [2]float64{of.Center[0] - 1.5*of.Half[0], of.Center[0] + 1.5*of.Half[0]}
		}
	}
	return out
}
