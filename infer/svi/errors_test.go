package svi_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// scaled has a positive variable beside mu.
func scaled(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 2))
	sigma := c.Sample("sigma", dist.HalfNormal(1))
	c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, sigma), c.Data("y")) })
}

// Mistakes of guides name the variables, and what would be right.
func TestGuideMistakes(t *testing.T) {
	loc := func(c *ppl.Ctx, name string) torch.Tensor { return c.Param(name, 0.1, support.Real) }
	mu := func(c *ppl.Ctx) { c.Sample("mu", dist.Normal(loc(c, "loc"), 1)) }
	sigma := func(c *ppl.Ctx) { c.Sample("sigma", dist.LogNormal(loc(c, "s"), 1)) }
	for what, c := range map[string]struct {
		guide ppl.Model
		words []string
	}{
		"lacks one": {mu, []string{`lacks ["sigma"] of the model`}},
		"one too many": {func(c *ppl.Ctx) { mu(c); sigma(c); c.Sample("tau", dist.Normal(loc(c, "t"), 1)) },
			[]string{`has ["tau"]`, "the model does not have"}},
		"both": {func(c *ppl.Ctx) { mu(c); c.Sample("sigam", dist.LogNormal(loc(c, "s"), 1)) },
			[]string{`lacks ["sigma"]`, `has ["sigam"]`, "begins with _"}},
		"observes": {func(c *ppl.Ctx) { mu(c); sigma(c); c.Observe("y", dist.Normal(0, 1), 0.5) },
			[]string{`"y"`, "observes"}},
		"draws data": {func(c *ppl.Ctx) { mu(c); sigma(c); c.Sample("y", dist.Normal(loc(c, "t"), 1)) },
			[]string{`"y"`, "the model observes it"}},
		"shape": {func(c *ppl.Ctx) {
			sigma(c)
			c.Sample("mu", dist.Normal(c.Param("l", infertest.Vector([]float64{0, 1}), support.Real), 1))
		}, []string{`"mu"`, "[2]", "[]"}},
		"support": {func(c *ppl.Ctx) { mu(c); c.Sample("sigma", dist.Normal(loc(c, "s").Sub(100), 1)) },
			[]string{`"sigma"`, "from a Normal", "at least 0", "LogNormal"}},
		"a draw": {func(c *ppl.Ctx) {
			mu(c)
			c.Deterministic("sigma", c.Sample("_s", dist.Normal(loc(c, "s"), 1)).Sub(100))
		},
			[]string{`"sigma"`, "outside its support"}},
		"twice": {func(c *ppl.Ctx) { mu(c); mu(c) }, []string{"two sites of that name"}},
		"no Param": {func(c *ppl.Ctx) { c.Sample("mu", dist.Normal(0, 1)); c.Sample("sigma", dist.LogNormal(0, 1)) },
			[]string{"neither guide nor model has a Param"}},
		"a Param for a variable": {func(c *ppl.Ctx) { sigma(c); c.Param("mu", 0.1, support.Real) },
			[]string{`"mu"`, "a Param in one", "random variable in the other"}},
		"start of a Param": {func(c *ppl.Ctx) {
			mu(c)
			c.Sample("sigma", dist.LogNormal(0, c.Param("s", -1, support.Positive)))
		}, []string{`"s"`, "initial value"}},
		"types": {func(c *ppl.Ctx) {
			mu(c)
			x := must(torch.To(torch.Of(infertest.Vector([]float64{0})), torch.CPU, torch.DTypeOf[float32]()))
			c.Sample("sigma", dist.LogNormal(c.Param("s", x, support.Real).At(0), 1))
		}, []string{`"s"`, "one type"}},
		"fails": {func(c *ppl.Ctx) { c.Sample("mu", dist.Normal(0, -1)) }, []string{"scale is -1"}},
	} {
		t.Run(what, func(t *testing.T) {
			program := must(ppl.Compile(scaled, batch()))
			_, err := infer.Sample(context.Background(), program, svi.SVI{Guide: c.guide}, infer.Options{})
			_, own := svi.Compile(scaled, c.guide, batch())
			for _, word := range c.words {
				require.ErrorContains(t, err, word)
				require.ErrorContains(t, own, word)
			}
		})
	}
}

