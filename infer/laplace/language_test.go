package laplace_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A compiled model of logistic regression with prior w ~ N(0, 1/2): without any configuration the Hessian is XᵀWX + 4I
// and the Fisher matrix Σ (y − p)² x xᵀ + 4I, in minibatches of any size.
func TestCompiledModel(t *testing.T) {
	const n, d = 17, 3
	x, w := normals(1, n*d), []float64{0.5, -1, 0.3}
	y := make([]float64, n)
	hessian, fisher := identity(d, 4), identity(d, 4)
	for i := range n {
		y[i] = float64(i % 2)
		row := mat.NewVecDense(d, x[i*d:(i+1)*d])
		p := 1 / (1 + math.Exp(-mat.Dot(row, mat.NewVecDense(d, w))))
		hessian.SymRankOne(hessian, p*(1-p), row)
		fisher.SymRankOne(fisher, (y[i]-p)*(y[i]-p), row)
	}
	batch := infer.Batch{"x": torch.Of(vector(x, n, d)), "y": torch.Of(vector(y))}
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Independent(dist.Normal(0, 0.5).Expand(d), 1))
		c.Plate("data", n, func(c *ppl.Ctx) {
			c.Observe("y", dist.BernoulliLogits(c.Data("x").MatMul(w)), c.Data("y"))
		})
	}, batch)
	require.NoError(t, err)
	at := params(program.Layout(), w, 0)
	for name, c := range map[string]struct {
		m    infer.Method
		want []float64
	}{
		"DenseHessian": {laplace.DenseHessian{}, entries(hessian)},
		"DenseFisher":  {laplace.DenseFisher{}, entries(fisher)},
		"DiagFisher":   {laplace.DiagFisher{}, diagonal(fisher)},
	} {
		transform := buildOn(t, c.m, program.Target())
		for _, size := range []int{1, 5, n} {
			s := pass(t, transform, at, batch, size)
			within(t, c.want, precision(s), 1e-11, fmt.Sprintf("%s, batches of %d", name, size))
			streams := torch.NewStreams(1, 1)
			_, err := transform.(infer.Sampler).Sample(s, 2, &streams)
			require.NoError(t, err)
		}
	}

	// A pass that has not seen all data says so.
	transform := buildOn(t, laplace.DenseFisher{}, program.Target())
	part := infer.Batch{"x": torch.Of(batch["x"].T().MustNarrow(0, 0, 5, false)),
		"y": torch.Of(batch["y"].T().MustNarrow(0, 0, 5, false))}
	s, _ := update(t, transform, begin(t, transform, at), part)
	streams := torch.NewStreams(1, 1)
	_, err = transform.(infer.Sampler).Sample(s, 2, &streams)
	require.ErrorContains(t, err, "laplace.DenseFisher: chain 0 has seen 5 data of 17: make one pass over all of them")
}

// Data that are in no plate are summed. Data that depend on each other have no density of their own; the error says so
// and names the method that takes them. So has a batch that does not count its data.
func TestLikelihoodOfSingleData(t *testing.T) {
	y := []float64{0.5, -1, 2, 0.3}
	batch := infer.Batch{"y": torch.Of(vector(y))}
	mean := func(c *ppl.Ctx) torch.Tensor { return c.Sample("m", dist.Normal(0, 2)) }
	free, err := ppl.Compile(func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mean(c), 0.7), c.Data("y")) }, batch)
	require.NoError(t, err)
	want := 0.25
	for _, v := range y {
		want += (v - 0.2) * (v - 0.2) / math.Pow(0.7, 4)
	}
	at := params(free.Layout(), []float64{0.2}, 0)
	s := pass(t, buildOn(t, laplace.DenseFisher{}, free.Target()), at, batch, 4)
	within(t, []float64{want}, precision(s), 1e-11, "no plate")

	joint, err := ppl.Compile(func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(c.Data("y").Mean().Sub(mean(c)), 1), c.Data("y"))
	}, batch)
	require.NoError(t, err)
	transform := buildOn(t, laplace.DiagFisher{}, joint.Target())
	_, _, err = transform.Update(begin(t, transform, at), batch)
	require.ErrorContains(t, err, "the data depend on each other, and laplace.DenseHessian takes them together")

	none, err := ppl.Compile(func(c *ppl.Ctx) { mean(c) }, nil)
	require.NoError(t, err)
	transform = buildOn(t, laplace.DenseFisher{}, none.Target())
	_, _, err = transform.Update(begin(t, transform, at), infer.Batch{})
	require.ErrorContains(t, err, "cannot be cut into data")
	require.ErrorContains(t, err, "laplace.DenseHessian")
}

