package store

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/stretchr/testify/require"
)

// sigkills are how many processes are killed; more in the slow suite.
var sigkills = 20

// resuming is set for the child process: the store that it resumes again and again until it is killed.
const resuming = "KELVIN_ZARR_RESUMING"

// resumed is what a run that is never killed has, and the fewest draws that a resumed one keeps.
func resumed(t *testing.T) (d *draws.Draws, least int) {
	return filled(t, placedSites(t, "w", []int{3}), []string{"lp", "divergent"}, true, 23, 23), 3
}

// A process that resumes a store with fewer draws than it has, and goes on, gets SIGKILL at a random moment. What it
// leaves reads back as a prefix, bit by bit, and the next process resumes it.
func TestSIGKILLLeavesAPrefix(t *testing.T) {
	d, least := resumed(t)
	if path := os.Getenv(resuming); path != "" {
		resumeForever(t, path, d, least)
	}
	path := filepath.Join(t.TempDir(), "run.zarr")
	w, err := createZarr(path, d.Sites(), d.Stats(), 2, ZarrOptions{Chunk: 4, FlushEvery: 3, Attrs: map[string]any{}})
	require.NoError(t, err)
	streamZarr(t, w, d, 12)
	require.NoError(t, w.Close())
	rng := rand.New(rand.NewPCG(5, 6))
	lengths := map[int]bool{}
	for range sigkills {
		child := exec.Command(os.Args[0], "-test.run=^TestSIGKILLLeavesAPrefix$")
		child.Env = append(os.Environ(), resuming+"="+path)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		// The kill comes in a round that its work decides, however slow the machine is, and anywhere in that round.
		for work, n := bufio.NewScanner(out), 1+rng.IntN(4); n > 0 && work.Scan(); n-- {
		}
		time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond)
		require.NoError(t, child.Process.Kill())
		var exit *exec.ExitError
		require.ErrorAs(t, child.Wait(), &exit)
		require.False(t, exit.Exited(), "it was ended by a signal")

		inf, err := Open(path)
		require.NoError(t, err)
		require.Empty(t, inf.Notes)
		n := []int{inf.Posterior.Len(0), inf.Posterior.Len(1)}
		require.GreaterOrEqual(t, slices.Min(n), least)
		want, err := prefix(d, n...)
		require.NoError(t, err)
		identical(t, want, inf.Posterior)
		lengths[n[0]] = true
	}
	require.Greater(t, len(lengths), 2, "different prefixes")
	t.Logf("seen: %d SIGKILLs of resuming Zarr, %d different prefixes", sigkills, len(lengths))
}

// resumeForever resumes the store with a random number of draws and goes on to the end, again and again.
func resumeForever(t *testing.T, path string, d *draws.Draws, least int) {
	noSync(t) // a kill loses nothing that the system has
	for {
		inf, err := Open(path)
		require.NoError(t, err)
		keep := least + rand.IntN(min(inf.Posterior.MinLen(), 22)-least+1)
		w, err := appendZarr(path, d.Sites(), d.Stats(), 2, ZarrOptions{}, keep, "")
		require.NoError(t, err)
		_, err = os.Stdout.WriteString("at work\n")
		require.NoError(t, err)
		streamZarr(t, w, d, keep+rand.IntN(23-keep)+1)
		require.NoError(t, w.Close())
	}
}
