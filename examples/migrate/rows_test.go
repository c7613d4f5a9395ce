package main

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// What the rows of the tables say is compiled here.
func TestRows(t *testing.T) {
	page, err := os.ReadFile("../../docs/tutorials/7-coming-from.md")
	require.NoError(t, err)
	source, err := os.ReadFile("rows.go")
	require.NoError(t, err)
	for _, code := range []string{
		`z.Take(c.Data("g"))`, `dist.PoissonLog(eta)`, `dist.NegativeBinomial(mu, phi)`,
		`dist.NegativeBinomialLogits(phi, eta.Sub(phi.Log()))`, `ppl.Condition(m, ppl.Values{"y": y})`,
		`ppl.Predictive{Model: m, Batch: later`, `.Posterior(posterior)`,
	} {
		require.Contains(t, string(page), code)
		require.Contains(t, strings.ReplaceAll(string(source), "\n", " "), code)
	}
}

func tensor(t *testing.T, x ...float64) torch.Tensor {
	t.Helper()
	y, err := torch.FromSlice(x)
	require.NoError(t, err)
	return y
}

// The densities are Stan's: poisson_log(eta), neg_binomial_2(mu, phi) and neg_binomial_2_log(eta, phi), each with the
// z of its group.
func TestVisits(t *testing.T) {
	group, err := torch.FromSlice([]int{0, 1, 1})
	require.NoError(t, err)
	counts := []float64{2, 0, 5}
	data := infer.Batch{"g": group, "a": tensor(t, counts...), "b": tensor(t, counts...), "d": tensor(t, counts...)}
	program, err := ppl.Compile(visits, data)
	require.NoError(t, err)
	z, phi := []float64{0.3, 1.1}, 0.7
	point, err := program.Unconstrain(ppl.Values{"z": tensor(t, z...), "phi": torch.Scalar(phi)}, data)
	require.NoError(t, err)
	gradient, err := infer.NewGradient(program.Target())
	require.NoError(t, err)
	e, err := gradient.ValueAndGrad(point, data, 0)
	require.NoError(t, err)

	lgamma := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	want := -phi - math.Log(2*math.Pi) - (z[0]*z[0]+z[1]*z[1])/2
	for i, g := range []int{0, 1, 1} {
		y, mu := counts[i], math.Exp(z[g])
		want += y*z[g] - mu - lgamma(y+1)
		want += 2 * (lgamma(y+phi) - lgamma(phi) - lgamma(y+1) + phi*math.Log(phi/(phi+mu)) + y*math.Log(mu/(phi+mu)))
	}
	require.InDelta(t, want, e.Values[0]*float64(program.Data()), 1e-10)
}

// A conditioned variable counts as an observed one: the posterior of mu is that of a normal location,
// N(Σy/(n + 1), 1/(n + 1)).
func TestConditioned(t *testing.T) {
	y := tensor(t, 1, 2, 6)
	program, err := ppl.Compile(conditioned(y), infer.Batch{"sd": tensor(t, 1, 1, 1)})
	require.NoError(t, err)
	posterior, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Seed: 1})
	require.NoError(t, err)
	summary, err := diag.Summary(posterior, diag.SummaryOptions{})
	require.NoError(t, err)
	require.Len(t, summary.Rows, 1)
	require.InDelta(t, 9./4, summary.Rows[0].Mean, 4*summary.Rows[0].MCSEMean)
	require.InDelta(t, 0.5, summary.Rows[0].SD, 4*summary.Rows[0].MCSESD)
}

// New data may be of another number than those that were fitted, and their predictions lie on the line.
func TestElsewhere(t *testing.T) {
	data, err := batch()
	require.NoError(t, err)
	program, err := ppl.Compile(line, data)
	require.NoError(t, err)
	posterior, err := stan(context.Background(), program)
	require.NoError(t, err)
	predicted, err := elsewhere(line, tensor(t, -10, 10), posterior)
	require.NoError(t, err)
	shape, err := torch.Shape(predicted)
	require.NoError(t, err)
	require.Equal(t, []int{posterior.Total(), 2}, shape)
	values, err := torch.ToSlice[float64](predicted)
	require.NoError(t, err)
	var at [2]float64
	for i, v := range values {
		at[i%2] += v / float64(posterior.Total())
	}
	want := exact() // sd of a prediction is at most 3, of 4000 draws that depend little on each other
	require.InDelta(t, want[0]-10*want[1], at[0], 4*3/math.Sqrt(2000))
	require.InDelta(t, want[0]+10*want[1], at[1], 4*3/math.Sqrt(2000))
}
