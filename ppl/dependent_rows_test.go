package ppl_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/data/large"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
)

var (
	rowsX = []float64{0.3, 1, -2, 4, 0.5, 2, -1, 0.1, 3, -0.7, 1.3, 0.9}
	rowsY = []float64{1, 0, 2, -1, 0, 3, 1, 0.5, -2, 4, 0.2, 0.6}
)

// regression observes y with a mean of w times a function of the rows x.
func regression(z func(c *ppl.Ctx, x torch.Tensor) torch.Tensor) ppl.Model {
	return func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 2))
		mean := z(c, c.Data("x")).Mul(w)
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mean, 1), c.Data("y")) })
	}
}

// dependent are models of rows that depend on each other or do not, with how a refusal says that they do, empty where
// they do not.
var dependent = map[string]struct {
	model ppl.Model
	says  string
}{
	"mean": {regression(func(_ *ppl.Ctx, x torch.Tensor) torch.Tensor { return x.Sub(x.Mean()) }),
		`"y" of one row depends on the other rows of its batch, by "x"`},
	"softmax": {regression(func(_ *ppl.Ctx, x torch.Tensor) torch.Tensor { return x.Softmax(0).Mul(12) }),
		`"y" of one row depends on the other rows of its batch, by "x"`},
	"cumulative sum": {regression(func(_ *ppl.Ctx, x torch.Tensor) torch.Tensor { return x.CumSum(0) }),
		`"y" of one row depends on the order of the rows in its batch, by "x"`},
	"number of rows": {regression(func(_ *ppl.Ctx, x torch.Tensor) torch.Tensor { return x.Div(x.Shape()[0]) }),
		`"y" of one row depends on the number of rows in its batch`},
	"largest, in a factor": {func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 2))
		x := c.Data("x")
		c.Plate("rows", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(w, 1), c.Data("y"))
			c.Factor("f", x.Sub(x.LogSumExp(0)).Mul(w).Square().Neg())
		})
	}, `"f" of one row depends on the other rows of its batch, by "x"`},
	"a mean that is no sum": {func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 2))
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(w, 1), c.Data("y")) })
		c.Factor("f", c.Data("x").Mean().Sub(w).Square().Neg())
	}, `"f" of one row depends on the other rows of its batch, by "x"`},
	"summed out": {func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 2))
		x := c.Data("x")
		c.Plate("rows", 0, func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Bernoulli(torch.Of(0.3)))
			c.Observe("y", dist.Normal(z.Add(x.Sub(x.Mean()).Mul(w)), 1), c.Data("y"))
		})
	}, `of one row depends on the other rows of its batch, by "x"`},

	"none": {regression(func(_ *ppl.Ctx, x torch.Tensor) torch.Tensor { return x.Square() }), ""},
	"none, summed out": {func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 2))
		x := c.Data("x")
		c.Plate("rows", 0, func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Bernoulli(torch.Of(0.3)))
			c.Observe("y", dist.Normal(z.Add(x.Mul(w)), 1), c.Data("y"))
		})
	}, ""},
	"N times a mean": {func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 2))
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(w, 1), c.Data("y")) })
		c.Factor("f", c.Data("x").Sub(w).Square().Mean().Mul(-12))
	}, ""},
	"a table": {regression(func(_ *ppl.Ctx, x torch.Tensor) torch.Tensor {
		table := vec(rowsX...)
		return x.Sub(table.Mean()).Div(table.Abs().Sum())
	}), ""},
}

// batchesOf are batches of the data: in memory, from files, and of a kind of the user's.
func batchesOf(t *testing.T, data infer.Batch, size int) map[string]infer.Batches {
	t.Helper()
	memory, err := infer.Minibatches(data, infer.MinibatchOptions{Size: size, Seed: 3})
	require.NoError(t, err)
	again, err := infer.Minibatches(data, infer.MinibatchOptions{Size: size, KeepOrder: true})
	require.NoError(t, err)
	paths := map[string]string{}
	for name := range data {
		paths[name] = filepath.Join(t.TempDir(), name+".npy")
		w, err := large.Create[float64](paths[name])
		require.NoError(t, err)
		require.NoError(t, w.Write(torch.Must(torch.ToSlice[float64](data[name]))...))
		require.NoError(t, w.Close())
	}
	table, err := large.Open(paths)
	require.NoError(t, err)
	files, err := batch.NewLoader(table, batch.LoaderOptions{Size: size, Seed: 3})
	require.NoError(t, err)
	return map[string]infer.Batches{"memory": memory, "files": files, "own": copied{again}}
}

