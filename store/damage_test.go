package store

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A flipped bit anywhere in stored draws is an error, or changes no number: 150 flips for each format.
func TestFlippedBits(t *testing.T) {
	noSync(t)
	d := filled(t, placedSites(t, "mu", []int{}, "w", []int{3}), nutsStats, true, 40, 40)
	for format, write := range formats {
		if format == "zarr plain" {
			continue // its chunks have no checksum
		}
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			path, err := write(dir, &Inference{Posterior: d})
			require.NoError(t, err)
			var files []string
			var sizes []int
			require.NoError(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					info, e := os.Stat(name)
					require.NoError(t, e)
					files, sizes = append(files, name), append(sizes, int(info.Size()))
				}
				return err
			}))
			rng := rand.New(rand.NewPCG(3, 4))
			refused := 0
			for range 150 {
				k := rng.IntN(len(files))
				if sizes[k] == 0 {
					continue
				}
				text, err := os.ReadFile(files[k])
				require.NoError(t, err)
				bad := bytes.Clone(text)
				bad[rng.Int64N(int64(sizes[k]))] ^= 1 << rng.IntN(8)
				require.NoError(t, os.WriteFile(files[k], bad, 0o600))
				if inf, err := Open(path); err != nil {
					refused++
				} else {
					identical(t, d, inf.Posterior)
				}
				require.NoError(t, os.WriteFile(files[k], text, 0o600))
			}
			t.Logf("seen: %s, 150 flips: %d refused, others changed no number", format, refused)
			require.Greater(t, refused, 20)
		})
	}
}

// An edited number, or a line of zeros, in the draws that a resumed run would keep is found before it goes on.
func TestResumeFindsChangedDraws(t *testing.T) {
	noSync(t)
	d := filled(t, placedSites(t, "mu", []int{}, "w", []int{2}), []string{"lp"}, true, 20)
	half := func(from, to int) *draws.Draws {
		part, err := d.Slice(from, to)
		require.NoError(t, err)
		return part
	}
	for name, change := range map[string]func(string) string{
		"nothing":       func(s string) string { return s },
		"edited number": func(s string) string { return strings.Replace(s, "0.3333333333333333", "0.3333333333333334", 1) },
		"zeros": func(s string) string {
			at := strings.Index(s, "\nlp__") + 40
			end := at + strings.Index(s[at:], "\n")
			return s[:at] + strings.Repeat("\x00", end-at) + s[end:]
		},
		"beyond what is kept": func(s string) string { return s[:len(s)-5] },
	} {
		for _, clean := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, closed %t", name, clean), func(t *testing.T) {
				base := filepath.Join(t.TempDir(), "run")
				s := &CSVSink{Base: base}
				require.NoError(t, s.Save("a run", []int{0}, half(0, 10)))
				require.NoError(t, s.Save("a run", []int{10}, half(10, 15)))
				if clean {
					require.NoError(t, s.Close())
					require.NoFileExists(t, base+".digests")
				}
				text, err := os.ReadFile(base + "_1.csv")
				require.NoError(t, err)
				if !clean { // as a kill in the middle of a block leaves it
					text = text[:strings.LastIndex(string(text), "# kelvin_digest")]
					text = append(text, "1,2,"...)
				}
				require.NoError(t, os.WriteFile(base+"_1.csv", []byte(change(string(text))), 0o600))

				again := &CSVSink{Base: base}
				err = again.Save("a run", []int{10}, half(10, 20))
				if name == "nothing" || name == "beyond what is kept" && !clean {
					require.NoError(t, err)
					require.NoError(t, again.Close())
					inf, err := Open(base + "_1.csv")
					require.NoError(t, err)
					require.Empty(t, inf.Notes)
					identical(t, d, inf.Posterior)
					return
				}
				if name == "beyond what is kept" {
					return // a cut digest is no line
				}
				require.ErrorIs(t, err, ErrFormat)
				left, e := os.ReadFile(base + "_1.csv")
				require.NoError(t, e)
				require.Equal(t, change(string(text)), string(left), "a refusal changes nothing")
			})
		}
	}
}

