package cluster_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/stretchr/testify/require"
)

// child starts this test binary as a server or a worker.
func child(t *testing.T, env string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), env)
	t.Cleanup(func() { kill(c) })
	return c
}

// kill ends a process as -9 does; one that has ended stays so.
func kill(c *exec.Cmd) {
	_ = c.Process.Kill()
	_ = c.Wait()
}

// Workers that are killed with -9 in the middle of their tasks, and a server that is killed and comes back with its
// files: the draws are those of the local run.
func TestKills(t *testing.T) {
	p := program(t)
	o := infer.Options{Chains: 3, Warmup: 500, Draws: 60_000, Seed: 5, Observer: infer.Silent}
	want, err := infer.Sample(t.Context(), p, hmc.NUTS{}, o)
	require.NoError(t, err)
	dir := t.TempDir()
	server := child(t, "KELVIN_TEST_SERVER="+dir+" 127.0.0.1:0")
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	scanner := bufio.NewScanner(out)
	require.True(t, scanner.Scan())
	url := scanner.Text()
	work := func() *exec.Cmd {
		c := child(t, "KELVIN_TEST_WORKER="+url)
		require.NoError(t, c.Start())
		return c
	}
	workers := []*exec.Cmd{work(), work()}
	over, ended := make(chan struct{}), make(chan struct{})
	kills := 0
	go func() {
		defer close(ended)
		for kills < 3 {
			select {
			case <-over:
				return
			case <-time.After(700 * time.Millisecond):
			}
			kill(workers[kills%2])
			workers[kills%2] = work()
			kills++
			if kills == 2 {
				kill(server)
				server = child(t, "KELVIN_TEST_SERVER="+dir+" "+url[len("nats://"):])
				_ = server.Start()
			}
		}
	}()
	o.Checkpoint = &infer.Checkpoint{Every: 500}
	got, err := cluster.Sample(t.Context(), p, hmc.NUTS{},
		cluster.Options{Options: o, Job: "schools", URL: url, AckWait: time.Second})
	close(over)
	<-ended
	require.NoError(t, err)
	require.Positive(t, kills)
	identical(t, want, got)
}

// A worker that is killed leaves a folder behind, which the next one removes; the folders of workers that live stay.
func TestFoldersOfKilledWorkers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folders := func(n int) (found []string) {
		require.Eventually(t, func() bool {
			found, _ = filepath.Glob(filepath.Join(os.TempDir(), "kelvin-*"))
			return len(found) == n
		}, 20*time.Second, 20*time.Millisecond)
		return found
	}
	// No server is there, for which a worker waits.
	work := func() *exec.Cmd {
		c := child(t, "KELVIN_TEST_WORKER=nats://127.0.0.1:1")
		require.NoError(t, c.Start())
		return c
	}
	first := work()
	dead := folders(1)[0]
	kill(first)
	require.DirExists(t, dead)
	work()
	require.Eventually(t, func() bool { _, err := os.Stat(dead); return os.IsNotExist(err) }, 20*time.Second,
		20*time.Millisecond)
	alive := folders(1)[0]
	work()
	require.Contains(t, folders(2), alive)
}
