package ekf_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// onePass is a pass over the data in batches of a size, without any configuration but that of the method.
func onePass(t *testing.T, m infer.Method, target infer.Target, start infer.Params, b infer.Batch,
	size int) infer.State {
	t.Helper()
	transform, err := m.Build(target)
	require.NoError(t, err)
	require.EqualValues(t, 1, transform.(interface{ Passes() int }).Passes())
	s, err := transform.Init(start)
	require.NoError(t, err)
	n := must(b.Size())
	for from := 0; from < n; from += size {
		part := infer.Batch{}
		for name, x := range b {
			part[name] = torch.Of(x.T().MustNarrow(0, int64(from), int64(min(size, n-from)), false))
		}
		s, _, err = transform.Update(s, part)
		require.NoError(t, err)
	}
	return s
}

// The prior of a compiled model is the Gaussian to start with, whatever the start: of a linear regression GaussNewton
// is the exact posterior, in batches of any size. The Fisher filters are compared with their formula, which has the
// prior once and each datum in full.
func TestPriorOfTheTarget(t *testing.T) {
	const n, noise = 12, 0.7
	x, z := make([]float64, n), make([]float64, n)
	sxx, sxz := 1/(2.0*2.0), 0.5/(2.0*2.0) // the prior w ~ N(0.5, 2²)
	for i := range x {
		x[i] = math.Sin(float64(i))
		z[i] = 1.5*x[i] + 0.3*math.Cos(5*float64(i))
		sxx += x[i] * x[i] / (noise * noise)
		sxz += x[i] * z[i] / (noise * noise)
	}
	batch := infer.Batch{"x": torch.Of(vector(x)), "y": torch.Of(vector(z))}
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0.5, 2))
		c.Plate("data", n, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Data("x").Mul(w), noise), c.Data("y"))
		})
	}, batch)
	require.NoError(t, err)
	start := params(program.Layout(), []float64{-7, 9}, 2)
	forward := func(p infer.Params, b infer.Batch) torch.Tensor { return b.Get("x").Mul(p.Get("w")) }
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return b.Get("y").Sub(z).Square().Mul(-0.5 / (noise * noise))
	}
	for _, size := range []int{1, 5, n} {
		exact := onePass(t, ekf.GaussNewton{Forward: forward, Outer: outer}, program.Target(), start, batch,
			size).(ekf.DenseState)
		within(t, []float64{sxz / sxx, sxz / sxx}, values(exact.Params.Flat.T()), 1e-10,
			fmt.Sprintf("mean, batches of %d", size))
		within(t, []float64{1 / sxx, 1 / sxx}, values(exact.Covariance.T()), 1e-10,
			fmt.Sprintf("variance, batches of %d", size))
	}
	// One full batch at the prior's mean: P'⁻¹ = 1/4 + Σ g², μ' = ½ + P' Σ g.
	precision, slope := 1/4.0, 0.0
	for i := range x {
		g := (z[i] - 0.5*x[i]) * x[i] / (noise * noise)
		precision, slope = precision+g*g, slope+g
	}
	want := []float64{0.5 + slope/precision, 0.5 + slope/precision}
	full := onePass(t, ekf.Dense{}, program.Target(), start, batch, n).(ekf.DenseState)
	within(t, want, values(full.Params.Flat.T()), 1e-10, "dense: mean")
	within(t, []float64{1 / precision, 1 / precision}, values(full.Covariance.T()), 1e-10, "dense: variance")
	diag := onePass(t, ekf.Diag{}, program.Target(), start, batch, n).(ekf.DiagState)
	within(t, want, values(diag.Params.Flat.T()), 1e-10, "diagonal: mean")
	within(t, []float64{1 / precision, 1 / precision}, values(diag.Variance.T()), 1e-10, "diagonal: variance")

	// InitSD goes before the target's prior, at the start that was given.
	own := onePass(t, ekf.GaussNewton{Forward: forward, Outer: outer, InitSD: 1e6, TransitionSD: nil}, program.Target(),
		start,
		batch, n).(ekf.DenseState)
	within(t, []float64{1 / (sxx - 1/4.0)}, values(own.Covariance.T())[:1], 1e-8, "a flat prior")
}

// A prior that is not Gaussian is its mode and curvature on unconstrained space: Gamma(a, b) has the mode log(a/b)
// there and the variance 1/a; correlated normals keep their covariance. A prior without a mode is an error that names
// InitSD.
func TestPriorThatIsNotGaussian(t *testing.T) {
	nothing := func(p infer.Params, b infer.Batch) torch.Tensor { // a likelihood that says nothing
		return b.Get("y").Mul(0).Mul(p.Get("x").Sum())
	}
	batch := infer.Batch{"y": torch.Of(vector([]float64{1, 2}))}
	begin := func(model ppl.Model, start ...float64) ekf.DenseState {
		program, err := ppl.Compile(model, batch)
		require.NoError(t, err)
		at := params(program.Layout(), start, 0)
		return onePass(t, ekf.Dense{PerDatum: nothing}, program.Target(), at, batch, 2).(ekf.DenseState)
	}
	observe := func(c *ppl.Ctx) {
		c.Plate("data", 2, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, 1), c.Data("y")) })
	}
	s := begin(func(c *ppl.Ctx) { c.Sample("x", dist.Gamma(3, 2)); observe(c) }, 4)
	within(t, []float64{math.Log(1.5)}, values(s.Params.Flat.T()), 1e-8, "Gamma: mean")
	within(t, []float64{1 / 3.0}, values(s.Covariance.T()), 1e-8, "Gamma: variance")
	covariance := []float64{2, 0.9, 0.9, 0.5}
	s = begin(func(c *ppl.Ctx) {
		c.Sample("x", dist.MultivariateNormal(vector([]float64{1, -1}), vector(covariance, 2, 2)))
		observe(c)
	}, 10, 20)
	within(t, []float64{1, -1}, values(s.Params.Flat.T()), 1e-8, "correlated: mean")
	within(t, covariance, values(s.Covariance.T()), 1e-8, "correlated: covariance")

	program, err := ppl.Compile(func(c *ppl.Ctx) {
		c.Sample("x",
			dist.ImproperUniform(support.Real, nil, nil))
		observe(c)
	}, batch)
	require.NoError(t, err)
	transform, err := ekf.Diag{PerDatum: nothing}.Build(program.Target())
	require.NoError(t, err)
	state, err := transform.Init(params(program.Layout(), []float64{0.5}, 0))
	require.NoError(t, err)
	_, _, err = transform.Update(state, batch)
	assert.ErrorContains(t, err, "ekf.Diag: the prior: ")
	assert.ErrorContains(t, err, "set InitSD")
}