// A few bytes can ask for any amount of memory; readers refuse before they take it.
func TestFilesThatAskForTooMuch(t *testing.T) {
	array := func(shape, chunks, dtype string) string {
		dim := "y"
		if strings.Contains(dtype, "U") {
			dim = "x" // labels
		}
		return fmt.Sprintf(`{"metadata": {".zgroup": {"zarr_format": 2}, "posterior/.zgroup": {"zarr_format": 2},
			"posterior/x/.zarray": {"zarr_format": 2, "shape": %s, "chunks": %s, "dtype": %q, "order": "C", "filters": null,
			"compressor": {"id": "zlib", "level": 1}, "fill_value": null},
			"posterior/x/.zattrs": {"_ARRAY_DIMENSIONS": [%q]}}}`, shape, chunks, dtype, dim)
	}
	layout := func(sites, lengths string) string {
		return fmt.Sprintf(`{"posterior": {"x": [[]]}, "posterior_attrs": {"kelvin_layout":
			"{\"sites\":[{\"name\":\"x\",\"shape\":%s}],\"lengths\":%s}"}}`, sites, lengths)
	}
	zeros := make([]byte, 2<<20)
	most := uint64(0)
	for name, c := range map[string]struct {
		meta  string
		chunk []byte
		json  string
	}{
		"no chunk":                 {meta: array("[65536, 65536]", "[1, 1024]", "<f8")},
		"chains without draws":     {meta: array("[2147483648, 0]", "[1, 1]", "<f8")},
		"draws without elements":   {meta: array("[1, 2147483647, 0]", "[1, 1, 1]", "<f8")},
		"labels":                   {meta: array("[2147483648]", "[1000]", "<U1")},
		"a chunk that inflates":    {meta: array("[1, 268435456]", "[1, 268435456]", "<f8"), chunk: zeros},
		"a chunk of wide text":     {meta: array("[1]", "[4000000]", "<U1000000"), chunk: zeros},
		"elements without draws":   {json: layout("[1000000000000]", "[0]")},
		"elements without draws 2": {json: layout("[200000000]", "[0]")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x.json")
			if c.meta != "" {
				path = dir
				require.NoError(t, os.WriteFile(filepath.Join(dir, ".zmetadata"), []byte(c.meta), 0o600))
				require.NoError(t, os.MkdirAll(filepath.Join(dir, "posterior", "x"), 0o700))
				if c.chunk != nil {
					for _, name := range []string{"0", "0.0"} {
						require.NoError(t, os.WriteFile(filepath.Join(dir, "posterior", "x", name), c.chunk, 0o600))
					}
				}
			} else {
				require.NoError(t, os.WriteFile(path, []byte(c.json), 0o600))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Open(path)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, ErrLimit)
			taken := after.TotalAlloc - before.TotalAlloc
			assert.Less(t, taken, uint64(128<<20), "bytes")
			most = max(most, taken)
		})
	}
	t.Logf("seen: 8 files that ask for GB are refused, at most %d MB are taken", most>>20)
}

// The limits are the caller's to set.
func TestLimits(t *testing.T) {
	noSync(t)
	d := filled(t, placedSites(t, "mu", []int{}, "w", []int{3}), nutsStats, true, 40, 40)
	for format, write := range formats {
		t.Run(format, func(t *testing.T) {
			path, err := write(t.TempDir(), &Inference{Posterior: d})
			require.NoError(t, err)
			_, err = Limits{Elements: 100}.Open(path)
			require.ErrorIs(t, err, ErrLimit)
			require.ErrorContains(t, err, "the limit Elements is 100")
			if format == "csv" || format == "json" {
				_, err = Limits{Names: 1}.Open(path)
				require.ErrorIs(t, err, ErrLimit)
				require.ErrorContains(t, err, "the limit Names is 1")
			}
			_, err = Limits{Time: 1}.Open(path) // a nanosecond
			require.ErrorIs(t, err, ErrLimit)
			require.ErrorContains(t, err, "reading takes too long; the limit Time is 1ns here")
			_, err = Limits{Elements: 10000, Names: 200, Inflation: 10, Time: time.Hour}.Open(path)
			require.NoError(t, err)
		})
	}
}

// Many columns whose names collide once made fit take time in proportion to their number, not its square. The count of
// names that are looked up is bounded, not the time.
func TestManyCollidingNames(t *testing.T) {
	const n = 30000
	names := make([]string, n)
	for i := range names {
		names[i] = "a" + strings.Repeat(".", 1+i%7) + "b"
	}
	calls := 0
	out := identifiers(names, func(s string) string { calls++; return wordName(s) })
	require.LessOrEqual(t, calls, 2*n)
	seen := map[string]bool{}
	for _, name := range out {
		require.False(t, seen[name])
		seen[name] = true
	}
	header := make([]string, n)
	for i := range header {
		header[i] = fmt.Sprintf("a-%d__", i)
	}
	var text strings.Builder
	text.WriteString(strings.Join(header, ",") + "\n" + strings.Repeat("1,", n-1) + "1\n")
	inf, err := Read(strings.NewReader(text.String()))
	require.NoError(t, err)
	require.Len(t, inf.Posterior.Stats(), n)
	_, err = WriteCSV(filepath.Join(t.TempDir(), "run"), inf, CSVOptions{})
	require.NoError(t, err)
}
