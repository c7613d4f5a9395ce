package zarr_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/store"
	"github.com/kelvin-ppl/kelvin/store/internal/content"
	"github.com/kelvin-ppl/kelvin/store/internal/storetest"
	"github.com/kelvin-ppl/kelvin/store/internal/zarr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func streamZarr(t *testing.T, w *zarr.Writer, d *draws.Draws, upTo int) {
	t.Helper()
	stats := make([]float64, len(d.Stats()))
	for i := 0; i < upTo; i++ {
		for c := range d.Chains() {
			if i < w.Lengths()[c] || i >= d.Len(c) {
				continue
			}
			for k, name := range d.Stats() {
				trace, err := d.Stat(name, c)
				require.NoError(t, err)
				stats[k] = trace[i]
			}
			require.NoError(t, w.Append(c, d.Row(c, i), stats))
		}
	}
}

func TestZarrAppend(t *testing.T) {
	storetest.NoSync(t)
	sites := storetest.Sites(t, "mu", []int64{}, "w", []int64{3}, "empty", []int64{0})
	opt := zarr.Options{Chunk: 4, FlushEvery: 3, Dims: map[string][]string{"w": {"school"}},
		Coords: map[string][]any{"school": {"A", "B", "C"}}}
	for _, d := range []*draws.Draws{storetest.Filled(t, sites, storetest.NUTS, true, 11, 11),
		storetest.Filled(t, sites, storetest.NUTS, true, 13, 2, 8), storetest.Filled(t, sites, nil, true, 5, 0)} {
		for _, stop := range []int{0, 2, 4, 5} { // within chunks and at their ends
			path := filepath.Join(t.TempDir(), "run.zarr")
			w, err := zarr.Create(path, d.Sites(), d.Stats(), d.Chains(), opt)
			require.NoError(t, err)
			streamZarr(t, w, d, stop)
			require.NoError(t, w.Close())

			w, err = zarr.Append(path, d.Sites(), d.Stats(), d.Chains(), zarr.Options{FlushEvery: 2}, -1, "")
			require.NoError(t, err)
			streamZarr(t, w, d, d.MaxLen())
			require.NoError(t, w.Close())
			inf, err := store.Open(path)
			require.NoError(t, err)
			storetest.Identical(t, d, inf.Posterior)
			assert.Equal(t, map[string][]any{"school": {"A", "B", "C"}}, inf.Coords)
			if stop > d.MinLen() {
				continue
			}

			w, err = zarr.Append(path, d.Sites(), d.Stats(), d.Chains(), zarr.Options{}, stop, "")
			require.NoError(t, err)
			inf, err = store.Open(path)
			require.NoError(t, err)
			want, err := d.Slice(0, stop)
			require.NoError(t, err)
			storetest.Identical(t, want, inf.Posterior)
			streamZarr(t, w, d, d.MaxLen())
			require.NoError(t, w.Close())
			inf, err = store.Open(path)
			require.NoError(t, err)
			storetest.Identical(t, d, inf.Posterior)
		}
	}
}

func TestZarrAppendToWritten(t *testing.T) {
	storetest.NoSync(t)
	sites := storetest.Sites(t, "mu", []int64{}, "w", []int64{3})
	for _, whole := range []bool{true, false} {
		d := storetest.Filled(t, sites, storetest.NUTS, whole, 9, 9)
		half, err := d.Slice(0, 5)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "run.zarr")
		require.NoError(t, store.WriteZarr(path, &store.Inference{Posterior: half}, store.ZarrOptions{Chunk: 3, Zlib: 1}))
		w, err := zarr.Append(path, sites, storetest.NUTS, 2, zarr.Options{}, -1, "")
		require.NoError(t, err)
		streamZarr(t, w, d, 9)
		require.NoError(t, w.Close())

		warmup := storetest.Filled(t, sites, storetest.NUTS, true, 4, 4)
		w, err = zarr.Create(path, sites, storetest.NUTS, 2, zarr.Options{Warmup: true})
		require.NoError(t, err)
		streamZarr(t, w, warmup, 4)
		require.NoError(t, w.Close())
		inf, err := store.Open(path)
		require.NoError(t, err)
		storetest.Identical(t, d, inf.Posterior)
		storetest.Identical(t, warmup, inf.Warmup)
	}
}

