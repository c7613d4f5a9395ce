package mcmc_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/mcmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The samplers whose chains are alone keep the contract of states and updates.
func TestContract(t *testing.T) {
	layout := infertest.Layout(infer.Shapes{"a": {}, "w": {2}})
	hot := infer.Linear(1, 0.5, 0, 10)
	infertest.Contract(t, map[string]infer.Method{
		"Slice":      mcmc.Slice{Temperature: hot, Width: 3},
		"RandomWalk": mcmc.RandomWalk{Temperature: hot},
		"Barker":     mcmc.Barker{Temperature: hot},
		"Elliptical": mcmc.Elliptical{Mean: []float64{1, 0, 0}, Covariance: []float64{2, 1, 0, 1, 2, 0, 0, 0, 3}},
	}, infertest.Ground{Layout: layout, Together: true, Tolerance: 1e-9,
		Batch: infer.Batch{"y": torch.Of(infertest.Vector([]float64{1, 2, 4}, 3))},
		Posterior: infertest.Walled(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			e := b.Get("y").Sub(p.Get("a")).Square().Mean(-1)
			return p.Get("w").Square().Sum().Add(e).Div(-2), nil
		}),
		Run: infer.Options{Warmup: 20, Draws: 13, Thin: 3}})
}

// A run that is stopped in its warm-up and after goes on to the draws of the run that was not, bit for bit.
func TestResume(t *testing.T) {
	for _, name := range []string{"banana", "normal"} {
		l := laws()[name]
		for what, m := range samplers(l, infer.Linear(2, 1, 0, 90)) {
			o := infer.Options{Chains: 8, Warmup: 150, Draws: 30, Thin: 3, Seed: 4, Observer: infer.Silent}
			want, err := infer.Sample(context.Background(), l.program(t, what), m, o)
			require.NoError(t, err, what)
			dir := filepath.Join(t.TempDir(), "run")
			for _, stop := range []int{300, 900, 1320, 0} {
				ctx, cancel := context.WithCancel(context.Background())
				o.Checkpoint = &infer.Checkpoint{Dir: dir, Every: 7, Resume: true, Model: name}
				o.Observer = infer.ObserverFunc(func(p infer.Progress) {
					if p.Step == stop {
						cancel()
					}
				})
				have, err := infer.Sample(ctx, l.program(t, what), m, o)
				cancel()
				if stop > 0 {
					require.ErrorIs(t, err, context.Canceled, what)
					continue
				}
				require.NoError(t, err, what)
				assert.Equal(t, want.Rows(), have.Rows(), "%s %s", name, what)
			}
		}
	}
}

// Groups of chains and the number of threads change nothing.
func TestChainsAreTheirOwn(t *testing.T) {
	l := laws()["banana"]
	for what, m := range map[string]infer.Method{"Slice": mcmc.Slice{}, "RandomWalk": mcmc.RandomWalk{}} {
		o := infer.Options{Chains: 5, Draws: 20, Warmup: 50, Observer: infer.Silent}
		want, err := infer.Sample(context.Background(), l.program(t, what), m, o)
		require.NoError(t, err)
		o.Group = 2
		have, err := infer.Sample(context.Background(), l.program(t, what), m, o)
		require.NoError(t, err)
		assert.Equal(t, want.Rows(), have.Rows(), what)
	}
}

// The function is called from several goroutines, and the names come back with their numbers.
func TestPlainNames(t *testing.T) {
	var calls atomic.Int64
	p := infer.Plain(func(x []float64) float64 {
		calls.Add(1)
		v := -(x[0]-5)*(x[0]-5)/2 - (x[1]+5)*(x[1]+5)/2
		x[0], x[1] = 1e9, 1e9 // its own
		return v
	}, []string{"plus", "minus"}, []float64{5, -5})
	r, err := infer.Run(context.Background(), p, mcmc.Slice{}, infer.Options{Observer: infer.Silent})
	require.NoError(t, err)
	for name, want := range map[string]float64{"plus": 5, "minus": -5} {
		site, err := r.Draws.Select(name)
		require.NoError(t, err)
		sum := 0.0
		for _, row := range site.Rows() {
			sum += row[0]
		}
		assert.InDelta(t, want, sum/float64(site.Total()), 0.2, name)
	}
	assert.Equal(t, "eager: the log density is plain Go", r.Draws.Attrs()["gradient"])
	detail := r.Detail.(*mcmc.Detail)
	assert.LessOrEqual(t, detail.Evaluations, calls.Load())
	assert.Greater(t, detail.Evaluations, 16000)
	assert.Zero(t, detail.Undefined)
}