// A discrete variable whose probabilities nothing can move has no gradient of either kind.
func TestScoreWithoutGradient(t *testing.T) {
	model := func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(c.Sample("z", dist.Bernoulli(0.3)).Add(c.Sample("mu", dist.Normal(0, 1))), 1), 0.4)
	}
	guide := func(c *ppl.Ctx) {
		c.Sample("mu", dist.Normal(c.Param("loc", 0, support.Real), 1))
		c.Sample("z", dist.Bernoulli(0.5))
	}
	_, err := svi.Compile(model, guide, nil)
	for _, word := range []string{`"z"`, "Bernoulli", "depend on no Param", "score function"} {
		require.ErrorContains(t, err, word)
	}
	// A model with a discrete variable that its guide lacks: ppl.Enumerate is the way.
	_, err = svi.Compile(model, func(c *ppl.Ctx) { c.Sample("mu", dist.Normal(c.Param("loc", 0, support.Real), 1)) }, nil)
	require.ErrorContains(t, err, `lacks ["z"]`)
	require.ErrorContains(t, err, "ppl.Enumerate")
}

// A program of Compile counts the data that it was compiled on, or those of a plate that is declared: a run on another
// number of data would have another posterior. A plate of size 0 has the size of the data also in minibatches: the fit
// is that of a plate that says so.
func TestProgramOfAnotherNumber(t *testing.T) {
	model := func(size int, o ...ppl.PlateOption) ppl.Model {
		return func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 10))
			c.Plate("data", size, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) }, o...)
		}
	}
	guide := func(c *ppl.Ctx) { c.Sample("mu", dist.Normal(c.Param("loc", 0, support.Real), 1)) }
	of := func(n int) infer.Batch { return infer.Batch{"y": torch.Of(infertest.Vector(make([]float64, n)))} }
	split := func(n int) infer.Batches { return must(infer.Minibatches(of(n), infer.MinibatchOptions{Size: 2})) }
	const full, parts = `Batches is infer.Full of 4 data: plate "data" of the program counts 12`, "Batches is of 6 data: "
	for _, c := range []struct {
		model   ppl.Model
		compile int
		batches infer.Batches
		words   string
	}{
		{model(0), 12, infer.Full(of(12)), ""}, {model(0), 12, infer.Full(of(4)), full},
		{model(0), 12, split(6), parts + "the program counts 12"},
		{model(0), 12, split(12), ""},
		{model(12), 12, split(12), ""}, {model(12), 12, infer.Full(of(4)), full},
		{model(12, ppl.Minibatch), 4, split(12), ""}, {model(12, ppl.Minibatch), 4, infer.Full(of(4)), full},
		{model(12, ppl.Minibatch), 4, split(6), parts + `plate "data" of the program counts 12`},
	} {
		program := must(svi.Compile(c.model, guide, of(c.compile)))
		_, err := infer.Sample(context.Background(), program, svi.SVI{}, infer.Options{Chains: 1, Warmup: 3, Draws: 3,
			Batches: c.batches, Observer: infer.Silent})
		if c.words == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.words)
	}
	var bounds [2]float64
	for i, size := range []int{0, 12} {
		program := must(svi.Compile(model(size), guide, of(12)))
		r := must(infer.Run(context.Background(), program, svi.SVI{}, infer.Options{Chains: 1, Warmup: 1, Draws: infer.None,
			Batches: split(12), Observer: infer.ObserverFunc(func(p infer.Progress) {
				bounds[i] = p.Info.Stats[draws.StatNELBO][0]
			})}))
		require.NotZero(t, r.Updates)
	}
	require.NotZero(t, bounds[1])
	require.InDelta(t, bounds[1], bounds[0], 1e-9*bounds[1]) // the same sums, with the same draws
}

