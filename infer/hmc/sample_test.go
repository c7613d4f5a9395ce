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
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var ctx = context.Background()

// Eight schools with the defaults. The means and standard deviations are from quadrature over mu
// and tau (package models).
func TestEightSchools(t *testing.T) {
	r, err := infer.Run(ctx, schools(t), hmc.NUTS{}, infer.Options{Seed: 1})
	require.NoError(t, err)
	require.Equal(t, 4, r.Draws.Chains())
	require.Equal(t, 1000, r.Draws.Len(0))
	matches(t, r.Draws, "mu", 0, 4.397, 3.318)
	matches(t, r.Draws, "tau", 0, 3.598, 3.220)
	report, err := diag.Diagnose(r.Draws, diag.DiagnoseOptions{})
	require.NoError(t, err)
	divergent, _ := stat(t, r.Draws, draws.StatDivergent)
	total := r.Draws.Total()
	assert.LessOrEqual(t, divergent, 20., "of %d draws; %v", total, report)
}

// Centred, the posterior is a funnel that no step size fits: it diverges, says so, and says what to do.
func TestCentredSchoolsDiverge(t *testing.T) {
	m, err := models.EightSchoolsCentred()
	require.NoError(t, err)
	p, err := m.Compile()
	require.NoError(t, err)
	d, err := infer.Sample(ctx, p, hmc.NUTS{}, infer.Options{Seed: 2, Warmup: 300, Draws: 300})
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
		d, err := infer.Sample(ctx, gaussian(t), hmc.NUTS{Temperature: infer.Constant(temperature)}, infer.Options{Seed: 3})
		require.NoError(t, err)
		matches(t, d, "x", 0, 0, math.Sqrt(temperature))
		matches(t, d, "x", 1, 0, 3*math.Sqrt(temperature))
	}
}

// The other kernels and metrics are exact too.
func TestKernelsAndMetrics(t *testing.T) {
	for name, c := range map[string]struct {
		method infer.Method
		draws  int
	}{
		"HMC":      {hmc.HMC{Steps: 8, Jitter: 0.5}, 0},
		"MALA":     {hmc.HMC{Steps: 1}, 4000},
		"dense":    {hmc.NUTS{Metric: hmc.Dense}, 0},
		"low rank": {hmc.NUTS{Metric: hmc.LowRank}, 0},
		"diagonal": {hmc.NUTS{Metric: hmc.Diagonal}, 0},
		"pooled":   {hmc.NUTS{Pooled: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := infer.Sample(ctx, gaussian(t), c.method, infer.Options{Seed: 4, Draws: c.draws})
			require.NoError(t, err)
			matches(t, d, "x", 0, 0, 1)
			matches(t, d, "x", 1, 0, 3)
		})
	}
}

// The same run twice is bit-identical whatever the timing.
func TestRunsRepeat(t *testing.T) {
	p := schools(t)
	o := infer.Options{Seed: 5, Chains: 6, Warmup: 60, Draws: 40}
	want, err := infer.Run(ctx, p, hmc.NUTS{}, o)
	require.NoError(t, err)
	old := runtime.GOMAXPROCS(1)
	again, err := infer.Run(ctx, p, hmc.NUTS{}, o)
	runtime.GOMAXPROCS(old)
	require.NoError(t, err)
	sameDraws(t, want.Draws, again.Draws)
	sameDraws(t, want.Unconstrained, again.Unconstrained)
	assert.Equal(t, detail(t, want), detail(t, again))
}

// A run that is cancelled ends, and leaves no goroutine behind.
func TestCancelledRunsLeaveNothing(t *testing.T) {
	p := schools(t)
	before := runtime.NumGoroutine()
	running, cancel := context.WithCancel(ctx)
	n := 0
	_, err := infer.Sample(running, p, hmc.NUTS{}, infer.Options{Warmup: 20,
		Observer: infer.ObserverFunc(func(infer.Progress) {
			if n++; n == 50 {
				cancel()
			}
		})})
	require.ErrorIs(t, err, context.Canceled)
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

// With 64 chains and pooled adaptation every batch of eager gradients holds all chains until the first is finished: as
// many batches as that one has leapfrog steps.
func TestBatchesAreFull(t *testing.T) {
	r, err := infer.Run(ctx, schools(t), hmc.NUTS{Pooled: true},
		infer.Options{Chains: 64, Warmup: 200, Draws: 100, Seed: 6, Native: native.Eager})
	require.NoError(t, err)
	d := detail(t, r)
	all, least := stat(t, r.Draws, draws.StatLeapfrog)
	assert.EqualValues(t, least, d.FullBatches)
	assert.EqualValues(t, all, d.SamplingRows)
	assert.Equal(t, r.Gradients, d.Rows)
	assert.InDelta(t, all/(64*float64(d.SamplingBatches)), d.Fill(), 1e-12)
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
		r, err := infer.Run(ctx, p, hmc.NUTS{StepSize: infer.Constant(0.2)},
			infer.Options{Chains: chains, Warmup: infer.None, Draws: 1, Start: start, Seed: 7})
		require.NoError(t, err)
		return r.Unconstrained.Row(0, 0)
	}
	require.InDeltaSlice(t, run(1), run(3), 1e-10)
}

