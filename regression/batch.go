package regression

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/regression/internal/formula"
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
	indices := func(key string, index []int) {
		t, e := torch.FromSlice(index)
		put(key, t, e)
	}
	n, k := rows.N, len(p.means)
	if k > 0 {
		x := slices.Clone(rows.X)
		for i := range x {
			x[i] -= p.means[i%k]
		}
		numbers(p.data("x"), x, int(n), int(k))
	}
	if rows.Offset != nil {
		numbers(p.data("offset"), rows.Offset)
	}
	for i, z := range rows.Smooths {
		if e := p.addSmooth(i, z, numbers, indices); e != nil {
			return e
		}
	}
	for i, d := range p.design.Groups() {
		g := rows.Groups[i]
		for j, name := range d.Columns {
			if name != "Intercept" {
				numbers(p.data("g%d_x%d", i, j), every(g.X, j, len(d.Columns)))
			}
		}
		for j := range d.Members {
			index := make([]int, n)
			for row := range index {
				index[row] = int(g.Index[row*d.Members+j])
			}
			indices(p.data("g%d_index%d", i, j), index)
			if d.Members > 1 {
				numbers(p.data("g%d_weight%d", i, j), every(g.Weights, j, d.Members))
			}
		}
	}
	if p == m.predictors[0] {
		m.addOutcome(rows, numbers)
	}
	return err
}

// every is column j of a matrix of k columns.
func every(x []float64, j, k int) []float64 {
	out := make([]float64, 0, len(x)/k)
	for i := j; i < len(x); i += k {
		out = append(out, x[i])
	}
	return out
}
