package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func streamZarr(t *testing.T, w *zarrWriter, d *draws.Draws, upTo int) {
	t.Helper()
	for i := 0; i < upTo; i++ {
		for c := range d.Chains() {
			if i < w.Lengths()[c] || i >= d.Len(c) {
				continue
			}
			require.NoError(t, w.Append(c, d.Row(c, i), d.StatRow(c, i)))
		}
	}
}

func TestZarrAppend(t *testing.T) {
	noSync(t)
	sites := placedSites(t, "mu", []int{}, "w", []int{3}, "empty", []int{0})
	opt := ZarrOptions{Chunk: 4, FlushEvery: 3, Dims: map[string][]string{"w": {"school"}},
		Coords: map[string][]any{"school": {"A", "B", "C"}}}
	for _, d := range []*draws.Draws{filled(t, sites, nutsStats, true, 11, 11),
		filled(t, sites, nutsStats, true, 13, 2, 8), filled(t, sites, nil, true, 5, 0)} {
		for _, stop := range []int{0, 2, 4, 5} { // within chunks and at their ends
			path := filepath.Join(t.TempDir(), "run.zarr")
			w, err := createZarr(path, d.Sites(), d.Stats(), d.Chains(), opt)
			require.NoError(t, err)
			streamZarr(t, w, d, stop)
			require.NoError(t, w.Close())

			w, err = appendZarr(path, d.Sites(), d.Stats(), d.Chains(), ZarrOptions{FlushEvery: 2}, -1, "")
			require.NoError(t, err)
			streamZarr(t, w, d, d.MaxLen())
			require.NoError(t, w.Close())
			inf, err := Open(path)
			require.NoError(t, err)
			identical(t, d, inf.Posterior)
			assert.Equal(t, map[string][]any{"school": {"A", "B", "C"}}, inf.Coords)
			if stop > d.MinLen() {
				continue
			}

			w, err = appendZarr(path, d.Sites(), d.Stats(), d.Chains(), ZarrOptions{}, stop, "")
			require.NoError(t, err)
			inf, err = Open(path)
			require.NoError(t, err)
			want, err := d.Slice(0, stop)
			require.NoError(t, err)
			identical(t, want, inf.Posterior)
			streamZarr(t, w, d, d.MaxLen())
			require.NoError(t, w.Close())
			inf, err = Open(path)
			require.NoError(t, err)
			identical(t, d, inf.Posterior)
		}
	}
}

func TestZarrAppendToWritten(t *testing.T) {
	noSync(t)
	sites := placedSites(t, "mu", []int{}, "w", []int{3})
	for _, whole := range []bool{true, false} {
		d := filled(t, sites, nutsStats, whole, 9, 9)
		half, err := d.Slice(0, 5)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "run.zarr")
		require.NoError(t, WriteZarr(path, &Inference{Posterior: half}, ZarrOptions{Chunk: 3, Zlib: 1}))
		w, err := appendZarr(path, sites, nutsStats, 2, ZarrOptions{}, -1, "")
		require.NoError(t, err)
		streamZarr(t, w, d, 9)
		require.NoError(t, w.Close())

		warmup := filled(t, sites, nutsStats, true, 4, 4)
		w, err = createZarr(path, sites, nutsStats, 2, ZarrOptions{Warmup: true})
		require.NoError(t, err)
		streamZarr(t, w, warmup, 4)
		require.NoError(t, w.Close())
		inf, err := Open(path)
		require.NoError(t, err)
		identical(t, d, inf.Posterior)
		identical(t, warmup, inf.Warmup)
	}
}

func TestZarrSnapshot(t *testing.T) {
	d := filled(t, placedSites(t, "mu", []int{}), nutsStats, true, 9, 9)
	path := filepath.Join(t.TempDir(), "run.zarr")
	w, err := createZarr(path, d.Sites(), d.Stats(), 2, ZarrOptions{Chunk: 2, FlushEvery: 7})
	require.NoError(t, err)
	streamZarr(t, w, d, 6)
	inf, err := Open(path)
	require.NoError(t, err)
	assert.Equal(t, 0, inf.Posterior.Total())
	require.NoError(t, w.Flush())
	streamZarr(t, w, d, 9)
	inf, err = Open(path)
	require.NoError(t, err)
	want, err := d.Slice(0, 6)
	require.NoError(t, err)
	identical(t, want, inf.Posterior)
}

func TestZarrWriterErrors(t *testing.T) {
	sites := placedSites(t, "mu", []int{})
	path := filepath.Join(t.TempDir(), "run.zarr")
	_, err := createZarr(path, nil, nil, 1, ZarrOptions{})
	assert.ErrorContains(t, err, "a draw has neither sites nor statistics")
	_, err = createZarr(path, sites, nil, 0, ZarrOptions{})
	assert.ErrorContains(t, err, "0 chains; there must be at least 1")
	_, err = createZarr(path, sites, nil, 1, ZarrOptions{Zlib: 10})
	assert.ErrorContains(t, err, "Zlib is 10, want a level from 1 to 9")
	_, err = createZarr(path, sites, nil, 1, ZarrOptions{Chunk: -1})
	assert.ErrorIs(t, err, ErrRange)
	_, err = appendZarr(path, sites, nil, 1, ZarrOptions{}, -1, "")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	w, err := createZarr(path, sites, nutsStats, 2, ZarrOptions{})
	require.NoError(t, err)
	assert.ErrorContains(t, w.Append(2, []float64{1}, make([]float64, 7)), "chain 2, want 0 to 1")
	assert.ErrorContains(t, w.Append(0, nil, make([]float64, 7)), "x has 0 numbers, want 1")
	assert.ErrorContains(t, w.Append(0, []float64{1}, nil), "stats has 0 numbers, want 7")
	assert.ErrorContains(t, w.Append(0, []float64{1}, []float64{1, 1, 1, 1, 1, 2, 1}), "divergent is 2, want 0 or 1")
	assert.ErrorContains(t, w.Append(0, []float64{1}, []float64{1, 1, 1, .5, 1, 1, 1}),
		"tree_depth is 0.5, want a whole number")
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	assert.Equal(t, errClosed, w.Append(0, []float64{1}, make([]float64, 7)))
	_, err = createZarr(path, sites, nutsStats, 2, ZarrOptions{})
	assert.ErrorIs(t, err, ErrExists)
	assert.ErrorIs(t, WriteZarr(path, &Inference{}, ZarrOptions{}), ErrExists)
	_, err = appendZarr(path, sites, nutsStats, 3, ZarrOptions{}, -1, "")
	assert.ErrorIs(t, err, ErrLayout)
	_, err = appendZarr(path, sites, nutsStats, 2, ZarrOptions{}, 1, "")
	assert.ErrorContains(t, err, "keep is 1, but chain 0 has 0 draws")
	_, err = appendZarr("testdata/arviz.zarr", sites, nutsStats, 2, ZarrOptions{}, -1, "")
	assert.ErrorContains(t, err, "its group posterior was not written by Kelvin")
	w, err = appendZarr(path, sites, nutsStats, 2, ZarrOptions{}, -1, "")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(path))
	assert.ErrorContains(t, w.Close(), "was removed while it was written")
	w, err = createZarr(path, sites, nutsStats, 2, ZarrOptions{})
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, w.Append(0, []float64{1}, make([]float64, 7)))
	assert.ErrorContains(t, w.Close(), "was removed while it was written")
}
