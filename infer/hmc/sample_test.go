package hmc_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
)

var ctx = context.Background()

// Eight schools with the defaults. The means and standard deviations are from quadrature over mu and tau (package models).
func TestEightSchools(t *testing.T) {
	r, err := hmc.Run(ctx, schools(t), hmc.Options{Seed: 1})
	require.NoError(t, err)
	require.Equal(t, 4, r.Draws.Chains())
	require.Equal(t, 1000, r.Draws.Len(0))
	matches(t, r.Draws, "mu", 0, 4.397, 3.318)
	matches(t, r.Draws, "tau", 0, 3.598, 3.220)
	report, err := diag.Diagnose(r.Draws, diag.DiagnoseOptions{})
	require.NoError(t, err)
	divergent, total := 0.0, 0
	for chain := range 4 {
		v, err := r.Draws.Stat(hmc.StatDivergent, chain)
		require.NoError(t, err)
		for _, x := range v {
			divergent += x
			total++
		}
	}
	assert.LessOrEqual(t, divergent, 20., "of %d draws; %v", total, report)
}

// Centred, the posterior is a funnel that no step size fits: it diverges, says so, and says what to do.
func TestCentredSchoolsDiverge(t *testing.T) {
	m, err := models.EightSchoolsCentred()
	require.NoError(t, err)
	p, err := m.Compile()
	require.NoError(t, err)
	d, err := hmc.Sample(ctx, p, hmc.Options{Seed: 2, Warmup: 300, Draws: 300})
	require.NoError(t, err)
	report, err := diag.Diagnose(d, diag.DiagnoseOptions{})
	require.NoError(t, err)
	require.False(t, report.OK())
	require.Contains(t, report.String(), "diverge")
	require.Contains(t, report.String(), "reparam")
}

// The density to the power 1/T: a Gaussian's variance is multiplied by T.
func TestTemperature(t *testing.T) {
	for _, temperature := range []float64{0.5, 1, 2} {
		d, err := hmc.Sample(ctx, gaussian(t), hmc.Options{Seed: 3, Temperature: temperature})
		require.NoError(t, err)
		matches(t, d, "x", 0, 0, math.Sqrt(temperature))
		matches(t, d, "x", 1, 0, 3*math.Sqrt(temperature))
	}
}

// The other kernels and metrics are exact too.
func TestKernelsAndMetrics(t *testing.T) {
	for name, o := range map[string]hmc.Options{
		"HMC":      {Kernel: kernel.HMC{Steps: 8, Jitter: 0.5}},
		"MALA":     {Kernel: kernel.MALA{}, Draws: 4000},
		"dense":    {Metric: kernel.Dense},
		"low rank": {Metric: kernel.LowRank},
		"fisher":   {Adapt: kernel.Adapt{From: kernel.Fisher}},
		"pooled":   {Adapt: kernel.Adapt{Pooled: true}},
	} {
		t.Run(name, func(t *testing.T) {
			o.Seed = 4
			d, err := hmc.Sample(ctx, gaussian(t), o)
			require.NoError(t, err)
			matches(t, d, "x", 0, 0, 1)
			matches(t, d, "x", 1, 0, 3)
		})
	}
}

// The same run twice is bit-identical whatever the timing; a stream has the same draws in the same order for each chain.
func TestRunsRepeat(t *testing.T) {
	p := schools(t)
	o := hmc.Options{Seed: 5, Chains: 6, Warmup: 60, Draws: 40}
	want, err := hmc.Run(ctx, p, o)
	require.NoError(t, err)
	old := runtime.GOMAXPROCS(1)
	again, err := hmc.Run(ctx, p, o)
	runtime.GOMAXPROCS(old)
	require.NoError(t, err)
	sameDraws(t, want.Draws, again.Draws)
	sameDraws(t, want.Unconstrained, again.Unconstrained)

	next := make([]int, 6)
	warm := 0
	for d, err := range hmc.Stream(ctx, p, o) {
		require.NoError(t, err)
		if d.Warmup {
			warm++
			continue
		}
		require.Equal(t, next[d.Chain], d.Index)
		next[d.Chain]++
		require.Equal(t, want.Unconstrained.Row(d.Chain, d.Index)[:len(d.X)], d.X)
	}
	require.Equal(t, []int{40, 40, 40, 40, 40, 40}, next)
	require.Equal(t, 6*60, warm)
}

