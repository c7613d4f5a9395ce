package ppl_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// typedModel is a logistic regression with groups; seen gets the types that x had when it ran.
func typedModel(seen map[gotch.DType]bool) ppl.Model {
	return func(c *ppl.Ctx) {
		w, a := c.Sample("w", dist.Normal(0, 1).Expand(2)), c.Sample("a", dist.Normal(0, 1).Expand(3))
		x, group, y := c.Data("x"), c.Data("group"), c.Data("y")
		seen[x.T().DType()] = true
		c.Plate("data", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.BernoulliLogits(x.Mul(w).Sum(-1).Add(a.IndexSelect(0, group))), y)
		})
	}
}

// typedData are 12 data whose covariates and counts have a type, and whose groups another.
func typedData(t *testing.T, dtype, index gotch.DType) infer.Batch {
	t.Helper()
	to := func(dtype gotch.DType, v []float64, shape ...int) torch.Tensor {
		x, err := torch.FromSlice(v, shape...)
		require.NoError(t, err)
		x, err = torch.To(x, torch.CPU, dtype)
		require.NoError(t, err)
		return x
	}
	x := []float64{1, 2, 0, -1, 3, 1, 1, 1, 2, -2, 0, 0, 4, 1, -3, 2, 1, 0, 0, 1, -1, -1, 2, 2}
	return infer.Batch{"x": to(dtype, x, 12, 2), "y": to(dtype, []float64{1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0, 1}, 12),
		"group": to(index, []float64{0, 2, 2, 1, 0, 1, 1, 2, 0, 0, 1, 2}, 12)}
}

// thirds gives the thirds of data in turn.
type thirds struct {
	data  infer.Batch
	at    int
	given int
}

func (o *thirds) Next() (infer.Batch, error) {
	out := infer.Batch{}
	for name, x := range o.data {
		out[name] = torch.Of(x.T().MustNarrow(0, int64(o.at%3*4), 4, false))
	}
	o.at++
	o.given++
	return out, nil
}

func (o *thirds) Position() infer.Position     { return infer.Position{Index: o.at} }
func (o *thirds) Seek(p infer.Position) error  { o.at = p.Index; return nil }
func (o *thirds) Fingerprint() (string, error) { return "thirds", nil }

// Covariates of whole numbers or float32 in minibatches have the compiled gradients, the log densities and the draws of
// those of float64, bit for bit: whatever the types of Compile and of the batches are, and whoever gives the batches.
func TestBatchesOfOtherTypes(t *testing.T) {
	run := func(compile, batches infer.Batch, own bool) *draws.Draws {
		t.Helper()
		p, err := ppl.Compile(typedModel(map[gotch.DType]bool{}), compile)
		require.NoError(t, err)
		var b infer.Batches = &thirds{data: batches}
		if !own {
			b, err = infer.Minibatches(batches, infer.MinibatchOptions{Size: 4, Seed: 1})
			require.NoError(t, err)
		}
		r, err := infer.Run(context.Background(), p, sgmcmc.SGLD{LR: infer.Constant(0.01)}, infer.Options{Batches: b,
			Chains: 2, Warmup: 3, Draws: 9, Seed: 5, Native: native.VM, Observer: infer.Silent})
		require.NoError(t, err)
		require.Contains(t, r.Draws.Attrs()["gradient"], "vm (")
		require.NotZero(t, b.Position(), "the user's iterator moves on")
		return r.Unconstrained
	}
	double := typedData(t, gotch.Double, gotch.Int64)
	for _, own := range []bool{false, true} {
		want := run(double, double, own)
		for _, c := range []struct{ compile, batches infer.Batch }{
			{double, typedData(t, gotch.Int, gotch.Int64)},
			{double, typedData(t, gotch.Int64, gotch.Int)},
			{double, typedData(t, gotch.Float, gotch.Int16)},
			{typedData(t, gotch.Int, gotch.Int64), typedData(t, gotch.Int, gotch.Int64)},
			{typedData(t, gotch.Float, gotch.Int64), typedData(t, gotch.Float, gotch.Int64)},
			{typedData(t, gotch.Int64, gotch.Int64), double},
		} {
			have := run(c.compile, c.batches, own)
			for chain := range want.Chains() {
				for i := range want.Len(chain) {
					require.Equal(t, want.Row(chain, i), have.Row(chain, i), "chain %d, draw %d", chain, i)
				}
				for _, stat := range []string{draws.StatLP, draws.StatGradNorm} {
					a, err := want.Stat(stat, chain)
					require.NoError(t, err)
					b, err := have.Stat(stat, chain)
					require.NoError(t, err)
					require.Equal(t, a, b, stat)
				}
			}
		}
	}
}

