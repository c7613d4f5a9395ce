package main

import (
	"context"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/shown"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

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

// The sign of a tensor, as the tutorial writes it: 0 at 0, and a number of every element.
func TestSign(t *testing.T) {
	x := torch.New([]float64{-2, 0, 3})
	sign := torch.Where(x.Gt(0), 1, torch.Where(x.Lt(0), -1, 0))
	require.Equal(t, []float64{-1, 0, 1}, sign.Values())
	require.Equal(t, []float64{-4, 0, 6}, sign.Mul(2).Mul(x.Abs()).Values())
}

// What the tutorial has its readers copy into a module of their own imports nothing that only this one may import, and
// nothing besides Kelvin that they would have to require.
func TestCopies(t *testing.T) {
	for _, name := range []string{"barker.go", "stationary_test.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range file.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			require.NotContains(t, path, "internal", name)
			if strings.Contains(path, ".") {
				require.True(t, strings.HasPrefix(path, "github.com/kelvin-ppl/kelvin/"), "%s imports %s", name, path)
			}
		}
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
