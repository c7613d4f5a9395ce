package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/stretchr/testify/require"
)

// Exported posteriors have the log density, the gradient, the values, the log likelihoods and the predictions of the
// library, and a process that was built without cgo has the same bits. Rows are fixed where latent variables, a Factor
// or a loop over the data fix them.
func TestExported(t *testing.T) {
	path := os.Getenv("POSTERIORDB")
	if path == "" {
		t.Skip("POSTERIORDB names no checkout of posteriordb")
	}
	db, chosen, err := posteriors.Flags{Path: path}.Open()
	require.NoError(t, err)
	static := infertest.Static(t)
	for _, e := range chosen {
		t.Run(e.Name, func(t *testing.T) {
			_, p, _, err := e.Compile(db)
			require.NoError(t, err)
			named, unconstrained := infertest.PosteriorAt(t, p, 20)
			loaded, file := infertest.Exported(t, p, named)
			d := infertest.Compare(t, loaded, p, named, unconstrained)
			t.Logf("%d bytes; differences up to %.1e; rows free: %v", len(file), d, loaded.FreeRows())
			infertest.StaticAlike(t, static, loaded, file)
			fixed := []string{"eight_schools", "garch", "gp_pois_regr", "hmm_example", "low_dim_gauss_mix"}
			require.Equal(t, !slices.ContainsFunc(fixed, func(name string) bool { return strings.HasPrefix(e.Name, name) }),
				loaded.FreeRows())
			require.Less(t, max(d.Density, d.Values, d.Predictions), 1e-12)
			require.Less(t, d.LogLikelihood, 1e-10)
		})
	}
}
