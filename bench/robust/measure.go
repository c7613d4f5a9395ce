package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// runTo runs a target with a method, up to so many gradients: a run that takes more is an error.
func runTo(ctx context.Context, limit int, p problem, program *ppl.Program, m method, o infer.Options) (*infer.Result,
	error) {
	nuts := hmc.NUTS{TargetAccept: p.accept}
	m.apply(&nuts)
	o.Until = func(at infer.Progress) bool { return at.Gradients >= limit }
	o.Observer = infer.Silent
	r, err := infer.Run(ctx, program, nuts, o)
	if err == nil && (r.Gradients >= limit || r.Draws == nil || r.Draws.MinLen() < o.Draws) {
		err = fmt.Errorf("more than %d gradients", limit)
	}
	return r, err
}

// sample runs a target with a method and says what became of it. Only the end of the context is an error: what a run
// fails with is its outcome.
func sample(ctx context.Context, p problem, program *ppl.Program, m method, known truth, limit int,
	o infer.Options) (outcome, error) {
	r, err := runTo(ctx, limit, p, program, m, o)
	switch {
	case ctx.Err() != nil:
		return outcome{}, ctx.Err()
	case err != nil:
		return lost(err.Error()), nil
	}
	out := outcome{all: float64(r.Gradients)}
	sampling, err := total(r.Draws, draws.StatLeapfrog)
	if err != nil {
		return outcome{}, err
	}
	out.warmup = (out.all - sampling) / float64(r.Draws.Chains())
	out.ess, out.why = watched(r.Draws, p.watch).judge(known, p.bimodal)
	return out, nil
}

// total is the sum of a statistic over all draws.
func total(d *draws.Draws, stat string) (float64, error) {
	sum := 0.0
	for c := range d.Chains() {
		values, err := d.Stat(stat, c)
		if err != nil {
			return 0, err
		}
		for _, v := range values {
			sum += v
		}
	}
	return sum, nil
}

// row is what a method was on a target. The tags are a format that other programs read.
type row struct {
	Name   string `json:"name"`
	Method string `json:"method"`
	Seeds  int    `json:"seeds"`
	Failed int    `json:"failed"`
	// WarmupGradients is the median over the seeds of a chain's, GradientsPerESS that of all gradients over the least
	// bulk ESS of a judged number. They are null where the median run has none.
	WarmupGradients *float64 `json:"warmup_gradients"`
	GradientsPerESS *float64 `json:"gradients_per_ess"`

	why []string // of each seed that failed
}

// summarise makes a row of the outcomes of seeds.
func summarise(name, method string, runs []outcome, bimodal bool) row {
	r := row{Name: name, Method: method, Seeds: len(runs)}
	var warmup, cost []float64
	for i, o := range runs {
		if o.why != "" {
			r.Failed++
			r.why = append(r.why, fmt.Sprintf("seed %d: %s", i, o.why))
		}
		warmup = append(warmup, o.warmup)
		cost = append(cost, o.all/o.ess)
	}
	r.WarmupGradients = finite(median(warmup))
	if !bimodal { // where chains must not agree, the effective draws are none
		r.GradientsPerESS = finite(median(cost))
	}
	return r
}

// finite is a number that JSON can hold, or nil.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func median(x []float64) float64 {
	x = slices.Clone(x)
	for i, v := range x {
		if v != v {
			x[i] = math.Inf(1)
		}
	}
	slices.Sort(x)
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}
