//go:build slow

package main

import (
	"context"
	"os"
	"testing"

	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/stretchr/testify/require"
)

// Every posterior meets its marks: means and standard deviations within four combined standard errors of the
// reference's, R-hat, effective sample size, no divergences.
func TestPosteriordb(t *testing.T) {
	dir := os.Getenv("POSTERIORDB")
	if dir == "" {
		t.Skip("POSTERIORDB is not set: it is the path of a checkout of github.com/stan-dev/posteriordb")
	}
	db, err := posteriors.Open(dir)
	require.NoError(t, err)
	for _, e := range posteriors.Registry {
		t.Run(e.Name, func(t *testing.T) {
			r, err := measure(context.Background(), db, e, infer.Options{Seed: 1})
			require.NoError(t, err)
			t.Logf("z of means %.2f, of sds %.2f, R-hat %.4f, bulk ESS %.0f, %d divergences, %d gradients, %.1f s",
				r.MaxZMean, r.MaxZSD, r.MaxRHat, r.MinESSBulk, r.Divergences, r.Gradients, r.Seconds)
			require.Empty(t, r.misses)
		})
	}
}
