package hmc_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/stretchr/testify/require"
)

// childDir names the folder of the run for the process that is to be killed.
const childDir = "KELVIN_HMC_TEST_CHILD_DIR"

// childMethod names its method.
const childMethod = "KELVIN_HMC_TEST_CHILD_METHOD"

// marker is the file that the child makes when it may be killed.
const marker = "KELVIN_HMC_TEST_CHILD_MARKER"

// killed is the run that is killed: in its warm-up and after.
func killed(dir string, observe func(infer.Progress)) infer.Options {
	return infer.Options{
		Chains: 3, Warmup: 150, Draws: 200, Seed: 9, Observer: infer.ObserverFunc(observe),
		Checkpoint: &infer.Checkpoint{Dir: dir, Every: 10, Resume: true, Model: "schools"},
	}
}

// quiet sees nothing.
func quiet(infer.Progress) {}

// killable are the methods whose runs are killed.
var killable = map[string]infer.Method{
	"NUTS":     hmc.NUTS{},
	"exchange": hmc.Exchange{Ladder: []float64{0, 0.1, 1}, Path: &path.Path{}, Adapt: true, Every: 3, KeepHot: true},
}

// TestChild is no test of its own: it is the run in a process of its own, which TestResumeAfterKill starts and kills.
// It says when it has come to where it is to be killed, goes on from there, and waits short of the end, so that it is
// alive whenever the signal comes.
func TestChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("started by TestResumeAfterKill")
	}
	until, err := strconv.ParseInt(os.Getenv("KELVIN_HMC_TEST_CHILD_UNTIL"), 10, 64)
	require.NoError(t, err)
	_, err = infer.Sample(ctx, schools(t), killable[os.Getenv(childMethod)], killed(dir, func(p infer.Progress) {
		if p.Step == int(until) {
			require.NoError(t, os.WriteFile(os.Getenv(marker), nil, 0o644))
		}
		if p.Step == p.Steps-2 {
			time.Sleep(time.Hour)
		}
	}))
	require.NoError(t, err)
}

// Killed with SIGKILL in the warm-up and in the sampling, and resumed each time, the run ends with the draws of the
// run that was never killed, bit for bit.
func TestResumeAfterKill(t *testing.T) {
	for name := range killable {
		t.Run(name, func(t *testing.T) { resumeAfterKill(t, name) })
	}
}

func resumeAfterKill(t *testing.T, name string) {
	p, m := schools(t), killable[name]
	whole, err := infer.Run(ctx, p, m, killed(filepath.Join(t.TempDir(), "whole"), quiet))
	require.NoError(t, err)
	want := whole.Draws
	dir := filepath.Join(t.TempDir(), "run")
	done := 0
	for _, until := range []int{130, 380, 630, 830} { // transitions of all three chains; the warm-up has 450
		killAfter(t, name, dir, until)
		first := 0
		peek, cancel := context.WithCancel(ctx)
		_, err := infer.Sample(peek, p, m, killed(copied(t, dir), func(p infer.Progress) {
			if first == 0 {
				first = p.Resumed
				cancel()
			}
		}))
		cancel()
		require.ErrorIs(t, err, context.Canceled)
		// A kill may come late, when the run is already near to where the next one is to come.
		require.GreaterOrEqual(t, first, done, "the checkpoint is no earlier one")
		// Chains run freely between two meetings: one may be 10 transitions ahead, and so the others 20 behind.
		require.GreaterOrEqual(t, first, until-3*30, "it is a recent one")
		done = first
	}
	have, err := infer.Run(ctx, p, m, killed(dir, quiet))
	require.NoError(t, err)
	sameDraws(t, want, have.Draws)
	hot := detail(t, have).Hot
	for i, d := range detail(t, whole).Hot {
		sameDraws(t, d, hot[i])
	}
	for i := range detail(t, whole).Swaps {
		require.Equal(t, detail(t, whole).Swaps[i].Ladder, detail(t, have).Swaps[i].Ladder)
		require.Equal(t, detail(t, whole).Swaps[i].SlopeMean, detail(t, have).Swaps[i].SlopeMean)
		require.Equal(t, detail(t, whole).Swaps[i].SlopeDraws, detail(t, have).Swaps[i].SlopeDraws)
	}
	t.Logf("seen: %s, 4 kills, the same bits", name)
}

func copied(t *testing.T, dir string) string {
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// killAfter starts the run in a process of its own and kills it when it has made so many transitions.
func killAfter(t *testing.T, name, dir string, done int) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	mark := filepath.Join(t.TempDir(), "there")
	cmd := exec.Command(exe, "-test.run=^TestChild$", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), childDir+"="+dir, childMethod+"="+name, marker+"="+mark,
		fmt.Sprintf("KELVIN_HMC_TEST_CHILD_UNTIL=%d", done))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			t.Fatalf("the child ended by itself: %v\n%s", err, output.String())
		case <-time.After(time.Millisecond):
		}
		if _, err := os.Stat(mark); err != nil {
			continue
		}
		require.NoError(t, cmd.Process.Kill())
		var exit *exec.ExitError
		require.ErrorAs(t, <-ended, &exit)
		require.False(t, exit.Exited(), "it was ended by a signal")
		return
	}
}

// A complete run is read again, more draws may be asked for, and what is another run is refused.
func TestCheckpoints(t *testing.T) {
	p := schools(t)
	for name, m := range map[string]infer.Method{
		"NUTS": hmc.NUTS{}, "HMC": hmc.HMC{Steps: 5, Persistence: 0.5, Temperature: infer.Linear(3, 1, 0, 20)},
		"exchange": hmc.Exchange{Ladder: []float64{1, 2, 4}, Every: 3},
		"exchange on a path": hmc.Exchange{Ladder: []float64{0, 0.1, 1}, Path: &path.Path{}, Every: 3, Trials: 3,
			Minimise: 5, Kernel: hmc.HMC{Steps: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			options := func(dir string, draws int) infer.Options {
				return infer.Options{
					Chains: 2, Warmup: 20, Draws: draws, Seed: 1, Observer: infer.Silent,
					Checkpoint: &infer.Checkpoint{Dir: dir, Every: 10, Resume: true},
				}
			}
			dir := filepath.Join(t.TempDir(), "run")
			want, err := infer.Sample(ctx, p, m, options(dir, 20))
			require.NoError(t, err)
			again, err := infer.Sample(ctx, p, m, options(dir, 20))
			require.NoError(t, err)
			sameDraws(t, want, again)
			longer, err := infer.Sample(ctx, p, m, options(copied(t, dir), 30))
			require.NoError(t, err)
			require.Equal(t, 30, longer.Len(1))
			direct, err := infer.Sample(ctx, p, m, options(filepath.Join(t.TempDir(), "whole"), 30))
			require.NoError(t, err)
			sameDraws(t, direct, longer)
		})
	}
	dir := filepath.Join(t.TempDir(), "run")
	o := infer.Options{Warmup: 20, Draws: 20, Observer: infer.Silent,
		Checkpoint: &infer.Checkpoint{Dir: dir, Every: 5, Resume: true}}
	_, err := infer.Sample(ctx, p, hmc.NUTS{}, o)
	require.NoError(t, err)
	for _, m := range []infer.Method{hmc.NUTS{MaxDepth: 5}, hmc.NUTS{TargetAccept: 0.9}, hmc.NUTS{Metric: hmc.Dense}} {
		_, err = infer.Sample(ctx, p, m, o)
		require.ErrorIs(t, err, infer.ErrCheckpoint, "%+v", m)
		require.ErrorContains(t, err, "the snapshot does not fit")
	}
}
