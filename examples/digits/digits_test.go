package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program runs on the digits that the repository carries, and every method reads most of them; guessing is right
// for a tenth.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	o := options{pictures: dir, images: 300, tests: 100, updates: 200, seed: 1}
	require.NoError(t, run(context.Background(), &out, o))
	for _, name := range []string{"MAP", "ensemble of 10", "SGHMC, 10 chains", "Laplace"} {
		require.Contains(t, out.String(), "\n"+name)
	}
	d, err := read(o)
	require.NoError(t, err)
	k, err := newTask(d)
	require.NoError(t, err)
	all, err := k.fit(context.Background(), o)
	require.NoError(t, err)
	for _, m := range all {
		p, err := m.predict(k.Test)
		require.NoError(t, err)
		right := 0
		for i, row := range p {
			sum, best := 0.0, 0
			for c, v := range row {
				sum += v
				if v > row[best] {
					best = c
				}
			}
			require.InDelta(t, 1, sum, 1e-5)
			if best == k.Labels[i] {
				right++
			}
		}
		assert.Greater(t, right, 70, m.name)
	}
	require.FileExists(t, filepath.Join(dir, "turned.png"))
	require.FileExists(t, filepath.Join(dir, "outliers.png"))

	o.data = t.TempDir()
	require.ErrorContains(t, run(context.Background(), io.Discard, o), "train-images-idx3-ubyte")
	require.ErrorContains(t, run(context.Background(), io.Discard, options{}), "0 images, 0 tests and 0 updates")
}

// An image that is turned by 0° is itself, by 90° has its rows for columns, and by 180° is upside down.
func TestTurned(t *testing.T) {
	image := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}
	assert.InDeltaSlice(t, image, turned(image, 3, 0), 1e-12)
	assert.InDeltaSlice(t, []float64{9, 8, 7, 6, 5, 4, 3, 2, 1}, turned(image, 3, 180), 1e-12)
	quarter := turned(image, 3, 90)
	assert.True(t, math.Abs(quarter[0]-3) < 1e-9 || math.Abs(quarter[0]-7) < 1e-9, "%v", quarter)
	assert.Len(t, angles(), 13)
	assert.InDelta(t, math.Log(2), entropy([][]float64{{0.5, 0.5, 0}})[0], 1e-12)
}

// Both histograms of a panel have the same bins, of one width, whatever the ranges of the entropies; the shares add up
// to 1, and what rounding puts outside is counted at the ends.
func TestShares(t *testing.T) {
	low, wide := shares([]float64{0.01, 0.02, 0.03, -1e-9}), shares([]float64{0, 1, 2, mostEntropy, mostEntropy + 1e-9})
	require.Len(t, low.Bins, 20)
	total := [2]float64{}
	for i := range low.Bins {
		assert.InDelta(t, math.Log(10)/20, low.Bins[i].Max-low.Bins[i].Min, 1e-12)
		assert.Equal(t, []float64{wide.Bins[i].Min, wide.Bins[i].Max}, []float64{low.Bins[i].Min, low.Bins[i].Max})
		total[0], total[1] = total[0]+low.Bins[i].Weight, total[1]+wide.Bins[i].Weight
	}
	assert.InDeltaSlice(t, []float64{1, 1}, total[:], 1e-12)
	assert.Equal(t, math.Log(10), low.Bins[19].Max)
	assert.Equal(t, 1.0, low.Bins[0].Weight)
	assert.InDelta(t, 0.4, wide.Bins[19].Weight, 1e-12)
	assert.InDelta(t, 0.2, wide.Bins[8].Weight, 1e-12, "1 nat is 8.7 bins")
}