// So have those of all data at once, for methods that take updates and for those that drive themselves, also after a
// change in place between two runs.
func TestAllDataOfOtherTypes(t *testing.T) {
	run := func(p *ppl.Program, m infer.Method) *draws.Draws {
		t.Helper()
		r, err := infer.Run(context.Background(), p, m, infer.Options{Chains: 2, Warmup: 20, Draws: 9, Seed: 5,
			Native: native.VM, Observer: infer.Silent})
		require.NoError(t, err)
		require.Contains(t, r.Draws.Attrs()["gradient"], "vm (")
		return r.Unconstrained
	}
	for _, m := range []infer.Method{sgmcmc.SGLD{LR: infer.Constant(0.01)}, hmc.NUTS{}} {
		var want [2]*draws.Draws
		for _, dtype := range []gotch.DType{gotch.Double, gotch.Int, gotch.Int64, gotch.Float} {
			data := typedData(t, dtype, gotch.Int64)
			p, err := ppl.Compile(typedModel(map[gotch.DType]bool{}), data)
			require.NoError(t, err)
			for i := range want {
				have := run(p, m)
				if dtype == gotch.Double {
					want[i] = have
				}
				for chain := range have.Chains() {
					for draw := range have.Len(chain) {
						require.Equal(t, want[i].Row(chain, draw), have.Row(chain, draw), "%v, run %d", dtype, i)
					}
				}
				data["x"].T().MustNarrow(0, 0, 3, false).MustFill_(ts.FloatScalar(2))
			}
			require.Equal(t, dtype, p.Batch()["x"].T().DType(), "the user's batch is as it was")
		}
		require.NotEqual(t, want[0].Row(0, 8), want[1].Row(0, 8))
	}
}

// At points of float32 nothing is converted, and an evaluation of a batch of other types is that of libtorch. A part
// that has no right type is an error that names it and says what to do, where libtorch's words were, or a wrong number.
func TestTypesThatCannotBeConverted(t *testing.T) {
	seen := map[gotch.DType]bool{}
	double := typedData(t, gotch.Double, gotch.Int64)
	p, err := ppl.Compile(typedModel(seen), double)
	require.NoError(t, err)
	same, err := p.ConvertBatch(double)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%p", double), fmt.Sprintf("%p", same), "what fits is not copied")
	run := func(b infer.Batches, start infer.Params) error {
		_, err := infer.Sample(context.Background(), p, sgmcmc.SGLD{LR: infer.Constant(0.01)}, infer.Options{Batches: b,
			Start: start, Chains: 1, Warmup: 3, Draws: 3, Observer: infer.Silent})
		return err
	}
	wrong := typedData(t, gotch.Double, gotch.Double)
	split, err := infer.Minibatches(wrong, infer.MinibatchOptions{Size: 4})
	require.NoError(t, err)
	for _, b := range []infer.Batches{split, &thirds{data: wrong}, infer.Full(wrong)} {
		err := run(b, infer.Params{})
		require.ErrorIs(t, err, infer.ErrConfig)
		for _, words := range []string{`batch tensor "group" is of type Double`,
			"was of type Int64 when the model was compiled", "such as an index", "give it that type",
			"compile the model on data of type Double"} {
			require.ErrorContains(t, err, words)
		}
	}

	start, err := infer.Zeros(p.Layout())
	require.NoError(t, err)
	single, err := start.To(torch.CPU, gotch.Float)
	require.NoError(t, err)
	require.NoError(t, run(&thirds{data: typedData(t, gotch.Float, gotch.Int64)}, single))
	require.True(t, seen[gotch.Float])
}

