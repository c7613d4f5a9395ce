package regression

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Folds says how rows are divided for cross-validation.
type Folds struct {
	K int // number of folds; 0 means 10
	// By is a factor whose levels stay together: each is in one fold, and is predicted as a new one. Empty divides rows.
	By   string
	Seed uint64
}

// KFold is the expected log predictive density of each row by a fit to the rows of the other folds: K fits with a
// method. It needs no importance weights, and tells of new groups where Folds.By names them. posterior is of all data,
// and gives the effective number of parameters. A fold that lacks a level of a common factor is an error.
func (m *Model) KFold(ctx context.Context, posterior *draws.Draws, method infer.Method, o infer.Options, f Folds) (
	*loo.Result, error) {
	if err := m.single("KFold"); err != nil {
		return nil, err
	}
	folds, err := f.assign(m.table)
	if err != nil {
		return nil, err
	}
	full, err := m.density(posterior, Rows{DrawNew: true, Seed: f.Seed})
	if err != nil {
		return nil, err
	}
	points := make([]loo.Point, m.table.Len())
	for k, held := range folds {
		var rest []int
		for i := range points {
			if !slices.Contains(held, i) {
				rest = append(rest, i)
			}
		}
		elpd, err := m.heldOut(ctx, method, o, rest, held, f.Seed)
		if err != nil {
			return nil, fmt.Errorf("regression.KFold: fold %d of %d: %w", k+1, len(folds), err)
		}
		for j, i := range held {
			points[i] = loo.Point{ELPD: elpd[j], P: full[i] - elpd[j], MCSE: math.NaN(), K: math.NaN(), ESS: math.NaN()}
		}
	}
	r := &loo.Result{Pointwise: points, Draws: posterior.Total()}
	r.Sum()
	return r, nil
}

// heldOut are the log predictive densities of some rows by a fit to others.
func (m *Model) heldOut(ctx context.Context, method infer.Method, o infer.Options, rest, held []int, seed uint64) (
	[]float64, error) {
	train, err := m.table.Rows(rest...)
	if err != nil {
		return nil, err
	}
	test, err := m.table.Rows(held...)
	if err != nil {
		return nil, err
	}
	of, err := m.formula.Fit(train)
	if err != nil {
		return nil, err
	}
	fitted, err := infer.Sample(ctx, of, method, o)
	if err != nil {
		return nil, err
	}
	return of.density(fitted, Rows{Table: test, DrawNew: true, Seed: seed})
}

// density is the log of the mean density of each row over the draws.
func (m *Model) density(posterior *draws.Draws, rows Rows) ([]float64, error) {
	each, err := m.predict("KFold", "log density", posterior, rows,
		func(a args, _ *torch.Source, data dataOf) torch.Tensor { return m.seen(a, data).LogProb(data("y")) })
	if err != nil {
		return nil, err
	}
	out := make([]float64, each.Dim())
	for i := range out {
		out[i] = sample.LogSumExp(each.Pooled(i)) - math.Log(float64(each.Total()))
	}
	return out, nil
}

// assign are the rows of each fold.
func (f Folds) assign(table *data.Table) ([][]int, error) {
	of := loo.Folds{K: f.K, Seed: f.Seed}
	units := table.Len()
	if f.By != "" {
		column, err := table.Column(f.By)
		if err != nil {
			return nil, fmt.Errorf("regression.KFold: %w", err)
		}
		if column.Labels == nil {
			return nil, &infer.FieldError{Type: "regression.Folds", Field: "By", Value: f.By, Allowed: "it must be a factor"}
		}
		units = len(column.Levels)
		for _, label := range column.Labels {
			of.Groups = append(of.Groups, slices.Index(column.Levels, label))
		}
	}
	folds, _, err := of.Assign(table.Len())
	if err != nil {
		return nil, &infer.FieldError{Type: "regression.Folds", Field: "K", Value: f.K,
			Allowed: fmt.Sprintf("it must be from 2 to %d, or 0 for 10", units)}
	}
	return folds, nil
}
