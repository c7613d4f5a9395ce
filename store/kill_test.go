package store

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// killed is set for the child process, which writes until it is killed.
const killed = "KELVIN_STORE_KILLED"

// A writer that is killed leaves a readable file with all draws that were flushed; going on with it gives the whole.
func TestKilled(t *testing.T) {
	if os.Getenv(killed) != "" {
		writeForever(t, os.Getenv(killed))
		return
	}
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), killed+"="+dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	for n := 0; n < 60 && lines.Scan(); n++ { // so many draws are flushed; the kill comes wherever the child is by then
	}
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()

	csv, err := Open(filepath.Join(dir, "run.csv"))
	require.NoError(t, err)
	stored, err := Open(filepath.Join(dir, "run.zarr"))
	require.NoError(t, err)
	for _, inf := range []*Inference{csv, stored} {
		n := inf.Posterior.Len(0)
		assert.GreaterOrEqual(t, n, 60)
		for i := range n {
			require.Equal(t, float64(i), inf.Posterior.Row(0, i)[0])
			require.Equal(t, float64(i)/7, inf.Posterior.Row(0, i)[999])
		}
	}
	d := csv.Posterior
	w, err := appendCSV(filepath.Join(dir, "run.csv"), d.Sites(), d.Stats(), csvHead{}, 60)
	require.NoError(t, err)
	assert.Equal(t, 60, w.Rows())
	require.NoError(t, w.Close())
	z, err := appendZarr(filepath.Join(dir, "run.zarr"), d.Sites(), d.Stats(), 1, ZarrOptions{}, 60, "")
	require.NoError(t, err)
	assert.Equal(t, []int{60}, z.Lengths())
	require.NoError(t, z.Close())
	t.Logf("seen: CSV and Zarr writers killed, %d and %d draws read back", d.Len(0), stored.Posterior.Len(0))
}

func writeForever(t *testing.T, dir string) {
	sites := placedSites(t, "x", []int{1000})
	w, err := createCSV(filepath.Join(dir, "run.csv"), sites, []string{"lp"},
		csvHead{CSVOptions: CSVOptions{FlushEvery: 1}})
	require.NoError(t, err)
	z, err := createZarr(filepath.Join(dir, "run.zarr"), sites, []string{"lp"}, 1, ZarrOptions{Chunk: 25, FlushEvery: 1})
	require.NoError(t, err)
	x := make([]float64, 1000)
	for i := 0; ; i++ {
		for k := range x {
			x[k] = float64(i) / 7
		}
		x[0] = float64(i)
		require.NoError(t, w.Append(x, []float64{-1}))
		require.NoError(t, z.Append(0, x, []float64{-1}))
		if _, err := os.Stdout.WriteString("draw\n"); err != nil {
			return
		}
	}
}
