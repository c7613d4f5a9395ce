//go:build slow && linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/data/large"
	"github.com/kelvin-ppl/kelvin/diag/sbc"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/store"
)

// writer is a part of Kelvin that writes a file in place. It calls midway when it has written some of it.
type writer struct {
	name, file string
	replaces   bool // a file that is there, where it is no link
	write      func(t *testing.T, path string, midway func()) error
}

// run samples, with a checkpoint or a sink, which are due many times.
func run(t *testing.T, m infer.Method, c *infer.Checkpoint, to sink, midway func()) error {
	program, err := infertest.EvidenceGaussian(2).Program()
	require.NoError(t, err)
	o := infer.Options{Chains: 1, Warmup: 20, Draws: 60, Checkpoint: c, SaveEvery: 5,
		Observer: infer.ObserverFunc(func(p infer.Progress) {
			if p.Step == 50 {
				midway()
			}
		})}
	if to != nil {
		o.Save = func(run string, from []int, block *draws.Draws) error { return to.Save(run, from, block) }
	}
	_, err = infer.Sample(context.Background(), program, m, o)
	if to != nil {
		err = errors.Join(err, to.Close())
	}
	return err
}

// writers are all that write in place.
func writers() []writer {
	checkpoint := func(m infer.Method) func(*testing.T, string, func()) error {
		return func(t *testing.T, path string, midway func()) error {
			return run(t, m, &infer.Checkpoint{Dir: filepath.Dir(path), Every: 10}, nil, midway)
		}
	}
	return []writer{
		{"checkpoint of NUTS", "draws.kelvin", false, checkpoint(hmc.NUTS{})},
		{"checkpoint of SGLD", "draws.kelvin", false, checkpoint(sgld)},
		{"lock of a checkpoint", "lock", true, checkpoint(sgld)},
		{"store.CSVSink", "run_1.csv", false, func(t *testing.T, path string, midway func()) error {
			return run(t, sgld, nil, csv(filepath.Dir(path)), midway)
		}},
		{"store.ZarrSink", "run.zarr", false, func(t *testing.T, path string, midway func()) error {
			return run(t, sgld, nil, zarr(filepath.Dir(path)), midway)
		}},
		{"store.WriteJSON", "run.json", true, func(t *testing.T, path string, _ func()) error {
			d, err := draws.New([]draws.Site{{Name: "x", Size: 1}}, nil, 1)
			require.NoError(t, err)
			require.NoError(t, d.Append([]float64{1}, nil))
			return store.WriteJSON(path, &store.Inference{Posterior: d})
		}},
		{"sbc.Options.File", "ranks.jsonl", false, func(_ *testing.T, path string, midway func()) error {
			n := 0
			_, err := sbc.Run(context.Background(), func(context.Context, uint64) (sbc.Case, error) {
				if n++; n == 2 {
					midway()
				}
				return sbc.Case{Truth: map[string]float64{"x": 1}, Draws: map[string][]float64{"x": {2}}}, nil
			}, sbc.Options{File: path, Replications: 4, Draws: 1})
			return err
		}},
		{"large.Create", "x.npy", true, func(t *testing.T, path string, midway func()) error {
			w, err := large.Create[float64](path)
			if err != nil {
				return err
			}
			require.NoError(t, w.Write(1, 2, 3))
			midway()
			return w.Close()
		}},
	}
}

// A link, or another file, in the place of a file that Kelvin writes: what was there stays as it is. A file
// that is asked for by its own name, as of large.Create, may be replaced where it is no link.
func TestWritersFollowNoLink(t *testing.T) {
	precious := strings.Repeat("precious ", 1000)
	safe := 0
	for _, w := range writers() {
		for _, link := range []bool{true, false} {
			if w.replaces && !link {
				continue
			}
			dir, elsewhere := t.TempDir(), t.TempDir()
			path := filepath.Join(dir, w.file)
			victim := path
			if link {
				victim = filepath.Join(elsewhere, "victim")
				require.NoError(t, os.Symlink(victim, path))
			}
			require.NoError(t, os.WriteFile(victim, []byte(precious), 0o600))
			err := w.write(t, path, func() {})
			text, e := os.ReadFile(victim)
			require.NoError(t, e)
			assert.True(t, string(text) == precious, "%s, link %v: %d bytes", w.name, link, len(text))
			info, e := os.Lstat(path)
			require.NoError(t, e)
			if err == nil { // another file took the place of the link
				assert.True(t, link && info.Mode().IsRegular(), w.name)
			}
			if entries, e := os.ReadDir(elsewhere); assert.NoError(t, e) && link {
				assert.Len(t, entries, 1, w.name)
			}
			safe++
		}
	}
	t.Logf("seen: %d files in the place of Kelvin's kept, byte for byte", safe)
}

// A folder that is removed, or removed and made anew, while something is written in it is an error: what was written
// before is lost.
func TestLossInMidRunIsAnError(t *testing.T) {
	noticed := 0
	for _, w := range writers() {
		for _, anew := range []bool{false, true} {
			dir := filepath.Join(t.TempDir(), "run")
			require.NoError(t, os.Mkdir(dir, 0o700))
			called := false
			err := w.write(t, filepath.Join(dir, w.file), func() {
				called = true
				require.NoError(t, os.RemoveAll(dir))
				if anew {
					require.NoError(t, os.Mkdir(dir, 0o700))
				}
			})
			if !called { // it writes in one move
				require.NoError(t, err, w.name)
				continue
			}
			if assert.Error(t, err, "%s, made anew %v", w.name, anew) {
				noticed++
			}
		}
	}
	t.Logf("seen: %d losses of a folder in mid-run noticed", noticed)
}
