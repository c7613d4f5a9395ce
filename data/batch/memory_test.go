package batch_test

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/data/large"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/torch"
)

// sparse is a file of n rows of zeros that takes no room on the disk.
func sparse(t testing.TB, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.npy")
	header := "{'descr': '<f8', 'fortran_order': False, 'shape': (" + strconv.FormatInt(int64(n), 10) + ", 4), }"
	content := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	content = append(content, header...)
	require.NoError(t, os.WriteFile(path, content, 0o644))
	require.NoError(t, os.Truncate(path, int64(len(content)+n*4*8)))
	return path
}

// Of 10^8 rows, 3.2 GB, thousands of batches are read within 8 MB: the order alone would take 800 MB, and so would a
// map of the file as its pages are touched.
func TestMemory(t *testing.T) {
	table, err := large.Open(map[string]string{"x": sparse(t, 100_000_000)})
	require.NoError(t, err)
	defer func() { _ = table.Close() }()
	l := load(t, table, batch.LoaderOptions{Size: 32, Seed: 1})
	read := func(batches int) {
		for range batches {
			require.NoError(t, torch.Do(func(*torch.Scope) error {
				b, err := l.Next()
				require.NoError(t, err)
				require.Equal(t, []int{32, 4}, b["x"].Shape())
				return nil
			}))
		}
	}
	read(200) // what threads and the collector take once
	debug.FreeOSMemory()
	before := testkit.Resident(t)
	read(3000)
	require.NoError(t, l.Seek(infer.Position{Epoch: 1 << 40, Index: 3_000_000})) // as quick as any other
	read(1000)
	testkit.Grown(t, before, 8<<20)
}
