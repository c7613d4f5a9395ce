package ppl_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
)

// mean is a normal mean with a plate of some size.
func mean(size int, options ...ppl.PlateOption) ppl.Model {
	return func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 10))
		c.Plate("data", size, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) }, options...)
	}
}

// A plate takes the size of the data: the posterior is that of all of the data, each counted once, also when it is
// evaluated on minibatches of them later.
func TestPlateSizeFromData(t *testing.T) {
	y := []float64{0.1, -2, 3, 0.4, 5}
	p, f := compiled(t, mean(0), infer.Batch{"y": vec(y...)})
	require.EqualValues(t, 5, p.Data())
	require.InDelta(t, normal(0.7, 0, 10)+sumNormal(y, 0.7, 1), f(infer.Batch{"y": vec(y...)}, 0.7), 1e-12)
	require.InDelta(t, normal(0.7, 0, 10)+sumNormal(y[:2], 0.7, 1)*5/2, f(infer.Batch{"y": vec(y[:2]...)}, 0.7), 1e-12)
	one, f := compiled(t, mean(0), infer.Batch{"y": vec(3)})
	require.EqualValues(t, 1, one.Data())
	require.InDelta(t, normal(0.7, 0, 10)+normal(3, 0.7, 1), f(one.Batch(), 0.7), 1e-12)
}

// Latent variables that come before the data have the size that the data tell, in this plate and in others of its name.
func TestPlateSizeOfLatents(t *testing.T) {
	model := func(c *ppl.Ctx) {
		mu, tau := c.Sample("mu", dist.Normal(0, 5)), c.Sample("tau", dist.HalfCauchy(5))
		var theta = mu
		c.Plate("schools", 0, func(c *ppl.Ctx) { theta = c.Sample("theta", dist.Normal(mu, tau)) })
		c.Plate("schools", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(theta, c.Data("sigma")), c.Data("y")) })
	}
	batch := schoolData(t)
	p, f := compiled(t, model, batch)
	q, g := compiled(t, schools, batch)
	require.Equal(t, q.Layout().String(), p.Layout().String())
	require.Equal(t, []string{"schools"}, p.Dims("theta"))
	require.EqualValues(t, 8, p.Data())
	x := []float64{1.5, 0.3, 3, -1, 0.5, 2, 7, -4, 1, 6}
	require.InDelta(t, g(batch, x...), f(batch, x...), 1e-12)

	// Nested plates, one of them of known size; a value by Condition tells as an observed one does.
	y := []float64{0.1, -2, 3, 0.4, 5, -0.6}
	free := func(c *ppl.Ctx) {
		c.Plate("columns", 0, func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(1, 2))
			c.Plate("rows", 2, func(c *ppl.Ctx) { c.Sample("y", dist.Normal(a, 1.5)) })
		})
	}
	p, f = compiled(t, ppl.Condition(free, ppl.Values{"y": matrix(2, 3, y...)}), nil)
	require.Equal(t, "a[3]", p.Layout().String())
	want := sumNormal([]float64{0.3, -1, 2}, 1, 2)
	for i, v := range y {
		want += normal(v, []float64{0.3, -1, 2}[i%3], 1.5)
	}
	require.InDelta(t, want, f(nil, 0.3, -1, 2), 1e-12)

	// Without a compiled model: a trace, a graph, and predictions, which know the size from the draws where y is missing.
	tr, err := ppl.TraceModel(model, batch, 1)
	require.NoError(t, err)
	theta, err := tr.Value("theta")
	require.NoError(t, err)
	require.Len(t, floats(t, theta), 8)
	dot, err := ppl.Render(model, batch)
	require.NoError(t, err)
	require.Contains(t, dot, "schools (8)")
	prior, err := ppl.Predictive{Model: model, Batch: infer.Batch{"sigma": batch["sigma"]}, Seed: 1}.Prior(3)
	require.NoError(t, err)
	require.Len(t, floats(t, prior["theta"]), 24)
	constant := func(c *ppl.Ctx) {
		c.Plate("p", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Sample("slope", dist.Normal(0, 1)), 1), c.Data("y"))
		})
	}
	predicted, err := ppl.Predictive{Model: constant}.Posterior(vectorDraws(t, "slope", []float64{1, 2, 3}, []float64{4,
		5, 6}))
	require.NoError(t, err)
	require.Len(t, floats(t, predicted["y"]), 6)
	_, err = ppl.Predictive{Model: constant}.Prior(2)
	require.ErrorContains(t, err, `plate "p" cannot be inferred`)
}