// An index that is out of range is an error that names the data, the index and what would be right: when the model is
// compiled, and in a batch of a run in each tier.
func TestIndexOutOfRange(t *testing.T) {
	ints := func(v ...int) torch.Tensor { return torch.New(v) }
	y := vec(1, 2, 3)
	good := infer.Batch{"group": ints(0, 2, 1), "count": ints(1, 1, 1), "y": y}
	for name, c := range map[string]struct {
		look func(a, group torch.Tensor) torch.Tensor
		size string // of what is looked up in
	}{
		"IndexSelect": {func(a, group torch.Tensor) torch.Tensor { return a.At(1).IndexSelect(0, group) }, "[3]"},
		"Take":        {func(a, group torch.Tensor) torch.Tensor { return a.At(1).Take(group) }, "[3]"},
		"Take of two": {func(a, group torch.Tensor) torch.Tensor { return a.Take(1, group) }, "[2 3]"},
		"Gather":      {func(a, group torch.Tensor) torch.Tensor { return a.At(1).Gather(0, group) }, "[3]"},
	} {
		model := func(c2 *ppl.Ctx) {
			a := c2.Sample("a", dist.Normal(0, 1).Expand(2, 3))
			c2.Plate("data", 0, func(c2 *ppl.Ctx) {
				c2.Observe("y", dist.Normal(c.look(a, c2.Data("group")), c2.Data("count")), c2.Data("y"))
			})
		}
		for _, index := range []int{7, 3, -1} {
			wrong := infer.Batch{"group": ints(0, index, 2), "count": good["count"], "y": y}
			check := func(err error) {
				t.Helper()
				for _, words := range []string{fmt.Sprintf("the index %d at element 1 of shape [3] is out of range", index),
					"it must be from 0 to 2", "of shape " + c.size + " has size 3", `of the data, "group" has it`,
					"(at ppl/whole_batches_test.go:"} {
					require.ErrorContains(t, err, words, name)
				}
			}
			_, err := ppl.Compile(model, wrong)
			check(err)
			p, err := ppl.Compile(model, good)
			require.NoError(t, err, name)
			for _, tier := range []native.Tier{native.Auto, native.Eager} {
				for _, b := range []infer.Batches{infer.Full(wrong), &turns{[]infer.Batch{good, wrong}, 0}} {
					_, err = infer.Sample(context.Background(), p, sgmcmc.SGLD{LR: infer.Constant(0.01)}, infer.Options{Batches: b,
						Chains: 1, Warmup: 3, Draws: 3, Native: tier, Observer: infer.Silent})
					check(err)
				}
			}
		}
	}
}

