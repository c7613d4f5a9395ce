package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.LimitMemory()
	os.Exit(m.Run())
}

// The same of the Zarr reader, for any metadata and any bytes of a chunk.
func FuzzReadZarr(f *testing.F) {
	noSync(f)
	const zarray = `{"metadata": {".zgroup": {"zarr_format": 2}, "posterior/.zgroup": {"zarr_format": 2},
"posterior/x/.zarray": {"zarr_format": 2, "shape": [1, 3], "chunks": [1, 3], "dtype": "<f8", "order": "C",
"filters": null, "compressor": COMPRESSOR, "fill_value": "NaN"},
"posterior/x/.zattrs": {"_ARRAY_DIMENSIONS": ["chain", "draw"]}}, "zarr_consolidated_format": 1}`
	for _, compressor := range []string{"null", `{"id": "zlib", "level": 1}`, `{"id": "gzip"}`, `{"id": "zstd"}`,
		`{"id": "lz4"}`, `{"id": "blosc", "cname": "lz4", "shuffle": 1}`} {
		f.Add([]byte(strings.ReplaceAll(zarray, "COMPRESSOR", compressor)), make([]byte, 24))
	}
	f.Add([]byte(strings.ReplaceAll(zarray, "[1, 3]", "[1, 100000]")), []byte("x\x9cc\x00\x00\x00\x01"))
	f.Add([]byte(strings.ReplaceAll(zarray, "[1, 3]", "[3, 0]")), []byte{})
	for _, name := range []string{"lz4_1", "zlib_1", "zstd_1"} {
		packed, err := os.ReadFile("testdata/blosc/" + name + ".bin")
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(strings.ReplaceAll(strings.ReplaceAll(zarray, "COMPRESSOR", `{"id": "blosc"}`), "3", "2100")), packed)
	}
	dir := f.TempDir() // one for all calls: they make, and remove, as few files as they can
	if err := os.MkdirAll(filepath.Join(dir, "posterior", "x"), 0o700); err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "again.zarr")
	f.Fuzz(func(t *testing.T, meta, chunk []byte) {
		write := func(name string, data []byte) {
			if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(".zmetadata", meta)
		write("posterior/x/0.0", chunk)
		inf, err := Open(dir)
		if err != nil || inf.Posterior == nil || inf.Posterior.Dim()+len(inf.Posterior.Stats()) == 0 {
			return
		}
		if d := inf.Posterior; (d.Dim()+len(d.Stats()))*d.Chains()*d.MinLen() > 10000 {
			return // large stores are written again by other tests
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := WriteZarr(path, &Inference{Posterior: inf.Posterior}, ZarrOptions{}); err != nil {
			t.Fatal(err)
		}
		again, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		identical(t, inf.Posterior, again.Posterior)
	})
}