// A batch that is not all of the data is refused when a model is compiled on it, unless it is declared a minibatch, and
// by CheckFull afterwards.
func TestPlateSizeMustFitTheData(t *testing.T) {
	five, fifty := infer.Batch{"y": vec(0.1, -2, 3, 0.4, 5)}, infer.Batch{"y": vec(make([]float64, 50)...)}
	_, err := ppl.Compile(mean(50), five)
	require.ErrorContains(t, err, `ppl.Compile: model, site "y" in plate data (Normal): plate "data" has size 50, `+
		`and the batch has 5 of it, so that each would count 10 times. If these are all of the data, `+
		`give the plate size 5, or 0, which takes the size of the data. If they are a minibatch, `+
		`compile on all of the data, or declare the plate with ppl.Minibatch`)
	declared, f := compiled(t, mean(50, ppl.Minibatch), five)
	require.EqualValues(t, 50, declared.Data())
	require.InDelta(t, normal(0.7, 0, 10)+10*sumNormal(floats(t, five["y"]), 0.7, 1), f(five, 0.7), 1e-11)
	whole, _ := compiled(t, mean(50), fifty)
	for _, p := range []*ppl.Program{declared, whole} {
		require.NoError(t, p.CheckFull(fifty))
		err = p.CheckFull(five)
		require.ErrorContains(t, err, `site "y" in plate data (Normal): the batch has 5 of the 50 of plate "data"`)
	}
	_, err = ppl.Compile(mean(3), five)
	require.ErrorContains(t, err, `plate "data" has size 3`)
	require.ErrorContains(t, err, "give the plate size 5, or 0, which takes the size of the data")
	inferred, _ := compiled(t, mean(0), five)
	err = inferred.CheckFull(fifty)
	require.ErrorContains(t, err, "the size is that of the data of ppl.Compile: compile the model on all 50")

	// Outside plates the batch of Compile says how many there are.
	loose, _ := compiled(t, func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(c.Sample("mu", dist.Normal(0, 1)), 1), c.Data("y"))
	}, fifty)
	require.NoError(t, loose.CheckFull(fifty))
	require.ErrorContains(t, loose.CheckFull(five),
		`site "y" (Normal): the batch has 5 values, and the batch of Compile had 50`)
	err = loose.CheckFull(infer.Batch{})
	require.True(t, strings.HasPrefix(err.Error(), "ppl.CheckFull: "), err)
}

// vectorDraws are draws of one variable, in one chain.
func vectorDraws(t *testing.T, name string, rows ...[]float64) *draws.Draws {
	t.Helper()
	n := len(rows[0])
	d, err := draws.New([]draws.Site{{Name: name, Shape: []int{n}, Size: n}}, nil, 1)
	require.NoError(t, err)
	for _, row := range rows {
		require.NoError(t, d.Append(row, nil))
	}
	return d
}

// The posterior of five data has the standard deviation of five data, and a run that sees one batch in every update
// refuses one that is a part of the data.
func TestPlateSizeUnderNUTS(t *testing.T) {
	five := infer.Batch{"y": vec(0.1, -2, 3, 0.4, 5)}
	p, err := ppl.Compile(mean(0), five)
	require.NoError(t, err)
	options := infer.Options{Warmup: 300, Draws: 1000, Seed: 1, Observer: infer.Silent}
	d, err := infer.Sample(context.Background(), p, hmc.NUTS{}, options)
	require.NoError(t, err)
	table, err := diag.Summary(d, diag.SummaryOptions{})
	require.NoError(t, err)
	require.InDelta(t, 1/math.Sqrt(5.01), table.Rows[0].SD, 4*table.Rows[0].MCSESD)

	p, err = ppl.Compile(mean(50, ppl.Minibatch), five)
	require.NoError(t, err)
	_, err = infer.Sample(context.Background(), p, hmc.NUTS{}, options)
	require.ErrorContains(t, err, `the batch has 5 of the 50 of plate "data"`)
}

