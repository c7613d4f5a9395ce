package gibbs_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/gibbs"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Geweke (2004): where data are drawn from the model at each point of a chain, and the chain then makes one sweep on
// them, its points have the law of the prior. Here mu ~ N(0, 1), k ~ Poisson(2), z_i ~ Bernoulli(σ(mu)) and
// y_i ~ N(mu + 1.5 z_i + 0.5 k, 1), with labels that are drawn at once, a count that walks, and NUTS.
func TestGeweke(t *testing.T) {
	const n, sweeps = 3, 1500
	program := compiled(t, func(c *ppl.Ctx) {
		mu, k := c.Sample("mu", dist.Normal(0, 1)), c.Sample("k", dist.Poisson(2))
		c.Plate("n", 0, func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Bernoulli(mu.Sigmoid()))
			c.Observe("y", dist.Normal(mu.Add(z.Mul(1.5)).Add(k.Mul(0.5)), 1), c.Data("y"))
		})
	}, infer.Batch{"y": vec(make([]float64, n))})
	transform, err := gibbs.Blocks{
		{Sites: []string{"mu"}, Method: hmc.NUTS{StepSize: infer.Constant(0.7)}},
		{Sites: []string{gibbs.Rest}, Method: gibbs.Discrete{Warmup: infer.None}},
	}.Build(program.Target().Compiled(native.Auto))
	require.NoError(t, err)
	names := []string{"mu", "mu²", "k", "k²", "Σz", "mu·Σz"}
	want := []float64{0, 1, 2, 6, 1.5, n * 0.20662096414} // E[mu σ(mu)] = E[σ(mu)(1 − σ(mu))]
	sums := make([][]float64, len(names))
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		p, err := infer.NewParams(program.Layout(), []float64{1, 0, 0, 1, 0}) // k, mu, z
		require.NoError(t, err)
		state, err := infer.Init(transform, p, seed)
		require.NoError(t, err)
		own := make([]float64, len(names))
		for range sweeps {
			x, err := state.Position().Values()
			require.NoError(t, err)
			k, mu, z := x[0], x[1], x[2:]
			sum, y := 0.0, make([]float64, n)
			for i := range z {
				sum += z[i]
				y[i] = mu + 1.5*z[i] + 0.5*k + r.NormFloat64()
			}
			for i, v := range []float64{mu, mu * mu, k, k * k, sum, mu * sum} {
				own[i] += v / sweeps
			}
			batch := infer.Batch{"y": vec(y)}
			state, _, err = infer.Advance(transform, state, batch)
			require.NoError(t, err)
			torch.Free(batch["y"])
		}
		for i, v := range own {
			sums[i] = append(sums[i], v)
		}
	}
	for i, name := range names {
		agrees(t, fmt.Sprint("Geweke: ", name), sums[i], want[i])
	}
}
