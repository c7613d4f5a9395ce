package sgmcmc_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// line is a regression of n numbers with unit noise on columns of standard deviations 1 and 3, so that the curvatures
// of the mean log posterior are near 1 and 9.
func line(t *testing.T, n int) (program *ppl.Program, precision [2]float64) {
	rng := rand.New(rand.NewPCG(4, 2))
	x, y := make([]float64, 2*n), make([]float64, n)
	for i := range n {
		x[2*i], x[2*i+1] = rng.NormFloat64(), 3*rng.NormFloat64()
		y[i] = x[2*i] - x[2*i+1] + rng.NormFloat64()
		precision[0] += x[2*i] * x[2*i] / float64(n)
		precision[1] += x[2*i+1] * x[2*i+1] / float64(n)
	}
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 10).Expand(2))
		c.Plate("data", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Data("x").MatMul(w), 1), c.Data("y"))
		})
	}, infer.Batch{"x": torch.New(x, n, 2), "y": torch.New(y)})
	require.NoError(t, err)
	return program, precision
}

// Without LR each method takes the stated share of its limit at the largest curvature, for any chains of a run.
func TestStepThatIsLeftOpen(t *testing.T) {
	program, precision := line(t, 400)
	lambda := precision[1]
	for name, c := range map[string]struct {
		method infer.Tuner
		lr     func(infer.Method) infer.Schedule
		want   float64
	}{
		"SGLD": {sgmcmc.SGLD{}, func(m infer.Method) infer.Schedule { return m.(sgmcmc.SGLD).LR }, 0.2 / lambda},
		"SGHMC": {sgmcmc.SGHMC{Alpha: infer.Constant(3)},
			func(m infer.Method) infer.Schedule { return m.(sgmcmc.SGHMC).LR }, 0.1 * min(3/lambda, 2./3)},
		"SGNHT": {sgmcmc.SGNHT{}, func(m infer.Method) infer.Schedule { return m.(sgmcmc.SGNHT).LR }, 0.1 / lambda},
		"BAOA":  {sgmcmc.BAOA{}, func(m infer.Method) infer.Schedule { return m.(sgmcmc.BAOA).LR }, 0.5 / math.Sqrt(lambda)},
		"SymplecticSGHMC": {sgmcmc.SymplecticSGHMC{Momentum: infer.Constant(0.9)},
			func(m infer.Method) infer.Schedule { return m.(sgmcmc.SymplecticSGHMC).LR }, 0.0625 * 3.8 / lambda},
	} {
		var found []float64
		for _, o := range []infer.Options{{}, {Chains: 2, FirstChain: 7}} {
			tuned, _, words, err := c.method.Tune(context.Background(), program, o)
			require.NoError(t, err, name)
			require.Contains(t, words, "LR ", name)
			// The columns are correlated a little, and the prior has a precision of 1/(100 n).
			require.InEpsilon(t, c.want, c.lr(tuned)(10_000), 0.02, name)
			found = append(found, c.lr(tuned)(0))
		}
		require.Equal(t, found[0], found[1], name)
	}
	own, _, words, err := sgmcmc.SGLD{LR: infer.Constant(0.5)}.Tune(context.Background(), program, infer.Options{})
	require.NoError(t, err)
	require.Empty(t, words)
	require.Equal(t, 0.5, own.(sgmcmc.SGLD).LR(0))
}

// The draws of a run without LR have the standard deviations of the posterior, a few percent too large, and say what
// the step was.
func TestRunWithoutLR(t *testing.T) {
	program, precision := line(t, 400)
	batches, err := infer.Minibatches(program.Batch(), infer.MinibatchOptions{Size: 40, Seed: 3})
	require.NoError(t, err)
	for name, o := range map[string]infer.Options{
		"all data":    {Chains: 64, Warmup: 2000, Draws: 400, Thin: 20, Seed: 1},
		"minibatches": {Chains: 64, Warmup: 20_000, Draws: 400, Thin: 100, Seed: 1, Batches: batches},
	} {
		d, err := infer.Sample(context.Background(), program, sgmcmc.SGHMC{}, o)
		require.NoError(t, err, name)
		require.Regexp(t, `^LR [0-9.e-]+, bounded by `, d.Attrs()["tuned"], name)
		require.Equal(t, name == "minibatches", strings.Contains(d.Attrs()["tuned"], "the noise of a minibatch"),
			d.Attrs()["tuned"])
		for j, lambda := range precision {
			want := 1 / math.Sqrt(400*lambda)
			ratio := deviation(d.Pooled(j)) / want
			require.InDelta(t, 1.04, ratio, 0.06, "%s, element %d: %v", name, j, d.Attrs()["tuned"])
		}
	}
}

// deviation is the standard deviation of numbers.
func deviation(x []float64) float64 {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x)-1)
	}
	return math.Sqrt(square)
}

// Where nothing bounds a step the error says so, and names the field.
func TestStepOfAFlatTarget(t *testing.T) {
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		c.Sample("x", dist.Normal(0, 1e200))
	}, nil)
	require.NoError(t, err)
	_, err = infer.Sample(context.Background(), program, sgmcmc.SGLD{}, infer.Options{})
	require.ErrorContains(t, err, "sgmcmc.SGLD: LR is missing: none was found")
	require.ErrorIs(t, err, infer.ErrConfig)
}