// Leaving a stream early ends the run and leaves no goroutine behind.
func TestLeavingAStream(t *testing.T) {
	p := schools(t)
	before := runtime.NumGoroutine()
	n := 0
	for _, err := range hmc.Stream(ctx, p, hmc.Options{Warmup: 20}) {
		require.NoError(t, err)
		if n++; n == 50 {
			break
		}
	}
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
	_, err := hmc.Sample(ctx, nil, hmc.Options{})
	require.ErrorIs(t, err, infer.ErrConfig)
	for _, err := range hmc.Stream(ctx, p, hmc.Options{Chains: -1}) {
		require.ErrorContains(t, err, "Chains is -1")
	}
}

// With 64 chains and pooled adaptation nearly every batch is full. (What is missing is the end, when some chains are through.)
func TestBatchesAreFull(t *testing.T) {
	r, err := hmc.Run(ctx, schools(t), hmc.Options{Chains: 64, Warmup: 200, Draws: 500, Seed: 6, Adapt: kernel.Adapt{Pooled: true}})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, r.Batches.SamplingFill(64), 0.95)
}

// One transition from the same state agrees to rounding whatever chains run beside it.
func TestOtherChainsDoNotMatter(t *testing.T) {
	p := schools(t)
	x := make([]float64, 3*10)
	for i := range x {
		x[i] = math.Sin(float64(i))
	}
	run := func(chains int) []float64 {
		start, err := infer.NewParams(p.Layout(), x[:10*chains])
		require.NoError(t, err)
		if chains == 1 {
			start, err = start.Repeat(1)
			require.NoError(t, err)
		}
		r, err := hmc.Run(ctx, p, hmc.Options{Chains: chains, Warmup: kernel.None, Draws: 1, StepSize: 0.2, Init: start, Seed: 7})
		require.NoError(t, err)
		return r.Unconstrained.Row(0, 0)
	}
	require.InDeltaSlice(t, run(1), run(3), 1e-10)
}

// A factorisation that fails inside the model is a divergence of its chain, and so is a NaN.
func TestBadPointsAreDivergences(t *testing.T) {
	layout, err := infer.NewLayout(infer.Shapes{"x": {}})
	require.NoError(t, err)
	for name, f := range map[string]infer.LogPosterior{
		"linear algebra": func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			// N(0, 1) for x > -1, where the matrix [x + 1] has a factor.
			x := p.Get("x").T()
			l := x.MustAddScalar(ts.FloatScalar(1), false).MustReshape([]int64{1, 1}, false).MustLinalgCholesky(false, false)
			return torch.Of(x.MustSquare(false).MustMulScalar(ts.FloatScalar(-0.5), false).MustAdd(sum(l).MustMulScalar(ts.FloatScalar(0), false), false)), nil
		},
		"not a number": func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			x := p.Get("x").T()
			root := x.MustAddScalar(ts.FloatScalar(1), false).MustSqrt(false)
			return torch.Of(x.MustSquare(false).MustMulScalar(ts.FloatScalar(-0.5), false).MustAdd(root.MustMulScalar(ts.FloatScalar(0), false), false)), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := hmc.Sample(ctx, hmc.Posterior{Density: f, Sites: layout}, hmc.Options{Seed: 8, Warmup: 200, Draws: 800, Chains: 3})
			require.NoError(t, err)
			divergent := 0.0
			for chain := range 3 {
				v, err := d.Stat(hmc.StatDivergent, chain)
				require.NoError(t, err)
				for _, x := range v {
					divergent += x
				}
			}
			assert.Positive(t, divergent)
			for _, chain := range element(t, d, "x", 0) {
				for _, x := range chain {
					require.Greater(t, x, -1.)
				}
			}
			// A normal number above -1 has the mean φ(1)/Φ(1) = 0.2876.
			m, err := d.Mean("x")
			require.NoError(t, err)
			assert.InDelta(t, 0.2876, m[0], 4*diag.MCSEMean(element(t, d, "x", 0)))
		})
	}
}

