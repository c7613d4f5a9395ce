package ppl_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"
)

// decay is y_j ~ N(a exp(−b t_j), s) as a Go function of (a, b), s, t and y, with its gradient in the first two.
func decay(x, grad [][]float64) float64 {
	a, b, s, t, y := x[0][0], x[0][1], x[1][0], x[2], x[3]
	v := 0.0
	for j := range t {
		e := math.Exp(-b * t[j])
		r := (y[j] - a*e) / s
		v -= 0.5*r*r + math.Log(s)
		grad[0][0] += r / s * e
		grad[0][1] -= r / s * a * t[j] * e
		grad[1][0] += (r*r - 1) / s
	}
	return v
}

// decays are the same model twice: with the function, and with tensors.
func decays() (function, tensors ppl.Model) {
	prior := func(c *ppl.Ctx) (ab, s torch.Tensor) {
		return c.Sample("ab", dist.LogNormal(0, 1).Expand(2)), c.Sample("s", dist.HalfNormal(1))
	}
	function = func(c *ppl.Ctx) {
		ab, s := prior(c)
		c.Density("decay", decay, ab, s, c.Data("t"), c.Data("y"))
	}
	tensors = func(c *ppl.Ctx) {
		ab, s := prior(c)
		a, b := ab.At(0), ab.At(1)
		r := c.Data("y").Sub(b.Neg().Mul(c.Data("t")).Exp().Mul(a)).Div(s)
		c.Factor("decay", r.Square().Mul(-0.5).Sub(s.Log()).Sum())
	}
	return function, tensors
}

func decayBatch() infer.Batch {
	return infer.Batch{"t": vec(0, 0.5, 1, 2, 4), "y": vec(2.1, 1.4, 1.2, 0.5, 0.3)}
}

// A density by a Go function has the value and the gradient of the same density by tensors, for one chain and for many,
// and so have its tempered targets.
func TestDensityIsThatOfTensors(t *testing.T) {
	f, g := decays()
	batch := decayBatch()
	p, err := ppl.Compile(f, batch)
	require.NoError(t, err)
	q, err := ppl.Compile(g, batch)
	require.NoError(t, err)
	require.Equal(t, q.Layout().String(), p.Layout().String())
	x := []float64{0.3, -0.2, 0.1, -1, 0.4, 0.6, 0.5, 0.5, -0.7, 2, -1, 0, 0, 0, 0}
	temper := func(target infer.Target) infer.Target {
		target, err := infer.TemperLikelihood(target, 4)
		require.NoError(t, err)
		return target
	}
	for name, pair := range map[string][2]infer.Target{
		"posterior": {p.Target(), q.Target()}, "tempered": {temper(p.Target()), temper(q.Target())},
		"function": {infer.Sum(p.Target().LogPosterior, 1), infer.Sum(q.Target().LogPosterior, 1)},
	} {
		for _, chains := range []int{1, 5} {
			for range 2 { // the first evaluation finds the function, later ones know it
				v, grad := evaluate(t, p, pair[0].Density(0.5), batch, x[:3*chains]...)
				want, wantGrad := evaluate(t, q, pair[1].Density(0.5), batch, x[:3*chains]...)
				require.InDeltaSlice(t, want, v, 1e-12, name)
				require.InDeltaSlice(t, wantGrad, grad, 1e-12, name)
			}
		}
	}
	// On a part of the data, the factor is what the function makes of it: in the likelihood, as the posterior needs all.
	part := infer.Batch{"t": vec(1, 2), "y": vec(3, 1)}
	likelihood := infer.Weights{Likelihood: 1}
	v, _ := evaluate(t, p, p.Target().Weighted(likelihood).LogPosterior, part, x[:6]...)
	want, _ := evaluate(t, q, q.Target().Weighted(likelihood).LogPosterior, part, x[:6]...)
	require.InDeltaSlice(t, want, v, 1e-12)
	// A trace, values and starts of such a model; a graph shows what the density depends on.
	require.InDelta(t, traced(t, g, batch), traced(t, f, batch), 1e-12)
	start, err := p.Init(batch, ppl.FromPrior, 3, 1)
	require.NoError(t, err)
	_, err = p.Constrain(start, batch)
	require.NoError(t, err)
	require.NoError(t, p.CheckFull(batch))
	dot, err := ppl.Render(f, batch)
	require.NoError(t, err)
	require.Contains(t, dot, `"ab" -> "decay"`)
}

