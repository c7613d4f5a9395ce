package gp_test

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
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/models/gp"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// fits are models of ten data at two coordinates.
func fits(x [][]float64) map[string]ppl.Model {
	length := func(c *ppl.Ctx) torch.Tensor { return c.Sample("length", dist.LogNormal(0, 0.5).Expand(2)) }
	scale := func(c *ppl.Ctx) torch.Tensor { return c.Sample("scale", dist.HalfNormal(1)) }
	h, err := gp.NewHilbert(x, 5, 4)
	if err != nil {
		panic(err)
	}
	return map[string]ppl.Model{
		"marginal": func(c *ppl.Ctx) {
			k := gp.Sum(
				gp.Matern{Nu: 2.5, Scale: scale(c), Length: length(c)},
				gp.Product(gp.Periodic{Period: c.Sample("period", dist.LogNormal(0, 0.3))}, gp.Matern{Nu: 0.5}),
				gp.Linear{Scale: 0.5})
			p := gp.Process{Kernel: k, X: c.Data("x"), Mean: c.Sample("mean", dist.Normal(0, 1))}
			c.Observe("y", p.Marginal(c.Sample("noise", dist.HalfNormal(1))), c.Data("y"))
		},
		"latent": func(c *ppl.Ctx) {
			k := gp.Matern{Nu: 1.5, Scale: scale(c), Length: length(c)}
			f := gp.Process{Kernel: k, X: c.Data("x")}.Latent(c, "f")
			c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.StudentT(4, f, 1), c.Data("y")) })
		},
		"approximate": func(c *ppl.Ctx) {
			k := gp.Sum(gp.SquaredExponential{Scale: scale(c), Length: length(c)}, gp.Matern{Nu: 1.5, Length: 2})
			f := h.Latent(c, "f", k, c.Data("x"), 0.2)
			c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(f, 0.5), c.Data("y")) })
		},
	}
}

// Gradients are those of finite differences of values, eager and for two chains at once; the compiled function has the
// same values and gradients.
func TestGradients(t *testing.T) {
	x := points(10, 2, 0)
	for name, model := range fits(x) {
		t.Run(name, func(t *testing.T) {
			batch := infer.Batch{"x": stacked(x), "y": tensor(numbers(10))}
			p, err := ppl.Compile(model, batch)
			require.NoError(t, err)
			start, err := p.Start(batch, 1, 1)
			require.NoError(t, err)
			f, report, err := infer.Compile(p.Target(), start, batch, native.Options{Tier: native.VM})
			require.NoError(t, err)
			require.NotNil(t, f, report)
			n, size := p.Layout().Dim(), p.Target().N()
			var both []float64
			for i := range 2 * n {
				both = append(both, 0.6*math.Sin(float64(3*i+1)))
			}
			whole := p.Target().Weigh(infer.Weights{Prior: 1, Likelihood: 1, Jacobian: 1})
			values, grads := infertest.Evaluate(t, p.Layout(), whole, batch, both...)
			for k := range 2 {
				at, grad := both[k*n:(k+1)*n], make([]float64, n)
				value, err := f.Eval(at, 1/size, grad)
				require.NoError(t, err)
				assert.InDelta(t, values[k], size*value, 1e-9*math.Abs(values[k]))
				for i := range at {
					assert.InDelta(t, grads[k*n+i], size*grad[i], 1e-8*(1+math.Abs(grads[k*n+i])))
					d := func(h float64) float64 {
						z := append([]float64{}, at...)
						z[i] += h
						v, err := f.Eval(z, 1/size, make([]float64, n))
						require.NoError(t, err)
						return size * v
					}
					// Differences of fourth order: off by h⁴/30 times a fifth derivative, and by rounding over h.
					const h = 1e-3
					slope := (8*(d(h)-d(-h)) - (d(2*h) - d(-2*h))) / (12 * h)
					assert.InDelta(t, slope, size*grad[i], 1e-7*(1+math.Abs(slope)), fmt.Sprint(k, i))
				}
			}
		})
	}
}

// Hyperparameters are recovered: of data drawn from a process with a known length, scale and noise, the posterior
// means, exact and approximate, are within four posterior standard deviations, and the two agree within the error of
// the approximation and of the draws.
func TestRecovers(t *testing.T) {
	const n, length, scale, noise = 60, 0.6, 1.5, 0.3
	x := make([][]float64, n)
	for i := range x {
		x[i] = []float64{-3 + 6*float64(i)/(n-1)}
	}
	var y []float64
	do(t, func() {
		p := gp.Process{Kernel: gp.Matern{Nu: 2.5, Scale: scale, Length: length}, X: stacked(x)}
		y = p.Marginal(noise).Sample(torch.NewSource(11, 0)).Values()
	})
	_, m := rule(gp.Matern{Nu: 2.5}, 0.3/3)
	h := must(gp.NewHilbert(x, m))
	model := func(marginal func(c *ppl.Ctx, k gp.Kernel, noise torch.Tensor) dist.Distribution) ppl.Model {
		return func(c *ppl.Ctx) {
			k := gp.Matern{
				Nu: 2.5, Scale: c.Sample("scale", dist.HalfNormal(3)),
				Length: c.Sample("length", dist.InverseGamma(3, 2)),
			}
			c.Observe("y", marginal(c, k, c.Sample("noise", dist.HalfNormal(1))), c.Data("y"))
		}
	}
	batch := infer.Batch{"x": stacked(x), "y": tensor(y)}
	fit := func(m ppl.Model) (means, sds map[string]float64) {
		program, err := ppl.Compile(m, batch)
		require.NoError(t, err)
		d, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{
			Chains: 2, Warmup: 300, Draws: 300, Seed: 3,
		})
		require.NoError(t, err)
		means, sds = map[string]float64{}, map[string]float64{}
		for _, name := range d.Names() {
			mean, err := d.Mean(name)
			require.NoError(t, err)
			sd, err := d.SD(name)
			require.NoError(t, err)
			means[name], sds[name] = mean[0], sd[0]
		}
		return means, sds
	}
	exact, sds := fit(model(func(c *ppl.Ctx, k gp.Kernel, noise torch.Tensor) dist.Distribution {
		return gp.Process{Kernel: k, X: c.Data("x")}.Marginal(noise)
	}))
	near, _ := fit(model(func(c *ppl.Ctx, k gp.Kernel, noise torch.Tensor) dist.Distribution {
		return h.Marginal(k, c.Data("x"), nil, noise)
	}))
	for name, truth := range map[string]float64{"length": length, "scale": scale, "noise": noise} {
		assert.InDelta(t, truth, exact[name], 4*sds[name], name)
		// 600 draws are worth at least 100 independent ones, so that a mean has an error of a tenth of a deviation.
		assert.InDelta(t, exact[name], near[name], 4*math.Sqrt(2)*0.1*sds[name], name)
	}
}