// Where no start is finite the error names the site.
func TestStartsThatAreNotFinite(t *testing.T) {
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		c.Factor("barrier", x.Abs().Neg().Sqrt())
	}, nil)
	require.NoError(t, err)
	_, err = hmc.Sample(ctx, p, hmc.Options{})
	require.ErrorIs(t, err, infer.ErrNonFinite)
	require.ErrorContains(t, err, `"barrier"`)
}

// A failure in mid-run, and a cancellation, return the draws so far with the error.
func TestDrawsSoFar(t *testing.T) {
	g := gaussian(t)
	calls := 0
	density := g.Density
	boom := errors.New("boom")
	for name, f := range map[string]func(){
		"a panic":  func() { panic(boom) },
		"an error": func() { torch.Must(0, boom) },
	} {
		calls = 0
		g.Density = func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			if calls++; calls > 4000 {
				f()
			}
			return density(p, b)
		}
		d, err := hmc.Sample(ctx, g, hmc.Options{Warmup: 100, Chains: 2, Draws: 100_000})
		require.ErrorIs(t, err, boom, name)
		require.Greater(t, d.Total(), 100, name)
	}
	g.Density = density
	cancelled, cancel := context.WithCancel(ctx)
	d, err := hmc.Sample(cancelled, g, hmc.Options{Warmup: 100, Draws: 100_000, Observe: func(p hmc.Progress) {
		if p.Draws == 200 {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.GreaterOrEqual(t, d.Total(), 200)
	require.Less(t, d.Total(), 1000)
}

// The line that a run shows.
func TestProgress(t *testing.T) {
	var last hmc.Progress
	n := int64(0)
	_, err := hmc.Sample(ctx, gaussian(t), hmc.Options{Warmup: 50, Draws: 30, Chains: 2, Observe: func(p hmc.Progress) {
		n++
		require.Equal(t, n, p.Done)
		last = p
	}})
	require.NoError(t, err)
	require.EqualValues(t, 160, last.Total)
	require.EqualValues(t, 160, last.Done)
	require.EqualValues(t, 60, last.Draws)
	require.Zero(t, last.Warming)
	require.Regexp(t, `^2 chains, sampling: 100 %, 60 of 60 draws, 0 divergences, step [0-9.]+, [0-9.]+ gradients a draw$`, last.String())
}

func TestOptionsThatAreWrong(t *testing.T) {
	p := schools(t)
	two, err := infer.Zeros(p.Layout())
	require.NoError(t, err)
	two, err = two.Repeat(2)
	require.NoError(t, err)
	other, err := infer.NewLayout(infer.Shapes{"a": {}})
	require.NoError(t, err)
	wrong, err := infer.Zeros(other)
	require.NoError(t, err)
	for want, o := range map[string]hmc.Options{
		"Chains is -2":           {Chains: -2},
		"Draws is -1":            {Draws: -1},
		"Temperature is -1":      {Temperature: -1},
		"StepSize is NaN":        {StepSize: math.NaN()},
		"Init is of 2 chains":    {Init: two},
		"layout must be":         {Init: wrong},
		"Target is 2":            {Adapt: kernel.Adapt{Step: kernel.DualAveraging{Target: 2}}},
		"Dir is":                 {Checkpoint: &hmc.Checkpoint{}},
		"hmc.Checkpoint: Every ": {Checkpoint: &hmc.Checkpoint{Dir: t.TempDir(), Every: -1}},
	} {
		_, err := hmc.Sample(ctx, p, o)
		require.ErrorContains(t, err, want)
	}
}
