package evidence_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

// The child of TestResumeAfterKill finds its folder and its method here.
const (
	childDir    = "KELVIN_EVIDENCE_TEST_DIR"
	childMethod = "KELVIN_EVIDENCE_TEST_METHOD"
)

var killed = map[string]infer.Method{"TI": evidence.TI{}, "SMC": evidence.SMC{}, "AIS": evidence.AIS{}}

// killable is a run that saves itself after every round or stage.
func killable(t *testing.T, method, dir string) (*infer.Result, error) {
	o := infer.Options{Seed: 4, Chains: 2, Warmup: 100, Draws: 200}
	if dir != "" {
		o.Checkpoint = &infer.Checkpoint{Dir: dir, Every: 1, Resume: true}
	}
	return infer.Run(context.Background(), program(t, infertest.EvidenceGaussian(10)), killed[method], o)
}

// TestChild is no test of its own: it is the run that is killed.
func TestChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("started by TestResumeAfterKill")
	}
	_, err := killable(t, os.Getenv(childMethod), dir)
	require.NoError(t, err)
	time.Sleep(time.Hour)
}

// Killed with SIGKILL when it has saved itself a number of times, and resumed, a run ends with the estimate and the
// draws of the run that was never killed, bit for bit.
func TestResumeAfterKill(t *testing.T) {
	testkit.Long(t)
	for method := range killed {
		want, err := killable(t, method, "")
		require.NoError(t, err)
		dir := filepath.Join(t.TempDir(), method)
		for _, saves := range []int{3, 12} {
			killAfter(t, method, dir, saves)
		}
		got, err := killable(t, method, dir)
		require.NoError(t, err)
		require.Equal(t, want.Detail, got.Detail, method)
		for c := range want.Unconstrained.Chains() {
			for i := range want.Unconstrained.Len(c) {
				require.Equal(t, want.Unconstrained.Row(c, i), got.Unconstrained.Row(c, i), method)
			}
		}
		require.Less(t, got.Gradients, want.Gradients, "%s began anew", method)
		t.Logf("seen: %s, 2 kills, the same bits", method)
	}
}

// killAfter kills the run when the checkpoint has been replaced as often as that.
func killAfter(t *testing.T, method, dir string, saves int) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "-test.run=^TestChild$", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), childDir+"="+dir, childMethod+"="+method)
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var last time.Time
	for seen := 0; seen < saves; {
		select {
		case err := <-ended:
			t.Fatalf("the child ended by itself: %v", err)
		case <-time.After(200 * time.Microsecond):
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, f := range files {
			if info, err := os.Stat(f); err == nil && info.ModTime().After(last) {
				last = info.ModTime()
				seen++
			}
		}
	}
	require.NoError(t, cmd.Process.Kill())
	<-ended
}
