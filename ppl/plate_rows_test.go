package ppl_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// squares is −Σ(y − mu)²/2 with its gradient in mu, times a weight for n data.
func squares(weight func(n int) float64) func(x, grad [][]float64) float64 {
	return func(x, grad [][]float64) float64 {
		w, sum := weight(len(x[1])), 0.0
		for _, y := range x[1] {
			sum -= w * (y - x[0][0]) * (y - x[0][0]) / 2
			grad[0][0] += w * (y - x[0][0])
		}
		return sum
	}
}

// A factor, or a Go function, outside plates that adds up over the rows of a batch would count each row of a minibatch
// once. The run is refused, whether the sum is taken inside the model or by Kelvin, whatever else is in plates, and
// with the method's name. On all of the data it runs.
func TestTotalsOutsidePlates(t *testing.T) {
	data := infer.Batch{"y": vec(0, 0, 1, 3, -2, 4, 0.5, 0, 0, 0), "x": vec(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)}
	mu := func(c *ppl.Ctx) torch.Tensor { return c.Sample("mu", dist.Normal(0, 10)) }
	once := squares(func(int) float64 { return 1 })
	models := map[string]ppl.Model{
		"a sum":    func(c *ppl.Ctx) { c.Factor("y", c.Data("y").Sub(mu(c)).Square().Sum().Mul(-0.5)) },
		"a vector": func(c *ppl.Ctx) { c.Factor("y", c.Data("y").Sub(mu(c)).Square().Mul(-0.5)) },
		"few rows": func(c *ppl.Ctx) { c.Factor("y", c.Data("y").Mul(mu(c)).Neg().Sum()) },
		"a matrix": func(c *ppl.Ctx) {
			r := c.Data("y").Sub(c.Data("x").Mul(mu(c))).Unsqueeze(-1)
			c.Factor("y", r.Transpose().MatMul(r).At(0).At(0).Mul(-0.5))
		},
		"beside a plate": func(c *ppl.Ctx) {
			m := mu(c)
			c.Plate("d", 0, func(c *ppl.Ctx) { c.Observe("w", dist.Normal(m, 100), c.Data("x")) })
			c.Factor("y", c.Data("y").Sub(m).Square().Sum().Mul(-0.5))
		},
		"a discrete variable": func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Bernoulli(torch.Of(0.4)))
			c.Factor("y", c.Data("y").Sub(mu(c)).Square().Sum().Mul(-0.5).Sub(z))
		},
		"not a number on a part": func(c *ppl.Ctx) {
			y := c.Data("y").Sub(mu(c)).Square().Mul(-0.5)
			if y.Shape()[0] == 5 || y.Shape()[0] == 3 {
				y = y.Mul(math.NaN())
			}
			c.Factor("y", y)
		},
		"a function": func(c *ppl.Ctx) { c.Density("y", once, mu(c), c.Data("y")) },
		"a function that panics on some sizes": func(c *ppl.Ctx) {
			c.Density("y", func(x, grad [][]float64) float64 {
				if n := len(x[1]); n == 5 || n == 3 {
					panic("a size that it does not take")
				}
				return once(x, grad)
			}, mu(c), c.Data("y"))
		},
	}
	for name, model := range models {
		t.Run(name, func(t *testing.T) {
			p, err := ppl.Compile(model, data)
			require.NoError(t, err)
			require.NoError(t, p.CheckFull(data))
			options := infer.Options{Chains: 1, Warmup: 5, Draws: 5, Observer: infer.Silent}
			_, err = infer.Sample(context.Background(), p, hmc.NUTS{}, options)
			require.NoError(t, err)
			batches, err := infer.Minibatches(data, infer.MinibatchOptions{Size: 2})
			require.NoError(t, err)
			part, err := batches.Next()
			require.NoError(t, err)
			if name != "beside a plate" { // which has a part of the data, too
				require.ErrorContains(t, p.CheckFull(part), `site "y": it is in no plate, and adds up over the rows`)
			}
			options.Batches = batches
			for _, method := range []infer.Method{sgmcmc.SGLD{LR: infer.Constant(0.01)}, vi.Diag{}} {
				_, err = infer.Sample(context.Background(), p, method, options)
				require.ErrorContains(t, err, `site "y": it is in no plate, and adds up over the rows of the batch, of which `+
					"there are 2 where there were 10 when the model was compiled: ")
				require.ErrorContains(t, err, "c.Plate(name, 0, ...)")
				if name != "a discrete variable" { // whose terms are summed after the model has run
					require.ErrorContains(t, err, "(at ppl/plate_rows_test.go:")
				}
			}
			batches, err = infer.Minibatches(data, infer.MinibatchOptions{Size: 10})
			require.NoError(t, err)
			options.Batches = batches
			_, err = infer.Sample(context.Background(), p, sgmcmc.SGLD{LR: infer.Constant(0.01)}, options)
			require.NoError(t, err)
		})
	}
}

