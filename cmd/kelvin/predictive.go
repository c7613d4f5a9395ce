package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag/loo"
	page "github.com/kelvin-ppl/kelvin/internal/report"
	"github.com/kelvin-ppl/kelvin/store"
)

// predictive are the observed variables that a run has predictions of. The notes name those that cannot be compared.
func predictive(inf *store.Inference) (out []page.Predictive, notes []string) {
	d := inf.PosteriorPredictive
	if d == nil || d.Total() == 0 {
		return nil, nil
	}
	for _, site := range d.Sites() {
		i := slices.IndexFunc(inf.ObservedData, func(y store.Array) bool { return y.Name == site.Name })
		if i < 0 {
			notes = append(notes, fmt.Sprintf("Predictions of %s were not checked: it is not among the observed data.",
				site.Name))
			continue
		}
		y := inf.ObservedData[i]
		if len(y.Values) != site.Size {
			notes = append(notes, fmt.Sprintf("Predictions of %s were not checked: a draw has %d numbers and the data %d.",
				site.Name, site.Size, len(y.Values)))
			continue
		}
		v := page.Predictive{Name: y.Name, Observed: y.Values}
		for _, row := range d.Rows() {
			v.Replicates = append(v.Replicates, row[site.Offset:site.Offset+site.Size])
		}
		out = append(out, v)
	}
	return out, notes
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
