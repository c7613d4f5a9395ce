package regression

import (
	"hash/maphash"
	"maps"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// cells are the rows of the training data that differ in their predictors, with sufficient statistics of the outcomes
// of the rows of each: with n rows, S = Σ y, the mean ȳ and Q = Σ (y - ȳ)², the log density of all rows is
//
//	gaussian             -½ Σ (Q + n (ȳ - μ)²)/σ² - Σ n log σ - N/2 log 2π
//	poisson              Σ (S η - n e^η) - Σ log y!
//	bernoulli, binomial  Σ (S η - T log(1 + e^η)) + Σ log choose(trials, y),  T = Σ trials
//
// with the links log and logit, and sums over cells.
type cells struct {
	rows     infer.Batch // the training data
	batch    infer.Batch // with the predictors and statistics of the cells, as cellKey names them
	count    int
	constant float64
}

// cellKey names a tensor of the cells in a batch.
func cellKey(key string) string { return "cells " + key }

// has says whether a tensor of a batch is of the cells.
func (c *cells) has(key string) bool {
	_, ok := c.rows[key]
	return !ok
}

// fewer is how many times fewer cells than rows there are at least where they are used.
const fewer = 2

// merge looks for cells. Families without sufficient statistics, and data in which few rows are the same, have none.
func (m *Model) merge(rows infer.Batch) error {
	name := m.family.name
	binomial := (name == "bernoulli" || name == "binomial") && m.family.canonical()
	switch {
	case len(m.imputed) > 0 || m.family.joint || len(m.rows.Added) > 1 || len(m.rows.Added) == 1 && !m.family.trials:
		return nil
	case name != "gaussian" && !binomial && !(name == "poisson" && m.family.canonical()):
		return nil
	}
	first, of := m.distinct(m.rows.N / fewer)
	if first == nil {
		return nil
	}
	table, err := m.table.Rows(first...)
	if err != nil {
		return err
	}
	c, merged := &cells{rows: rows, batch: maps.Clone(rows), count: len(first)}, infer.Batch{}
	for _, p := range m.predictors {
		rows, err := p.design.Rows(table)
		if err != nil {
			return err
		}
		if err := m.add(merged, rows, p); err != nil {
			return err
		}
	}
	k := len(first)
	n, sum, mean, squares, trials := make([]float64, k), make([]float64, k), make([]float64, k), make([]float64, k),
		make([]float64, k)
	lgamma := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	for row, y := range m.rows.Y {
		i, t := of[row], 1.0
		if m.family.trials {
			t = m.rows.Added["trials"][row]
		}
		n[i], trials[i], sum[i] = n[i]+1, trials[i]+t, sum[i]+y
		off := y - mean[i] // Welford 1962
		mean[i] += off / n[i]
		squares[i] += off * (y - mean[i])
		switch {
		case binomial:
			c.constant += lgamma(t+1) - lgamma(y+1) - lgamma(t-y+1)
		case name == "poisson":
			c.constant -= lgamma(y + 1)
		default:
			c.constant -= math.Log(2*math.Pi) / 2
		}
	}
	for key, x := range map[string][]float64{"n": n, "sum": sum, "mean": mean, "squares": squares, "trials": trials} {
		merged[" "+key] = torch.New(x)
		torch.Detach(merged[" "+key])
	}
	for key, t := range merged {
		c.batch[cellKey(key)] = t
	}
	m.cells = c
	return nil
}

// distinct are the first rows of those whose predictors differ, and for each row which of them it is as; none where
// there are more than most.
func (m *Model) distinct(most int) (first, of []int) {
	var blocks [][]float64 // of numbers, all of the same number of rows
	for _, p := range m.predictors {
		r := p.rows
		blocks = append(append(blocks, r.X, r.Offset), r.Smooths...)
		for _, g := range r.Groups {
			index := make([]float64, len(g.Index))
			for i, level := range g.Index {
				index[i] = float64(level)
			}
			blocks = append(blocks, g.X, g.Weights, index)
		}
	}
	of = make([]int, m.rows.N)
	same := func(a, b int) bool {
		for _, x := range blocks {
			if w := len(x) / m.rows.N; !slices.Equal(x[a*w:(a+1)*w], x[b*w:(b+1)*w]) {
				return false
			}
		}
		return true
	}
	seed, at := maphash.MakeSeed(), map[uint64][]int{}
	for row := range of {
		var h maphash.Hash
		h.SetSeed(seed)
		for _, x := range blocks {
			w := len(x) / m.rows.N
			for _, v := range x[row*w : (row+1)*w] {
				maphash.WriteComparable(&h, v)
			}
		}
		key := h.Sum64()
		i := slices.IndexFunc(at[key], func(i int) bool { return same(first[i], row) })
		if i >= 0 {
			of[row] = at[key][i]
			continue
		}
		if of[row] = len(first); len(first) == most {
			return nil, nil
		}
		at[key], first = append(at[key], len(first)), append(first, row)
	}
	return first, of
}

// Batch are the training data, of a row for each datum.
func (m *Model) Batch() infer.Batch {
	if m.cells == nil {
		return m.Program.Batch()
	}
	return m.cells.rows
}

// MergedBatch is Batch, and where rows are merged the columns of those that differ, with sufficient statistics of their
// outcomes: what samplers of the sum over all data get.
func (m *Model) MergedBatch() infer.Batch { return m.Program.Batch() }

// merged is the law of the rows, whose sum is that of cells where the batch has them.
type merged struct {
	dist.Distribution
	family   string
	a        args                    // of the cells
	of       map[string]torch.Tensor // statistics of the cells
	constant float64
}

// SumLogProb is the sum over the cells.
func (d merged) SumLogProb(y torch.Tensor, known dist.Known) (terms []torch.Term, constant float64, ok bool) {
	if d.of == nil {
		if s, ok := d.Distribution.(dist.Summer); ok {
			return s.SumLogProb(y, known)
		}
		return nil, 0, false
	}
	plus := func(by float64, t torch.Tensor) { terms = append(terms, torch.Term{Coeff: by, Tensor: t.Sum()}) }
	switch d.family {
	case "gaussian":
		sigma := d.a.of["sigma"]
		plus(-0.5, d.of["mean"].Sub(d.a.mu).Square().Mul(d.of["n"]).Add(d.of["squares"]).Div(sigma.Square()))
		plus(-1, d.of["n"].Mul(sigma.Log()))
	case "poisson":
		plus(1, d.of["sum"].Mul(d.a.eta))
		plus(-1, d.of["n"].Mul(d.a.eta.Exp()))
	default:
		plus(1, d.of["sum"].Mul(d.a.eta))
		plus(1, d.of["trials"].Mul(d.a.eta.Neg().LogSigmoid()))
	}
	return terms, d.constant, true
}

// Expand broadcasts the batch shape of the rows' law.
func (d merged) Expand(batch ...int) dist.Distribution {
	d.Distribution = d.Distribution.Expand(batch...)
	return d
}

// again takes the values of sites that the model has declared.
type again struct {
	inModel
	values map[string]torch.Tensor
	done   bool // all sites are declared
}

func (g *again) sample(site string, d func() dist.Distribution) torch.Tensor {
	if !g.done {
		g.values[site] = g.inModel.sample(site, d)
	}
	return g.values[site]
}

func (g *again) keep(site string, value torch.Tensor) {
	if !g.done {
		g.values[site] = value
		g.inModel.keep(site, value)
	}
}

func (g *again) known(site string) (torch.Tensor, bool) {
	v, ok := g.values[site]
	return v, ok && g.done
}

// law is that of the outcome, with the short sum over the cells of the batch.
func (m *Model) law(c *ppl.Ctx) dist.Distribution {
	cells := func(key string) torch.Tensor { return c.Data(cellKey(key)) }
	g := &again{inModel: inModel{c}, values: map[string]torch.Tensor{}}
	of, _, _ := m.args(g, cells)
	g.done = true
	a, _, _ := m.args(g, c.Data)
	statistics := map[string]torch.Tensor{}
	for _, name := range []string{"n", "sum", "mean", "squares", "trials"} {
		statistics[name] = cells(" " + name)
	}
	return merged{m.family.dist(a), m.family.name, of, statistics, m.cells.constant}
}