// Fields are checked when the method is built; the message names field, value and what is allowed.
func TestFields(t *testing.T) {
	program := must(ppl.Compile(conjugate, batch()))
	discrete := must(svi.Compile(shifts, shiftsGuide, batch()))
	decay := optim.Adam{WeightDecay: 0.1}
	for what, c := range map[string]struct {
		program infer.Program
		method  svi.SVI
		words   []string
	}{
		"samples": {program, svi.SVI{Samples: -1},
			[]string{"Samples is -1", "from 1 to 1048576", "0 for the default of 8"}},
		"temperature": {program, svi.SVI{Temperature: constant(-1)}, []string{"Temperature is -1"}},
		"weight":      {program, svi.SVI{KLWeight: constant(math.NaN())}, []string{"KLWeight is NaN"}},
		"decay":       {program, svi.SVI{Optimizer: decay}, []string{"Optimizer", "weight decay"}},
		"a sampler":   {program, svi.SVI{Optimizer: hmc.NUTS{}}, []string{"Optimizer", "GradientMethod"}},
		"order 1":     {program, svi.SVI{ELBO: svi.Renyi{Alpha: 1}}, []string{"Alpha is 1", "svi.Trace"}},
		"cold weights": {program, svi.SVI{ELBO: svi.IWAE{}, Temperature: constant(0)},
			[]string{"Temperature is 0", "svi.IWAE", "above 0"}},
		"one weight": {discrete, svi.SVI{ELBO: svi.IWAE{}, Samples: 1}, []string{"Samples is 1", "at least 2"}},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := infer.Sample(context.Background(), c.program, c.method, infer.Options{})
			for _, word := range c.words {
				require.ErrorContains(t, err, word)
			}
		})
	}
	_, err := svi.SVI{}.Build(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Flat.Sum(), nil
	}, 1))
	require.ErrorContains(t, err, "ppl.Compile")
}

// A program of svi.Compile has no density for other methods, and says so.
func TestOtherMethods(t *testing.T) {
	program := must(svi.Compile(shifts, shiftsGuide, batch()))
	_, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Observer: infer.Silent})
	require.ErrorContains(t, err, "svi.SVI alone")
}

// A minibatch of a variable that is in no plate would count once, as if there were no other data, in each kind of
// program; in a plate it counts for all of them.
func TestMinibatchWithoutPlate(t *testing.T) {
	model := func(plate bool) ppl.Model {
		return func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 10))
			observe := func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) }
			if plate {
				c.Plate("data", 0, observe)
			} else {
				observe(c)
			}
		}
	}
	for _, plate := range []bool{false, true} {
		m := model(plate)
		own := must(svi.Compile(m, normalAt(0, 1), batch()))
		for _, program := range []infer.Program{must(ppl.Compile(m, batch())), own} {
			batches := must(infer.Minibatches(batch(), infer.MinibatchOptions{Size: 2, DropLast: true}))
			_, err := infer.Sample(context.Background(), program, svi.SVI{}, infer.Options{Batches: batches, Chains: 1,
				Warmup: 5, Draws: 5, Observer: infer.Silent})
			if plate {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, `site "y"`)
			require.ErrorContains(t, err, "it is in no plate, and has 2 values where it had 5 when the model was compiled")
			require.ErrorContains(t, err, "c.Plate(name, 0, ...)")
		}
	}
}

// So it is with a factor outside plates that adds up over rows of the batch. One of latent variables alone, N times a
// mean, and one in a plate run.
func TestMinibatchOfAFactor(t *testing.T) {
	terms := func(c *ppl.Ctx, mu torch.Tensor) torch.Tensor { return c.Data("y").Sub(mu).Square().Mul(-0.5) }
	for name, factor := range map[string]func(c *ppl.Ctx, mu torch.Tensor){
		"refused: a sum":    func(c *ppl.Ctx, mu torch.Tensor) { c.Factor("f", terms(c, mu).Sum()) },
		"refused: a vector": func(c *ppl.Ctx, mu torch.Tensor) { c.Factor("f", terms(c, mu)) },
		"a prior":           func(c *ppl.Ctx, mu torch.Tensor) { c.Factor("f", mu.Square().Neg()) },
		"N times a mean":    func(c *ppl.Ctx, mu torch.Tensor) { c.Factor("f", terms(c, mu).Mean().Mul(5)) },
		"in a plate": func(c *ppl.Ctx, mu torch.Tensor) {
			c.Plate("data", 0, func(c *ppl.Ctx) { c.Factor("f", terms(c, mu)) })
		},
	} {
		m := func(c *ppl.Ctx) { factor(c, c.Sample("mu", dist.Normal(0, 10))) }
		for _, program := range []infer.Program{must(ppl.Compile(m, batch())),
			must(svi.Compile(m, normalAt(0, 1), batch()))} {
			o := infer.Options{Chains: 1, Warmup: 5, Draws: 5, Observer: infer.Silent}
			_, err := infer.Sample(context.Background(), program, svi.SVI{}, o)
			require.NoError(t, err, name)
			o.Batches = must(infer.Minibatches(batch(), infer.MinibatchOptions{Size: 2, DropLast: true}))
			_, err = infer.Sample(context.Background(), program, svi.SVI{}, o)
			if !strings.HasPrefix(name, "refused") {
				require.NoError(t, err, name)
				continue
			}
			require.ErrorContains(t, err, `site "f": it is in no plate, and adds up over the rows of the batch, of which there `+
				"are 2 where there were 5 when the model was compiled", name)
			require.ErrorContains(t, err, "c.Plate(name, 0, ...)", name)
		}
	}
}

