//go:build slow

package hmc_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag/sbc"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"
)

// Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari and Gelman 2018): with parameters drawn from the
// prior and data from the parameters, the rank of each parameter among L independent posterior draws is uniform on 0,
// …, L. Here L = 63: 16 draws of each of 4 chains, thinned so that they are nearly independent, less one. The ranks
// are compared with the uniform law by the bands of their distribution function, which sees shifts and widths best, and
// in 8 bins of 8 by χ², which sees any shape. A right sampler has a finding of the bands with probability 0.01: the
// seeds are fixed.
func TestSimulationBasedCalibration(t *testing.T) {
	x := []float64{-1.5, -1, -0.7, -0.3, -0.1, 0, 0.2, 0.4, 0.8, 1.1, 1.3, 1.9}
	for name, c := range map[string]struct {
		model  ppl.Model
		batch  infer.Batch
		values []string // what is ranked: its first element
		reps   int
	}{
		"normal": {func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 1))
			sigma := c.Sample("sigma", dist.Exponential(1))
			c.Plate("data", 10, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, sigma), c.Data("y")) })
		}, infer.Batch{}, []string{"mu", "sigma"}, 96},
		"Poisson regression": {func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(1, 0.5))
			b := c.Sample("b", dist.Normal(0, 0.5))
			c.Plate("data", 12, func(c *ppl.Ctx) {
				c.Observe("y", dist.PoissonLog(c.Data("x").Mul(b).Add(a)), c.Data("y"))
			})
		}, infer.Batch{"x": torch.New(x)}, []string{"a", "b"}, 96},
		"hierarchical": {ppl.Reparam(func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 2))
			tau := c.Sample("tau", dist.HalfNormal(1))
			c.Plate("groups", 5, func(c *ppl.Ctx) {
				theta := c.Sample("theta", dist.Normal(mu, tau))
				c.Observe("y", dist.Normal(theta, 0.7), c.Data("y"))
			})
		}, map[string]ppl.Reparameterisation{"theta": ppl.NonCentred}), infer.Batch{}, []string{"mu", "tau", "theta"}, 96},
	} {
		t.Run(name, func(t *testing.T) {
			prior, err := ppl.Predictive{Model: c.model, Batch: c.batch, Seed: 17}.Prior(c.reps)
			require.NoError(t, err)
			y := floats(t, prior["y"])
			n := len(y) / c.reps
			rep := -1
			r, err := sbc.Run(ctx, func(ctx context.Context, seed uint64) (sbc.Case, error) {
				rep++
				batch := infer.Batch{"y": torch.New(slices.Clone(y[rep*n : (rep+1)*n]))}
				maps.Copy(batch, c.batch)
				program, err := ppl.Compile(c.model, batch)
				require.NoError(t, err)
				d, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Warmup: 200, Draws: 16, Thin: 4, Seed: seed})
				require.NoError(t, err)
				out := sbc.Case{Truth: map[string]float64{}, Draws: map[string][]float64{}}
				for _, v := range c.values {
					all := floats(t, prior[v])
					out.Truth[v] = all[rep*len(all)/c.reps]
					out.Draws[v] = slices.Concat(element(t, d, v, 0)...)[:63]
				}
				return out, nil
			}, sbc.Options{Replications: c.reps, Draws: 63})
			require.NoError(t, err)
			report, err := r.Diagnose()
			require.NoError(t, err)
			assert.True(t, report.OK(), "%s", report)
			for _, v := range c.values {
				bins, chi, want := make([]float64, 8), 0.0, float64(c.reps)/8
				for _, rank := range r.Ranks[v] {
					bins[rank/8]++
				}
				for _, b := range bins {
					chi += (b - want) * (b - want) / want
				}
				t.Logf("%s: %v, χ² = %.1f", v, bins, chi)
				// The probability of four standard errors of a normal number.
				assert.Less(t, chi, distuv.ChiSquared{K: 7}.Quantile(1-6.3e-5), "%s: ranks %v", v, bins)
			}
		})
	}
}

func floats(t *testing.T, x torch.Tensor) []float64 {
	t.Helper()
	v, err := torch.ToSlice[float64](x)
	require.NoError(t, err)
	return v
}
