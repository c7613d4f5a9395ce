package infer_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// A checkpoint of a model that was changed since is refused, though data, sites and options are the same: its draws
// would be of two posteriors. The error has both log densities for a datum, of N(0, sd²) and 6 data N(a, 1) where
// a = -0.3. The run of the old model goes on.
func TestCheckpointOfAnotherModel(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6}
	data := infer.Batch{"x": vec(x)}
	program := func(sd float64) *ppl.Program {
		p, err := ppl.Compile(func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(0, sd))
			c.Plate("n", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(a, 1), c.Data("x")) })
		}, data)
		require.NoError(t, err)
		return p
	}
	density := func(sd float64) float64 {
		normal := func(z, sd float64) float64 { return -0.5*z*z/(sd*sd) - math.Log(sd*math.Sqrt(2*math.Pi)) }
		sum := normal(-0.3, sd)
		for _, v := range x {
			sum += normal(v+0.3, 1)
		}
		return sum / 6
	}
	for name, c := range map[string]struct {
		method infer.Method
		o      infer.Options
	}{
		"NUTS": {hmc.NUTS{}, infer.Options{}},
		"SGLD": {sgmcmc.SGLD{LR: infer.Constant(0.01)}, infer.Options{Warmup: 10, Thin: 1}},
		"SGLD, minibatches": {sgmcmc.SGLD{LR: infer.Constant(0.01)}, infer.Options{Warmup: 10, Thin: 1,
			Batches: minibatches(t, data, infer.MinibatchOptions{Size: 3})}},
		"Laplace": {laplace.DenseHessian{}, infer.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sample := func(sd float64, n int) error {
				o := c.o
				o.Chains, o.Draws, o.Seed, o.Checkpoint = 1, n, 3, &infer.Checkpoint{Dir: dir, Resume: true, Every: 10}
				_, err := infer.Sample(context.Background(), program(sd), c.method, o)
				return err
			}
			require.NoError(t, sample(5, 20))
			err := sample(4, 30)
			require.ErrorIs(t, err, infer.ErrCheckpoint)
			require.ErrorContains(t, err, "it is of another model: at one point its log density for a datum is ")
			if name != "SGLD, minibatches" {
				assert.ErrorContains(t, err, fmt.Sprintf("%.9g", density(5)))
				assert.ErrorContains(t, err, fmt.Sprintf("%.9g", density(4)))
			}
			require.NoError(t, sample(5, 30))
		})
	}
}