// CheckFull runs the model once: what adds up over rows was found when the program was compiled.
func TestCheckFullRunsTheModelOnce(t *testing.T) {
	runs := 0
	m := func(c *ppl.Ctx) {
		runs++
		mu := c.Sample("mu", dist.Normal(0, 10))
		c.Factor("f", c.Data("y").Sub(mu).Square().Sum().Mul(-0.5))
	}
	program := must(svi.Compile(m, normalAt(0, 1), batch()))
	require.Greater(t, runs, 1)
	runs = 0
	require.NoError(t, program.CheckFull(batch()))
	require.Equal(t, 1, runs)
}

// A factor of latent variables in a plate takes minibatches of the data: the draws of a guide are not taken for a
// difference between batches.
func TestMinibatchOfAFactorOfLatents(t *testing.T) {
	model := func(m *ppl.Ctx) {
		var z torch.Tensor
		mu := m.Sample("mu", dist.Normal(0, 1))
		m.Plate("groups", 3, func(m *ppl.Ctx) { z = m.Sample("z", dist.Normal(0, 1)) })
		m.Factor("sum_to_zero", z.Sum().Square().Mul(-50))
		m.Plate("data", 0, func(m *ppl.Ctx) { m.Observe("y", dist.Normal(mu, 1), m.Data("y")) })
	}
	guide := func(m *ppl.Ctx) {
		loc := m.Param("loc", 0.5, support.Real)
		m.Sample("mu", dist.Normal(loc, 1))
		m.Plate("groups", 3, func(m *ppl.Ctx) { m.Sample("z", dist.Normal(loc, 1)) })
	}
	_, err := infer.Run(context.Background(), must(svi.Compile(model, guide, batch())), svi.SVI{}, infer.Options{
		Chains: 1, Warmup: 5, Draws: infer.None, Observer: infer.Silent,
		Batches: must(infer.Minibatches(batch(), infer.MinibatchOptions{Size: 2, DropLast: true}))})
	require.NoError(t, err)
}

// A density that is not finite at the start is an error; later the chain is held for that update.
func TestNotFinite(t *testing.T) {
	model := func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		c.Factor("cliff", x.Sub(5).Log()) // not a number below 5; the mode is at 5.19
	}
	guide := func(at float64) ppl.Model {
		return func(c *ppl.Ctx) { c.Sample("x", dist.Normal(c.Param("loc", at, support.Real), 0.1)) }
	}
	run := func(at float64) (*infer.Result, error) {
		program := must(svi.Compile(model, guide(at), nil))
		return infer.Run(context.Background(), program, svi.SVI{Samples: 2, Optimizer: optim.SGD{LR: constant(0.01)}},
			infer.Options{Chains: 2, Warmup: 300, Draws: 2, Observer: infer.Silent})
	}
	_, err := run(4)
	require.ErrorIs(t, err, infer.ErrNonFinite)
	r, err := run(5.5)
	require.NoError(t, err)
	require.Positive(t, r.Held, "a draw is below 5 once in a hundred")
	require.NotContains(t, flat(r.Draws, "x"), math.NaN())
}