// Batches of another number of data than the program counts are refused before the run: a model compiled on a minibatch
// takes its plate's size from it, and each datum would count as many times too little as there are batches.
func TestBatchesOfAnotherTotal(t *testing.T) {
	all, part := infer.Batch{"y": vec(0.1, -2, 3, 0.4, 5)}, infer.Batch{"y": vec(0.1, -2)}
	method := sgmcmc.SGLD{LR: infer.Constant(0.01)}
	fit := func(p infer.Program) error {
		batches, err := infer.Minibatches(all, infer.MinibatchOptions{Size: 2})
		require.NoError(t, err)
		_, err = infer.Sample(context.Background(), p, method,
			infer.Options{Chains: 1, Warmup: infer.None, Draws: 1, Batches: batches})
		return err
	}
	for _, batch := range []infer.Batch{part, {"y": vec(3)}} {
		p, _ := compiled(t, mean(0), batch)
		err := fit(p)
		require.ErrorIs(t, err, infer.ErrConfig)
		require.ErrorContains(t, err, "infer.Sample: infer.Options: Batches is of 5 data: the program counts "+
			strconv.FormatInt(int64(p.Data()), 10)+": compile on all of the data, or declare the plate with ppl.Minibatch")
	}
	whole, _ := compiled(t, mean(0), all)
	require.NoError(t, fit(whole))
	declared, _ := compiled(t, mean(5, ppl.Minibatch), part)
	require.NoError(t, fit(declared))

	start, err := infer.Zeros(whole.Layout())
	require.NoError(t, err)
	own := func(n int) infer.Program {
		return infer.Handwritten(infer.Mean(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			return b.Get("y").Sub(p.Get("mu")).Square().Mean().Mul(-0.5), nil
		}, n), start, nil)
	}
	require.NoError(t, fit(own(5)))
	require.NoError(t, fit(own(0)), "the scale is in the step and the temperature")
	whole5 := infer.Handwritten(own(5).Target(), start, all)
	for _, c := range []struct {
		program infer.Program
		data    infer.Batch
		words   string
	}{{whole5, all, ""}, {whole5, part, "infer.Sample: infer.Options: Batches is infer.Full of 2 data: the program " +
		"counts 5: give all of them, or say so in the target, as in infer.Mean(f, n)"}, {own(0), part, ""}} {
		_, err := infer.Sample(context.Background(), c.program, method,
			infer.Options{Chains: 1, Warmup: infer.None, Draws: 1, Batches: infer.Full(c.data)})
		if c.words == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, infer.ErrConfig)
		require.ErrorContains(t, err, c.words)
	}
	require.ErrorContains(t, fit(own(50)), "Batches is of 5 data: the program counts 50: say so in the target, as in "+
		"infer.Mean(f, n)")
}

