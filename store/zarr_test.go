package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadArvizZarr(t *testing.T) {
	inf, err := Open("testdata/arviz.zarr")
	require.NoError(t, err)
	checkArviz(t, inf)

	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/arviz.zarr")))
	require.NoError(t, os.Remove(filepath.Join(dir, ".zmetadata")))
	inf, err = Open(dir)
	require.NoError(t, err)
	checkArviz(t, inf)
}

func TestReadZarrErrors(t *testing.T) {
	noSync(t)
	for _, c := range []struct {
		from, to, want string
		kind           error
	}{
		{`"compressor": null`, `"compressor": {"id": "bz2", "level": 1}`,
			`posterior/mu: compressor "bz2"; Kelvin reads zlib, gzip, zstd, lz4, blosc and none`, ErrUnsupported},
		{`"filters": null`, `"filters": [{"id": "delta"}]`, "filters [map[id:delta]]; Kelvin reads none", ErrUnsupported},
		{`"order": "C"`, `"order": "F"`, "order F; Kelvin reads C", ErrUnsupported},
		{`"<f8"`, `"<c16"`, "numbers of type <c16", ErrUnsupported},
		{`"<f8"`, `"<f4"`, "the chunk has", ErrFormat},
		{`"chunks": [1,3]`, `"chunks": [1,0]`, "want lists of one length", ErrFormat},
		{`"chunks": [1,3]`, `"chunks": [1]`, "want lists of one length", ErrFormat},
		{`"shape": [2,4]`, `"shape": [2,400000000000]`, "800000000000 numbers are too many; the limit Elements is", ErrLimit},
		{`"shape": [2,4]`, `"shape": [2,-4]`, "want lists of one length", ErrFormat},
		{`{"chunks"`, `"chunks"`, "want an object", ErrFormat},
	} {
		path := filepath.Join(t.TempDir(), "run.zarr")
		require.NoError(t, WriteZarr(path, &Inference{Posterior: filled(t, placedSites(t, "mu", []int{}), nil,
			true, 4, 4)}, ZarrOptions{Chunk: 3, Zlib: -1}))
		require.NoError(t, os.Remove(filepath.Join(path, ".zmetadata")))
		name := filepath.Join(path, "posterior", "mu", ".zarray")
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Contains(t, string(text), c.from)
		require.NoError(t, os.WriteFile(name, []byte(strings.Replace(string(text), c.from, c.to, 1)), 0o644))
		_, err = Open(path)
		assert.ErrorIs(t, err, c.kind)
		assert.ErrorContains(t, err, c.want)
	}
	_, err := Open(filepath.Join(t.TempDir(), "no"))
	assert.ErrorIs(t, err, fs.ErrNotExist)
	dir := t.TempDir()
	_, err = readZarr(dir, Limits{})
	assert.ErrorContains(t, err, "no Zarr store: it has no .zgroup")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "zarr.json"), []byte("{}"), 0o644))
	_, err = Open(dir)
	assert.ErrorContains(t, err, "Zarr version 3, and Kelvin reads version 2")
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".zmetadata"),
		[]byte(`{"metadata": {".zgroup": {"zarr_format": 2}, "../x/.zarray": {}}}`), 0o644))
	_, err = Open(dir)
	assert.ErrorContains(t, err, `a wrong entry "../x/.zarray"`)
}
