package models_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// rungeKutta is the model of [models.Influenza] as a user writes it without a solver: ten steps a day of the classic
// Runge-Kutta method, with tensors.
func rungeKutta(c *ppl.Ctx) {
	beta := c.Sample("beta", dist.Truncated(dist.Normal(2, 1), 0, math.Inf(1)))
	gamma := c.Sample("gamma", dist.Truncated(dist.Normal(0.4, 0.5), 0, math.Inf(1)))
	phi := c.Sample("phi_inv", dist.Exponential(5)).Reciprocal()
	slope := func(y torch.Tensor) torch.Tensor {
		infections := beta.Mul(y.At(0)).Mul(y.At(1)).Div(763)
		return torch.Stack(0, infections.Neg(), infections.Sub(gamma.Mul(y.At(1))))
	}
	const h = 0.1
	y := torch.New([]float64{762, 1})
	var infected []any
	for range 14 {
		for range 10 {
			k1 := slope(y)
			k2 := slope(y.Add(k1.Mul(h / 2)))
			k3 := slope(y.Add(k2.Mul(h / 2)))
			k4 := slope(y.Add(k3.Mul(h)))
			y = y.Add(k1.Add(k2.Mul(2)).Add(k3.Mul(2)).Add(k4).Mul(h / 6))
		}
		infected = append(infected, y.At(1))
	}
	c.Plate("days", 0, func(c *ppl.Ctx) {
		c.Observe("cases", dist.NegativeBinomial(torch.Stack(0, infected...), phi), c.Data("cases"))
	})
}

// Gradients of the influenza model: of the solver and of steps with tensors, compiled and eagerly.
func BenchmarkGradient(b *testing.B) {
	m, err := models.Influenza()
	require.NoError(b, err)
	for _, c := range []struct {
		name  string
		model ppl.Model
		tier  native.Tier
	}{{"Solve/native", m.Model, native.C}, {"Solve/vm", m.Model, native.VM}, {"Solve/eager", m.Model, native.Eager},
		{"RungeKutta/native", rungeKutta, native.C}, {"RungeKutta/vm", rungeKutta, native.VM},
		{"RungeKutta/eager", rungeKutta, native.Eager}} {
		b.Run(c.name, func(b *testing.B) {
			program, err := ppl.Compile(c.model, m.Batch)
			require.NoError(b, err)
			x := []float64{math.Log(1.7), math.Log(0.5), math.Log(0.15)}
			start, err := infer.NewParams(program.Layout(), x)
			require.NoError(b, err)
			f, _, err := infer.Compile(program.Target(), start, m.Batch, native.Options{Tier: c.tier})
			require.NoError(b, err)
			gradient, err := infer.NewGradient(program.Target())
			require.NoError(b, err)
			g := make([]float64, len(x))
			for b.Loop() {
				if f != nil {
					_, err = f.Eval(x, 1, g)
				} else {
					err = torch.Do(func(*torch.Scope) error { _, err := gradient.ValueAndGrad(start, m.Batch, 1); return err })
				}
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "gradients/s")
		})
	}
}

// The posterior of the influenza model: 4 chains of 1000 draws after as many updates of warm-up.
func BenchmarkPosterior(b *testing.B) {
	m, err := models.Influenza()
	require.NoError(b, err)
	program, err := m.Compile()
	require.NoError(b, err)
	for b.Loop() {
		_, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Seed: 1, Warmup: 1000, Draws: 1000})
		require.NoError(b, err)
	}
}