// A factorisation that fails inside the model is a divergence of its chain, and so is a NaN.
func TestBadPointsAreDivergences(t *testing.T) {
	for name, f := range map[string]infer.LogPosterior{
		"linear algebra": func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			// N(0, 1) for x > -1, where the matrix [x + 1] has a factor.
			x := p.Get("x")
			l := torch.Of(x.Add(1).T().MustReshape([]int64{1, 1}, false).MustLinalgCholesky(false, false))
			return x.Square().Mul(-0.5).Add(l.Sum().Mul(0)), nil
		},
		"not a number": func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			x := p.Get("x")
			return x.Square().Mul(-0.5).Add(x.Add(1).Sqrt().Mul(0)), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := handwritten(t, f, infer.Shapes{"x": {}})
			d, err := infer.Sample(ctx, p, hmc.NUTS{}, infer.Options{Seed: 8, Warmup: 200, Draws: 800, Chains: 3})
			require.NoError(t, err)
			divergent, _ := stat(t, d, draws.StatDivergent)
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
	_, err = infer.Sample(ctx, p, hmc.NUTS{}, infer.Options{})
	require.ErrorIs(t, err, infer.ErrNonFinite)
	require.ErrorContains(t, err, `"barrier"`)
}

// A failure in mid-run, and a cancellation, return the draws so far with the error.
func TestDrawsSoFar(t *testing.T) {
	density := gaussianDensity(t)
	calls := 0
	boom := errors.New("boom")
	for name, f := range map[string]func(){
		"a panic":  func() { panic(boom) },
		"an error": func() { torch.Must(0, boom) },
	} {
		calls = 0
		p := handwritten(t, func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			if calls++; calls > 4000 {
				f()
			}
			return density(p, b)
		}, two)
		d, err := infer.Sample(ctx, p, hmc.NUTS{}, infer.Options{Warmup: 100, Chains: 2, Draws: 100_000,
			Native: native.Eager})
		require.ErrorIs(t, err, boom, name)
		require.Greater(t, d.Total(), 100, name)
	}
	cancelled, cancel := context.WithCancel(ctx)
	o := infer.Options{Warmup: 100, Draws: 100_000, Observer: infer.ObserverFunc(func(p infer.Progress) {
		if p.Draws == 50 {
			cancel()
		}
	})}
	d, err := infer.Sample(cancelled, gaussian(t), hmc.NUTS{}, o)
	require.ErrorIs(t, err, context.Canceled)
	require.GreaterOrEqual(t, d.Total(), 200)
	require.Less(t, d.Total(), 4*100_000, "chains run freely, so that one may be far ahead of the slowest")
}

// What is wrong is named as the user wrote it.
func TestOptionsThatAreWrong(t *testing.T) {
	p := schools(t)
	for want, c := range map[string]struct {
		method  infer.Method
		options infer.Options
	}{
		"infer.Options: Chains is -2":        {hmc.NUTS{}, infer.Options{Chains: -2}},
		"infer.Options: Draws is infer.None": {hmc.NUTS{}, infer.Options{Draws: infer.None}},
		"hmc.NUTS: Temperature is -1":        {hmc.NUTS{Temperature: infer.Constant(-1)}, infer.Options{}},
		"hmc.NUTS: StepSize is NaN":          {hmc.NUTS{StepSize: infer.Constant(math.NaN())}, infer.Options{}},
		"hmc.NUTS: TargetAccept is 2":        {hmc.NUTS{TargetAccept: 2}, infer.Options{}},
		"hmc.NUTS: MaxDepth is -1":           {hmc.NUTS{MaxDepth: -1}, infer.Options{}},
		"hmc.HMC: Persistence is 1":          {hmc.HMC{Persistence: 1}, infer.Options{}},
		"hmc.HMC: Lower is of length 1":      {hmc.HMC{Lower: []float64{0}}, infer.Options{}},
		`hmc.HMC: Metric is "round"`:         {hmc.HMC{Metric: "round"}, infer.Options{}},
		"hmc.Exchange: Ladder is []":         {hmc.Exchange{}, infer.Options{}},
		"hmc.Exchange: Ladder[1] is 1":       {hmc.Exchange{Ladder: []float64{1, 1}}, infer.Options{}},
		"hmc.Exchange: Every is -1":          {hmc.Exchange{Ladder: []float64{1, 2}, Every: -1}, infer.Options{}},
		"hmc.Exchange: Kernel.Pooled": {hmc.Exchange{Ladder: []float64{1, 2}, Kernel: hmc.NUTS{Pooled: true}},
			infer.Options{}},
		"hmc.Exchange: Kernel.MaxDepth is 100": {
			hmc.Exchange{Ladder: []float64{1, 2}, Kernel: hmc.NUTS{MaxDepth: 100}}, infer.Options{}},
		"hmc.Exchange: Kernel.Steps is -1": {hmc.Exchange{Ladder: []float64{1, 2}, Kernel: hmc.HMC{Steps: -1}},
			infer.Options{}},
		"hmc.Exchange: Kernel is a hmc.Exc": {hmc.Exchange{Ladder: []float64{1, 2}, Kernel: hmc.Exchange{}}, infer.Options{}},
		"hmc.Exchange: Kernel.Temperature": {
			hmc.Exchange{Ladder: []float64{1, 2}, Kernel: hmc.HMC{Temperature: infer.Constant(2)}}, infer.Options{}},
		"hmc.NUTS: Temperature at transition 2 is -1": {
			hmc.NUTS{Temperature: func(i int) float64 { return max(-1, 3-2*float64(i)) }},
			infer.Options{Warmup: 10, Draws: 10}},
	} {
		_, err := infer.Sample(ctx, p, c.method, c.options)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, infer.ErrConfig)
		require.NotContains(t, err.Error(), "kernel.")
	}
}
