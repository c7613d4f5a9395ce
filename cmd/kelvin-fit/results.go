package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	page "github.com/kelvin-ppl/kelvin/internal/report"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/kelvin-ppl/kelvin/store"
)

// results are what a fit leaves.
type results struct {
	model                            *regression.Model
	posterior, likelihood, predicted *draws.Draws
	loo                              *loo.Result
	notes                            []string
	drawn                            []page.Picture
	took                             time.Duration
}

// newResults makes of draws what follows them.
func newResults(j *job, model *regression.Model, posterior *draws.Draws, took time.Duration) (r *results, err error) {
	r = &results{model: model, took: took}
	if r.likelihood, err = model.LogLikelihood(posterior); err != nil {
		return nil, err
	}
	if r.predicted, err = model.Predict(posterior, regression.Rows{Seed: j.Seed}); err != nil {
		return nil, err
	}
	if r.posterior, err = kept(model, posterior); err != nil {
		return nil, err
	}
	if r.loo, err = crossValidation(r.likelihood); err != nil {
		r.notes = append(r.notes, fmt.Sprintf("Pareto k was not checked: %v", err))
	}
	return r, nil
}

// crossValidation is PSIS-LOO of log likelihoods.
func crossValidation(d *draws.Draws) (*loo.Result, error) {
	if d == nil || d.Dim() == 0 {
		return nil, errors.New("there are no log likelihoods")
	}
	rows := d.Rows()
	efficiency, err := loo.RelativeEfficiency(rows, d.Chains())
	if err != nil {
		return nil, err
	}
	return loo.LOO(rows, efficiency)
}

// write makes the folder in one move. An earlier one that is to be replaced stands until the new one is complete.
func (r *results) write(ctx context.Context, j *job, raw []byte) error {
	fill := func(dir string) error { return r.fill(ctx, j, raw, dir) }
	if !j.force {
		return atomicfile.Folder(j.out, fill)
	}
	fresh := j.out + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := atomicfile.Folder(fresh, fill); err != nil {
		return err
	}
	if err := os.RemoveAll(j.out); err != nil {
		return err
	}
	return os.Rename(fresh, j.out)
}

// fill writes the files of a fit.
func (r *results) fill(ctx context.Context, j *job, raw []byte, dir string) error {
	text, err := json.MarshalIndent(j.saved, "", "  ")
	if err != nil {
		return err
	}
	inf := &store.Inference{Posterior: r.posterior, LogLikelihood: r.likelihood, PosteriorPredictive: r.predicted,
		ObservedData: []store.Array{{Name: r.model.Outcome(), Shape: []int64{int64(len(r.model.Observed()))},
			Values: r.model.Observed()}},
		Attrs: map[string]any{"model_name": j.Formula, "seed": float64(j.Seed)}}
	label(inf, r.posterior)
	for _, step := range []func() error{
		func() error { return atomicfile.Write(filepath.Join(dir, dataFile), raw, 0o644) },
		func() error { return atomicfile.Write(filepath.Join(dir, modelFile), append(text, '\n'), 0o644) },
		func() error { return store.WriteZarr(filepath.Join(dir, drawsFile), inf, store.ZarrOptions{Zlib: 1}) },
		func() error { return r.pictures(dir) },
		func() error { return r.report(j, filepath.Join(dir, pageFile)) },
		ctx.Err,
	} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// label gives dimensions their names and labels, as xarray has them.
func label(inf *store.Inference, d *draws.Draws) {
	inf.Dims, inf.Coords = map[string][]string{}, map[string][]any{}
	for _, s := range d.Sites() {
		for k, labels := range s.Labels {
			name := fmt.Sprintf("%s_dim_%d", s.Name, k)
			inf.Dims[s.Name] = append(inf.Dims[s.Name], name)
			if labels == nil {
				continue
			}
			for _, l := range labels {
				inf.Coords[name] = append(inf.Coords[name], l)
			}
		}
	}
}

// report writes the page.
func (r *results) report(j *job, path string) error {
	o := page.Options{Title: j.Formula, Sources: []string{filepath.Base(j.Source)}, Notes: r.notes, LOO: r.loo}
	family := j.Family
	if j.Link != "" {
		family += ", link " + j.Link
	}
	o.Facts = [][2]string{{"family", family}, {"rows", fmt.Sprint(len(r.model.Observed()))}, {"method", j.Method},
		{"seed", fmt.Sprint(j.Seed)}, {"sampling", fmt.Sprintf("%.1f s", r.took.Seconds())}}
	if n := r.model.Dropped(); n > 0 {
		o.Facts = append(o.Facts, [2]string{"rows with missing values left out", fmt.Sprint(n)})
	}
	for _, p := range r.model.Priors() {
		o.Notes = append(o.Notes, fmt.Sprintf("prior of %s: %s", p.Name, j.given(p)))
	}
	o.Sites = r.model.Reported(r.posterior)
	for _, s := range r.posterior.Sites() {
		if strings.HasPrefix(s.Name, "r_") && !slices.Contains(o.Sites, s.Name) {
			o.Sites = append(o.Sites, s.Name)
		}
	}
	o.Predictive = []page.Predictive{{Name: r.model.Outcome(), Observed: r.model.Observed(),
		Replicates: r.predicted.Rows()}}
	o.Pictures = r.drawn
	return atomicfile.Replace(path, func(w io.Writer) error { return page.Report(w, r.posterior, o) })
}