// Minibatches of a model whose rows depend on each other are refused, with the site and what it depends on, from every
// kind of batches, in every tier and with every kind of method, unless the run is told that it is meant. So says the
// mean over an epoch: it is the log posterior of all data where rows do not depend on each other, and nowhere else.
func TestDependentRows(t *testing.T) {
	data := infer.Batch{"x": vec(rowsX...), "y": vec(rowsY...)}
	for name, c := range dependent {
		p, err := ppl.Compile(c.model, data)
		require.NoError(t, err, name)
		at, err := infer.NewParams(p.Layout(), []float64{0.7})
		require.NoError(t, err)
		value := func(b infer.Batch) float64 {
			v, _ := p.Target().LogPosterior(at, b)
			return v.Item()
		}
		for _, size := range []int{1, 3, 5} {
			for kind, b := range batchesOf(t, data, size) {
				position := b.Position()
				mean, n := 0.0, 0.0
				for ; b.Position().Epoch == 0; n++ {
					part, err := b.Next()
					require.NoError(t, err)
					mean += value(part)
				}
				require.NoError(t, b.Seek(position))
				require.Equal(t, c.says == "", math.Abs(mean/n-value(data)) < 1e-9, "%s, size %d, %s", name, size, kind)
				for _, tier := range []native.Tier{native.Auto, native.VM, native.Eager} {
					for _, m := range []infer.Method{sgmcmc.SGLD{LR: infer.Constant(1e-3)}, vi.Diag{},
						optim.SGD{LR: infer.Constant(1e-3)}} {
						for _, told := range []bool{false, true} {
							before := b.Position()
							_, err := infer.Sample(context.Background(), p, m, infer.Options{Chains: 1, Warmup: 3, Draws: 3, Batches: b,
								Native: tier, DependentRows: told, Observer: infer.Silent})
							if c.says == "" || told {
								require.NoError(t, err, "%s, size %d, %s", name, size, kind)
								continue
							}
							require.ErrorIs(t, err, infer.ErrConfig, "%s, size %d, %s", name, size, kind)
							require.ErrorContains(t, err, "infer.Options: Batches is given: the log density of site ", name)
							require.ErrorContains(t, err, "set DependentRows in infer.Options", name)
							if size > 1 {
								require.ErrorContains(t, err, c.says, name)
							}
							require.Equal(t, before, b.Position())
						}
					}
				}
			}
		}
		all, err := infer.Minibatches(data, infer.MinibatchOptions{Size: 12})
		require.NoError(t, err)
		_, err = infer.Sample(context.Background(), p, sgmcmc.SGLD{LR: infer.Constant(1e-3)},
			infer.Options{Chains: 1, Warmup: 3, Draws: 3, Batches: all, Observer: infer.Silent})
		require.NoError(t, err, name)
	}
}

// A filter takes the data one by one where it is given no batches.
func TestDependentRowsOfAFilter(t *testing.T) {
	data := infer.Batch{"x": vec(rowsX...), "y": vec(rowsY...)}
	for name, refused := range map[string]bool{"mean": true, "number of rows": true, "none": false} {
		p, err := ppl.Compile(dependent[name].model, data)
		require.NoError(t, err)
		_, err = infer.Sample(context.Background(), p, ekf.Dense{}, infer.Options{Draws: 5, Observer: infer.Silent})
		if !refused {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, `the log density of site "y" of one row depends on`, name)
	}
}