// Minibatches have as many data as the program counts, in rows of its batch: a divisor of N is another number, unless
// each row has several values in plates in plates.
func TestMinibatchesOfADivisor(t *testing.T) {
	of := func(shape ...int) infer.Batch {
		x := torch.New(make([]float64, shape[0]*append(shape, 1)[1]), shape...)
		return infer.Batch{"y": x}
	}
	fit := func(m ppl.Model, compile, data infer.Batch, words ...string) {
		t.Helper()
		p, err := ppl.Compile(m, compile)
		require.NoError(t, err)
		batches, err := infer.Minibatches(data, infer.MinibatchOptions{Size: 2})
		require.NoError(t, err)
		_, err = infer.Sample(context.Background(), p, sgmcmc.SGLD{LR: infer.Constant(0.01)},
			infer.Options{Chains: 1, Warmup: infer.None, Draws: 1, Batches: batches, Observer: infer.Silent})
		if len(words) == 0 {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, infer.ErrConfig)
		for _, w := range words {
			require.ErrorContains(t, err, w)
		}
	}
	fit(mean(0), of(12), of(12))
	fit(mean(0), of(12), of(6), "infer.Sample: infer.Options: Batches is of 6 data: the program counts 12: make the "+
		"minibatches of all 12; if these are all of the data, compile the model on them")
	fit(mean(0), of(12), of(24), "Batches is of 24 data: the program counts 12: compile on all of the data")
	declared := mean(12, ppl.Minibatch)
	fit(declared, of(4), of(12))
	for _, n := range []int{4, 6} { // 4 is also the batch of Compile
		fit(declared, of(4), of(n), "Batches is of "+strconv.FormatInt(int64(n),
			10)+` data: plate "data" of the program counts `+
			"12: make the minibatches of all 12, or give the plate the size of the data")
	}

	// Series of three values each: N is three times the number of rows.
	series := func(size int, options ...ppl.PlateOption) ppl.Model {
		return func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 10))
			c.Plate("time", 3, func(c *ppl.Ctx) {
				c.Plate("series", size, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) }, options...)
			})
		}
	}
	for _, c := range []struct {
		model   ppl.Model
		compile infer.Batch
		counts  string
	}{{series(0), of(12, 3), "the program counts 12"},
		{series(12, ppl.Minibatch), of(4, 3), `plate "series" of the program counts 12`}} {
		fit(c.model, c.compile, of(12, 3))
		fit(c.model, c.compile, of(6, 3), "Batches is of 6 data: "+c.counts)
		fit(c.model, c.compile, of(36, 3), "Batches is of 36 data: "+c.counts) // N
	}
	// Rows of three values each, in one plate of all values.
	flat := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 10))
		c.Plate("data", 36, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(mu, 1), c.Data("y").Reshape(-1))
		}, ppl.Minibatch)
	}
	fit(flat, of(4, 3), of(12, 3))
	fit(flat, of(4, 3), of(6, 3), `Batches is of 6 data: plate "data" of the program counts 12`)
}

// infer.Full of another number of data than the program counts is refused by every method, with the sizes and what
// would be right: each datum would count several times, and the posterior of five data would be that of fifty.
func TestFullOfAPart(t *testing.T) {
	five, fifty := infer.Batch{"y": vec(11, 12, 13, 14, 15)}, infer.Batch{"y": vec(make([]float64, 50)...)}
	declared, _ := compiled(t, mean(50, ppl.Minibatch), five)
	whole, _ := compiled(t, mean(0), fifty)
	single := infer.Batch{"y": torch.Of(vec(make([]float64, 50)...).T().MustTotype(gotch.Float, false))}
	loose, _ := compiled(t, func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(c.Sample("mu", dist.Normal(0, 10)), 1), c.Data("y"))
	}, fifty)
	fit := func(p *ppl.Program, m infer.Method, data infer.Batch) error {
		_, err := infer.Sample(context.Background(), p, m, infer.Options{Chains: 1, Warmup: 5, Draws: 5,
			Batches: infer.Full(data), Observer: infer.Silent})
		return err
	}
	const minibatches = ", or infer.Minibatches of all of them"
	for name, c := range map[string]struct {
		method infer.Method
		or     string
	}{
		"NUTS": {hmc.NUTS{}, ""}, "Pathfinder": {pathfinder.Pathfinder{}, ""}, "LBFGS": {optim.LBFGS{}, ""},
		"SGLD":    {sgmcmc.SGLD{LR: infer.Constant(0.001)}, minibatches},
		"Laplace": {laplace.DenseHessian{}, minibatches}, "VI": {vi.Dense{}, minibatches},
		"EKF": {ekf.Dense{}, minibatches}, "SVI": {svi.SVI{}, minibatches},
	} {
		for _, p := range []*ppl.Program{declared, whole} {
			err := fit(p, c.method, five)
			require.ErrorIs(t, err, infer.ErrConfig, name)
			require.ErrorContains(t, err, "infer.Sample: infer.Options: Batches is infer.Full of 5 data: plate \"data\" of "+
				"the program counts 50: give infer.Full all 50"+c.or+"; if these are all of the data, compile the model on "+
				"them", name)
			require.NoError(t, fit(p, c.method, fifty), name)
		}
		require.NoError(t, fit(whole, c.method, single), name)
		err := fit(loose, c.method, five)
		require.ErrorIs(t, err, infer.ErrConfig, name)
		require.ErrorContains(t, err, "Batches is infer.Full of 5 data: a variable in no plate counts 50", name)
		err = fit(whole, c.method, infer.Batch{"y": vec(make([]float64, 51)...)})
		require.ErrorIs(t, err, infer.ErrConfig, name)
		require.ErrorContains(t, err, "Batches is infer.Full of 51 data: the program counts 50", name)
	}
}

