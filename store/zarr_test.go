package store

import (
	"encoding/binary"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// The fixture has zarr-python's default compressor and labels, with and without consolidated metadata.
func TestReadArvizZarr(t *testing.T) {
	inf, err := Open("testdata/arviz.zarr")
	require.NoError(t, err)
	checkArviz(t, inf)

	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/arviz.zarr")))
	require.NoError(t, os.Remove(filepath.Join(dir, zMeta)))
	inf, err = Open(dir)
	require.NoError(t, err)
	checkArviz(t, inf)
}

// numcodecs packed the numbers 0, 0, 0, 1, 1, 1, ..., 699.
func TestBlosc(t *testing.T) {
	const n = 2100
	for _, name := range []string{"lz4_1", "lz4_0", "lz4hc_1", "zlib_1", "zstd_1"} {
		packed, err := os.ReadFile("testdata/blosc/" + name + ".bin")
		require.NoError(t, err)
		raw, err := unblosc(packed, 8*n)
		if name == "zstd_1" {
			assert.ErrorIs(t, err, ErrUnsupported)
			assert.ErrorContains(t, err, "blosc with zstd; Kelvin reads blosc with lz4 (or lz4hc) and zlib")
			continue
		}
		require.NoError(t, err, name)
		for i := range n {
			require.Equal(t, float64(i/3), math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])), name)
		}
		for cut := 0; cut < len(packed); cut += 3 { // damage is an error, whatever it is
			_, err := unblosc(packed[:cut], 8*n)
			require.ErrorIs(t, err, ErrFormat)
		}
		for i := range packed {
			bad := append([]byte{}, packed...)
			bad[i] ^= 0xff
			_, _ = unblosc(bad, 8*n)
		}
	}
}

