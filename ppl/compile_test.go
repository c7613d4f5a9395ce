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

// A model whose parameters are out of their domain at 0 of unconstrained space, by accident, is compiled.
func TestCompileElsewhere(t *testing.T) {
	_, f := compiled(t, func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		c.Observe("y", dist.Normal(0, x.Abs()), scalar(0.5))
	}, nil)
	require.InDelta(t, normal(-0.3, 0, 1)+normal(0.5, 0, 0.3), f(nil, -0.3), 1e-13)
	_, err := ppl.Compile(func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		c.Observe("y", dist.Normal(0, x.Abs().Neg()), scalar(0.5))
	}, nil)
	require.ErrorContains(t, err, "scale is")
}

// Data outside a support that depends on a latent variable are not a mistake: the density is zero where they are.
func TestSupportThatIsInferred(t *testing.T) {
	m := func(c *ppl.Ctx) {
		high := c.Sample("high", dist.Exponential(1))
		c.Observe("y", dist.Uniform(0, high), vec(0.5, 3))
	}
	_, f := compiled(t, m, nil)
	require.InDelta(t, -5+math.Log(5)-2*math.Log(5), f(nil, math.Log(5)), 1e-13)
	require.Equal(t, math.Inf(-1), f(nil, 0))
}

// What is fixed does not count as data; what has nothing to infer does not get in the way.
func TestDataAndEmptyVariables(t *testing.T) {
	m := func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 1).Expand(1000))
		b := c.Sample("b", dist.Normal(0, 1))
		s := c.Sample("s", dist.Dirichlet(vec(2)))
		c.Plate("data", 3, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(b.Mul(w.At(0)).Add(s.At(0)), 1), c.Data("y"))
		})
	}
	batch := infer.Batch{"y": vec(1, 2, 3)}
	zeros := vec(make([]float64, 1000)...)
	p, f := compiled(t, ppl.Do(m, ppl.Values{"w": zeros}), batch)
	require.EqualValues(t, 3, p.Data())
	require.Equal(t, "b[]", p.Layout().String())
	require.InDelta(t, normal(0.3, 0, 1)+sumNormal([]float64{0, 1, 2}, 0, 1), f(batch, 0.3), 1e-12)
	_, err := ppl.Compile(func(c *ppl.Ctx) { c.Sample("s", dist.Dirichlet(vec(2))) }, nil)
	require.ErrorContains(t, err, "nothing is left to infer")
}

// Whole numbers are data like others.
func TestIntegerData(t *testing.T) {
	labels := vec(1, 0, 1).T().MustTotype(dtypeInt, false)
	for name, c := range map[string]struct {
		of   func(a torch.Tensor) dist.Distribution
		want func(a float64) float64
	}{
		"normal": {
			func(a torch.Tensor) dist.Distribution { return dist.Normal(a, 2) },
			func(a float64) float64 { return sumNormal([]float64{1, 0, 1}, a, 2) },
		},
		"bernoulli": {
			func(a torch.Tensor) dist.Distribution { return dist.BernoulliLogits(a) },
			func(a float64) float64 { return 2*math.Log(logistic(a)) + math.Log(logistic(-a)) },
		},
		"poisson": {
			func(a torch.Tensor) dist.Distribution { return dist.PoissonLog(a) },
			func(a float64) float64 { return 2*a - 3*math.Exp(a) },
		},
	} {
		m := func(cc *ppl.Ctx) { cc.Observe("y", c.of(cc.Sample("a", dist.Normal(0, 1))), labels) }
		_, f := compiled(t, m, nil)
		require.InDelta(t, normal(0.4, 0, 1)+c.want(0.4), f(nil, 0.4), 1e-13, name)
	}
}
