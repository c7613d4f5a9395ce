package hmc_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/stretchr/testify/require"
)

// childDir names the folder of the run for the process that is to be killed.
const childDir = "KELVIN_HMC_TEST_CHILD_DIR"

// killed is the run that is killed: in its warm-up and after.
func killed(dir string, observe func(hmc.Progress)) hmc.Options {
	o := hmc.Options{Chains: 3, Warmup: 150, Draws: 200, Seed: 9, Observe: observe}
	o.Checkpoint = &hmc.Checkpoint{Dir: dir, Every: 10, Resume: true, Model: "schools"}
	return o
}

// TestChild is no test of its own: it is the run in a process of its own, which TestResumeAfterKill starts and kills. It stops
// short of the end and waits, so that it is alive whenever the signal comes.
func TestChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("started by TestResumeAfterKill")
	}
	_, err := hmc.Sample(ctx, schools(t), killed(dir, func(p hmc.Progress) {
		if p.Done == p.Total-2 {
			time.Sleep(time.Hour)
		}
	}))
	require.NoError(t, err)
}

// Killed with SIGKILL in the warm-up and in the sampling, and resumed each time, the run ends with the draws of the run that was
// never killed, bit for bit.
func TestResumeAfterKill(t *testing.T) {
	p := schools(t)
	want, err := hmc.Sample(ctx, p, killed(filepath.Join(t.TempDir(), "whole"), nil))
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	done := int64(0)
	for _, until := range []int64{100, 350, 600, 800} { // transitions of all three chains; the warm-up has 450
		killAfter(t, dir, until)
		first := int64(0)
		peek, cancel := context.WithCancel(ctx)
		_, err := hmc.Sample(peek, p, killed(copied(t, dir), func(p hmc.Progress) {
			if first == 0 {
				first = p.Resumed
				cancel()
			}
		}))
		cancel()
		require.ErrorIs(t, err, context.Canceled)
		require.Greater(t, first, done, "the checkpoint is a later one")
		require.GreaterOrEqual(t, first, until-2*30, "it is a recent one")
		done = first
	}
	have, err := hmc.Sample(ctx, p, killed(dir, nil))
	require.NoError(t, err)
	sameDraws(t, want, have)
}

func copied(t *testing.T, dir string) string {
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// killAfter starts the run in a process of its own and kills it when the checkpoint has so many transitions.
func killAfter(t *testing.T, dir string, done int64) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "-test.run=^TestChild$", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
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
		if n, err := hmc.CheckpointDone(dir); err != nil || n < done {
			continue
		}
		require.NoError(t, cmd.Process.Kill())
		var exit *exec.ExitError
		require.ErrorAs(t, <-ended, &exit)
		require.False(t, exit.Exited(), "it was ended by a signal")
		return
	}
}

// What a checkpoint refuses, and how it says so.
func TestCheckpointsRefuse(t *testing.T) {
	p := schools(t)
	dir := filepath.Join(t.TempDir(), "run")
	base := func() hmc.Options {
		return hmc.Options{Chains: 2, Warmup: 20, Draws: 20, Seed: 1, Checkpoint: &hmc.Checkpoint{Dir: dir, Every: 10, Resume: true, Model: "m"}}
	}
	want, err := hmc.Sample(ctx, p, base())
	require.NoError(t, err)
	// A run that is complete is read again; more draws may be asked for.
	again, err := hmc.Sample(ctx, p, base())
	require.NoError(t, err)
	sameDraws(t, want, again)
	more := base()
	more.Draws, more.Checkpoint.Dir = 30, copied(t, dir)
	longer, err := hmc.Sample(ctx, p, more)
	require.NoError(t, err)
	require.Equal(t, 30, longer.Len(1))
	whole := more
	whole.Checkpoint = &hmc.Checkpoint{Dir: filepath.Join(t.TempDir(), "whole"), Every: 10}
	direct, err := hmc.Sample(ctx, p, whole)
	require.NoError(t, err)
	sameDraws(t, direct, longer)

	refused := func(o hmc.Options, program hmc.Program, words ...string) {
		t.Helper()
		d, err := hmc.Sample(ctx, program, o)
		require.Error(t, err)
		require.Nil(t, d)
		for _, w := range words {
			require.ErrorContains(t, err, w)
		}
	}
	o := base()
	o.Checkpoint.Dir = filepath.Join(t.TempDir(), "used")
	o.Observe = func(hmc.Progress) {
		o.Observe = nil
		refused(o, p, "in use by another run")
	}
	_, err = hmc.Sample(ctx, p, o)
	require.NoError(t, err)
	o = base()
	o.Checkpoint.Resume = false
	refused(o, p, "has a checkpoint already", "Resume")
	o = base()
	o.Checkpoint.Model = "other"
	refused(o, p, "another run", "model", `"m"`, `"other"`)
	o = base()
	o.Chains = 3
	refused(o, p, "another run", "chains")
	o = base()
	o.Seed = 2
	refused(o, p, "snapshot does not fit", "Seed:1")
	refused(base(), gaussian(t), "another run", "sites")
	o = base()
	o.Batch = infer.Batch{"y": p.Batch()["sigma"], "sigma": p.Batch()["sigma"]}
	refused(o, p, "another run", "data")

	for file, words := range map[string][]string{
		"hmc.state": {"hmc.state", "damaged"},
		"hmc.draws": {"hmc.draws", "damaged"},
	} {
		o = base()
		o.Checkpoint.Dir = copied(t, dir)
		path := filepath.Join(o.Checkpoint.Dir, file)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		flipped := bytes.Clone(raw)
		flipped[len(raw)/2] ^= 1
		require.NoError(t, os.WriteFile(path, flipped, 0o644))
		refused(o, p, words...)
		require.NoError(t, os.WriteFile(path, raw[:len(raw)/2], 0o644))
		refused(o, p, file)
		// What was appended after the last checkpoint is cut off.
		if file == "hmc.draws" {
			require.NoError(t, os.WriteFile(path, append(bytes.Clone(raw), 1, 2, 3), 0o644))
			again, err := hmc.Sample(ctx, p, o)
			require.NoError(t, err)
			sameDraws(t, want, again)
		}
	}
}
