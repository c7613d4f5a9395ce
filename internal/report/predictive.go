package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/kelvin-ppl/kelvin/diag/check"
	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Predictive are data with replicates from posterior draws, [draw][datum].
type Predictive struct {
	Name       string
	Observed   []float64
	Replicates [][]float64
}

// What a page shows of them at most.
const (
	mostPredictive = 8  // variables
	shownReplicas  = 40 // densities of replicates
	predictiveCell = 80
)

// predictiveData are densities, packed from 0 to the highest: of the data and of some replicates.
type predictiveData struct {
	Name     string   `json:"n"`
	Low      float64  `json:"lo"`
	High     float64  `json:"hi"`
	Observed string   `json:"o"`
	Replicas []string `json:"r"`
}

// checkView is the table of statistics of a variable.
type checkView struct {
	Name string
	Rows []checkRow
}

type checkRow struct {
	Name, Observed, Replicated, P string
	Bad                           bool
}

// outside is how near to 0 or 1 a probability is marked.
const outside = 0.025

// predictiveOf are plots and tables; what cannot be compared is an error.
func predictiveOf(all []Predictive) (plots []predictiveData, tables []checkView, err error) {
	for _, v := range all[:min(len(all), mostPredictive)] {
		table := checkView{Name: shown(v.Name)}
		for _, s := range []struct {
			name string
			f    func(x []float64) float64
		}{
			{"mean", func(x []float64) float64 { m, _ := sample.Moments(x); return m }},
			{"sd", func(x []float64) float64 {
				if len(x) < 2 {
					return 0
				}
				_, sd := sample.Moments(x)
				return sd
			}},
			{"smallest", slices.Min[[]float64]}, {"largest", slices.Max[[]float64]},
		} {
			o, err := check.Statistic(v.Observed, v.Replicates, s.f)
			if err != nil {
				return nil, nil, fmt.Errorf("%w: Predictive %q: %w", ErrOption, v.Name, err)
			}
			slices.Sort(o.Replicated)
			table.Rows = append(table.Rows, checkRow{Name: s.name, Observed: short(o.Observed),
				Replicated: short(sample.Quantile(o.Replicated, 0.025)) + " to " + short(sample.Quantile(o.Replicated, 0.975)),
				P:          fmt.Sprintf("%.3f", o.P), Bad: o.P < outside || o.P > 1-outside})
		}
		tables = append(tables, table)
		p := predictiveData{Name: table.Name}
		shown := append([][]float64{v.Observed}, sample.Evenly(v.Replicates, shownReplicas)...)
		var ok bool
		if p.Low, p.High, ok = sample.View(shown...); !ok || !(p.Low < p.High) {
			continue
		}
		densities := make([][]float64, len(shown))
		top := 0.0
		for i, x := range shown {
			densities[i] = sample.Density(x, p.Low, p.High, predictiveCell)
			top = max(top, slices.Max(densities[i]))
		}
		p.Observed = pack(densities[0], 0, top)
		for _, f := range densities[1:] {
			p.Replicas = append(p.Replicas, pack(f, 0, top))
		}
		plots = append(plots, p)
	}
	return plots, tables, nil
}

// comparisonRow is a model in the comparison of several.
type comparisonRow struct{ Name, ELPD, Diff, Weight string }

func comparisonOf(all loo.Comparisons) []comparisonRow {
	var out []comparisonRow
	for _, c := range all {
		row := comparisonRow{Name: shown(c.Name), ELPD: fmt.Sprintf("%.1f ± %.1f", c.ELPD, c.SE), Diff: "0",
			Weight: fmt.Sprintf("%.2f", c.Stacking)}
		if c.Rank > 0 {
			row.Diff = fmt.Sprintf("%.1f ± %.1f", c.Diff, c.SEDiff)
		}
		out = append(out, row)
	}
	return out
}

// looView is the section on predictive accuracy.
type looView struct {
	Facts []fact
	Bands []fact // how many observations have their Pareto k in which interval
	Worst []fact // the observations with the largest k
}

// looOf is nil for nil. The limits of k are those of the R package loo: the diagnostic threshold for the number of
// draws, and 1, above which the variance of the importance weights is not finite and their mean may not be either.
func looOf(r *loo.Result) *looView {
	if r == nil {
		return nil
	}
	figure := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	limit := loo.KThreshold(r.Draws)
	v := &looView{Facts: []fact{
		{Name: "ELPD", Value: figure(r.ELPD) + " ± " + figure(r.SE)},
		{Name: "effective parameters", Value: figure(r.P) + " ± " + figure(r.SEP)},
		{Name: "LOOIC", Value: figure(r.IC) + " ± " + figure(r.SEIC)},
		{Name: "observations", Value: strconv.Itoa(len(r.Pointwise))},
		{Name: "not reliable", Value: strconv.Itoa(r.Unreliable), Bad: r.Unreliable > 0},
	}}
	good, bad, worse := 0, 0, 0
	order := make([]int, len(r.Pointwise))
	for i, p := range r.Pointwise {
		order[i] = i
		switch {
		case p.K <= limit:
			good++
		case p.K <= 1:
			bad++
		default: // NaN too
			worse++
		}
	}
	v.Bands = []fact{
		{Name: fmt.Sprintf("k up to %.2f: reliable", limit), Value: strconv.Itoa(good)},
		{Name: fmt.Sprintf("k from %.2f to 1: not reliable", limit), Value: strconv.Itoa(bad), Bad: bad > 0},
		{Name: "k above 1: of no use", Value: strconv.Itoa(worse), Bad: worse > 0},
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(r.Pointwise[j].K, r.Pointwise[i].K) })
	for _, i := range order[:min(10, len(order))] {
		k := r.Pointwise[i].K
		v.Worst = append(v.Worst, fact{Name: strconv.Itoa(i), Value: strconv.FormatFloat(k, 'f', 2, 64), Bad: !(k <= limit)})
	}
	return v
}
