//go:build slow && linux

package cluster_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pause is how long a gradient of slowSchools takes at least, so that its run outlives the partition on any machine.
var pause, _ = time.ParseDuration(os.Getenv("KELVIN_TEST_PAUSE"))

func slowSchools(c *ppl.Ctx) {
	time.Sleep(pause)
	mu := c.Sample("mu", dist.Normal(0, 5))
	c.Plate("schools", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, c.Data("sigma")), c.Data("y")) })
}

func init() {
	cluster.Register("slow", func(_ []byte, data infer.Batch) (cluster.Spec, error) {
		program, err := ppl.Compile(slowSchools, data)
		return cluster.Spec{Program: program, Method: sghmc(1)}, err
	})
}

// namespace is a network namespace with one link to this one.
type namespace struct {
	name, link string
	addr       string // of this side
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func newNamespace(t *testing.T) namespace {
	t.Helper()
	id := os.Getpid() % 100_000 // names of links have at most 15 letters
	n := namespace{name: fmt.Sprintf("kelvin%d", id), link: fmt.Sprintf("kelvin%da", id), addr: "10.213.77.1"}
	inside := fmt.Sprintf("kelvin%db", id)
	t.Cleanup(func() {
		_ = ip("link", "del", n.link)
		_ = ip("netns", "del", n.name)
	})
	for _, args := range []string{"netns add " + n.name,
		"link add " + n.link + " type veth peer name " + inside,
		"link set " + inside + " netns " + n.name,
		"addr add " + n.addr + "/30 dev " + n.link,
		"link set " + n.link + " up",
		"-n " + n.name + " addr add 10.213.77.2/30 dev " + inside,
		"-n " + n.name + " link set " + inside + " up"} {
		if err := ip(strings.Fields(args)...); err != nil {
			t.Skipf("a partition needs network namespaces, which take iproute2 and the rights of root: %v", err)
		}
	}
	return n
}

// attemptFile is what a worker has recorded of an attempt.
type attemptFile struct {
	task, worker  string
	resumed, step int
	changed       time.Time
}

// attempts are the records of a folder, by task and then by attempt. Those without an update are left out.
func attempts(t *testing.T, dir string) (all []attemptFile) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		a := attemptFile{changed: info.ModTime()}
		if _, err := fmt.Sscan(string(text), &a.resumed, &a.step); err != nil {
			continue
		}
		parts := strings.SplitN(filepath.Base(path), "-", 4) // run, task, attempt, worker
		a.task, a.worker = parts[1], parts[3]
		all = append(all, a)
	}
	return all
}

// A worker is cut off from the server for 30 s in the middle of a task. Another one goes on from its last checkpoint;
// the one that comes back writes nothing of it, and takes other tasks. The draws are those of the local run.
func TestPartition(t *testing.T) {
	const every = 50
	network, notes := newNamespace(t), t.TempDir()
	server := child(t, "KELVIN_TEST_SERVER="+t.TempDir()+" 0.0.0.0:0")
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	scanner := bufio.NewScanner(out)
	require.True(t, scanner.Scan())
	port := scanner.Text()[strings.LastIndex(scanner.Text(), ":"):]
	work := func(url string, command ...string) *exec.Cmd {
		c := child(t, "KELVIN_TEST_WORKER="+url)
		c.Env = append(c.Env, "KELVIN_TEST_PAUSE=10ms", "KELVIN_CLUSTER_RECORD="+notes)
		if len(command) > 0 {
			path, err := exec.LookPath(command[0])
			require.NoError(t, err)
			c.Path, c.Args = path, append(command, c.Path)
		}
		require.NoError(t, c.Start())
		return c
	}
	cut := work("nats://"+network.addr+port, "ip", "netns", "exec", network.name)
	of := func() (all []attemptFile) { // ip becomes the worker, so its number is the worker's
		for _, a := range attempts(t, notes) {
			if strings.Contains(a.worker, fmt.Sprintf("-%d-", cut.Process.Pid)) {
				all = append(all, a)
			}
		}
		return all
	}

	p, err := ppl.Compile(slowSchools, schoolsData(28))
	require.NoError(t, err)
	// 14 tasks of at least 6 s are more than 30 s of two workers' time.
	o := infer.Options{Chains: 14, Group: 1, Warmup: 200, Draws: 400, Seed: 7, Native: native.Eager,
		Observer: infer.Silent}
	var got *draws.Draws
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o := o
		o.Checkpoint = &infer.Checkpoint{Every: every}
		got, failed = cluster.Sample(t.Context(), p, sghmc(1), cluster.Options{Options: o, Job: "slow",
			URL: "nats://127.0.0.1" + port, AckWait: time.Second})
	}()
	require.Eventually(t, func() bool { a := of(); return len(a) == 1 && a[0].step > 2*every }, time.Minute,
		10*time.Millisecond)
	require.NoError(t, ip("link", "set", network.link, "down"))
	for range 2 {
		work("nats://127.0.0.1" + port)
	}
	time.Sleep(30 * time.Second)
	select {
	case <-ended:
		require.FailNow(t, "the run ended before the partition", "%v", failed)
	default:
	}
	lost := of()
	require.Len(t, lost, 1)
	healed := time.Now()
	require.NoError(t, ip("link", "set", network.link, "up"))
	<-ended
	require.NoError(t, failed)

	want, err := infer.Sample(t.Context(), p, sghmc(1), o)
	require.NoError(t, err)
	identical(t, want, got)
	back := 0
	for _, a := range of() {
		if a.task != lost[0].task && a.changed.After(healed) {
			back++
		}
	}
	assert.Positive(t, back, "tasks of the worker that came back")
	taken := 0
	for _, a := range attempts(t, notes) {
		if a.task == lost[0].task && a.worker != lost[0].worker {
			taken++
			assert.Positive(t, a.resumed)
			assert.LessOrEqual(t, lost[0].step-a.resumed, int(every), "updates that were made again")
		}
	}
	assert.Equal(t, 1, taken, "workers that took the task")
}