// Which types are converted to which: those that hold all of the numbers. Of data of a model whose density is not
// finite where it is tried, nothing is known but that float64 is calculated with.
func TestConvertBatch(t *testing.T) {
	as := func(dtype gotch.DType) torch.Tensor {
		return torch.Must(torch.To(vec(1, 0, 1), torch.CPU, dtype))
	}
	types := func(d gotch.DType) infer.Batch {
		return infer.Batch{"x": as(d), "index": as(d), "mask": as(d), "bytes": as(d), "new": as(d)}
	}
	first := infer.Batch{"x": as(gotch.Int), "index": as(gotch.Int16), "mask": as(gotch.Bool),
		"bytes": as(gotch.Uint8)}
	model := func(low float64) ppl.Model {
		return func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(0, 1).Expand(2))
			x := a.Take(c.Data("index")).Mul(c.Data("x")).Add(c.Data("bytes"))
			c.Observe("y", dist.Normal(torch.Where(c.Data("mask"), x, 0), 1), vec(1, 2, 3))
			c.Factor("edge", a.Sum().Sub(low).Log())
		}
	}
	p, err := ppl.Compile(model(-10), first)
	require.NoError(t, err)
	const refused = gotch.DType(-100)
	for _, c := range []struct {
		name string
		have gotch.DType
		want gotch.DType
	}{
		{"x", gotch.Double, gotch.Double}, {"x", gotch.Float, gotch.Double}, {"x", gotch.Int64, gotch.Double},
		{"x", gotch.Bool, gotch.Double}, {"x", gotch.Uint8, gotch.Double},
		{"index", gotch.Int8, gotch.Int16}, {"index", gotch.Int16, gotch.Int16}, {"index", gotch.Int64, gotch.Int64},
		{"index", gotch.Double, refused}, {"index", gotch.Float, refused},
		{"mask", gotch.Bool, gotch.Bool}, {"mask", gotch.Double, refused}, {"mask", gotch.Int64, refused},
		{"bytes", gotch.Uint8, gotch.Uint8}, {"bytes", gotch.Double, gotch.Double}, {"new", gotch.Int, gotch.Int},
	} {
		b, err := p.ConvertBatch(infer.Batch{c.name: types(c.have)[c.name]})
		if c.want == refused {
			require.ErrorIs(t, err, infer.ErrConfig)
			require.ErrorContains(t, err, fmt.Sprintf("batch tensor %q is of type %v", c.name, c.have))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, b[c.name].T().DType(), "%s of %v", c.name, c.have)
		require.Equal(t, []float64{1, 0, 1}, floats(t, b[c.name]))
	}
	p, err = ppl.Compile(model(10), first) // the logarithm of a negative number
	require.NoError(t, err)
	for _, d := range []gotch.DType{gotch.Double, gotch.Int64} {
		b, err := p.ConvertBatch(types(d))
		require.NoError(t, err)
		require.Equal(t, d, b["index"].T().DType())
	}
}

// turns gives batches in turn.
type turns struct {
	of []infer.Batch
	at int
}

func (o *turns) Next() (infer.Batch, error) {
	o.at++
	return o.of[(o.at-1)%len(o.of)], nil
}

func (o *turns) Position() infer.Position     { return infer.Position{Index: o.at} }
func (o *turns) Seek(p infer.Position) error  { o.at = p.Index; return nil }
func (o *turns) Fingerprint() (string, error) { return "turns", nil }

// What c.Markov declares for each row of the data has to be there in every update, as in a loop. All rows at once are
// as ever, in batches too.
func TestChainsOverRowsNeedAllOfThem(t *testing.T) {
	chain := func(c *ppl.Ctx) {
		mu, y := c.Sample("mu", dist.Normal(0, 10)), c.Data("y")
		state := torch.Of(0)
		c.Markov(y.Shape()[0], func(c *ppl.Ctx, t int) {
			state = c.Sample("s", dist.Bernoulli(torch.Stack(0, 0.2, 0.7).Take(state)))
			c.Observe("y", dist.Normal(mu.Add(state), 1), y.At(t))
		})
	}
	batch := infer.Batch{"y": vec(1, 2, 3, 4, 5, 6)}
	program, err := ppl.Compile(chain, batch)
	require.NoError(t, err)
	for _, size := range []int{2, 6} {
		for _, method := range []infer.Method{sgmcmc.SGLD{LR: infer.Constant(0.01)}, svi.SVI{}} {
			batches, err := infer.Minibatches(batch, infer.MinibatchOptions{Size: size})
			require.NoError(t, err)
			_, err = infer.Sample(context.Background(), program, method,
				infer.Options{Chains: 1, Draws: 4, Warmup: 4, Batches: batches})
			if size == 6 {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, "declared in a loop over the rows of the data")
			require.ErrorContains(t, err, `site "y`)
		}
	}
	require.Error(t, program.CheckFull(infer.Batch{"y": vec(1, 2)}))
	require.NoError(t, program.CheckFull(infer.Batch{"y": vec(6, 5, 4, 3, 2, 1)}))
}