// What does not add up over rows of the batch runs on minibatches: a factor of latent variables, of data that every
// batch has whole, in a plate, N times a mean over rows, and what Scale weighs. But for the last, the mean of the log
// density over the minibatches of an epoch is that of all data.
func TestNoTotalsOutsidePlates(t *testing.T) {
	y := []float64{0, 2, 1, 3, -2, 4, 0.5, 1.5, 2.5, -1}
	data := infer.Batch{"y": vec(y...)}
	of := func(f func(c *ppl.Ctx, mu torch.Tensor)) ppl.Model {
		return func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 10))
			c.Plate("d", 0, func(c *ppl.Ctx) { c.Observe("w", dist.Normal(mu, 100), c.Data("y")) })
			f(c, mu)
		}
	}
	term := func(c *ppl.Ctx, mu torch.Tensor) torch.Tensor { return c.Data("y").Sub(mu).Square().Mul(-0.5) }
	for name, model := range map[string]ppl.Model{
		"a prior": of(func(c *ppl.Ctx, mu torch.Tensor) { c.Factor("f", mu.Square().Neg()) }),
		"a prior that is 0 at first": of(func(c *ppl.Ctx, mu torch.Tensor) {
			c.Factor("f", vec(1, 2, 3).Mul(mu))
		}),
		"data of its own": of(func(c *ppl.Ctx, mu torch.Tensor) {
			c.Factor("f", vec(y...).Sub(mu).Square().Sum().Mul(-0.5))
		}),
		"in a plate": of(func(c *ppl.Ctx, mu torch.Tensor) {
			c.Plate("e", 0, func(c *ppl.Ctx) { c.Factor("f", term(c, mu)) })
		}),
		"N times the mean": of(func(c *ppl.Ctx, mu torch.Tensor) { c.Factor("f", term(c, mu).Mean().Mul(10)) }),
		"N times the mean of a function": of(func(c *ppl.Ctx, mu torch.Tensor) {
			c.Density("f", squares(func(n int) float64 { return 10 / float64(n) }), mu, c.Data("y"))
		}),
		"scaled": ppl.Scale(of(func(c *ppl.Ctx, mu torch.Tensor) { c.Factor("f", term(c, mu).Sum()) }), 0.5),
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := compiled(t, model, data)
			batches, err := infer.Minibatches(data, infer.MinibatchOptions{Size: 2})
			require.NoError(t, err)
			if name != "scaled" {
				value := func(b infer.Batch) float64 {
					v, _ := evaluate(t, p, p.Target().Density(1), b, 0.7)
					return v[0]
				}
				mean := 0.0
				for range 5 {
					part, err := batches.Next()
					require.NoError(t, err)
					mean += value(part) / 5
				}
				require.InDelta(t, value(data), mean, 1e-10)
			}
			_, err = infer.Sample(context.Background(), p, sgmcmc.SGLD{LR: infer.Constant(0.01)},
				infer.Options{Batches: batches, Chains: 1, Warmup: 5, Draws: 5, Observer: infer.Silent})
			require.NoError(t, err)
		})
	}
}

// Only the rows that a batch has a part of are looked at: a table beside them is there whole.
func TestTotalsOfATable(t *testing.T) {
	table := vec(1, 2, 3)
	model := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 10))
		c.Factor("table", c.Data("table").Mul(mu).Square().Sum().Mul(-0.5))
		c.Plate("d", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) })
	}
	p, f := compiled(t, model, infer.Batch{"y": vec(1, 2, 3, 4), "table": table})
	want := normal(0.7, 0, 10) - 0.5*14*0.49 + 2*sumNormal([]float64{1, 2}, 0.7, 1)
	require.InDelta(t, want, f(infer.Batch{"y": vec(1, 2), "table": table}, 0.7), 1e-12)
	_, err := infer.NewGradient(p.Target())
	require.NoError(t, err)
	require.ErrorContains(t, p.CheckFull(infer.Batch{"y": vec(1, 2, 3, 4), "table": vec(1, 2)}),
		`site "table": it is in no plate, and adds up over the rows of the batch, of which there are 2 where there were 3`)
}

