package loo

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Model is one of the models that [Compare] compares.
type Model struct {
	Name string // of the model, in your words
	// Pointwise are the expected log predictive densities of the observations, the same observations for all models.
	Pointwise []float64
	// P is the effective number of parameters; it is only shown.
	P float64
}

// Options are options of [Compare]. The zero value is the recommended one.
type Options struct {
	// Samples is the number of Bayesian bootstrap samples of pseudo-BMA+; 0 is 1000.
	Samples int
	// Seed is that of the bootstrap.
	Seed uint64
}

// Comparison is one model in its rank.
type Comparison struct {
	Name string // of the model
	// Rank is 0 for the model of the highest ELPD.
	Rank int
	// ELPD is the expected log pointwise predictive density, SE its standard error; P is the model's.
	ELPD, SE, P float64
	// Diff is the ELPD less that of the first model, at most 0; SEDiff is its standard error, from the paired
	// differences. Differences below 4, and below twice SEDiff, say little.
	Diff, SEDiff float64
	// Stacking, PseudoBMA and PseudoBMAPlus are weights over all models, each of sum 1.
	Stacking, PseudoBMA, PseudoBMAPlus float64
}

// Comparisons are models from best to worst.
type Comparisons []Comparison

// Compare ranks models by expected log predictive density and weighs them.
//
//	Diff(m)   = Σ (elpd(m,i) - elpd(best,i)),  SEDiff = sqrt(n Var of these differences)
//	Stacking  maximises Σ log Σ w(m) exp(elpd(m,i)), to within 1e-9 of the largest score
//	PseudoBMA ∝ exp ELPD(m)
//	PseudoBMA+ averages the weights ∝ exp(n Σ a(i) elpd(m,i)) over a ~ Dirichlet(1, ..., 1)
//
// Yao, Vehtari, Simpson and Gelman (2018), Bayesian Analysis 13, 917-1007. Signs and divisors are those of loo_compare
// in R; ArviZ has positive differences and divisor n in Var. Equal ELPDs keep the order given.
//
// [draws.ErrSize] for models of different observations or none, [diag.ErrNotFinite] and [draws.ErrRange] for Samples
// are the errors, and one of the stacking where it does not reach its tolerance.
func Compare(models []Model, opt Options) (Comparisons, error) {
	lpd := make([][]float64, len(models))
	for k, m := range models {
		lpd[k] = m.Pointwise
	}
	if err := checkModels("compare", lpd); err != nil {
		return nil, err
	}
	if opt.Samples < 0 {
		return nil, failf(draws.ErrRange, "compare: Samples is %d, want at least 1, or 0 for 1000", opt.Samples)
	}
	if opt.Samples == 0 {
		opt.Samples = 1000
	}
	weights, err := stackingWeights(lpd)
	if err != nil {
		return nil, err
	}
	n := len(lpd[0])
	out := make(Comparisons, len(models))
	elpd := make([]float64, len(models))
	for k, m := range models {
		c := Comparison{Name: m.Name, P: m.P, Stacking: weights[k]}
		c.ELPD, c.SE = total(n, func(i int) float64 { return m.Pointwise[i] })
		elpd[k], out[k] = c.ELPD, c
	}
	for k, w := range sample.Softmax(elpd) {
		out[k].PseudoBMA = w
	}
	for k, w := range pseudoBMAPlus(lpd, opt) {
		out[k].PseudoBMAPlus = w
	}
	best := 0
	for k := range elpd {
		if elpd[k] > elpd[best] {
			best = k
		}
	}
	for k := range out {
		if k != best {
			out[k].Diff, out[k].SEDiff = total(n, func(i int) float64 { return lpd[k][i] - lpd[best][i] })
		}
	}
	slices.SortStableFunc(out, func(a, b Comparison) int { return cmp.Compare(b.ELPD, a.ELPD) })
	for rank := range out {
		out[rank].Rank = rank
	}
	return out, nil
}

// pseudoBMAPlus averages the weights over the Bayesian bootstrap.
func pseudoBMAPlus(lpd [][]float64, opt Options) []float64 {
	rng := rand.New(rand.NewPCG(opt.Seed, 0x9e3779b97f4a7c15))
	n := len(lpd[0])
	a := make([]float64, n)
	elpd, mean := make([]float64, len(lpd)), make([]float64, len(lpd))
	for range opt.Samples {
		sum := 0.0
		for i := range a {
			a[i] = rng.ExpFloat64() // divided by the sum: Dirichlet(1, ..., 1)
			sum += a[i]
		}
		for k, row := range lpd {
			elpd[k] = 0
			for i, v := range row {
				elpd[k] += a[i] * v
			}
			elpd[k] *= float64(n) / sum
		}
		for k, w := range sample.Softmax(elpd) {
			mean[k] += w / float64(opt.Samples)
		}
	}
	return mean
}

// String is a table, one line for each model.
func (c Comparisons) String() string {
	columns := [][]string{{""}, {"rank"}, {"elpd"}, {"p"}, {"elpd_diff"}, {"stacking"}, {"bma+"}, {"se"}, {"se_diff"}}
	for _, m := range c {
		cells := []string{m.Name, strconv.Itoa(m.Rank)}
		for _, v := range []float64{m.ELPD, m.P, m.Diff, m.Stacking, m.PseudoBMAPlus, m.SE, m.SEDiff} {
			cells = append(cells, strconv.FormatFloat(v, 'f', 2, 64))
		}
		for k, cell := range cells {
			columns[k] = append(columns[k], cell)
		}
	}
	return sample.Align(columns)
}
