package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func schools(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 5))
	tau := c.Sample("tau", dist.HalfCauchy(5))
	c.Plate("schools", 0, func(c *ppl.Ctx) {
		z := c.Sample("z", dist.Normal(0, 1))
		theta := c.Deterministic("theta", mu.Add(tau.Mul(z)))
		c.Observe("y", dist.Normal(theta, c.Data("sigma")), c.Data("y"))
	})
}

// pooled has one effect of all schools, and can be given some of them at a time.
func pooled(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 5))
	c.Plate("schools", 8, func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(mu, c.Data("sigma")), c.Data("y"))
	})
}

// schoolsData are the eight schools; the first effect can be another.
func schoolsData(first float64) infer.Batch {
	return infer.Batch{"y": torch.New([]float64{first, 8, -3, 7, -1, 1, 18, 12}),
		"sigma": torch.New([]float64{15, 10, 16, 11, 9, 11, 10, 18})}
}

// children are what this binary does where a variable of the environment is set, with its text.
var children = map[string]func(text string) error{}

// The jobs of the tests: "other" has other data than it is given, "pairs" reads two schools at a time.
// Parameters are a temperature for "tempered".
func TestMain(m *testing.M) {
	cluster.Register("schools", func(_ []byte, data infer.Batch) (cluster.Spec, error) {
		program, err := ppl.Compile(schools, data)
		return cluster.Spec{Program: program, Method: hmc.NUTS{}}, err
	})
	cluster.Register("tempered", func(params []byte, data infer.Batch) (cluster.Spec, error) {
		var t float64
		if err := json.Unmarshal(params, &t); err != nil {
			return cluster.Spec{}, err
		}
		if t < 0 {
			panic("a model that panics")
		}
		program, err := ppl.Compile(schools, data)
		return cluster.Spec{Program: program, Method: sghmc(t)}, err
	})
	cluster.Register("other", func([]byte, infer.Batch) (cluster.Spec, error) {
		program, err := ppl.Compile(schools, schoolsData(29))
		return cluster.Spec{Program: program, Method: hmc.NUTS{}}, err
	})
	cluster.Register("pairs", func(_ []byte, data infer.Batch) (cluster.Spec, error) {
		program, err := ppl.Compile(pooled, data)
		if err != nil {
			return cluster.Spec{}, err
		}
		pairs, err := inPairs(data)
		return cluster.Spec{Program: program, Method: sghmc(1), Batches: pairs}, err
	})
	if url := os.Getenv("KELVIN_TEST_WORKER"); url != "" {
		err := cluster.Work(context.Background(), url)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if text := os.Getenv("KELVIN_TEST_SERVER"); text != "" {
		dir, addr, _ := strings.Cut(text, " ")
		err := cluster.Serve(context.Background(), addr, dir, func(url string) { fmt.Println(url) })
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for variable, f := range children {
		if text := os.Getenv(variable); text != "" {
			if err := f(text); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

func sghmc(t float64) infer.Method {
	return sgmcmc.SGHMC{LR: infer.Constant(0.01), Temperature: infer.Constant(t)}
}

func program(t testing.TB) infer.Program {
	t.Helper()
	p, err := ppl.Compile(schools, schoolsData(28))
	require.NoError(t, err)
	return p
}

func inPairs(data infer.Batch) (infer.Batches, error) {
	return infer.Minibatches(data, infer.MinibatchOptions{Size: 2, Seed: 4})
}

// identical says that two containers have the same bits.
func identical(t testing.TB, want, got *draws.Draws) {
	t.Helper()
	require.NotNil(t, got)
	require.Equal(t, want.Chains(), got.Chains())
	require.Equal(t, want.Stats(), got.Stats())
	for c := range want.Chains() {
		require.Equal(t, want.Len(c), got.Len(c))
		require.Positive(t, want.Len(c))
		for i := range want.Len(c) {
			require.Equal(t, want.Row(c, i), got.Row(c, i), "chain %d, draw %d", c, i)
		}
	}
}

// The draws of eight schools by NUTS are those of the local run with any number of workers: its chains are a task each.
func TestSampleIsTheLocalRun(t *testing.T) {
	p := program(t)
	o := infer.Options{Chains: 5, Warmup: 200, Draws: 200, Seed: 3, FirstChain: 2, Observer: infer.Silent}
	want, err := infer.Sample(t.Context(), p, hmc.NUTS{}, o)
	require.NoError(t, err)
	for _, workers := range []int{1, 2, 5} {
		got, err := cluster.Sample(t.Context(), p, hmc.NUTS{},
			cluster.Options{Options: o, Job: "schools", Workers: workers, Dir: filepath.Join(t.TempDir(), "store")})
		require.NoError(t, err)
		identical(t, want, got)
		assert.Equal(t, want.Attrs(), got.Attrs())
	}
}

// A sweep over temperatures: a method that moves all chains of a group at once, one group and three. A cell whose model
// panics is tried three times and reported, and the others have their draws.
func TestSweepWithAPoisonedCell(t *testing.T) {
	p := program(t)
	temperatures := []float64{1, 0.5, -1, 0.1}
	for _, group := range []int{0, 2} {
		o := infer.Options{Chains: 5, Group: group, Warmup: 100, Draws: 50, Seed: 1, Observer: infer.Silent}
		var cells []cluster.Cell
		for _, temperature := range temperatures {
			cells = append(cells, cluster.Cell{Program: p, Method: sghmc(max(temperature, 1e-3)), Params: temperature})
		}
		all, err := cluster.Sweep(t.Context(), cells, cluster.Options{Options: o, Job: "tempered", Workers: 2})
		var failed *cluster.TaskError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, 2, failed.Cell)
		assert.Equal(t, 3, failed.Tries)
		assert.Contains(t, failed.Text, "a model that panics")
		for i, c := range cells {
			if i == 2 {
				assert.Nil(t, all[i])
				continue
			}
			want, err := infer.Sample(t.Context(), p, c.Method, o)
			require.NoError(t, err)
			identical(t, want, all[i])
		}
	}
}

// A worker refuses what it would not draw to the bit, and says what differs.
func TestMismatch(t *testing.T) {
	p := program(t)
	o := cluster.Options{Options: infer.Options{Warmup: 10, Draws: 10}, Job: "schools"}
	var mismatch *cluster.MismatchError
	_, err := cluster.Sample(t.Context(), p, hmc.NUTS{MaxDepth: 3}, o)
	require.ErrorAs(t, err, &mismatch)
	assert.Equal(t, "method", mismatch.What)
	o.Job = "other"
	_, err = cluster.Sample(t.Context(), p, hmc.NUTS{}, o)
	require.ErrorAs(t, err, &mismatch)
	assert.Equal(t, "data", mismatch.What)
	o.Job = "nobody"
	_, err = cluster.Sample(t.Context(), p, hmc.NUTS{}, o)
	require.ErrorAs(t, err, &mismatch)
	assert.Equal(t, "job", mismatch.What)
	assert.Contains(t, mismatch.Worker, "schools")
}

// Minibatches and a start are those of the local run too, for every group of chains.
func TestStartAndBatches(t *testing.T) {
	p, err := ppl.Compile(pooled, schoolsData(28))
	require.NoError(t, err)
	start, err := p.Start(p.Batch(), 3, 77)
	require.NoError(t, err)
	batches, err := inPairs(p.Batch())
	require.NoError(t, err)
	o := infer.Options{Chains: 3, Group: 1, Warmup: 50, Draws: 50, Seed: 2, Start: start, Batches: batches,
		Observer: infer.Silent}
	want, err := infer.Sample(t.Context(), p, sghmc(1), o)
	require.NoError(t, err)
	o.Batches, err = inPairs(p.Batch())
	require.NoError(t, err)
	got, err := cluster.Sample(t.Context(), p, sghmc(1), cluster.Options{Options: o, Job: "pairs", Workers: 2})
	require.NoError(t, err)
	identical(t, want, got)
}

// Data that are larger than an object may be are an error that names the limit.
func TestMaxObject(t *testing.T) {
	_, err := cluster.Sample(t.Context(), program(t), hmc.NUTS{}, cluster.Options{Job: "schools", MaxObject: 100})
	assert.ErrorContains(t, err, "cluster.Options.MaxObject is 100")
}

// Cancelling a run ends its workers' tasks and takes it off the server.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := cluster.Sample(ctx, program(t), hmc.NUTS{},
		cluster.Options{Options: infer.Options{Warmup: 1000, Draws: 100_000_000, Thin: 10}, Job: "schools", Workers: 2})
	require.True(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
}

func TestOptionsThatDoNotTravel(t *testing.T) {
	p := program(t)
	for name, o := range map[string]cluster.Options{
		"Job":        {},
		"Until":      {Job: "a", Options: infer.Options{Until: func(infer.Progress) bool { return true }}},
		"Checkpoint": {Job: "a", Options: infer.Options{Checkpoint: &infer.Checkpoint{Dir: "x"}}},
		"Average":    {Job: "a", Options: infer.Options{Average: true}},
		"Chains":     {Job: "a", Options: infer.Options{Chains: -1}},
		"Group":      {Job: "a", Options: infer.Options{Group: -1}},
		"Workers":    {Job: "a", Workers: -2},
		"MaxObject":  {Job: "a", MaxObject: -1},
	} {
		_, err := cluster.Sample(t.Context(), p, hmc.NUTS{}, o)
		var field *infer.FieldError
		require.ErrorAs(t, err, &field)
		assert.Equal(t, name, field.Field)
	}
}

// What one server cannot do is an error at once.
func TestReplicasOfOneServer(t *testing.T) {
	_, err := cluster.Sample(t.Context(), program(t), hmc.NUTS{}, cluster.Options{Job: "schools", Replicas: 3})
	require.ErrorContains(t, err, "replicas > 1 not supported")
}