// Where the batch of Compile is a minibatch by a plate, what adds up over its rows outside plates is refused at once.
func TestTotalsOfADeclaredMinibatch(t *testing.T) {
	part := infer.Batch{"y": vec(0.1, -2, 3, 0.4)}
	for name, outside := range map[string]func(c *ppl.Ctx, mu torch.Tensor){
		"factor": func(c *ppl.Ctx, mu torch.Tensor) { c.Factor("y", c.Data("y").Sub(mu).Square().Mul(-0.5)) },
		"function": func(c *ppl.Ctx, mu torch.Tensor) {
			c.Density("y", squares(func(int) float64 { return 1 }), mu, c.Data("y"))
		},
		"observed": func(c *ppl.Ctx, mu torch.Tensor) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) },
		"fine":     func(c *ppl.Ctx, mu torch.Tensor) { c.Observe("y", dist.Normal(mu, 1), vec(1, 2, 3, 4)) },
	} {
		_, err := ppl.Compile(func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 10))
			c.Plate("d", 40, func(c *ppl.Ctx) { c.Observe("w", dist.Normal(mu, 1), c.Data("y")) }, ppl.Minibatch)
			outside(c, mu)
		}, part)
		if name == "fine" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, `ppl.Compile: model, site "y"`, name)
		require.ErrorContains(t, err, "it is in no plate, and adds up over the rows of the batch, which is a minibatch by "+
			`plate "d": `, name)
		require.ErrorContains(t, err, "c.Plate(name, 0, ...)", name)
		require.ErrorContains(t, err, "plate_rows_test.go:", name)
	}
	// A table has all of its rows, whatever the plate has; and Scale says what a sum stands for.
	for name, outside := range map[string]func(c *ppl.Ctx, mu torch.Tensor){
		"table": func(c *ppl.Ctx, mu torch.Tensor) { c.Factor("f", c.Data("table").Mul(mu).Square().Sum()) },
		"scaled": func(c *ppl.Ctx, mu torch.Tensor) {
			ppl.Scale(func(c *ppl.Ctx) { c.Factor("f", c.Data("y").Sub(mu).Square().Mul(-0.5)) }, 10)(c)
		},
	} {
		_, err := ppl.Compile(func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 10))
			c.Plate("d", 40, func(c *ppl.Ctx) { c.Observe("w", dist.Normal(mu, 1), c.Data("y")) }, ppl.Minibatch)
			outside(c, mu)
		}, infer.Batch{"y": vec(0.1, -2, 3, 0.4), "table": vec(1, 2, 3)})
		require.NoError(t, err, name)
	}
}

// A plate counts a factor without a dimension for it once for each datum. One that adds up over the rows would count
// each row N times, beside an Observe or alone: it is refused, whether the batch is a part of the data or not. One that
// is the same for all counts N times; one for each row, in a plate or not, is what it says.
func TestSumsInsidePlates(t *testing.T) {
	y := []float64{0, 2, 1, 3, -2, 4}
	terms := func(c *ppl.Ctx, mu torch.Tensor) torch.Tensor { return c.Data("y").Sub(mu).Square().Mul(-0.5) }
	wide := normal(0.7, 0, 10) + sumNormal(y, 0.7, 100)
	squared := 0.0
	for _, v := range y {
		squared -= (v - 0.7) * (v - 0.7) / 2
	}
	for name, c := range map[string]struct {
		factor func(c *ppl.Ctx, mu torch.Tensor) torch.Tensor
		want   float64 // NaN where it is refused
	}{
		"a sum":            {func(c *ppl.Ctx, mu torch.Tensor) torch.Tensor { return terms(c, mu).Sum() }, math.NaN()},
		"a mean":           {func(c *ppl.Ctx, mu torch.Tensor) torch.Tensor { return terms(c, mu).Mean() }, wide + squared},
		"terms":            {terms, wide + squared},
		"the same for all": {func(_ *ppl.Ctx, mu torch.Tensor) torch.Tensor { return mu.Square().Neg() }, wide - 6*0.49},
	} {
		for _, size := range []int{0, 6, 12} {
			p, err := ppl.Compile(func(k *ppl.Ctx) {
				mu := k.Sample("mu", dist.Normal(0, 10))
				var options []ppl.PlateOption
				if size == 12 {
					options = append(options, ppl.Minibatch)
				}
				k.Plate("d", size, func(k *ppl.Ctx) {
					k.Observe("y", dist.Normal(mu, 100), k.Data("y"))
					k.Factor("f", c.factor(k, mu))
				}, options...)
			}, infer.Batch{"y": vec(y...)})
			if math.IsNaN(c.want) {
				require.ErrorContains(t, err, `site "f" in plate d: its value, of shape [], has no dimension for plate "d"`, name)
				require.ErrorContains(t, err, "declare it outside the plate", name)
				continue
			}
			require.NoError(t, err, name)
			if size < 12 {
				v, _ := evaluate(t, p, p.Target().Density(1), p.Batch(), 0.7)
				require.InDelta(t, c.want, 6*v[0], 1e-10, name)
			}
		}
	}
	for _, size := range []int{6, 12} {
		_, err := ppl.Compile(func(k *ppl.Ctx) {
			mu := k.Sample("mu", dist.Normal(0, 10))
			k.Plate("d", size, func(k *ppl.Ctx) { k.Factor("f", terms(k, mu).Sum()) }, ppl.Minibatch)
		}, infer.Batch{"y": vec(y...)})
		require.ErrorContains(t, err, fmt.Sprintf(`has no dimension for plate "d", which counts it %d times`, size))
	}
}
