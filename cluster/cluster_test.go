package cluster

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
)

// TestMain is the worker, too: a test kills it.
func TestMain(m *testing.M) {
	if err := registerAll(); err != nil {
		panic(err)
	}
	if url := os.Getenv("KELVIN_CLUSTER_TEST"); url != "" {
		if err := Work(context.Background(), url); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func registerAll() error {
	for name, m := range map[string]Model{
		"schools": {Program: schools, Methods: map[string]infer.Method{"nuts": hmc.NUTS{},
			"sghmc": sgmcmc.SGHMC{LR: infer.Constant(1e-3)}}},
		"panics": {Program: func(infer.Batch) (infer.Program, error) { panic("a mistake of the model") },
			Methods: map[string]infer.Method{"nuts": hmc.NUTS{}}},
		"other": {Program: func(infer.Batch) (infer.Program, error) { return schools(numbers(29)) },
			Methods: map[string]infer.Method{"nuts": hmc.NUTS{}}},
	} {
		if err := Register(name, m); err != nil {
			return err
		}
	}
	return nil
}

func schools(data infer.Batch) (infer.Program, error) {
	return ppl.Compile(func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 5))
		tau := c.Sample("tau", dist.HalfCauchy(5))
		c.Plate("schools", 0, func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Normal(0, 1))
			c.Observe("y", dist.Normal(mu.Add(tau.Mul(z)), c.Data("sigma")), c.Data("y"))
		})
	}, data)
}

// numbers are the data; the first of them can be another.
func numbers(first float64) infer.Batch {
	return infer.Batch{"y": torch.Must(torch.FromSlice([]float64{first, 8, -3, 7, -1, 1, 18, 12})),
		"sigma": torch.Must(torch.FromSlice([]float64{15, 10, 16, 11, 9, 11, 10, 18}))}
}

func program(t *testing.T) infer.Program {
	p, err := schools(numbers(28))
	require.NoError(t, err)
	return p
}

// identical compares draws bit for bit, with their statistics.
func identical(t *testing.T, want, got *draws.Draws) {
	t.Helper()
	require.NotNil(t, got)
	require.Equal(t, want.Names(), got.Names())
	require.Equal(t, want.Stats(), got.Stats())
	require.Equal(t, want.Chains(), got.Chains())
	for c := range want.Chains() {
		require.Equal(t, want.Len(c), got.Len(c), "chain %d", c)
		for i := range want.Len(c) {
			a, b := want.Row(c, i), got.Row(c, i)
			for e := range a {
				require.Equal(t, math.Float64bits(a[e]), math.Float64bits(b[e]), "chain %d, draw %d, element %d", c, i, e)
			}
		}
		for _, s := range want.Stats() {
			a, err := want.Stat(s, c)
			require.NoError(t, err)
			b, err := got.Stat(s, c)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(a), fmt.Sprint(b), s)
		}
	}
}

// The draws of a cluster are those of a local run, with any number of workers.
func TestIdentical(t *testing.T) {
	for name, method := range map[string]infer.Method{"nuts": hmc.NUTS{}, "sghmc": sgmcmc.SGHMC{LR: infer.Constant(1e-3)}} {
		for _, workers := range []int{1, 2, 5} {
			o := infer.Options{Chains: 5, Warmup: 200, Draws: 100, Seed: 7, Group: 2, Observer: infer.Silent}
			want, err := infer.Sample(t.Context(), program(t), method, o)
			require.NoError(t, err)
			o.Observer = nil
			got, err := Sample(t.Context(), program(t), method, Options{Options: o, Model: "schools", Workers: workers,
				Folder: t.TempDir()})
			require.NoError(t, err, name)
			identical(t, want, got)
		}
	}
}

// A model that panics is tried three times, and reported.
func TestPanic(t *testing.T) {
	d, err := Sample(t.Context(), program(t), hmc.NUTS{}, Options{Options: infer.Options{Chains: 2}, Model: "panics"})
	var failed *TaskError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, maxTries, failed.Tries)
	assert.ErrorContains(t, err, "a mistake of the model")
	assert.Nil(t, d)
}

// Another build, libtorch or other data are refused, and the error says which differs.
func TestRefused(t *testing.T) {
	id := identity{Build: "a", LibTorch: "1.13.1", CPU: "x"}
	require.NoError(t, id.differs(identity{Build: "a", LibTorch: "1.13.1", CPU: "y"}))
	err := id.differs(identity{Build: "b", LibTorch: "1.13.1"})
	require.ErrorIs(t, err, ErrRefused)
	assert.ErrorContains(t, err, "the build differs: the job has a, this worker b")
	assert.ErrorContains(t, id.differs(identity{Build: "a", LibTorch: "2.0.0"}), "the libtorch differs")
	_, err = Sample(t.Context(), program(t), hmc.NUTS{}, Options{Options: infer.Options{Chains: 2}, Model: "other"})
	require.ErrorIs(t, err, ErrRefused)
	assert.ErrorContains(t, err, "the data hash differs")
}

// Options that cannot travel are errors that name them.
func TestOptions(t *testing.T) {
	for field, o := range map[string]Options{
		"Until":    {Options: infer.Options{Until: func(infer.Progress) bool { return true }}},
		"Average":  {Options: infer.Options{Average: true}},
		"Chains":   {Options: infer.Options{Chains: -1}},
		"MaxBytes": {MaxBytes: -1},
	} {
		o.Model = "schools"
		_, err := Sample(t.Context(), program(t), hmc.NUTS{}, o)
		var bad *infer.FieldError
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, field, bad.Field)
	}
	_, err := Sample(t.Context(), program(t), hmc.NUTS{TargetAccept: 0.9}, Options{Model: "schools"})
	assert.ErrorContains(t, err, "TargetAccept")
}

// Workers that are killed lose their tasks to others, and the draws are those of a local run.
func TestKilledWorkers(t *testing.T) {
	s, err := serve(&server.Options{Host: "127.0.0.1", Port: -1, StoreDir: t.TempDir()})
	require.NoError(t, err)
	defer stop(s)
	method := sgmcmc.SGHMC{LR: infer.Constant(1e-3)}
	o := infer.Options{Chains: 2, Warmup: 1000, Draws: 1000, Thin: 2000, Seed: 3, Group: 1, Observer: infer.Silent}
	want, err := infer.Sample(t.Context(), program(t), method, o)
	require.NoError(t, err)
	start := func() *exec.Cmd {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "KELVIN_CLUSTER_TEST="+s.ClientURL())
		require.NoError(t, c.Start())
		return c
	}
	worker, kills := start(), 0
	var last Progress
	o.Observer, o.Checkpoint = nil, &infer.Checkpoint{Every: 20_000}
	got, err := Sample(t.Context(), program(t), method, Options{Options: o, Model: "schools", URL: s.ClientURL(),
		Progress: func(p Progress) {
			last = p
			if kills < 2 && p.Updates > 0 && p.Done < p.Tasks { // it has a checkpoint, and more to do
				kills++
				_ = worker.Process.Kill()
				_ = worker.Wait()
				worker = start()
				time.Sleep(10 * time.Millisecond)
			}
		}})
	_ = worker.Process.Kill()
	_ = worker.Wait()
	require.NoError(t, err)
	identical(t, want, got)
	assert.Equal(t, 2, kills)
	t.Log(last)
}
