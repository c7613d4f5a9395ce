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

// The tutorial shows what the program prints, the pictures can be drawn, and the page's claims hold.
func TestTutorial(t *testing.T) {
	var printed strings.Builder
	found, err := table(context.Background(), &printed)
	require.NoError(t, err)
	shown.Printed(t, "../../docs/tutorials/5-a-network-with-uncertainty.md", printed.String())

	at := func(way int, x float64) (float64, float64) {
		i := int(math.Round((x + 2) / 0.05))
		return jackknife(found[way], func(f [][]float64) float64 { return spread(f, i) })
	}
	wider := func(way int, x float64, other int, y float64) {
		a, sa := at(way, x)
		b, sb := at(other, y)
		require.Greater(t, a-b, 2*math.Hypot(sa, sb), "%s at %v, %s at %v", ways[way].name, x, ways[other].name, y)
	}
	const modes, fit, sampler = 0, 1, 2
	wider(sampler, 0, sampler, 0.7)
	wider(sampler, 2, sampler, 0.7)
	wider(sampler, 0, modes, 0)
	wider(fit, 0.7, sampler, 0.7)
	wider(fit, 0, fit, 2)

	dir := t.TempDir()
	require.NoError(t, draw(dir, found))
	for _, name := range []string{"5-modes.png", "5-vi.png", "5-baoa.png"} {
		_, err = os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
	}
}

// The jackknife of a mean is its standard error, sd/√n: of 1, 2, 3, 4 that is √(5/3)/2. The log score of functions that
// are all 0 is the log density of a normal distribution.
func TestFigures(t *testing.T) {
	chains := [][][]float64{{{1}}, {{2}}, {{3}}, {{4}}}
	mean, se := jackknife(chains, func(f [][]float64) float64 {
		sum := 0.0
		for _, v := range f {
			sum += v[0] / float64(len(f))
		}
		return sum
	})
	require.InDelta(t, 2.5, mean, 1e-15)
	require.InDelta(t, math.Sqrt(5./3)/2, se, 1e-15)
	require.InDelta(t, math.Sqrt(5./3), spread([][]float64{{1}, {2}, {3}, {4}}, 0), 1e-15)
	want := -math.Log(noise) - math.Log(2*math.Pi)/2 - 0.3*0.3/(2*noise*noise)
	require.InDelta(t, want, logScore([][]float64{{0}, {0}}, []float64{0.3}), 1e-14)
}