// infer.Full of other data than those of Compile takes their place in methods that drive themselves, as in others: the
// posterior is theirs, and so are starts, supports and deterministic values, also in what a sink gets. The data may be
// whole numbers.
func TestFullOfOtherData(t *testing.T) {
	model := func(c *ppl.Ctx) {
		y := c.Data("y")
		mu := c.Sample("mu", dist.Uniform(y.Mean().Sub(20), y.Mean().Add(20)))
		c.Deterministic("off", mu.Sub(y.Mean()))
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), y) })
	}
	p, _ := compiled(t, model, infer.Batch{"y": vec(0.1, -2, 3, 0.4, 5)})
	ints := torch.New([]int{111, 112, 113, 114, 115})
	for _, m := range []infer.Method{hmc.NUTS{}, hmc.HMC{}, pathfinder.Pathfinder{},
		sgmcmc.SGLD{LR: infer.Constant(0.1)}} {
		for _, y := range []torch.Tensor{vec(111, 112, 113, 114, 115), ints} {
			saved, apart := 0, []float64{}
			d, err := infer.Sample(context.Background(), p, m, infer.Options{Chains: 2, Warmup: 300, Draws: 500, Seed: 1,
				Batches: infer.Full(infer.Batch{"y": y}), Observer: infer.Silent,
				Save: func(_ string, _ []int, block *draws.Draws) error {
					saved += block.Total()
					apart = append(apart, torch.Must(block.Mean("mu"))[0]-torch.Must(block.Mean("off"))[0])
					return nil
				}})
			require.NoError(t, err, "%T", m)
			require.Equal(t, d.Total(), saved)
			for _, v := range apart {
				require.InDelta(t, 113, v, 1e-9, "%T", m)
			}
			table, err := diag.Summary(d, diag.SummaryOptions{})
			require.NoError(t, err)
			for _, row := range table.Rows {
				want := map[string]float64{"mu": 113, "off": 0}[row.Name]
				require.InDelta(t, want, row.Mean, 4*row.MCSEMean, "%T: %s", m, row.Name)
			}
		}
	}
}

// A minibatch of a variable that is in no plate would count once, as if there were no other data.
func TestMinibatchWithoutPlate(t *testing.T) {
	y, err := torch.FromSlice([]float64{1, 2, 3, 4, 5, 6})
	require.NoError(t, err)
	data := infer.Batch{"y": y}
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 10))
		c.Observe("y", dist.Normal(mu, 1), c.Data("y"))
	}, data)
	require.NoError(t, err)
	batches, err := infer.Minibatches(data, infer.MinibatchOptions{Size: 2})
	require.NoError(t, err)
	_, err = infer.Sample(context.Background(), p, sgmcmc.SGLD{LR: infer.Constant(0.01)},
		infer.Options{Batches: batches, Chains: 1, Warmup: 5, Draws: 5, Observer: infer.Silent})
	require.ErrorContains(t, err, `site "y"`)
	require.ErrorContains(t, err, "it is in no plate, and has 2 values where it had 6 when the model was compiled")
}

