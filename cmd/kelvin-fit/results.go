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

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	page "github.com/kelvin-ppl/kelvin/internal/report"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/kelvin-ppl/kelvin/store"
)

// results are what a fit leaves.
type results struct {
	j     *job
	model *regression.Model
	inf   *store.Inference
	loo   *loo.Result
	notes []string
}

// partial is the family of which there are no outcomes to draw and no densities of rows.
const partial = "cox"

// newResults makes of draws what follows them. Stored are those that are reported, first, and those that predictions
// need, without what group effects are made of.
func newResults(j *job, model *regression.Model, posterior *draws.Draws) (r *results, err error) {
	r = &results{j: j, model: model, inf: &store.Inference{Dims: map[string][]string{}, Coords: map[string][]any{},
		Attrs: map[string]any{"model_name": j.Formula, "seed": float64(j.Seed)}}}
	y := model.Observed()
	r.inf.ObservedData = []store.Array{{Name: model.Outcome(), Shape: []int{len(y)}, Values: y}}
	few, err := r.few(posterior)
	if err != nil {
		return nil, err
	}
	if j.Family != partial && few != nil {
		if r.inf.LogLikelihood, err = model.LogLikelihood(few); err != nil {
			return nil, err
		}
		if r.inf.PosteriorPredictive, err = model.Predict(few, regression.Rows{Seed: j.Seed}); err != nil {
			return nil, err
		}
		r.inf.ObservedData[0].Shape = r.inf.PosteriorPredictive.Sites()[0].Shape
	}
	for _, s := range posterior.Sites() {
		for k, labels := range s.Labels { // as xarray has them
			name := fmt.Sprintf("%s_dim_%d", s.Name, k)
			r.inf.Dims[s.Name] = append(r.inf.Dims[s.Name], name)
			for _, l := range labels {
				r.inf.Coords[name] = append(r.inf.Coords[name], l)
			}
		}
	}
	if r.inf.Posterior, err = posterior.Select(model.Needed(posterior)...); err != nil {
		return nil, err
	}
	if j.Family == partial {
		r.notes = append(r.notes, "A partial likelihood has no density of single rows: no draws of times, predictive checks "+
			"and cross-validation.")
	} else if few == nil {
		r.notes = append(r.notes, fmt.Sprintf("There are %d rows under %d draws: predictive checks and cross-validation "+
			"were left out. Fit a sample of the rows for them.", len(y), posterior.Total()))
	} else if r.loo, err = crossValidation(r.inf.LogLikelihood); err != nil {
		r.notes = append(r.notes, fmt.Sprintf("Pareto k was not checked: %v", err))
	}
	return r, nil
}

// mostEach is how many numbers are kept of each row under each draw, of which there are leastDraws at least.
const mostEach, leastDraws = 1 << 26, 400

// few are draws for what is kept of each row: all of them, every few of them for many rows, and none for very many.
func (r *results) few(posterior *draws.Draws) (*draws.Draws, error) {
	rows := len(r.model.Observed())
	if rows > mostEach/leastDraws {
		return nil, nil
	}
	by := (posterior.Total()*rows + mostEach - 1) / mostEach
	if by > 1 {
		r.notes = append(r.notes, fmt.Sprintf("Predictive checks and cross-validation take each %d. draw: there are %d rows.",
			by, rows))
	}
	return posterior.Thin(max(1, by))
}

// crossValidation is PSIS-LOO of log likelihoods.
func crossValidation(d *draws.Draws) (*loo.Result, error) {
	if d == nil || d.Dim() == 0 {
		return nil, errors.New("there are no log likelihoods")
	}
	efficiency, err := loo.RelativeEfficiency(d.Rows(), d.Chains())
	if err != nil {
		return nil, err
	}
	return loo.LOO(d.Rows(), efficiency)
}

// print shows the summary and the findings.
func (r *results) print(w io.Writer) error {
	table, err := r.model.Summary(r.inf.Posterior)
	if err != nil {
		return err
	}
	report, err := diag.Diagnose(r.inf.Posterior, diag.DiagnoseOptions{})
	if err != nil {
		return err
	}
	if r.loo != nil {
		report.Join(r.loo.Diagnose())
	}
	_, err = fmt.Fprintf(w, "\n%s\n%s%s", table, inShell(report.String()), strings.Join(append(r.notes, ""), "\n"))
	return err
}

// write makes the folder in one move. An earlier one that is to be replaced stands until the new one is complete.
func (r *results) write(ctx context.Context, raw []byte) error {
	fresh := r.j.out
	if r.j.force {
		fresh += ".new"
		defer os.RemoveAll(fresh)
	}
	err := atomicfile.Folder(fresh, func(dir string) error { return r.fill(ctx, raw, dir) })
	if err != nil || !r.j.force {
		return err
	}
	if err := os.RemoveAll(r.j.out); err != nil {
		return err
	}
	return os.Rename(fresh, r.j.out)
}

// fill writes the files of a fit.
func (r *results) fill(ctx context.Context, raw []byte, dir string) error {
	text, err := json.MarshalIndent(r.j.saved, "", "  ")
	if err != nil {
		return err
	}
	var drawn []page.Picture
	for _, step := range []func() error{
		func() error { return atomicfile.Write(filepath.Join(dir, dataFile), raw, 0o644) },
		func() error { return atomicfile.Write(filepath.Join(dir, modelFile), append(text, '\n'), 0o644) },
		func() error { return store.WriteZarr(filepath.Join(dir, drawsFile), r.inf, store.ZarrOptions{Zlib: 1}) },
		func() error { drawn = r.pictures(dir); return nil },
		func() error { return r.report(filepath.Join(dir, pageFile), drawn) },
		ctx.Err,
	} {
		if err := errors.Join(ctx.Err(), step()); err != nil {
			return err
		}
	}
	return nil
}

// report writes the page.
func (r *results) report(path string, drawn []page.Picture) error {
	j := r.j
	o := page.Options{Title: j.Formula, Sources: []string{filepath.Base(j.Source)}, LOO: r.loo, Pictures: drawn,
		Sites: slices.Concat(r.model.Reported(r.inf.Posterior), r.model.Effects(r.inf.Posterior)),
		Facts: [][2]string{{"family", j.Family + " " + j.Link},
			{"rows", fmt.Sprint(len(r.model.Observed()))}, {"rows left out", fmt.Sprint(r.model.Dropped())},
			{"method", j.Method}, {"seed", fmt.Sprint(j.Seed)}}}
	if drawn := r.inf.PosteriorPredictive; drawn != nil {
		o.Predictive = []page.Predictive{{Name: r.model.Outcome(), Observed: r.model.Observed(), Replicates: drawn.Rows()}}
	}
	for _, p := range r.model.Priors() {
		o.Notes = append(o.Notes, fmt.Sprintf("prior of %s: %s", p.Name, p.Law))
	}
	o.Notes = slices.Concat(o.Notes, j.given(), r.notes)
	return atomicfile.Replace(path, func(w io.Writer) error { return page.Report(w, r.inf.Posterior, o) })
}
