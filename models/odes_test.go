package models_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

// The course of a drug after one dose is known (Bateman 1910): A(t) = D ka (e^{−ke t} − e^{−ka t})/(ka − ke). A
// model that has it written out has the log density and gradient of the equation's, as closely as its tolerance of
// 1e-6 tells.
func TestBateman(t *testing.T) {
	m, err := models.Theophylline()
	require.NoError(t, err)
	written := func(c *ppl.Ctx) {
		ka := c.Sample("ka", dist.LogNormal(0.4, 0.5))
		cl := c.Sample("cl", dist.LogNormal(-3.2, 0.5))
		v := c.Sample("v", dist.LogNormal(-0.7, 0.5))
		sigma := c.Sample("sigma", dist.HalfNormal(1))
		ke := cl.Div(v)
		at := c.Data("times")
		amount := ke.Neg().Mul(at).Exp().Sub(ka.Neg().Mul(at).Exp()).Mul(ka.Mul(4.02)).Div(ka.Sub(ke))
		c.Plate("samples", 0, func(c *ppl.Ctx) {
			c.Observe("concentration", dist.Normal(amount.Div(v), sigma), c.Data("concentration"))
		})
	}
	solved, err := m.Compile()
	require.NoError(t, err)
	known, err := ppl.Compile(written, m.Batch)
	require.NoError(t, err)
	for _, x := range [][]float64{{0.3, -3, -0.7, 0.1}, {-0.2, -3.4, -0.4, 0.6}} {
		start, err := infer.NewParams(known.Layout(), x)
		require.NoError(t, err)
		var values []float64
		var grads [][]float64
		for _, p := range []*ppl.Program{solved, known} {
			f, _, err := infer.Compile(p.Target(), start, m.Batch, native.Options{})
			require.NoError(t, err)
			g := make([]float64, len(x))
			v, err := f.Eval(x, 1, g)
			require.NoError(t, err)
			values, grads = append(values, v), append(grads, g)
		}
		require.InEpsilon(t, values[1], values[0], 1e-4)
		largest := 0.0
		for _, g := range grads[1] {
			largest = max(largest, math.Abs(g))
		}
		require.InDeltaSlice(t, grads[1], grads[0], 1e-4*largest)
	}
}

// Grinsztajn and others (2021) publish the posterior of this model and these data by Stan: beta 1.73 (standard
// deviation 0.05), gamma 0.54 (0.05), phi_inv 0.14 (0.07), to two digits. Our means are within a fifth of a
// standard deviation of them, which is four Monte-Carlo errors of 400 effective draws, and half a unit of their
// last digit. Chains start at a recovery in two days: far away, where the epidemic is over before the first count, the
// density has a plateau that they would not leave.
func TestInfluenza(t *testing.T) {
	m, err := models.Influenza()
	require.NoError(t, err)
	program, err := m.Compile()
	require.NoError(t, err)
	start, err := infer.NewParams(program.Layout(), []float64{math.Log(2), math.Log(0.5), math.Log(0.2)})
	require.NoError(t, err)
	d, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Seed: 1, Warmup: 500, Draws: 500,
		Start: start})
	require.NoError(t, err)
	summary, err := diag.Summary(d, diag.SummaryOptions{})
	require.NoError(t, err)
	t.Log(d.Attrs()["gradient"], "\n", summary)
	for name, want := range map[string][2]float64{"beta": {1.73, 0.05}, "gamma": {0.54, 0.05},
		"phi_inv": {0.14, 0.07}} {
		mean, err := d.Mean(name)
		require.NoError(t, err)
		require.InDelta(t, want[0], mean[0], want[1]/5+0.005, name)
	}
}

func TestFields(t *testing.T) {
	fails := func(want string, err error) {
		t.Helper()
		require.ErrorContains(t, err, want)
	}
	_, err := models.SIR{}.Build()
	fails("models.SIR: Times", err)
	_, err = models.SIR{Times: []float64{1, 0.5}}.Build()
	fails("0.5 at index 1", err)
	_, err = models.SIR{Times: []float64{1}, Cases: []float64{1.5}}.Build()
	fails("models.SIR: Cases", err)
	_, err = models.SIR{Times: []float64{1}, Cases: []float64{1}}.Build()
	fails("models.SIR: Population", err)
	_, err = models.SIR{Times: []float64{1}, Cases: []float64{1}, Population: 10, Infected: 10}.Build()
	fails("models.SIR: Infected", err)
	_, err = models.Absorption{Times: []float64{1}, Concentration: []float64{1, 2}}.Build()
	fails("models.Absorption: Concentration", err)
	_, err = models.Absorption{Times: []float64{1}, Concentration: []float64{1}}.Build()
	fails("models.Absorption: Dose", err)
}
