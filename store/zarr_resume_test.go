package store

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/stretchr/testify/require"
)

// killPoints are how many times a resumed run is killed; more in the slow suite.
var killPoints = 50

// stopped is what the disk's hook panics with.
type stopped struct{}

// killedAt runs f and stops it before its n-th change of the disk; it is false if f made fewer changes.
func killedAt(n int, f func()) (killed bool) {
	old := atomicfile.Step
	defer func() {
		atomicfile.Step = old
		if r := recover(); r != nil {
			if _, ok := r.(stopped); !ok {
				panic(r)
			}
			killed = true
		}
	}()
	atomicfile.Step = func() {
		if n--; n < 0 {
			panic(stopped{})
		}
	}
	f()
	return false
}

// A kill at any change of the disk, while a store is resumed with fewer draws than it has and goes on, leaves a store
// that reads back a prefix of the draws, bit by bit. It can be resumed again, to the same end.
func TestKilledResumeLeavesAPrefix(t *testing.T) {
	noSync(t)
	sites := placedSites(t, "w", []int{3})
	stats := []string{"lp", "divergent"}
	d := filled(t, sites, stats, true, 23, 23)
	half, err := d.Slice(0, 17)
	require.NoError(t, err)
	dir := t.TempDir()
	opt := ZarrOptions{Chunk: 4, FlushEvery: 3, Attrs: map[string]any{}}
	stored := filepath.Join(dir, "stored.zarr")
	w, err := createZarr(stored, sites, stats, 2, opt)
	require.NoError(t, err)
	streamZarr(t, w, half, 17)
	require.NoError(t, w.Close())

	rng := rand.New(rand.NewPCG(1, 2))
	points, lengths := 0, map[int]bool{}
	for at := 0; points < killPoints; at++ {
		path := filepath.Join(dir, "run.zarr")
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.CopyFS(path, os.DirFS(stored)))
		keep := rng.IntN(18)
		killed := killedAt(at, func() {
			w, err := appendZarr(path, sites, stats, 2, opt, keep, "")
			require.NoError(t, err)
			streamZarr(t, w, d, 20)
		})
		inf, err := Open(path)
		require.NoError(t, err)
		require.Empty(t, inf.Notes)
		n := inf.Posterior.Len(0)
		require.True(t, n == 17 || n >= keep, "%d draws, %d are kept", n, keep)
		want, err := prefix(d, n, inf.Posterior.Len(1))
		require.NoError(t, err)
		identical(t, want, inf.Posterior)
		lengths[n] = true

		if points++; !killed { // the run came to its end: begin again, with other draws to keep
			at = -1
		}
		if points%5 > 0 {
			continue
		}
		again := min(inf.Posterior.MinLen(), keep)
		w, err := appendZarr(path, sites, stats, 2, opt, again, "")
		require.NoError(t, err)
		streamZarr(t, w, d, 23)
		require.NoError(t, w.Close())
		inf, err = Open(path)
		require.NoError(t, err)
		identical(t, d, inf.Posterior)
	}
	require.Greater(t, len(lengths), 5, "different prefixes")
	t.Logf("seen: %d kill points, %d different prefixes", points, len(lengths))
}

func prefix(d *draws.Draws, lengths ...int) (*draws.Draws, error) {
	out, err := draws.New(d.Sites(), d.Stats(), len(lengths))
	if err != nil {
		return nil, err
	}
	for c, n := range lengths {
		for i := range n {
			if err := out.AppendChain(c, d.Row(c, i), d.StatRow(c, i)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// A chunk of draws that is gone is an error with its place, for readers and for a run that would go on with the rest.
func TestMissingChunkIsRefused(t *testing.T) {
	noSync(t)
	sites := placedSites(t, "mu", []int{}, "w", []int{3})
	d := filled(t, sites, nutsStats, true, 9, 5)
	path := filepath.Join(t.TempDir(), "run.zarr")
	require.NoError(t, WriteZarr(path, &Inference{Posterior: d}, ZarrOptions{Chunk: 4}))
	w, err := appendZarr(path, sites, nutsStats, 2, ZarrOptions{}, -1, "")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	inf, err := Open(path)
	require.NoError(t, err)
	identical(t, d, inf.Posterior)
	for _, chunk := range []string{"posterior/w/0.2.0", "posterior/mu/1.0", "sample_stats/lp/1.1",
		"sample_stats/diverging/0.1"} {
		name := filepath.Join(path, filepath.FromSlash(chunk))
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.Remove(name))
		_, err = Open(path)
		require.ErrorIs(t, err, ErrFormat, chunk)
		require.ErrorContains(t, err, "is missing")
		_, err = appendZarr(path, sites, nutsStats, 2, ZarrOptions{}, 5, "")
		if chunk != "posterior/w/0.2.0" { // its draws are not kept
			require.ErrorContains(t, err, "is missing")
		}
		require.NoError(t, os.WriteFile(name, text, 0o600))
	}
}
