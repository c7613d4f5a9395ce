package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/shown"
	"github.com/stretchr/testify/require"
)

// The tutorial shows what the program prints, the pictures can be drawn, and the page's claims hold: with weak data the
// centred form misses the neck, by more than its own errors, and diverges there; the other attempts have the law of the
// quadrature, and each form is the cheaper one where the page says so.
func TestTutorial(t *testing.T) {
	var printed strings.Builder
	posteriors, err := table(context.Background(), &printed)
	require.NoError(t, err)
	_, err = groups(context.Background(), &printed)
	require.NoError(t, err)
	shown.Printed(t, "../../docs/tutorials/2-hierarchical-models.md", printed.String())

	results := make([]result, len(attempts))
	for i, a := range attempts {
		r, err := judge(posteriors[i])
		require.NoError(t, err)
		results[i] = r
		mean, small := exact(a.factor)
		t.Logf("%s: %d divergences", a.name, r.divergent)
		if !a.misses {
			require.InDelta(t, mean, r.tau, 4*r.tauError, "%s", a.name)
			require.InDelta(t, small, r.small, 4*r.smallError+1e-12, "%s", a.name)
		}
	}
	_, neck := exact(1)
	require.Greater(t, neck-results[0].small, 4*results[0].smallError)
	require.Greater(t, results[0].divergent, results[2].divergent)
	perGradient := func(i int) float64 { return results[i].effective / results[i].gradients }
	require.Greater(t, perGradient(2), perGradient(0))
	require.Greater(t, perGradient(3), perGradient(4))

	dir := t.TempDir()
	require.NoError(t, draw(dir, posteriors))
	for _, name := range []string{"2-centred.png", "2-non-centred.png", "2-effects.png"} {
		_, err = os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
	}
}

// Published figures of eight schools with these priors, 3.60 for the mean of tau, and a case without data: with
// standard errors that are infinite, tau has its prior, whose probability below 0.5 is 2/π·atan(0.5/5).
func TestExact(t *testing.T) {
	mean, _ := exact(1)
	require.InDelta(t, 3.60, mean, 0.01)
	_, small := exact(1e6)
	cut := 2 / math.Pi * math.Atan(200./5) // of the prior is below 200, where the sum ends
	require.InDelta(t, 2/math.Pi*math.Atan(0.1)/cut, small, 1e-5)
}
