//go:build slow && linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/store"
)

// moments are how many disks are full at a random moment, for each kind of run.
const moments = 20

// A run whose disk is full at a random moment ends with an error that says so. What it has stored is a prefix of the
// draws, bit by bit, and when there is room again it goes on to the draws of the run that always had room.
func TestDiskFull(t *testing.T) {
	for name, kind := range map[string]struct {
		method infer.Method
		sink   func(dir string) sink // nil for a checkpoint alone
	}{
		"SGLD with a checkpoint":             {sgld, nil},
		"NUTS with a checkpoint":             {hmc.NUTS{}, nil},
		"replica exchange with a checkpoint": {hmc.Exchange{Ladder: []float64{1, 4}}, nil},
		"variational with a checkpoint":      {vi.Diag{}, nil},
		"SMC with a checkpoint":              {evidence.SMC{}, nil},
		"SGLD into CSV":                      {sgld, csv},
		"SGLD into Zarr":                     {sgld, zarr},
		"NUTS into CSV":                      {hmc.NUTS{}, csv},
		"NUTS into Zarr":                     {hmc.NUTS{}, zarr},
	} {
		run := func(dir string) (*draws.Draws, error) {
			if kind.sink == nil {
				return sample(dir, kind.method, nil)
			}
			return sample(dir, kind.method, kind.sink(dir))
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := syscall.Mount("kelvin", dir, "tmpfs", 0, "size=64m"); err != nil {
				t.Skipf("a disk of a given size needs the rights of root: %v", err)
			}
			defer func() { assert.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) }()
			want, err := run(dir)
			require.NoError(t, err)
			stored := read(t, dir)
			var at syscall.Statfs_t
			require.NoError(t, syscall.Statfs(dir, &at))
			used := int64(at.Blocks-at.Bfree) * at.Bsize
			rng := rand.New(rand.NewPCG(7, 8))
			full := 0
			for range moments {
				empty(t, dir)
				size := 4096 * (1 + rng.Int64N(used/4096))
				resize(t, dir, size)
				_, err := run(dir)
				if err != nil {
					require.ErrorIs(t, err, syscall.ENOSPC, "%d of %d bytes", size, used)
					full++
				}
				prefix(t, read(t, dir), stored)
				resize(t, dir, 64<<20)
				have, err := run(dir)
				require.NoError(t, err, "%d of %d bytes", size, used)
				same(t, have, want)
				same(t, read(t, dir), stored)
			}
			require.Greater(t, full, moments/2)
			t.Logf("seen: %s: full %d times", name, full)
		})
	}
}

// sink is what keeps draws as they are made.
type sink interface {
	Save(run string, from []int, block *draws.Draws) error
	Close() error
}

func csv(dir string) sink  { return &store.CSVSink{Base: filepath.Join(dir, "run")} }
func zarr(dir string) sink { return &store.ZarrSink{Path: filepath.Join(dir, "run.zarr")} }

var sgld = sgmcmc.SGLD{LR: infer.Constant(0.001)}

func sample(dir string, method infer.Method, to sink) (*draws.Draws, error) {
	program, err := infertest.EvidenceGaussian(50).Program()
	if err != nil {
		return nil, err
	}
	o := infer.Options{Chains: 2, Warmup: 60, Draws: 100, Seed: 3, Observer: infer.Silent,
		Checkpoint: &infer.Checkpoint{Dir: filepath.Join(dir, "checkpoint"), Every: 20, Resume: true}}
	if to != nil {
		o.Save = to.Save
	}
	d, err := infer.Sample(context.Background(), program, method, o)
	if to != nil {
		err = errors.Join(err, to.Close())
	}
	return d, err
}

// read gives what is stored; nil where a run has not come so far.
func read(t *testing.T, dir string) *draws.Draws {
	t.Helper()
	path := filepath.Join(dir, "run*.csv")
	if _, err := os.Stat(filepath.Join(dir, "run.zarr")); err == nil {
		path = filepath.Join(dir, "run.zarr")
	}
	inf, err := store.Open(path)
	switch {
	case err == nil:
		return inf.Posterior
	case errors.Is(err, fs.ErrNotExist):
	case strings.Contains(err.Error(), "the file is empty"):
	case strings.Contains(err.Error(), "ends before the names of the columns"):
	default:
		t.Fatal(err)
	}
	return nil
}

func prefix(t *testing.T, have, want *draws.Draws) {
	t.Helper()
	if have == nil {
		return
	}
	for c := range have.Chains() {
		require.LessOrEqual(t, have.Len(c), want.Len(c))
		for i := range have.Len(c) {
			for k, x := range have.Row(c, i) {
				require.Equal(t, math.Float64bits(want.Row(c, i)[k]), math.Float64bits(x), "chain %d, draw %d", c, i)
			}
		}
	}
}

func same(t *testing.T, have, want *draws.Draws) {
	t.Helper()
	if want == nil {
		require.Nil(t, have)
		return
	}
	require.Equal(t, want.Chains(), have.Chains())
	require.Equal(t, want.MinLen(), have.MinLen())
	prefix(t, have, want)
}

func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
}

func resize(t *testing.T, dir string, size int64) {
	t.Helper()
	require.NoError(t, syscall.Mount("kelvin", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", size)))
}
