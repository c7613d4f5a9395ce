package ppl_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

var (
	effects = []float64{28, 8, -3, 7, -1, 1, 18, 12}
	errorsY = []float64{15, 10, 16, 11, 9, 11, 10, 18}
)

// schools is eight schools (Rubin 1981), centred.
func schools(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 5))
	tau := c.Sample("tau", dist.HalfCauchy(5))
	c.Plate("schools", 8, func(c *ppl.Ctx) {
		theta := c.Sample("theta", dist.Normal(mu, tau))
		c.Observe("y", dist.Normal(theta, c.Data("sigma")), c.Data("y"))
	})
}

func schoolData(t *testing.T) infer.Batch {
	y, err := torch.FromSlice(effects)
	require.NoError(t, err)
	sigma, err := torch.FromSlice(errorsY)
	require.NoError(t, err)
	return infer.Batch{"y": y, "sigma": sigma}
}

func normal(x, m, s float64) float64 {
	z := (x - m) / s
	return -0.5*z*z - math.Log(s) - 0.5*math.Log(2*math.Pi)
}

// wanted is the log density written out: mu, log tau and theta, with the Jacobian of tau = exp(log tau).
func wanted(mu, logTau float64, theta []float64) float64 {
	tau := math.Exp(logTau)
	v := normal(mu, 0, 5) + math.Log(2/(math.Pi*5)) - math.Log1p(tau*tau/25) + logTau
	for i, th := range theta {
		v += normal(th, mu, tau) + normal(effects[i], th, errorsY[i])
	}
	return v
}

func TestCompiledEightSchools(t *testing.T) {
	batch := schoolData(t)
	p, err := ppl.Compile(schools, batch)
	require.NoError(t, err)
	require.Equal(t, "mu[] tau[] theta[8]", p.Layout().String())
	require.EqualValues(t, 8, p.Data())

	theta := []float64{3, -1, 0.5, 2, 7, -4, 1, 6}
	one := append([]float64{1.5, 0.3}, theta...)
	two := append([]float64{-2, -1.2}, theta...)
	point, err := infer.NewParams(p.Layout(), append(append([]float64{}, one...), two...))
	require.NoError(t, err)
	g, err := infer.NewGradient(infer.Sum(whole(p), 1))
	require.NoError(t, err)
	e, err := g.ValueAndGrad(point, batch, 0)
	require.NoError(t, err)
	require.InDelta(t, wanted(1.5, 0.3, theta), e.Values[0], 1e-10)
	require.InDelta(t, wanted(-2, -1.2, theta), e.Values[1], 1e-10)

	// The gradient against central differences of the density written out.
	grad, err := torch.ToSlice[float64](e.Grad)
	require.NoError(t, err)
	for i := range one {
		const h = 1e-5
		up, down := append([]float64{}, one...), append([]float64{}, one...)
		up[i] += h
		down[i] -= h
		want := (wanted(up[0], up[1], up[2:]) - wanted(down[0], down[1], down[2:])) / (2 * h)
		require.InDelta(t, want, grad[i], 1e-7)
	}

	values, err := p.Constrain(point, batch)
	require.NoError(t, err)
	tau, err := torch.ToSlice[float64](values["tau"])
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{math.Exp(0.3), math.Exp(-1.2)}, tau, 1e-14)
}

// A plate of which only a part is at hand counts in full: the mean over all minibatches of an epoch is the whole.
func TestSubsampledPlate(t *testing.T) {
	const n = 12
	y := make([]float64, n)
	for i := range y {
		y[i] = math.Sin(float64(i))
	}
	model := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Plate("data", n, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 0.5), c.Data("y")) })
	}
	all, err := torch.FromSlice(y)
	require.NoError(t, err)
	p, err := ppl.Compile(model, infer.Batch{"y": all})
	require.NoError(t, err)
	g, err := infer.NewGradient(infer.Sum(whole(p), 1))
	require.NoError(t, err)
	point, err := infer.NewParams(p.Layout(), []float64{0.7})
	require.NoError(t, err)
	whole, err := g.ValueAndGrad(point, infer.Batch{"y": all}, 0)
	require.NoError(t, err)
	batches, err := infer.Minibatches(infer.Batch{"y": all}, infer.MinibatchOptions{Size: 4, Seed: 3})
	require.NoError(t, err)
	mean := 0.0
	for range n / 4 {
		b, err := batches.Next()
		require.NoError(t, err)
		part, err := g.ValueAndGrad(point, b, 0)
		require.NoError(t, err)
		mean += part.Values[0] / (n / 4)
	}
	require.InDelta(t, whole.Values[0], mean, 1e-12*math.Abs(mean))
}

func TestHandlers(t *testing.T) {
	batch := schoolData(t)
	value := func(v float64) torch.Tensor { return torch.Scalar(v) }
	logp := func(m ppl.Model) float64 {
		tr, err := ppl.TraceModel(m, batch, 1)
		require.NoError(t, err)
		v, err := tr.LogProb()
		require.NoError(t, err)
		x, err := torch.Item(v)
		require.NoError(t, err)
		return x
	}
	theta, err := torch.FromSlice([]float64{3, -1, 0.5, 2, 7, -4, 1, 6})
	require.NoError(t, err)
	given := ppl.Values{"mu": value(1.5), "tau": value(2), "theta": theta}
	full := logp(ppl.Substitute(schools, given))
	require.InDelta(t, wanted(1.5, math.Log(2), []float64{3, -1, 0.5, 2, 7, -4, 1, 6})-math.Log(2), full, 1e-10)
	require.InDelta(t, full, logp(ppl.Condition(schools, given)), 1e-12)
	// An intervention takes the variable's own density out; a scale multiplies all.
	do := logp(ppl.Do(ppl.Substitute(schools, given), ppl.Values{"mu": value(1.5)}))
	require.InDelta(t, full-normal(1.5, 0, 5), do, 1e-10)
	require.InDelta(t, 3*full, logp(ppl.Scale(ppl.Substitute(schools, given), 3)), 1e-9)
	hidden, err := ppl.TraceModel(ppl.Block(schools, "theta"), batch, 1)
	require.NoError(t, err)
	require.NotContains(t, hidden.Sites, "theta")

}
