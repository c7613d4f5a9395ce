package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A list, a pattern and a directory name the same chains, in the order of their numbers.
func TestOpenCSV(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with [brackets]*")
	require.NoError(t, os.Mkdir(dir, 0o755))
	d := filled(t, placedSites(t, "mu", []int{}), nutsStats, true, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	paths, err := WriteCSV(filepath.Join(dir, "run"), &Inference{Posterior: d}, CSVOptions{})
	require.NoError(t, err)
	require.Len(t, paths, 11)
	t.Chdir(dir)
	for _, names := range [][]string{paths, {dir}, {"run_*.csv"}, {"run_?.csv", "run_1?.csv"}} {
		inf, err := Open(names...)
		require.NoError(t, err)
		identical(t, d, inf.Posterior)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	for _, c := range []struct {
		path string
		kind error
		want string
	}{
		{filepath.Join(dir, "no.csv"), fs.ErrNotExist, "store: open: stat"},
		{filepath.Join(dir, "no*.csv"), fs.ErrNotExist, "no file fits"},
		{filepath.Join(dir, "[x.csv"), ErrRange, "syntax error in pattern"},
		{dir, ErrFormat, "neither a Zarr store nor a directory with CSV files"},
		{file("empty", ""), ErrFormat, "the file is empty"},
		{file("a.nc", "\x89HDF\r\n"), ErrUnsupported, "a NetCDF file: in Python, arviz.from_netcdf"},
		{file("a.bin", "ab\x00"), ErrFormat, "neither CSV nor JSON: it has a zero byte"},
		{file("words.txt", "just some words\nand more\n"), ErrFormat, `"and more" is not a number`},
	} {
		_, err := Open(c.path)
		assert.ErrorIs(t, err, c.kind, c.path)
		assert.ErrorContains(t, err, c.want)
	}
	_, err := Open()
	assert.ErrorIs(t, err, ErrRange)
	_, err = Open("testdata/arviz.json", "testdata/arviz.json")
	assert.ErrorContains(t, err, "a json holds all chains, so 2 of them are several runs")
}

func TestNaturalOrder(t *testing.T) {
	names := []string{"a10", "a9", "a", "b1", "a09", "a1x2", "a1x10", "a1"}
	slices.SortFunc(names, naturalOrder)
	assert.Equal(t, []string{"a", "a1", "a1x2", "a1x10"}, names[:4])
	assert.Equal(t, []string{"a10", "b1"}, names[6:])
}