// streamZarr appends the draws from of each chain to the writer, in turn.
func streamZarr(t *testing.T, w *ZarrWriter, d *draws.Draws, upTo int) {
	t.Helper()
	stats := make([]float64, len(d.Stats()))
	for i := 0; i < upTo; i++ {
		for c := range d.Chains() {
			if i < w.lengths[c] || i >= d.Len(c) {
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

// Appending after reopening anywhere gives what writing at once gives, with equal and with different lengths.
func TestZarrAppend(t *testing.T) {
	noSync(t)
	sites := sitesOf(t, "mu", []int64{}, "w", []int64{3}, "empty", []int64{0})
	opt := ZarrOptions{Chunk: 4, FlushEvery: 3, Dims: map[string][]string{"w": {"school"}}, Coords: map[string][]any{"school": {"A", "B", "C"}}}
	for _, d := range []*draws.Draws{filled(t, sites, nuts, true, 11, 11), filled(t, sites, nuts, true, 13, 2, 8), filled(t, sites, nil, true, 5, 0)} {
		for _, stop := range []int{0, 2, 4, 5} { // within chunks and at their ends
			path := filepath.Join(t.TempDir(), "run.zarr")
			w, err := CreateZarr(path, d.Sites(), d.Stats(), d.Chains(), opt)
			require.NoError(t, err)
			streamZarr(t, w, d, stop)
			require.NoError(t, w.Close())

			w, err = AppendZarr(path, d.Sites(), d.Stats(), d.Chains(), ZarrOptions{FlushEvery: 2}, -1)
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

			w, err = AppendZarr(path, d.Sites(), d.Stats(), d.Chains(), ZarrOptions{}, stop)
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

// A store that WriteZarr wrote can be gone on with, and the warm-up can be added to it.
func TestZarrAppendToWritten(t *testing.T) {
	noSync(t)
	sites := sitesOf(t, "mu", []int64{}, "w", []int64{3})
	for _, whole := range []bool{true, false} {
		d := filled(t, sites, nuts, whole, 9, 9)
		half, err := d.Slice(0, 5)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "run.zarr")
		require.NoError(t, WriteZarr(path, &Inference{Posterior: half}, ZarrOptions{Chunk: 3, Zlib: 1}))
		w, err := AppendZarr(path, sites, nuts, 2, ZarrOptions{}, -1)
		require.NoError(t, err)
		streamZarr(t, w, d, 9)
		require.NoError(t, w.Close())

		warmup := filled(t, sites, nuts, true, 4, 4)
		w, err = CreateZarr(path, sites, nuts, 2, ZarrOptions{Warmup: true})
		require.NoError(t, err)
		streamZarr(t, w, warmup, 4)
		require.NoError(t, w.Close())
		inf, err := Open(path)
		require.NoError(t, err)
		identical(t, d, inf.Posterior)
		identical(t, warmup, inf.Warmup)
	}
}

// A reader sees the last flush: what has been appended since is not there, however far chunks have been written.
func TestZarrSnapshot(t *testing.T) {
	d := filled(t, sitesOf(t, "mu", []int64{}), nuts, true, 9, 9)
	path := filepath.Join(t.TempDir(), "run.zarr")
	w, err := CreateZarr(path, d.Sites(), d.Stats(), 2, ZarrOptions{Chunk: 2, FlushEvery: 7})
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
	sites := sitesOf(t, "mu", []int64{})
	path := filepath.Join(t.TempDir(), "run.zarr")
	_, err := CreateZarr(path, nil, nil, 1, ZarrOptions{})
	assert.ErrorContains(t, err, "a draw has neither sites nor statistics")
	_, err = CreateZarr(path, sites, nil, 0, ZarrOptions{})
	assert.ErrorContains(t, err, "0 chains; there must be at least 1")
	_, err = CreateZarr(path, sites, nil, 1, ZarrOptions{Zlib: 10})
	assert.ErrorContains(t, err, "Zlib is 10, want a level from 1 to 9")
	_, err = CreateZarr(path, sites, nil, 1, ZarrOptions{Chunk: -1})
	assert.ErrorIs(t, err, ErrRange)
	_, err = AppendZarr(path, sites, nil, 1, ZarrOptions{}, -1)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	w, err := CreateZarr(path, sites, nuts, 2, ZarrOptions{})
	require.NoError(t, err)
	assert.ErrorContains(t, w.Append(2, []float64{1}, make([]float64, 7)), "chain 2, want 0 to 1")
	assert.ErrorContains(t, w.Append(0, nil, make([]float64, 7)), "x has 0 numbers, want 1")
	assert.ErrorContains(t, w.Append(0, []float64{1}, nil), "stats has 0 numbers, want 7")
	assert.ErrorContains(t, w.Append(0, []float64{1}, []float64{1, 1, 1, 1, 1, 2, 1}), "divergent is 2, want 0 or 1")
	assert.ErrorContains(t, w.Append(0, []float64{1}, []float64{1, 1, 1, .5, 1, 1, 1}), "tree_depth is 0.5, want a whole number")
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	assert.Equal(t, ErrClosed, w.Append(0, []float64{1}, make([]float64, 7)))
	_, err = CreateZarr(path, sites, nuts, 2, ZarrOptions{})
	assert.ErrorIs(t, err, ErrExists)
	assert.ErrorIs(t, WriteZarr(path, &Inference{}, ZarrOptions{}), ErrExists)
	_, err = AppendZarr(path, sites, nuts, 3, ZarrOptions{}, -1)
	assert.ErrorIs(t, err, ErrLayout)
	_, err = AppendZarr(path, sites, nuts, 2, ZarrOptions{}, 1)
	assert.ErrorContains(t, err, "keep is 1, but chain 0 has 0 draws")
	_, err = AppendZarr("testdata/arviz.zarr", sites, nuts, 2, ZarrOptions{}, -1)
	assert.ErrorContains(t, err, "its group posterior was not written by Kelvin")
}

// Damage and what Kelvin does not read are errors that say which array it is and what is wrong.
func TestReadZarrErrors(t *testing.T) {
	noSync(t)
	for _, c := range []struct {
		from, to, want string
		kind           error
	}{
		{`"compressor": null`, `"compressor": {"id": "zstd", "level": 1}`, `posterior/mu: compressor "zstd"; Kelvin reads zlib, gzip, blosc and none`, ErrUnsupported},
		{`"filters": null`, `"filters": [{"id": "delta"}]`, "filters [map[id:delta]]; Kelvin reads none", ErrUnsupported},
		{`"order": "C"`, `"order": "F"`, "order F; Kelvin reads C", ErrUnsupported},
		{`"<f8"`, `"<c16"`, "numbers of type <c16", ErrUnsupported},
		{`"<f8"`, `"<f4"`, "the chunk has", ErrFormat},
		{`"chunks": [1,3]`, `"chunks": [1,0]`, "want lists of one length", ErrFormat},
		{`"chunks": [1,3]`, `"chunks": [1]`, "want lists of one length", ErrFormat},
		{`"shape": [2,4]`, `"shape": [2,400000000000]`, "shape [2 400000000000] is too large", ErrUnsupported},
		{`"shape": [2,4]`, `"shape": [2,-4]`, "want lists of one length", ErrFormat},
		{`{"chunks"`, `"chunks"`, "want an object", ErrFormat},
	} {
		path := filepath.Join(t.TempDir(), "run.zarr")
		require.NoError(t, WriteZarr(path, &Inference{Posterior: filled(t, sitesOf(t, "mu", []int64{}), nil, true, 4, 4)}, ZarrOptions{Chunk: 3}))
		require.NoError(t, os.Remove(filepath.Join(path, zMeta)))
		name := filepath.Join(path, "posterior", "mu", zArray)
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Contains(t, string(text), c.from)
		require.NoError(t, os.WriteFile(name, []byte(strings.Replace(string(text), c.from, c.to, 1)), 0o644))
		_, err = ReadZarr(path)
		assert.ErrorIs(t, err, c.kind)
		assert.ErrorContains(t, err, c.want)
	}
	_, err := ReadZarr(filepath.Join(t.TempDir(), "no"))
	assert.ErrorIs(t, err, fs.ErrNotExist)
	dir := t.TempDir()
	_, err = ReadZarr(dir)
	assert.ErrorContains(t, err, "no Zarr store: it has no .zgroup")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "zarr.json"), []byte("{}"), 0o644))
	_, err = Open(dir)
	assert.ErrorContains(t, err, "Zarr version 3; Kelvin reads version 2")
	require.NoError(t, os.WriteFile(filepath.Join(dir, zMeta), []byte(`{"metadata": {".zgroup": {"zarr_format": 2}, "../x/.zarray": {}}}`), 0o644))
	_, err = Open(dir)
	assert.ErrorContains(t, err, `a wrong entry "../x/.zarray"`)
}

// Types and chunks that others write: big-endian, unsigned, float32, gzip, chunks over all dimensions, missing chunks.
func TestZarrTypes(t *testing.T) {
	for dtype, raw := range map[string][]byte{
		">f8": {0x3f, 0xf8, 0, 0, 0, 0, 0, 0}, "<f4": {0, 0, 0xc0, 0x3f}, "|i1": {0xff}, "|u1": {0xff}, "<i2": {0xfe, 0xff}, ">u4": {0, 0, 1, 0}, "|b1": {1},
	} {
		a := &zarrArray{dtype: dtype}
		want := map[string]float64{">f8": 1.5, "<f4": 1.5, "|i1": -1, "|u1": 255, "<i2": -2, ">u4": 256, "|b1": 1}[dtype]
		assert.Equal(t, []float64{want}, a.decode(raw), dtype)
	}
	a := &zarrArray{shape: []int64{3, 3}, chunks: []int64{2, 2}}
	to := make([]float64, 9)
	for c, index := range [][]int64{{0, 0}, {0, 1}, {1, 0}, {1, 1}} {
		a.place(to, []float64{1, 2, 3, 4}, index)
		_ = c
	}
	assert.Equal(t, []float64{1, 2, 1, 3, 4, 3, 1, 2, 1}, to)
}
