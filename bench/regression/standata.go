package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// stanMaker makes the data of a Stan program: from the table, and the constants of the default priors by their rules,
// so that the columns and the priors of the formula are compared too.
type stanMaker struct {
	c     regressionCase
	table *data.Table
	model *regression.Model
	n     int
	data  map[string]any
	err   error
}

// stanData is the data of the Stan program of a case.
func (c regressionCase) stanData(t *data.Table, model *regression.Model) (map[string]any, error) {
	m := &stanMaker{c: c, table: t, model: model, n: t.Len(), data: map[string]any{}}
	y := m.numbers(c.outcome)
	s, centre := m.scale(y)
	m.data["N"], m.data["y"] = m.n, y
	m.data["intercept_prior"], m.data["sigma_rate"] = []float64{centre, 2.5 * s}, 1/s
	x := m.columns()
	var sds []float64
	for _, column := range x {
		sds = append(sds, 2.5*s/stat.StdDev(column, nil))
	}
	m.data["K"], m.data["X"], m.data["b_sd"] = len(x), transposed(x, m.n), sds
	for _, g := range c.groups {
		m.group(g, s)
	}
	if c.more != nil {
		c.more(m)
	}
	return m.data, m.err
}

// numbers are a product of columns and indicators.
func (m *stanMaker) numbers(product string) []float64 {
	out := slices.Repeat([]float64{1}, m.n)
	for _, factor := range strings.Split(product, "*") {
		name, level, indicator := strings.Cut(factor, "=")
		column, err := m.table.Column(name)
		if err != nil || indicator == (column.Numbers != nil) {
			m.err = fmt.Errorf("%s: column %s: it is not there, or of the other kind", m.c.name, factor)
			return out
		}
		for i := range out {
			switch {
			case !indicator:
				out[i] *= column.Numbers[i]
			case column.Labels[i] != level:
				out[i] = 0
			}
		}
	}
	return out
}

// columns are those of X.
func (m *stanMaker) columns() (x [][]float64) {
	if m.c.columns == "" {
		return transposed(m.batch("x"), 0)
	}
	for _, name := range strings.Fields(m.c.columns) {
		x = append(x, m.numbers(name))
	}
	return x
}

// scale is the scale of the outcome and the link of its mean.
func (m *stanMaker) scale(y []float64) (s, centre float64) {
	s, centre = 1, stat.Mean(y, nil)
	switch m.c.formula.Family.(type) {
	case nil, regression.Gaussian, regression.StudentT:
		return stat.StdDev(y, nil), centre
	case regression.Binomial:
		centre = stat.Mean(floats.DivTo(make([]float64, m.n), y, m.numbers("size")), nil)
		return s, math.Log(centre / (1 - centre))
	case regression.Bernoulli, regression.Beta:
		return s, math.Log(centre / (1 - centre))
	case regression.Cumulative:
		return s, 0
	}
	return s, math.Log(centre)
}

// group gives the levels of a group and the scales of its effects.
func (m *stanMaker) group(g group, s float64) {
	column, err := m.table.Column(g.by)
	if err != nil {
		m.err = err
		return
	}
	at, index := map[string]int{}, make([]int, m.n)
	for i, level := range column.Labels {
		if at[level] == 0 {
			at[level] = len(at) + 1
		}
		index[i] = at[level]
	}
	scales := []float64{2.5 * s}
	if g.slope != "" {
		x := m.numbers(g.slope)
		scales = append(scales, 2.5*s/stat.StdDev(x, nil))
		m.data["x_"+g.by] = x
	}
	m.data["J_"+g.by], m.data[g.by], m.data["sd_"+g.by+"_sd"] = len(at), index, scales
}

// smooth gives the basis of a spline, which is Kelvin's, and the predictor of sigma.
func smooth(m *stanMaker) {
	z, x := m.batch("z0"), m.numbers("times")
	m.data["D"], m.data["Z"] = len(z[0]), z
	span := floats.Norm(slices.Concat(z...), 2) / math.Sqrt(float64(m.n))
	m.data["sd_s_times_sd"] = m.data["intercept_prior"].([]float64)[1] / span
	m.data["x_sigma"], m.data["intercept_sigma_prior"] = x, []float64{0, 2.5}
	m.data["b_sigma_sd"] = 2.5 / stat.StdDev(x, nil)
}

// batch is a matrix of the model's data.
func (m *stanMaker) batch(key string) [][]float64 {
	flat, err := torch.ToSlice[float64](m.model.Batch()[key])
	if err != nil {
		m.err = err
		return [][]float64{{0}}
	}
	return slices.Collect(slices.Chunk(flat, len(flat)/m.n))
}

// transposed turns columns of n numbers into rows, or rows into columns.
func transposed(x [][]float64, n int) [][]float64 {
	if len(x) > 0 {
		n = len(x[0])
	}
	out := make([][]float64, n)
	for i := range out {
		for _, v := range x {
			out[i] = append(out[i], v[i])
		}
	}
	return out
}
