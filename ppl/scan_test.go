package ppl_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

type tensors = []torch.Tensor

// A Scan hands on its carry, stacks its outputs, and gives each step's sites a name. The expected values are sums of
// whole numbers.
func TestScan(t *testing.T) {
	tr, err := ppl.TraceModel(func(c *ppl.Ctx) {
		c.Sample("x", dist.Normal(0, 1))
		last, outs := c.Scan(5, tensors{torch.Zeros(2), torch.Of(1)}, func(c *ppl.Ctx, t int, carry tensors) (tensors,
			torch.Tensor) {
			sum := carry[0].Add(float64(t))
			c.Deterministic("sum", sum)
			return tensors{sum, carry[1].Mul(2)}, carry[1]
		})
		assert.Equal(t, []float64{10, 10}, last[0].Values())
		assert.Equal(t, []float64{32}, last[1].Values())
		assert.Equal(t, []float64{1, 2, 4, 8, 16}, outs.Values())
	}, nil, 1)
	require.NoError(t, err)
	sum, err := tr.Value("sum[3]")
	require.NoError(t, err)
	assert.Equal(t, []float64{6, 6}, floats(t, sum))
}

// An autoregression with latent states and observations inside the loop has the log density that is written out here,
// for one chain and for several at a time, and the gradient of its finite differences.
func TestScanDensity(t *testing.T) {
	y := []float64{0.3, -0.7, 1.1, 0.4}
	p, at := compiled(t, func(c *ppl.Ctx) {
		phi := c.Sample("phi", dist.Normal(0, 1))
		c.Scan(4, tensors{torch.Of(0)}, func(c *ppl.Ctx, t int, carry tensors) (tensors, torch.Tensor) {
			x := c.Sample("x", dist.Normal(phi.Mul(carry[0]), 0.5))
			c.Observe("y", dist.Normal(x, 2), c.Data("y").At(t))
			return tensors{x}, x
		})
	}, infer.Batch{"y": vec(y...)})
	batch := infer.Batch{"y": vec(y...)}
	want := func(x []float64) float64 {
		v, before := normal(x[0], 0, 1), 0.0
		for t, s := range x[1:] {
			v += normal(s, x[0]*before, 0.5) + normal(y[t], s, 2)
			before = s
		}
		return v
	}
	one, other := []float64{0.4, 0.2, -0.1, 0.6, 1.2}, []float64{-0.9, 1, 0.5, -0.6, 0.1}
	assert.InDelta(t, want(one), at(batch, one...), 1e-12)
	values, grad := evaluate(t, p, whole(p), batch, append(append([]float64{}, one...), other...)...)
	require.Len(t, values, 2)
	for k, x := range [][]float64{one, other} {
		assert.InDelta(t, want(x), values[k], 1e-12)
		for i := range x {
			const h = 1e-5
			up, down := append([]float64{}, x...), append([]float64{}, x...)
			up[i], down[i] = x[i]+h, x[i]-h
			// The third derivatives of this density are below 100, so the difference is off by less than 100·h²/6.
			assert.InDelta(t, (want(up)-want(down))/(2*h), grad[k*len(x)+i], 1e-8)
		}
	}
}

// garch is a series of n numbers whose variance is a Scan.
func garch(n int) (ppl.Model, infer.Batch) {
	y := make([]float64, n)
	for t := range y {
		y[t] = math.Sin(float64(t*t)) + 0.1
	}
	return func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		a, b := c.Sample("a", dist.Beta(2, 5)), c.Sample("b", dist.Beta(2, 5))
		y := c.Data("y")
		_, v := c.Scan(n, tensors{torch.Of(1)}, func(c *ppl.Ctx, t int, carry tensors) (tensors, torch.Tensor) {
			v := carry[0]
			return tensors{a.Mul(y.At(t).Sub(mu).Square()).Add(b.Mul(v)).Add(0.2)}, v
		})
		c.Plate("time", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, v.Sqrt()), y) })
	}, infer.Batch{"y": vec(y...)}
}

