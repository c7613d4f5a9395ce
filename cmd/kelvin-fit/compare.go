package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/store"
)

const compareUsage = `usage: kelvin compare fit1/ fit2/...

Ranks fits of the same outcomes by leave-one-out cross-validation (PSIS-LOO), and says where that cannot be trusted.
`

// compare runs `kelvin compare`.
func (a *app) compare(_ context.Context, args []string) error {
	dirs, err := a.parse(flag.NewFlagSet("compare", flag.ContinueOnError), compareUsage, args, 2, 1000)
	if err != nil {
		return err
	}
	var models []loo.Model
	var observed []store.Array
	var unreliable []string
	for k, dir := range dirs {
		if _, err := readSaved(dir); err != nil {
			return err
		}
		inf, err := openDraws(dir)
		if err != nil {
			return err
		}
		if k == 0 {
			observed = inf.ObservedData
		}
		same := func(a, b store.Array) bool { return slices.Equal(a.Values, b.Values) }
		if !slices.EqualFunc(observed, inf.ObservedData, same) {
			return fmt.Errorf("%s and %s have different outcomes: cross-validation compares models of the same rows, in the "+
				"same order and on the same scale", dirs[0], dir)
		}
		r, err := crossValidation(inf.LogLikelihood)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		models = append(models, r.Model(filepath.Clean(dir)))
		if r.Unreliable > 0 {
			unreliable = append(unreliable, fmt.Sprintf("%s: %d of %d observations have a Pareto k above %.2f", dir,
				r.Unreliable, len(r.Pointwise), loo.KThreshold(r.Draws)))
		}
	}
	ranked, err := loo.Compare(models, loo.Options{})
	if err != nil {
		return err
	}
	fmt.Fprint(a.out, ranked)
	for _, line := range unreliable {
		fmt.Fprintln(a.out, line)
	}
	return nil
}
