package svi_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

func must[T any](v T, err error) T { return infertest.Must(v, err) }

// gradients are independent estimates of the gradient of the bound, on the scale of the sum over data, where the Params
// of guide and model start: each of n chains makes one. They are rows of the numbers of φ, whose layout comes first.
// Each is the difference that an update of SGD with a step of 1 makes. With several samples there is an update before,
// which hardly moves: it tells how much ℓ varies, and many chains leave the guide's score out then.
func gradients(t *testing.T, program infer.Program, method svi.SVI, n int) (*infer.Layout, [][]float64) {
	t.Helper()
	updates, steps := 2, func(step int) float64 { return max(1e-12, min(float64(step), 1)) }
	if method.Samples == 1 { // from its second update on there is a baseline
		updates, steps = 1, infer.Constant(1)
	}
	method.Optimizer = optim.SGD{LR: steps}
	target := program.Target()
	transform, err := method.Build(target)
	require.NoError(t, err)
	p, err := infer.Zeros(program.Layout())
	require.NoError(t, err)
	if start, err := program.Start(program.Batch(), 1, 0); err == nil { // where the Params of the model start
		p = infer.Params{Layout: p.Layout, Flat: start.Flat.Reshape(-1)}
	}
	p, err = p.Repeat(n)
	require.NoError(t, err)
	before, err := infer.Init(transform, p, 7)
	require.NoError(t, err)
	if updates == 2 {
		before, _, err = transform.Update(before, program.Batch())
		require.NoError(t, err)
	}
	after, info, err := transform.Update(before, program.Batch())
	require.NoError(t, err)
	require.Nil(t, info.Diverged)
	phi := before.(svi.State).Optimizer.Position()
	from, to := must(phi.Values()), must(after.(svi.State).Optimizer.Position().Values())
	d := phi.Layout.Dim()
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, d)
		for j := range out[i] {
			out[i][j] = (to[i*d+j] - from[i*d+j]) * target.N()
		}
	}
	return phi.Layout, out
}

// unbiased compares the mean of estimates with the exact value, within four standard errors. Where the estimates have
// no noise they are the exact value to rounding.
func unbiased(t *testing.T, want []float64, rows [][]float64, what string) {
	t.Helper()
	n := float64(len(rows))
	for j := range want {
		mean, square := 0.0, 0.0
		for _, row := range rows {
			mean += row[j] / n
		}
		for _, row := range rows {
			square += (row[j] - mean) * (row[j] - mean)
		}
		se := math.Sqrt(square / (n - 1) / n)
		require.InDeltaf(t, want[j], mean, 4*se+1e-9*(1+math.Abs(want[j])), "%s, element %d, standard error %g", what, j,
			se)
	}
}

// slope is the gradient of a function by central differences: its error is about 1e-9 for functions of size 1.
func slope(f func(x []float64) float64, x []float64) []float64 {
	const h = 1e-5
	out := make([]float64, len(x))
	for i := range x {
		up, down := append([]float64{}, x...), append([]float64{}, x...)
		up[i] += h
		down[i] -= h
		out[i] = (f(up) - f(down)) / (2 * h)
	}
	return out
}

// data are five numbers.
var data = []float64{0.3, -0.6, 1.4, 0.9, 0.2}

func batch() infer.Batch { return infer.Batch{"y": torch.Of(infertest.Vector(data))} }

// conjugate is a mean with a normal prior.
func conjugate(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0.5, 2))
	c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1.5), c.Data("y")) })
}

// logJoint is log p(y, mu) of conjugate.
func logJoint(mu float64) float64 {
	l := logNormal(mu, 0.5, 2)
	for _, y := range data {
		l += logNormal(y, mu, 1.5)
	}
	return l
}

func logNormal(x, loc, scale float64) float64 {
	z := (x - loc) / scale
	return -0.5*z*z - math.Log(scale) - 0.5*math.Log(2*math.Pi)
}

// posterior is the mean and the standard deviation of mu.
func posterior() (mean, sd float64) {
	precision, sum := 1/4.0, 0.5/4
	for _, y := range data {
		precision += 1 / 2.25
		sum += y / 2.25
	}
	return sum / precision, math.Sqrt(1 / precision)
}

// normalAt is the guide N(loc, scale) of mu, away from the posterior.
func normalAt(loc, scale float64) ppl.Model {
	return func(c *ppl.Ctx) {
		m := c.Param("loc", loc, support.Real)
		s := c.Param("scale", scale, support.Positive)
		c.Sample("mu", dist.Normal(m, s))
	}
}

// mean is the expectation of f under N(loc, scale), by the trapezoidal rule on ±9 standard deviations, exact to
// rounding for smooth functions.
func mean(f func(x float64) float64, loc, scale float64) float64 {
	const n, width = 400, 9.0
	sum := 0.0
	for i := range n + 1 {
		e := width * (2*float64(i)/n - 1)
		sum += f(loc+scale*e) * math.Exp(-0.5*e*e) / math.Sqrt(2*math.Pi) * 2 * width / n
	}
	return sum
}

func constant(v float64) infer.Schedule { return infer.Constant(v) }

func tensorOf(t testing.TB, v ...float64) torch.Tensor {
	t.Helper()
	return torch.Of(infertest.Vector(v))
}