// A guide of float32 reads data of float32, also where the model calculates with them in float64.
func TestMinibatchesOfASingleGuide(t *testing.T) {
	single := must(torch.To(torch.Of(infertest.Vector(data)), torch.CPU, torch.DTypeOf[float32]()))
	program := must(ppl.Compile(conjugate, infer.Batch{"y": single}))
	start := must(torch.To(torch.Of(infertest.Vector([]float64{0.1})), torch.CPU, torch.DTypeOf[float32]()))
	var seen []gotch.DType
	guide := func(c *ppl.Ctx) {
		loc := c.Param("loc", start, support.Real)
		seen = append(seen, c.Data("y").T().DType())
		c.Sample("mu", dist.Normal(loc.Sum(), 1))
	}
	batches := must(infer.Minibatches(program.Batch(), infer.MinibatchOptions{Size: 5}))
	_, err := infer.Sample(context.Background(), program, svi.SVI{Guide: guide}, infer.Options{Batches: batches,
		Chains: 1, Warmup: 3, Draws: 3, Observer: infer.Silent})
	require.NoError(t, err)
	require.NotContains(t, seen, gotch.Double)
}

// A Go function sees values, which samples and chains that are mapped have not: the error names the site and what to
// set, and with that the fit is the posterior N(1.2, 1/5).
func TestDensityIsFittedByOneSample(t *testing.T) {
	program := must(ppl.Compile(func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Density("more", func(x, grad [][]float64) float64 { grad[0][0] = -x[0][0]; return -x[0][0] * x[0][0] / 2 }, mu)
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) })
	}, infer.Batch{"y": torch.Of(infertest.Vector([]float64{1, 2, 3}))}))
	_, err := infer.Sample(context.Background(), program, svi.SVI{}, infer.Options{})
	for _, word := range []string{`site "more"`, "Samples: 1", "infer.Options{Chains: 1}", "(at svi/errors_test.go:"} {
		require.ErrorContains(t, err, word)
	}
	d, err := infer.Sample(context.Background(), program, svi.SVI{Samples: 1}, infer.Options{Chains: 1})
	require.NoError(t, err)
	mean, err := d.Mean("mu")
	require.NoError(t, err)
	require.InDelta(t, 1.2, mean[0], 4*math.Sqrt(0.2/1000)+0.01)
}

// A program of all data has the variables of each datum in its draws, so that it takes no minibatches: the error says
// which program does.
func TestMinibatchesOfVariablesOfData(t *testing.T) {
	model := func(size int, o ...ppl.PlateOption) ppl.Model {
		return func(c *ppl.Ctx) {
			mu := c.Param("mu", 0.5, support.Real)
			c.Plate("d", size, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(c.Sample("z", dist.Normal(mu, 1)), 1), c.Data("y"))
			}, o...)
		}
	}
	guide := func(size int, o ...ppl.PlateOption) ppl.Model {
		return func(c *ppl.Ctx) {
			k := c.Param("k", 0.1, support.Real)
			c.Plate("d", size, func(c *ppl.Ctx) { c.Sample("z", dist.Normal(c.Data("y").Mul(k), 1)) }, o...)
		}
	}
	data := infer.Batch{"y": torch.Of(infertest.Vector([]float64{1, 2, 3, 4, 5, 6}))}
	options := infer.Options{Chains: 1, Draws: 1, Warmup: 20, Batches: must(infer.Minibatches(data,
		infer.MinibatchOptions{Size: 2}))}
	whole := must(svi.Compile(model(0), guide(0), data))
	_, err := infer.Sample(context.Background(), whole, svi.SVI{Guide: guide(0)}, options)
	require.ErrorContains(t, err, `site "z"`)
	require.ErrorContains(t, err, `c.Plate("d", N, f, ppl.Minibatch)`)
	part := infer.Batch{"y": torch.Of(infertest.Vector([]float64{1, 2}))}
	program := must(svi.Compile(model(6, ppl.Minibatch), guide(6, ppl.Minibatch), part))
	_, err = infer.Sample(context.Background(), program, svi.SVI{Guide: guide(6, ppl.Minibatch)}, options)
	require.NoError(t, err)
}