// The gradient of a density is that of differences of the log posterior's values.
func TestDensityGradient(t *testing.T) {
	f, _ := decays()
	batch := decayBatch()
	p, err := ppl.Compile(f, batch)
	require.NoError(t, err)
	x := []float64{0.3, -0.2, 0.1}
	_, grad := evaluate(t, p, p.Target().LogPosterior, batch, x...)
	for i := range x {
		const h = 1e-5
		up, down := append([]float64{}, x...), append([]float64{}, x...)
		up[i] += h
		down[i] -= h
		v, _ := evaluate(t, p, p.Target().LogPosterior, batch, append(up, down...)...)
		tolerance := 1e-7 * math.Max(1, math.Abs(grad[i])) // truncation h², rounding 1/h
		require.InDelta(t, (v[0]-v[1])/(2*h), grad[i], tolerance)
	}
}

// Handlers see a density as a factor: it can be scaled and blocked, and what is substituted is a number to it.
func TestDensityAndHandlers(t *testing.T) {
	model := func(c *ppl.Ctx) {
		x, y := c.Sample("x", dist.Normal(0, 1)), c.Sample("y", dist.Normal(0, 1))
		c.Density("f", func(x, grad [][]float64) float64 {
			grad[0][0], grad[1][0] = x[1][0], x[0][0]
			return x[0][0] * x[1][0]
		}, x, y)
	}
	prior := normal(0.3, 0, 1) + normal(2, 0, 1)
	for name, c := range map[string]struct {
		model ppl.Model
		want  float64
	}{
		"itself":  {model, prior + 0.6},
		"scaled":  {ppl.Scale(model, 0.5), prior/2 + 0.3},
		"blocked": {ppl.Block(model, "f"), prior},
	} {
		_, f := compiled(t, c.model, nil)
		require.InDelta(t, c.want, f(nil, 0.3, 2), 1e-13, name)
	}
	p, f := compiled(t, ppl.Substitute(model, ppl.Values{"y": scalar(2)}), nil)
	require.InDelta(t, prior+0.6, f(nil, 0.3), 1e-13)
	_, grad := evaluate(t, p, p.Target().LogPosterior, nil, 0.3, 0.7)
	require.InDeltaSlice(t, []float64{2 - 0.3, 2 - 0.7}, grad, 1e-13)
}

// What is wrong with a function is an error that names the site.
func TestDensityMistakes(t *testing.T) {
	of := func(f func(x, grad [][]float64) float64) ppl.Model {
		return func(c *ppl.Ctx) {
			x, s := c.Sample("x", dist.Normal(1, 1).Expand(3)), c.Sample("s", dist.HalfNormal(1))
			c.Density("ode", f, x, s)
		}
	}
	quadratic := func(x, grad [][]float64) float64 {
		v := 0.0
		for i, u := range x[0] {
			v -= 0.5 * u * u / x[1][0]
			grad[0][i] = -u / x[1][0]
			grad[1][0] += 0.5 * u * u / x[1][0] / x[1][0]
		}
		return v
	}
	_, err := ppl.Compile(of(quadratic), nil)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		model ppl.Model
		want  []string
	}{
		"a gradient that is wrong": {of(func(x, grad [][]float64) float64 {
			v := quadratic(x, grad)
			grad[1][0] *= 2
			return v
		}), []string{"gradient in input 1 is wrong", "along a line"}},
		"a gradient that is missing": {of(func(x, grad [][]float64) float64 { return x[0][0] - x[1][0] }),
			[]string{"gradient in input 0 is wrong", "it is 0,"}},
		"a gradient that is NaN": {of(func(x, grad [][]float64) float64 {
			v := quadratic(x, grad)
			grad[0][1] = math.NaN()
			return v
		}), []string{"gradient in input 0 is NaN at element 1"}},
		"a gradient of another length": {of(func(x, grad [][]float64) float64 {
			grad[0] = []float64{1, 2}
			return 0
		}), []string{"gradient of length 2 for input 0, which has 3 elements"}},
		"a panic": {of(func(x, grad [][]float64) float64 { return x[0][len(x[0])] }),
			[]string{"its function panicked at density_test.go:", "index out of range [3] with length 3"}},
		"no function": {of(nil), []string{"function is nil"}},
		"no input":    {func(c *ppl.Ctx) { c.Density("ode", quadratic) }, []string{"has no inputs"}},
		"a plate": {func(c *ppl.Ctx) {
			c.Plate("p", 3, func(c *ppl.Ctx) {
				c.Density("ode", quadratic, c.Sample("x", dist.Normal(0, 1)))
			})
		}, []string{"in plate p", "outside"}},
	} {
		_, err := ppl.Compile(c.model, nil)
		require.Error(t, err, name)
		for _, w := range append(c.want, `site "ode"`) {
			require.ErrorContains(t, err, w, name)
		}
	}

	// Later a value that is not finite is a divergence of its chain alone; a panic is an error.
	var boom atomic.Bool
	p, err := ppl.Compile(of(func(x, grad [][]float64) float64 {
		if boom.Load() {
			panic("no solution")
		}
		if x[0][0] > 5 {
			return math.NaN()
		}
		return quadratic(x, grad)
	}), nil)
	require.NoError(t, err)
	v, _ := evaluate(t, p, p.Target().LogPosterior, nil, 0, 1, 2, 3, 0, 6, 2, 3)
	require.False(t, math.IsNaN(v[0]))
	require.True(t, math.IsNaN(v[1]))
	boom.Store(true)
	gradient, err := infer.NewGradient(p.Target())
	require.NoError(t, err)
	for _, k := range []int{1, 8} {
		point, err := infer.NewParams(p.Layout(), make([]float64, 4*k))
		require.NoError(t, err)
		_, err = gradient.ValueAndGrad(point, nil, 1)
		require.ErrorContains(t, err, `site "ode"`)
		require.ErrorContains(t, err, "no solution")
	}

	// Where no starting point is finite, the site is named.
	p, err = ppl.Compile(of(func(x, grad [][]float64) float64 { return math.Inf(-1) }), nil)
	require.NoError(t, err)
	_, err = p.Init(nil, ppl.FromUniform, 1, 1)
	require.ErrorContains(t, err, `site "ode"`)
	require.ErrorContains(t, err, "log density is -Inf")

	// What needs more than first derivatives says so.
	p, err = ppl.Compile(of(quadratic), nil)
	require.NoError(t, err)
	point, err := infer.Zeros(p.Layout())
	require.NoError(t, err)
	err = torch.Do(func(*torch.Scope) error {
		_, _ = p.Target().LogPosterior(point, nil)
		return nil
	})
	require.ErrorContains(t, err, `site "ode"`)
	require.True(t, strings.Contains(err.Error(), "only values and first derivatives are known"), err)
}

