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
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
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
	require.NoError(t, pictured(dir, found))
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

// One axis has room for every band and every datum, so that the pictures can be compared; the data are in them.
func TestPictures(t *testing.T) {
	flat := func(v float64) [][][]float64 { // two functions, v and −v
		up, down := make([]float64, len(grid())), make([]float64, len(grid()))
		for i := range up {
			up[i], down[i] = v, -v
		}
		return [][][]float64{{up}, {down}}
	}
	wide := bandOf(flat(1)) // sd √2, so that two of them are 2.83
	require.InDelta(t, -2*math.Sqrt2, wide.low[3], 1e-12)
	require.InDelta(t, 0, wide.mean[3], 1e-12)
	low, high := limits([]band{bandOf(flat(0.1)), wide}, []float64{-0.5, 3.5})
	require.Equal(t, [2]float64{-3, 4}, [2]float64{low, high})

	x, y := simulate(n, 1)
	p, err := figure("", wide, x, y)
	require.NoError(t, err)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -2, 2, low, high
	picture := vgimg.New(5*vg.Inch, 3*vg.Inch)
	p.Draw(draw.New(picture))
	img, orange := picture.Image(), 0
	for i := range img.Bounds().Dx() {
		for j := range img.Bounds().Dy() {
			if r, g, b, _ := img.At(i, j).RGBA(); r>>8 == 213 && g>>8 == 94 && b>>8 == 0 {
				orange++
			}
		}
	}
	require.Greater(t, orange, n) // pixels: some dots are over others
}