// The compiled gradient of a Scan is that of its recursion by finite differences, in Go, and its code does not grow
// with the number of steps.
func TestScanCompiled(t *testing.T) {
	ops := map[int]int{}
	for _, n := range []int{40, 160} {
		model, batch := garch(n)
		p, err := ppl.Compile(model, batch)
		require.NoError(t, err)
		start, err := p.Start(batch, 1, 1)
		require.NoError(t, err)
		f, report, err := infer.Compile(p.Target(), start, batch, native.Options{Tier: native.VM})
		require.NoError(t, err)
		ops[n] = report.Ops
		y := floats(t, batch["y"])
		want := func(x []float64) float64 {
			a, b, mu := logistic(x[0]), logistic(x[1]), x[2] // in the order of their names
			lp := normal(mu, 0, 1)
			for _, p := range []float64{a, b} { // Beta(2, 5) has the density 30 p (1 − p)⁴
				lp += math.Log(30*p*math.Pow(1-p, 4)) + math.Log(p*(1-p))
			}
			v := 1.0
			for _, s := range y {
				lp += normal(s, mu, math.Sqrt(v))
				v = a*(s-mu)*(s-mu) + b*v + 0.2
			}
			return lp
		}
		x, grad := []float64{0.1, -0.3, 0.2}, make([]float64, 3)
		value, err := f.Eval(x, 1/p.Target().N(), grad)
		require.NoError(t, err)
		size := p.Target().N()
		assert.InDelta(t, want(x), size*value, 1e-10*size)
		for i := range x {
			const h = 1e-4
			d := func(k float64) float64 {
				z := append([]float64{}, x...)
				z[i] += k * h
				return want(z)
			}
			// Differences of fourth order: off by h⁴ times a fifth derivative over 30, and by rounding, 1e-13·n/h.
			slope := (8*(d(1)-d(-1)) - (d(2) - d(-2))) / (12 * h)
			assert.InDelta(t, slope, size*grad[i], 1e-9*size)
		}
	}
	assert.Equal(t, ops[40], ops[160])
}

// What is wrong with a Scan is an error that names the step and what would be right.
func TestScanRefuses(t *testing.T) {
	same := func(_ *ppl.Ctx, _ int, carry tensors) (tensors, torch.Tensor) { return carry, torch.Of(0) }
	for name, c := range map[string]struct {
		model ppl.Model
		want  []string
	}{
		"no steps": {func(c *ppl.Ctx) { c.Scan(0, nil, same) }, []string{"0 steps", "at least 1"}},
		"no body":  {func(c *ppl.Ctx) { c.Scan(3, nil, nil) }, []string{"function is nil"}},
		"a carry that is lost": {func(c *ppl.Ctx) {
			c.Scan(3, tensors{torch.Of(0)}, func(*ppl.Ctx, int, tensors) (tensors, torch.Tensor) {
				return nil, torch.Of(0)
			})
		}, []string{"step 0", "takes over 1", "hands on 0"}},
		"a carry that grows": {func(c *ppl.Ctx) {
			c.Scan(3, tensors{torch.Of(0)}, func(_ *ppl.Ctx, _ int, carry tensors) (tensors, torch.Tensor) {
				return tensors{carry[0].Add(torch.Zeros(2))}, torch.Of(0)
			})
		}, []string{"tensor 0", "shape []", "step 0", "[2]", "Expand"}},
		"outputs of two shapes": {func(c *ppl.Ctx) {
			c.Scan(3, nil, func(_ *ppl.Ctx, t int, carry tensors) (tensors, torch.Tensor) {
				return nil, torch.Zeros(t + 1)
			})
		}, []string{"step 1", "output", "[2]", "[1]"}},
		"the outer context": {func(outer *ppl.Ctx) {
			outer.Scan(3, nil, func(_ *ppl.Ctx, t int, carry tensors) (tensors, torch.Tensor) {
				outer.Sample("x", dist.Normal(0, 1))
				return nil, torch.Of(0)
			})
		}, []string{`"x"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ppl.TraceModel(c.model, nil, 1)
			require.Error(t, err)
			for _, w := range c.want {
				assert.Contains(t, err.Error(), w)
			}
		})
	}
}