// A plate of the differences of rows has n - 1 elements on n rows. Those of a minibatch of rows in any order are not a
// part of those of the data, so that it is refused; a column of lags beside the data is a part.
func TestDifferencesOfRowsNeedAllOfThem(t *testing.T) {
	lags := func(c *ppl.Ctx) {
		rho, y := c.Sample("rho", dist.Normal(0, 1)), c.Data("y")
		n := y.Shape()[0]
		c.Plate("t", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(y.Slice(0, 0, n-1).Mul(rho), 1), y.Slice(0, 1, n))
		})
	}
	columns := func(c *ppl.Ctx) {
		rho := c.Sample("rho", dist.Normal(0, 1))
		c.Plate("t", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(c.Data("last").Mul(rho), 1), c.Data("y")) })
	}
	twice := func(c *ppl.Ctx) { // two elements of a plate for each row
		rho, y := c.Sample("rho", dist.Normal(0, 1)), c.Data("y")
		c.Plate("t", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(rho, 1), torch.Cat(0, y, y)) })
	}
	data := infer.Batch{"y": vec(1, 2, 1, 3, 2, 1)}
	beside := infer.Batch{"y": vec(2, 1, 3, 2, 1), "last": vec(1, 2, 1, 3, 2)}
	for name, c := range map[string]struct {
		model ppl.Model
		batch infer.Batch
		want  string
	}{
		"lags":    {lags, data, `plate "t" has 2 of its 5, and the batch 3 of 6 rows`},
		"columns": {columns, beside, ""},
		"twice":   {twice, data, ""},
	} {
		program, err := ppl.Compile(c.model, c.batch)
		require.NoError(t, err, name)
		batches, err := infer.Minibatches(c.batch, infer.MinibatchOptions{Size: 3})
		require.NoError(t, err)
		o := infer.Options{Chains: 1, Draws: 4, Warmup: 4}
		_, err = infer.Sample(context.Background(), program, sgmcmc.SGLD{LR: infer.Constant(0.01)}, o)
		require.NoError(t, err, name)
		o.Batches = batches
		for _, method := range []infer.Method{sgmcmc.SGLD{LR: infer.Constant(0.01)}, svi.SVI{}} {
			_, err = infer.Sample(context.Background(), program, method, o)
			if c.want == "" {
				require.NoError(t, err, name)
				continue
			}
			require.ErrorContains(t, err, c.want)
		}
	}
}

// parts are minibatches of several data sets, side by side.
type parts []infer.Batches

func (p parts) Next() (infer.Batch, error) {
	out := infer.Batch{}
	for _, b := range p {
		part, err := b.Next()
		if err != nil {
			return nil, err
		}
		maps.Copy(out, part)
	}
	return out, nil
}

func (p parts) Position() infer.Position     { return p[0].Position() }
func (p parts) Fingerprint() (string, error) { return p[0].Fingerprint() }
func (p parts) Seek(to infer.Position) error {
	for _, b := range p {
		if err := b.Seek(to); err != nil {
			return err
		}
	}
	return nil
}

// A plate that has the part of any tensor of the batch is no plate of differences: batches may lack a tensor that the
// model does not use, and data sets of one size may have minibatches of different sizes.
func TestPlatesOfPartsOfSeveralTensors(t *testing.T) {
	y := vec(1, 2, 1, 3, 2, 1)
	of := func(names ...string) ppl.Model {
		return func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 1))
			for _, name := range names {
				c.Plate("plate "+name, 0, func(c *ppl.Ctx) { c.Observe("site "+name, dist.Normal(mu, 1), c.Data(name)) })
			}
		}
	}
	part := func(name string, size int) infer.Batches {
		batches, err := infer.Minibatches(infer.Batch{name: y}, infer.MinibatchOptions{Size: size})
		require.NoError(t, err)
		return batches
	}
	for name, c := range map[string]struct {
		model   ppl.Model
		data    infer.Batch
		batches infer.Batches
	}{
		"unused":    {of("a"), infer.Batch{"a": y, "b": y}, part("a", 2)},
		"two sizes": {of("a", "b"), infer.Batch{"a": y, "b": y}, parts{part("a", 2), part("b", 3)}},
	} {
		program, err := ppl.Compile(c.model, c.data)
		require.NoError(t, err, name)
		for _, method := range []infer.Method{sgmcmc.SGLD{LR: infer.Constant(0.01)}, svi.SVI{}} {
			_, err = infer.Sample(context.Background(), program, method,
				infer.Options{Chains: 1, Draws: 4, Warmup: 4, Batches: c.batches})
			require.NoError(t, err, name)
		}
	}
}