func TestZarrSnapshot(t *testing.T) {
	d := storetest.Filled(t, storetest.Sites(t, "mu", []int64{}), storetest.NUTS, true, 9, 9)
	path := filepath.Join(t.TempDir(), "run.zarr")
	w, err := zarr.Create(path, d.Sites(), d.Stats(), 2, zarr.Options{Chunk: 2, FlushEvery: 7})
	require.NoError(t, err)
	streamZarr(t, w, d, 6)
	inf, err := store.Open(path)
	require.NoError(t, err)
	assert.Equal(t, 0, inf.Posterior.Total())
	require.NoError(t, w.Flush())
	streamZarr(t, w, d, 9)
	inf, err = store.Open(path)
	require.NoError(t, err)
	want, err := d.Slice(0, 6)
	require.NoError(t, err)
	storetest.Identical(t, want, inf.Posterior)
}

func TestZarrWriterErrors(t *testing.T) {
	sites := storetest.Sites(t, "mu", []int64{})
	path := filepath.Join(t.TempDir(), "run.zarr")
	_, err := zarr.Create(path, nil, nil, 1, zarr.Options{})
	assert.ErrorContains(t, err, "a draw has neither sites nor statistics")
	_, err = zarr.Create(path, sites, nil, 0, zarr.Options{})
	assert.ErrorContains(t, err, "0 chains; there must be at least 1")
	_, err = zarr.Create(path, sites, nil, 1, zarr.Options{Zlib: 10})
	assert.ErrorContains(t, err, "Zlib is 10, want a level from 1 to 9")
	_, err = zarr.Create(path, sites, nil, 1, zarr.Options{Chunk: -1})
	assert.ErrorIs(t, err, store.ErrRange)
	_, err = zarr.Append(path, sites, nil, 1, zarr.Options{}, -1, "")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	w, err := zarr.Create(path, sites, storetest.NUTS, 2, zarr.Options{})
	require.NoError(t, err)
	assert.ErrorContains(t, w.Append(2, []float64{1}, make([]float64, 7)), "chain 2, want 0 to 1")
	assert.ErrorContains(t, w.Append(0, nil, make([]float64, 7)), "x has 0 numbers, want 1")
	assert.ErrorContains(t, w.Append(0, []float64{1}, nil), "stats has 0 numbers, want 7")
	assert.ErrorContains(t, w.Append(0, []float64{1}, []float64{1, 1, 1, 1, 1, 2, 1}), "divergent is 2, want 0 or 1")
	assert.ErrorContains(t, w.Append(0, []float64{1}, []float64{1, 1, 1, .5, 1, 1, 1}),
		"tree_depth is 0.5, want a whole number")
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	assert.Equal(t, content.ErrClosed, w.Append(0, []float64{1}, make([]float64, 7)))
	_, err = zarr.Create(path, sites, storetest.NUTS, 2, zarr.Options{})
	assert.ErrorIs(t, err, store.ErrExists)
	assert.ErrorIs(t, store.WriteZarr(path, &store.Inference{}, store.ZarrOptions{}), store.ErrExists)
	_, err = zarr.Append(path, sites, storetest.NUTS, 3, zarr.Options{}, -1, "")
	assert.ErrorIs(t, err, store.ErrLayout)
	_, err = zarr.Append(path, sites, storetest.NUTS, 2, zarr.Options{}, 1, "")
	assert.ErrorContains(t, err, "keep is 1, but chain 0 has 0 draws")
	_, err = zarr.Append("../../testdata/arviz.zarr", sites, storetest.NUTS, 2, zarr.Options{}, -1, "")
	assert.ErrorContains(t, err, "its group posterior was not written by Kelvin")
	w, err = zarr.Append(path, sites, storetest.NUTS, 2, zarr.Options{}, -1, "")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(path))
	assert.ErrorContains(t, w.Close(), "was removed while it was written")
	w, err = zarr.Create(path, sites, storetest.NUTS, 2, zarr.Options{})
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, w.Append(0, []float64{1}, make([]float64, 7)))
	assert.ErrorContains(t, w.Close(), "was removed while it was written")
}