// The optimiser of a method by default needs all of the data, so that minibatches are an error which names another;
// with that the precision of a pass over minibatches is that of all data.
func TestMinibatchesNeedAnotherOptimiser(t *testing.T) {
	y := torch.New([]float64{0.4, -0.3, 1.2, 0.7})
	data := infer.Batch{"y": y}
	program := must(ppl.Compile(func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 2))
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) })
	}, data))
	run := func(m infer.Method) (*infer.Result, error) {
		batches := must(infer.Minibatches(data, infer.MinibatchOptions{Size: 2}))
		return infer.Run(context.Background(), program, m, infer.Options{Batches: batches, Chains: 1, Warmup: 300, Draws: 10,
			Observer: infer.Silent})
	}
	_, err := run(laplace.DenseHessian{})
	for _, words := range []string{"looking for the mode", "optim.LBFGS needs all of the data in every update",
		"Optimizer: optim.Adam{}"} {
		require.ErrorContains(t, err, words)
	}
	r, err := run(laplace.DenseHessian{Optimizer: optim.Adam{}})
	require.NoError(t, err)
	precision := dense(r.State, 1)
	require.InDelta(t, 4.25, precision[0], 1e-9) // 1/2² + 4
}

// Two plates of different sizes, as in docs/language.md: the posterior of mu ~ N(0, 10²) with 3 data of sd 1 and 5 of
// sd 2 has precision 1/100 + 3 + 5/4 and the mean (Σx + Σy/4)/precision. Laplace's approximation of the evidence of a
// Gaussian model is exact, too. A method that needs rows says so before it looks for the mode.
func TestDataOfTwoPlates(t *testing.T) {
	x, y := []float64{1, 2, 3}, []float64{2, 4, 1, 5, 3}
	program := must(ppl.Compile(func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 10))
		c.Plate("measured", 0, func(c *ppl.Ctx) { c.Observe("measured", dist.Normal(mu, 1), c.Data("measured")) })
		c.Plate("reported", 0, func(c *ppl.Ctx) { c.Observe("reported", dist.Normal(mu, 2), c.Data("reported")) })
	}, infer.Batch{"measured": torch.Of(vector(x)), "reported": torch.Of(vector(y))}))
	const exact = 0.01 + 3 + 5./4
	mean := (6 + 15./4) / exact
	r, err := infer.Run(context.Background(), program, laplace.DenseHessian{}, infer.Options{Chains: 1, Seed: 1,
		Observer: infer.Silent})
	require.NoError(t, err)
	within(t, []float64{exact}, precision(r.State), 1e-11, "precision")
	within(t, []float64{mean}, values(r.Last.Flat.T()), 1e-6, "mean")
	require.Empty(t, r.Draws.Notes())
	z, err := evidence.Laplace(program, r)
	require.NoError(t, err)
	want := -0.5*9*math.Log(2*math.Pi) + 0.5*math.Log(2*math.Pi/exact) - math.Log(10) - 5*math.Log(2) - mean*mean/200
	for _, v := range x {
		want -= (v - mean) * (v - mean) / 2
	}
	for _, v := range y {
		want -= (v - mean) * (v - mean) / 8
	}
	require.InDelta(t, want, z.LogZ, 1e-9)

	network := func(infer.Params, infer.Batch, laplace.Linear) torch.Tensor {
		panic("the network was evaluated")
	}
	forward := func(infer.Params, infer.Batch) torch.Tensor { panic("the forward function was evaluated") }
	for name, m := range map[string]infer.Method{
		"laplace.DenseFisher": laplace.DenseFisher{}, "laplace.DiagFisher": laplace.DiagFisher{},
		"laplace.DenseGGN": laplace.DenseGGN{Forward: forward, Outer: gaussianOuter(1)},
		"laplace.DiagGGN":  laplace.DiagGGN{Forward: forward, Outer: gaussianOuter(1)},
		"laplace.KFAC": laplace.KFAC{Network: network, Layers: []laplace.Layer{{Weight: "mu"}},
			Outer: gaussianOuter(1)},
	} {
		want := name + `: the batch cannot be cut into data (batch tensor "reported" has 5 data, others 3): ` +
			`laplace.DenseHessian takes it as it is`
		r, err := infer.Run(context.Background(), program, m, infer.Options{Seed: 1, Observer: infer.Silent})
		require.EqualError(t, err, "infer.Run: "+want)
		require.Nil(t, r)
		if name != "laplace.KFAC" { // whose state is of layers
			transform := buildOn(t, m, program.Target())
			_, _, err = transform.Update(begin(t, transform, params(program.Layout(), []float64{0}, 0)), program.Batch())
			require.EqualError(t, err, want)
		}
	}
}