// A loop in Go over the rows of a batch makes a site for each. In a minibatch the others would be missing, and each row
// that is there would count once.
func TestMinibatchOfALoop(t *testing.T) {
	y, err := torch.FromSlice([]float64{1, 2, 3, 2.5, 1.5, 4})
	require.NoError(t, err)
	data := infer.Batch{"y": y}
	each := func(site func(c *ppl.Ctx, i int, y, mu torch.Tensor)) ppl.Model {
		return func(c *ppl.Ctx) {
			mu, y := c.Sample("mu", dist.Normal(0, 10)), c.Data("y")
			for i := range y.Shape()[0] {
				site(c, i, y.At(i), mu)
			}
		}
	}
	for name, m := range map[string]ppl.Model{
		"y2": each(func(c *ppl.Ctx, i int, y, mu torch.Tensor) {
			c.Observe(fmt.Sprintf("y%d", i), dist.Normal(mu, 1), y)
		}),
		"f2": each(func(c *ppl.Ctx, i int, y, mu torch.Tensor) {
			c.Factor(fmt.Sprintf("f%d", i), y.Sub(mu).Square().Mul(-0.5))
		}),
		"y[2]": func(c *ppl.Ctx) {
			mu, y := c.Sample("mu", dist.Normal(0, 10)), c.Data("y")
			c.Scan(y.Shape()[0], nil, func(c *ppl.Ctx, t int, _ []torch.Tensor) ([]torch.Tensor, torch.Tensor) {
				c.Observe("y", dist.Normal(mu, 1), y.At(t))
				return nil, torch.Of(0)
			})
		},
	} {
		p, err := ppl.Compile(m, data)
		require.NoError(t, err)
		batches, err := infer.Minibatches(data, infer.MinibatchOptions{Size: 2})
		require.NoError(t, err)
		o := infer.Options{Batches: batches, Chains: 1, Warmup: 5, Draws: 5, Observer: infer.Silent}
		for _, method := range []infer.Method{sgmcmc.SGLD{LR: infer.Constant(0.01)}, svi.SVI{}} {
			_, err = infer.Sample(context.Background(), p, method, o)
			require.ErrorContains(t, err, fmt.Sprintf("site %q: it was there when the model was compiled and is not in this "+
				"run: what is declared in a loop over the rows of the data needs all of them", name))
			require.NotContains(t, err.Error(), "(at native/", "a line of Kelvin's own")
			all, err := infer.Minibatches(data, infer.MinibatchOptions{Size: 6})
			require.NoError(t, err)
			_, err = infer.Sample(context.Background(), p, method, infer.Options{Batches: all, Chains: 1, Warmup: 5, Draws: 5,
				Observer: infer.Silent})
			require.NoError(t, err)
		}
		few, many := infer.Batch{"y": torch.Of(y.T().MustNarrow(0, 0, 2,
			false))}, infer.Batch{"y": torch.Of(y.T().MustRepeat([]int64{2}, false))}
		require.ErrorContains(t, p.CheckFull(few), fmt.Sprintf("site %q: it was there", name))
		require.ErrorContains(t, p.CheckFull(many), fmt.Sprintf("6 observed sites and factors in no plate were not there "+
			"when the model was compiled, the first %q", strings.Replace(name, "2", "6", 1)))
		require.NoError(t, p.CheckFull(data))
		o.Batches = infer.Full(few)
		_, err = infer.Sample(context.Background(), p, hmc.NUTS{}, o)
		require.ErrorContains(t, err, "Batches is infer.Full of 2 data: the program counts 6")
		o.Batches = infer.Full(data)
		_, err = infer.Sample(context.Background(), p, sgmcmc.SGLD{LR: infer.Constant(0.01)}, o)
		require.NoError(t, err)
	}
}
