package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag/loo"
)

// compare runs `kelvin compare`.
func (a *app) compare(_ context.Context, args []string) error {
	dirs, err := a.parse(flag.NewFlagSet("compare", flag.ContinueOnError), args, 2, 1000)
	if err != nil {
		return err
	}
	var models []loo.Model
	var observed []float64
	notes := ""
	for k, dir := range dirs {
		f, err := readSaved(dir)
		if err != nil {
			return err
		}
		r, err := crossValidation(f.inf.LogLikelihood)
		if err != nil || len(f.inf.ObservedData) != 1 {
			return fmt.Errorf("%s: what cross-validation needs is not stored, as a fit of the family %s may lack it: %w", dir,
				f.Family, err)
		}
		if y := f.inf.ObservedData[0].Values; k == 0 {
			observed = y
		} else if !slices.Equal(y, observed) {
			return fmt.Errorf("%s and %s have different outcomes: cross-validation compares models of the same rows, "+
				"in the same order and on the same scale", dirs[0], dir)
		}
		models = append(models, r.Model(filepath.Clean(dir)))
		if r.Unreliable > 0 {
			notes += fmt.Sprintf("%s: %d of %d observations have a Pareto k above %.2f\n", dir, r.Unreliable,
				len(r.Pointwise), loo.KThreshold(r.Draws))
		}
	}
	ranked, err := loo.Compare(models, loo.Options{})
	if err == nil {
		fmt.Fprint(a.out, ranked, notes)
	}
	return err
}
