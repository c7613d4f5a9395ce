package main

import (
	"fmt"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/diag/loo"
	page "github.com/kelvin-ppl/kelvin/internal/report"
	"github.com/kelvin-ppl/kelvin/store"
)

// predictive are the observed variables that a run has predictions of.
func predictive(inf *store.Inference) (out []page.Predictive) {
	d := inf.PosteriorPredictive
	if d == nil || d.Total() == 0 {
		return nil
	}
	for _, site := range d.Sites() {
		for _, y := range inf.ObservedData {
			if y.Name != site.Name || len(y.Values) != site.Size {
				continue
			}
			v := page.Predictive{Name: y.Name, Observed: y.Values}
			for _, row := range flat(d) {
				v.Replicates = append(v.Replicates, row[site.Offset:site.Offset+site.Size])
			}
			out = append(out, v)
		}
	}
	return out
}

// comparison ranks the run that a page is of, with its PSIS-LOO, and the runs of other files.
func comparison(title string, own *loo.Result, files []string) (loo.Comparisons, error) {
	if len(files) == 0 {
		return nil, nil
	}
	if own == nil {
		return nil, fmt.Errorf("report: -compare: there are no log likelihoods to compare")
	}
	models := []loo.Model{modelOf(title, own)}
	for _, file := range files {
		inf, err := store.Open(file)
		if err != nil {
			return nil, fmt.Errorf("report: -compare: %w", err)
		}
		r, err := crossValidation(inf)
		if err != nil {
			return nil, fmt.Errorf("report: -compare: %s: %w", file, err)
		}
		if r == nil {
			return nil, fmt.Errorf("report: -compare: %s: there are no log likelihoods", file)
		}
		models = append(models, modelOf(filepath.Base(file), r))
	}
	all, err := loo.Compare(models, loo.Options{})
	if err != nil {
		return nil, fmt.Errorf("report: -compare: %w", err)
	}
	return all, nil
}

func modelOf(name string, r *loo.Result) loo.Model {
	m := loo.Model{Name: name, P: r.P}
	for _, p := range r.Pointwise {
		m.Pointwise = append(m.Pointwise, p.ELPD)
	}
	return m
}
