package infer_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

// childDir names the folder of the run for the process that is to be killed.
const childDir = "KELVIN_INFER_TEST_CHILD_DIR"

// killed is the run that is killed: long enough to be killed several times, with draws and minibatches, and a
// checkpoint every 25 updates.
func killed() job {
	return job{method: methods["SGHMC"], chains: 3, steps: 2500}
}

const killedEvery = 25

// TestChild is no test of its own: it is the run in a process of its own, which TestResumeAfterKill starts and kills.
// It stops short of the end and waits, so that it is alive whenever the signal comes.
func TestChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("started by TestResumeAfterKill")
	}
	j := killed()
	_, err := j.run(context.Background(), t, dir, killedEvery, func(p infer.Progress) {
		if p.Step == j.steps-1 {
			time.Sleep(time.Hour)
		}
	})
	require.NoError(t, err)
}

// Killed with SIGKILL in mid-run, at a moment that nothing chose, and started again, several times in a row;
// then resumed in this process, the run ends with the draws, statistics and state of the run that was never
// killed, bit for bit.
func TestResumeAfterKill(t *testing.T) {
	testkit.Long(t)
	j := killed()
	want := j.whole(t)
	dir := filepath.Join(t.TempDir(), "run")
	reached := 0 // bytes of draws
	for kill := range 4 {
		reached = killAfter(t, dir, reached+20_000, time.Duration(3*kill)*time.Millisecond)
		t.Logf("kill %d: %d bytes of draws", kill+1, reached)
	}
	var first, resumed int
	got, err := j.run(context.Background(), t, dir, killedEvery, func(p infer.Progress) {
		if first == 0 {
			first, resumed = p.Step, p.Resumed
		}
	})
	require.NoError(t, err)
	assert.Equal(t, first-1, resumed)
	assert.Zero(t, resumed%killedEvery)
	// 80,000 bytes are 416 draws of 3 chains with a number, 4 values and 3 statistics, three updates each, after 20 of
	// burn-in; the checkpoint of the last ones may have been under way.
	assert.GreaterOrEqual(t, resumed, int(20+3*416-2*killedEvery))
	sameResult(t, want, got)
	t.Log("seen: SGHMC, 4 kills, the same bits")
}

// killAfter starts the run in a process of its own, waits until it has a checkpoint and the draws file has a size, and
// a little longer, so that it is not always killed while it saves. It kills it and returns the size of the file then.
func killAfter(t *testing.T, dir string, size int, longer time.Duration) int {
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
		info, err := os.Stat(filepath.Join(dir, drawsFile))
		if err != nil || int(info.Size()) < size {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, checkpointFile)); err != nil {
			continue
		}
		time.Sleep(longer)
		require.NoError(t, cmd.Process.Kill())
		err = <-ended
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		assert.False(t, exit.Exited(), "it was ended by a signal")
		info, err = os.Stat(filepath.Join(dir, drawsFile))
		require.NoError(t, err)
		return int(info.Size())
	}
}
