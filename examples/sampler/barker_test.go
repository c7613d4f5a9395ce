package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/shown"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
)

// One update leaves the posterior as it is. 20000 chains start at exact draws of N(0, 1) and make one update with a
// large step; then the mean, the square and the fourth power still have their expectations 0, 1 and 3. The draws are
// independent, so that the standard errors are those of the powers, √(1/n), √(2/n) and √(96/n).
func TestPosteriorStays(t *testing.T) {
	const n = 20000
	layout, err := infer.NewLayout(infer.Shapes{"x": {1}})
	require.NoError(t, err)
	streams := torch.NewStreams(7, n)
	flat, err := streams.Normal([]int64{1}, gotch.Double, torch.CPU)
	require.NoError(t, err)
	target := infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Square().Sum().Div(-2), nil
	}, 1)
	transform, err := Barker{LR: infer.Constant(1.5)}.Build(target)
	require.NoError(t, err)
	state, err := infer.Init(transform, infer.Params{Layout: layout, Flat: flat}, 8)
	require.NoError(t, err)
	next, info, err := transform.Update(state, nil)
	require.NoError(t, err)
	before, err := state.Position().Values()
	require.NoError(t, err)
	after, err := next.Position().Values()
	require.NoError(t, err)

	moved, sums := 0.0, [3]float64{}
	for i, v := range after {
		if v != before[i] {
			moved++
		}
		sums[0], sums[1], sums[2] = sums[0]+v, sums[1]+v*v, sums[2]+v*v*v*v
	}
	for i, want := range []float64{0, 1, 3} {
		se := math.Sqrt([]float64{1, 2, 96}[i] / n)
		require.InDelta(t, want, sums[i]/n, 4*se, "power %d", i)
	}
	accept := 0.0
	for _, a := range info.Stats["accept"] {
		accept += a / n
	}
	require.InDelta(t, accept, moved/n, 4*0.5/math.Sqrt(n), "moves are made as often as it tells")
}

// The law of a whole run: a posterior with correlation, on the positive numbers, and at another temperature. For
// x ~ Gamma(3, 2) at temperature T the density is p^(1/T), which is Gamma(1 + 2/T, 2/T) of the constrained value.
func TestLaw(t *testing.T) {
	model := func(c *ppl.Ctx) {
		c.Sample("x", dist.Gamma(3, 2))
		a := c.Sample("a", dist.Normal(0, 1))
		c.Sample("b", dist.Normal(a, 0.5)) // variance 1.25, covariance with a 1
	}
	program, err := ppl.Compile(model, nil)
	require.NoError(t, err)
	for _, temperature := range []float64{1, 2} {
		posterior, err := infer.Sample(context.Background(), program,
			Barker{LR: infer.Constant(0.6), Temperature: infer.Constant(temperature)}, infer.Options{Draws: 2000, Seed: 3})
		require.NoError(t, err)
		shape, rate := 1+2/temperature, 2/temperature
		for name, c := range map[string]struct {
			f    func(a, b, x float64) float64 // sites are in the order of their names
			want float64
		}{
			"a":   {func(a, _, _ float64) float64 { return a }, 0},
			"b²":  {func(_, b, _ float64) float64 { return b * b }, 1.25 * temperature},
			"ab":  {func(a, b, _ float64) float64 { return a * b }, temperature},
			"x":   {func(_, _, x float64) float64 { return x }, shape / rate},
			"1/x": {func(_, _, x float64) float64 { return 1 / x }, rate / (shape - 1)},
			"√x": {func(_, _, x float64) float64 { return math.Sqrt(x) },
				math.Gamma(shape+0.5) / math.Gamma(shape) / math.Sqrt(rate)},
			"x<1?": {func(_, _, x float64) float64 { return map[bool]float64{true: 1}[x < 1] }, gammaBelow(shape, rate)},
		} {
			if name == "1/x" && shape <= 2 {
				continue // its variance is infinite
			}
			values := make([][]float64, posterior.Chains())
			mean := 0.0
			for k := range values {
				for s := range posterior.Len(k) {
					row := posterior.Row(k, s)
					v := c.f(row[0], row[1], row[2])
					values[k], mean = append(values[k], v), mean+v/float64(posterior.Total())
				}
			}
			require.InDelta(t, c.want, mean, 4*diag.MCSEMean(values), "%s at T = %v", name, temperature)
		}
	}
}

// gammaBelow is the probability that a Gamma variable is below 1, by the midpoint rule.
func gammaBelow(shape, rate float64) float64 {
	const n = 100000
	sum := 0.0
	for i := range n {
		x := (float64(i) + 0.5) / n
		sum += math.Pow(x, shape-1) * math.Exp(-rate*x) / n
	}
	return sum * math.Pow(rate, shape) / math.Gamma(shape)
}

// A run that is stopped and resumed gives the same draws, bit for bit, as one that is not: the method gets this from
// its state alone.
func TestResume(t *testing.T) {
	program, err := compile()
	require.NoError(t, err)
	barker := Barker{LR: infer.Constant(0.7)}
	options := infer.Options{Chains: 2, Warmup: 50, Draws: 100, Seed: 5}
	whole, err := infer.Sample(context.Background(), program, barker, options)
	require.NoError(t, err)

	options.Checkpoint = &infer.Checkpoint{Dir: filepath.Join(t.TempDir(), "run"), Every: 20, Resume: true}
	ctx, stop := context.WithCancel(context.Background())
	options.Observer = infer.ObserverFunc(func(p infer.Progress) {
		if p.Draws == 40 {
			stop()
		}
	})
	_, err = infer.Sample(ctx, program, barker, options)
	require.ErrorIs(t, err, context.Canceled)
	options.Observer = infer.Silent
	resumed, err := infer.Sample(context.Background(), program, barker, options)
	require.NoError(t, err)
	for k := range 2 {
		for i := range whole.Dim() {
			require.Equal(t, whole.Element(k, i), resumed.Element(k, i))
		}
	}
}

// A field that is wrong is named.
func TestFields(t *testing.T) {
	target := infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) { return torch.Of(0), nil }, 1)
	for want, c := range map[string]Barker{
		"Barker: LR is missing":      {},
		"Barker: LR is -1":           {LR: infer.Constant(-1)},
		"Barker: Temperature is 0":   {LR: infer.Constant(1), Temperature: infer.Constant(0)},
		"Barker: Temperature is NaN": {LR: infer.Constant(1), Temperature: infer.Constant(math.NaN())},
	} {
		_, err := c.Build(target)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, infer.ErrConfig)
	}
}

// The tutorial shows what the program prints, and the sampler has as many lines as it says.
func TestTutorial(t *testing.T) {
	var printed strings.Builder
	require.NoError(t, table(context.Background(), &printed))
	shown.Printed(t, "../../docs/tutorials/6-your-own-sampler.md", printed.String())
	source, err := os.ReadFile("barker.go")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(source), "\n"), 60)
}