// A tensor of the size of the plate that the model captures has a row for each datum, and a batch of one row broadcasts
// against all of them: each datum would meet the wrong one.
func TestCapturedRows(t *testing.T) {
	for _, declared := range []bool{false, true} {
		for name, term := range map[string]func(c *ppl.Ctx, w torch.Tensor){
			"factor": func(c *ppl.Ctx, w torch.Tensor) {
				c.Factor("f", c.Data("y").Sub(vec(rowsX...).Mul(w)).Square().Mul(-0.5))
			},
			"observed": func(c *ppl.Ctx, w torch.Tensor) {
				c.Observe("f", dist.Normal(c.Data("y").Mul(w), 1), vec(rowsX...).T())
			},
		} {
			var options []ppl.PlateOption
			size := 0
			if declared {
				options, size = []ppl.PlateOption{ppl.Minibatch}, 12
			}
			data := infer.Batch{"y": vec(rowsY...)}
			p, err := ppl.Compile(func(c *ppl.Ctx) {
				w := c.Sample("w", dist.Normal(0, 2))
				c.Plate("rows", size, func(c *ppl.Ctx) { term(c, w) }, options...)
			}, data)
			require.NoError(t, err, name)
			for kind, b := range batchesOf(t, data, 1) {
				_, err = infer.Sample(context.Background(), p, sgmcmc.SGLD{LR: infer.Constant(1e-3)},
					infer.Options{Chains: 1, Warmup: 3, Draws: 3, Batches: b, Observer: infer.Silent})
				require.ErrorContains(t, err, `the log density of site "f" has all of the data of its plate`, "%s, %s", name, kind)
			}
		}
	}
}

// Targets that are written by hand are looked at as a whole, whatever the kind of the numbers.
func TestDependentRowsOfTargets(t *testing.T) {
	for _, dtype := range []gotch.DType{gotch.Double, gotch.Float} {
		data := infer.Batch{"x": vec(rowsX...), "y": vec(rowsY...)}
		for name := range data {
			data[name] = torch.Must(torch.To(data[name], torch.CPU, dtype))
		}
		for name, z := range map[string]func(x torch.Tensor) torch.Tensor{
			"mean":           func(x torch.Tensor) torch.Tensor { return x.Sub(x.Mean()) },
			"softmax":        func(x torch.Tensor) torch.Tensor { return x.Softmax(0).Mul(12) },
			"cumulative sum": func(x torch.Tensor) torch.Tensor { return x.CumSum(0) },
			"none":           func(x torch.Tensor) torch.Tensor { return x.Square() },
		} {
			each := func(p infer.Params, b infer.Batch) torch.Tensor {
				return dist.Normal(z(b.Get("x")).Mul(p.Get("w")), 1).LogProb(b.Get("y"))
			}
			prior := func(p infer.Params) torch.Tensor { return dist.Normal(0, 2).LogProb(p.Get("w")).Sum() }
			for kind, target := range map[string]infer.Target{
				"FromParts": infer.FromParts(func(p infer.Params, b infer.Batch) (torch.Tensor, torch.Tensor) {
					return prior(p), each(p, b).Mean().Mul(12)
				}, 12),
				"Mean": infer.Mean(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
					return prior(p).Div(12).Add(each(p, b).Mean()), nil
				}, 12),
				"Sum": infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
					return prior(p).Add(each(p, b).Sum().Mul(4)), nil // a fixed weight is right for batches of one size
				}, 12),
			} {
				layout, err := infer.NewLayout(infer.Shapes{"w": {}})
				require.NoError(t, err)
				start, err := infer.NewParams(layout, []float64{0.5})
				require.NoError(t, err)
				start, err = start.To(torch.CPU, dtype)
				require.NoError(t, err)
				batches, err := infer.Minibatches(data, infer.MinibatchOptions{Size: 3})
				require.NoError(t, err)
				o := infer.Options{Chains: 1, Warmup: 3, Draws: 3, Batches: batches, Observer: infer.Silent}
				_, err = infer.Sample(context.Background(), infer.Handwritten(target, start, data),
					sgmcmc.SGLD{LR: infer.Constant(1e-3)}, o)
				if name == "none" {
					require.NoError(t, err, "%s, %s", kind, name)
					continue
				}
				require.ErrorContains(t, err, "the log density of one row depends on ", "%s, %s", kind, name)
				require.ErrorContains(t, err, `, by "x"`, "%s, %s", kind, name)
				o.DependentRows = true
				_, err = infer.Sample(context.Background(), infer.Handwritten(target, start, data),
					sgmcmc.SGLD{LR: infer.Constant(1e-3)}, o)
				require.NoError(t, err, "%s, %s", kind, name)
			}
		}
	}
}
