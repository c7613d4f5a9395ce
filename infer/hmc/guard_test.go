package hmc_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/store"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// brittle is a program whose code panics before or after the sampling.
type brittle struct {
	infer.Program
	start, draws bool
}

func (b brittle) Start(batch infer.Batch, chains int, seed uint64) (infer.Params, error) {
	if b.start {
		panic("start")
	}
	return b.Program.Start(batch, chains, seed)
}

func (b brittle) Draws(d *draws.Draws, batch infer.Batch) (*draws.Draws, error) {
	if b.draws {
		panic("draws")
	}
	return d, nil
}

// A panic outside the density is an error as well, and does not take the draws with it.
func TestPanicsOutsideTheDensity(t *testing.T) {
	o := infer.Options{Chains: 2, Warmup: 20, Draws: 10}
	var panicked *infer.PanicError
	_, err := infer.Sample(ctx, brittle{gaussian(t), true, false}, hmc.NUTS{}, o)
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, "start", panicked.Value)
	r, err := infer.Run(ctx, brittle{gaussian(t), false, true}, hmc.NUTS{}, o)
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, 20, r.Unconstrained.Total())
	for every, name := range map[int]string{1000: "at the end", 5: "on the way"} {
		o.SaveEvery, o.Save = every, func(string, []int, *draws.Draws) error { panic("save") }
		_, err = infer.Sample(ctx, gaussian(t), hmc.NUTS{}, o)
		require.ErrorAs(t, err, &panicked, name)
		require.Equal(t, "save", panicked.Value)
	}
	o.Save = nil
	o.Observer = infer.ObserverFunc(func(p infer.Progress) {
		if p.Draws == 5 {
			panic("observe")
		}
	})
	d, err := infer.Sample(ctx, gaussian(t), hmc.NUTS{}, o)
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, "observe", panicked.Value)
	require.GreaterOrEqual(t, d.Total(), 10)
}

// A panic of the model is an error that names the model's words, whatever method runs it.
func TestPanicsOfTheModel(t *testing.T) {
	density := gaussianDensity(t)
	for _, m := range []infer.Method{hmc.NUTS{}, hmc.HMC{}, hmc.Exchange{Ladder: []float64{1, 2}}} {
		calls := 0
		p := handwritten(t, func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			if calls++; calls > 200 {
				panic("no model")
			}
			return density(p, b)
		}, two)
		// Native code would not call it again.
		_, err := infer.Sample(ctx, p, m, infer.Options{Chains: 2, Warmup: 20, Native: native.Eager})
		require.ErrorContains(t, err, "no model")
		require.NotContains(t, err.Error(), "kernel.")
	}
}

// Trees that were cut off are reported whatever the depth that was allowed.
func TestDepthIsDiagnosed(t *testing.T) {
	d, err := infer.Sample(ctx, gaussian(t), hmc.NUTS{MaxDepth: 1}, infer.Options{Warmup: 100, Draws: 200, Seed: 1})
	require.NoError(t, err)
	report, err := diag.Diagnose(d, diag.DiagnoseOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, report.Of(diag.CodeTreeDepth))
	csv := &store.CSVSink{Base: filepath.Join(t.TempDir(), "cut")}
	require.NoError(t, csv.Save("", []int{0, 0, 0, 0}, d))
	require.NoError(t, csv.Close())
	read, err := store.Open(csv.Base + "_1.csv")
	require.NoError(t, err)
	report, err = diag.Diagnose(read.Posterior, diag.DiagnoseOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, report.Of(diag.CodeTreeDepth))
	d, err = infer.Sample(ctx, gaussian(t), hmc.NUTS{MaxDepth: 12}, infer.Options{Warmup: 100, Draws: 200, Seed: 1})
	require.NoError(t, err)
	report, err = diag.Diagnose(d, diag.DiagnoseOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Of(diag.CodeTreeDepth))
}

// A sink does not mix runs: not another run's files, not a second run without closing, not a run that was begun
// without it.
func TestSinksAreForOneRun(t *testing.T) {
	p := gaussian(t)
	for name, open := range map[string]func(path string) (func(string, []int, *draws.Draws) error, func() error){
		"csv": func(path string) (func(string, []int, *draws.Draws) error, func() error) {
			s := &store.CSVSink{Base: path}
			return s.Save, s.Close
		},
		"zarr": func(path string) (func(string, []int, *draws.Draws) error, func() error) {
			s := &store.ZarrSink{Path: path}
			return s.Save, s.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sample := func(seed uint64, n int, path, checkpoint string) error {
				o := infer.Options{Chains: 2, Warmup: 20, Draws: n, Seed: seed}
				if checkpoint != "" {
					o.Checkpoint = &infer.Checkpoint{Dir: filepath.Join(dir, checkpoint), Every: 10, Resume: true}
				}
				var closes func() error
				if path != "" {
					o.Save, closes = open(filepath.Join(dir, path))
				}
				_, err := infer.Sample(ctx, p, hmc.NUTS{}, o)
				if closes != nil {
					err = errors.Join(err, closes())
				}
				return err
			}
			require.NoError(t, sample(1, 20, "a", "ca"))
			require.NoError(t, sample(1, 30, "a", "ca"), "more draws of the same run")
			require.ErrorContains(t, sample(2, 20, "a", "cb"), "another run")
			require.Error(t, sample(1, 20, "a", ""), "a run that cannot go on finds files there")
			require.NoError(t, sample(3, 20, "", "cc"))
			require.ErrorContains(t, sample(3, 30, "late", "cc"), "begun without this sink")

			for i, at := range []float64{0, 1} { // another start is another run
				start, err := infer.NewParams(p.Layout(), []float64{at, at})
				require.NoError(t, err)
				save, closes := open(filepath.Join(dir, "start"))
				_, err = infer.Sample(ctx, p, hmc.NUTS{}, infer.Options{Chains: 2, Warmup: 20, Draws: 20, Start: start, Save: save,
					Checkpoint: &infer.Checkpoint{Dir: filepath.Join(dir, fmt.Sprint("start", i)), Every: 10}})
				require.NoError(t, closes())
				if i == 0 {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, "another run")
				}
			}

			save, closes := open(filepath.Join(dir, "twice"))
			o := infer.Options{Chains: 2, Warmup: 20, Draws: 20, Save: save}
			_, err := infer.Sample(ctx, p, hmc.NUTS{}, o)
			require.NoError(t, err)
			_, err = infer.Sample(ctx, p, hmc.NUTS{}, o)
			require.ErrorContains(t, err, "a sink is for one run")
			require.NoError(t, closes())
		})
	}
}
