package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/shown"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/stretchr/testify/require"
)

// The tutorial shows what the program prints, and the picture can be drawn.
func TestTutorialShowsWhatIsPrinted(t *testing.T) {
	var printed strings.Builder
	posteriors, err := tables(context.Background(), &printed)
	require.NoError(t, err)
	shown.Printed(t, "../../docs/tutorials/3-methods-and-temperature.md", printed.String())
	for _, w := range ways { // three fits notice that they are far from the posterior, and no sampler thinks so
		kinds := ""
		for _, note := range posteriors[w.name].Notes() {
			kinds += note.Kind
		}
		want := ""
		if w.name == "Pathfinder" || w.name == "VI, diagonal" || w.name == "Laplace" {
			want = "far_from_posterior"
		}
		require.Equal(t, want, kinds, w.name)
	}
	dir := t.TempDir()
	require.NoError(t, picture(dir, posteriors))
	_, err = os.Stat(filepath.Join(dir, "3-slopes.png"))
	require.NoError(t, err)
}

// The methods that the page calls exact have the law of the grid, within four Monte-Carlo standard errors, also at
// other temperatures. (The bias of BAOA is of second order in its step.)
func TestSamplersAreExact(t *testing.T) {
	program, err := compile()
	require.NoError(t, err)
	check := func(w way, temperature float64) {
		posterior, err := infer.Sample(context.Background(), program, w.method, infer.Options{Seed: 2})
		require.NoError(t, err)
		got, err := of(posterior)
		require.NoError(t, err)
		want := exact(temperature)
		for j := range 2 {
			require.InDelta(t, want.mean[j], got.mean[j], 4*got.meanError[j], "%s at %v, mean %d", w.name, temperature, j)
			require.InDelta(t, want.sd[j], got.sd[j], 4*got.sdError[j], "%s at %v, sd %d", w.name, temperature, j)
		}
	}
	for _, w := range ways[:5] {
		check(w, 1)
	}
	for _, temperature := range []float64{0.25, 4} {
		for _, w := range at(temperature)[:2] {
			check(w, temperature)
		}
	}
}

// At T = 0 the sampler ends where the optimiser does, at a point where the gradient of the log density is 0.
func TestColdIsTheMode(t *testing.T) {
	program, err := compile()
	require.NoError(t, err)
	mode, err := infer.Sample(context.Background(), program, ways[len(ways)-1].method, infer.Options{Chains: 1})
	require.NoError(t, err)
	x := mode.Row(0, mode.Len(0)-1)
	const h = 1e-4 // the error of a central difference is of the order of its square
	require.InDelta(t, 0, (logPosterior(x[0]+h, x[1])-logPosterior(x[0]-h, x[1]))/(2*h), 1e-6)
	require.InDelta(t, 0, (logPosterior(x[0], x[1]+h)-logPosterior(x[0], x[1]-h))/(2*h), 1e-6)
	cold, err := infer.Sample(context.Background(), program, at(0)[1].method, infer.Options{Chains: 1})
	require.NoError(t, err)
	y := cold.Row(0, cold.Len(0)-1)
	require.Less(t, math.Hypot(x[0]-y[0], x[1]-y[1]), 1e-4)
}
