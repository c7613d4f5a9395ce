package hmc_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/store"
	"github.com/stretchr/testify/require"
)

// The draws that are stored as the run goes are the draws of the run, in both formats; a run that was cancelled after
// its last checkpoint and goes on ends with the same files.
func TestDrawsAreStoredAsTheyAreMade(t *testing.T) {
	p := schools(t)
	dir := t.TempDir()
	options := func() infer.Options { return infer.Options{Chains: 2, Warmup: 50, Draws: 75, Seed: 3} }
	want, err := infer.Sample(ctx, p, hmc.NUTS{}, options())
	require.NoError(t, err)
	same := func(path ...string) {
		t.Helper()
		have, err := store.Open(path...)
		require.NoError(t, err)
		mu, err := want.Values("theta")
		require.NoError(t, err)
		stored, err := have.Posterior.Values("theta")
		require.NoError(t, err)
		require.Equal(t, mu, stored)
		energy, err := want.Stat(draws.StatEnergy, 1)
		require.NoError(t, err)
		again, err := have.Posterior.Stat(draws.StatEnergy, 1)
		require.NoError(t, err)
		require.Equal(t, energy, again)
		require.Equal(t, want.Attrs(), have.Posterior.Attrs())
		require.Equal(t, want.Notes(), have.Posterior.Notes())
	}

	blocks := 0
	csv := &store.CSVSink{Base: filepath.Join(dir, "plain")}
	o := options()
	o.SaveEvery, o.Save = 20, func(run string, from []int, block *draws.Draws) error {
		blocks++
		return csv.Save(run,
			from, block)
	}
	_, err = infer.Sample(ctx, p, hmc.NUTS{}, o)
	require.NoError(t, err)
	require.NoError(t, csv.Close())
	require.Equal(t, 5, blocks) // at 60, 80, 100, 120, and the end, at 125
	same(filepath.Join(dir, "plain_1.csv"), filepath.Join(dir, "plain_2.csv"))

	// Cancelled at different draws of the chains, and resumed.
	for name, open := range map[string]func() (func(string, []int, *draws.Draws) error, func() error){
		"csv": func() (func(string, []int, *draws.Draws) error, func() error) {
			s := &store.CSVSink{Base: filepath.Join(dir, "resumed")}
			return s.Save, s.Close
		},
		"zarr": func() (func(string, []int, *draws.Draws) error, func() error) {
			s := &store.ZarrSink{Path: filepath.Join(dir, "resumed.zarr")}
			return s.Save, s.Close
		},
	} {
		checkpoint := filepath.Join(dir, "checkpoint-"+name)
		for _, until := range []int{103, 105, 170, 211, 0} {
			o := options()
			running, cancel := context.WithCancel(ctx)
			o.Observer = infer.ObserverFunc(func(p infer.Progress) {
				if p.Step == until {
					cancel()
				}
			})
			save, closes := open()
			o.Save, o.Checkpoint = save, &infer.Checkpoint{Dir: checkpoint, Every: 10, Resume: true}
			_, err := infer.Sample(running, p, hmc.NUTS{}, o)
			cancel()
			if until > 0 {
				require.ErrorIs(t, err, context.Canceled)
			} else {
				require.NoError(t, err)
			}
			require.NoError(t, closes())
		}
	}
	same(filepath.Join(dir, "resumed_1.csv"), filepath.Join(dir, "resumed_2.csv"))
	same(filepath.Join(dir, "resumed.zarr"))

	boom := errors.New("disk full")
	o = options()
	o.SaveEvery, o.Save = 30, func(string, []int, *draws.Draws) error { return boom }
	d, err := infer.Sample(ctx, p, hmc.NUTS{}, o)
	require.ErrorIs(t, err, boom)
	require.Positive(t, d.Total())
}