// NUTS samples the law of a model whose likelihood is a Go function: k ~ Gamma(2, 1) with density k³ exp(−2k) beside it
// is Gamma(5, 3), and x ~ N(0, 1) with exp(−2 (x − 2)²) is N(8/5, 1/5).
func TestDensityUnderNUTS(t *testing.T) {
	model := func(c *ppl.Ctx) {
		c.Density("likelihood", func(x, grad [][]float64) float64 {
			k, y := x[0][0], x[1][0]
			grad[0][0], grad[1][0] = 3/k-2, -4*(y-2)
			return 3*math.Log(k) - 2*k - 2*(y-2)*(y-2)
		}, c.Sample("k", dist.Gamma(2, 1)), c.Sample("x", dist.Normal(0, 1)))
	}
	p, err := ppl.Compile(model, nil)
	require.NoError(t, err)
	d, err := infer.Sample(
		context.Background(),
		p,
		hmc.NUTS{},
		infer.Options{Chains: 4, Warmup: 300, Draws: 1000, Seed: 1},
	)
	require.NoError(t, err)
	table, err := diag.Summary(d, diag.SummaryOptions{})
	require.NoError(t, err)
	for _, row := range table.Rows {
		want := map[string][2]float64{"k": {5. / 3, math.Sqrt(5.) / 3}, "x": {8. / 5, math.Sqrt(1. / 5)}}[row.Name]
		require.InDelta(t, want[0], row.Mean, 4*row.MCSEMean, row.Name)
		require.InDelta(t, want[1], row.SD, 4*row.MCSESD, row.Name)
	}
}

// Methods of gradients take such a model, and others refuse it by name: variational and Laplace fits of a Gaussian.
func TestDensityUnderFits(t *testing.T) {
	model := func(c *ppl.Ctx) {
		c.Density("likelihood", func(x, grad [][]float64) float64 {
			y := x[0][0]
			grad[0][0] = -4 * (y - 2)
			return -2 * (y - 2) * (y - 2)
		}, c.Sample("x", dist.Normal(0, 1)))
	}
	p, err := ppl.Compile(model, infer.Batch{"y": vec(1, 2)})
	require.NoError(t, err)
	d, err := infer.Sample(context.Background(), p, vi.Diag{}, infer.Options{Seed: 1})
	require.NoError(t, err)
	x := slices.Concat(d.Element(0, 0), d.Element(1, 0), d.Element(2, 0), d.Element(3, 0))
	m, sd := stat.MeanStdDev(x, nil)
	require.InDelta(t, 8./5, m, 0.04) // 4 standard errors of 4000 draws, and what is left of the fit
	require.InDelta(t, math.Sqrt(1./5), sd, 0.04)
	for name, method := range map[string]infer.Method{"laplace": laplace.DenseHessian{}, "ekf": ekf.Dense{}} {
		_, err = infer.Sample(context.Background(), p, method, infer.Options{Seed: 1})
		require.ErrorContains(t, err, `site "likelihood"`, name)
		require.ErrorContains(t, err, "only values and first derivatives are known", name)
	}
}
