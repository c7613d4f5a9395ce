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
	batch := infer.Batch{"x": vector(x, n, d), "y": vector(y)}
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
		for _, size := range []int64{1, 5, n} {
			s := pass(t, transform, at, batch, size)
			within(t, c.want, precision(s), 1e-11, fmt.Sprintf("%s, batches of %d", name, size))
			streams := torch.NewStreams(1, 1)
			_, err := transform.(infer.Sampler).Sample(s, 2, &streams)
			require.NoError(t, err)
		}
	}

	// A pass that has not seen all data says so.
	transform := buildOn(t, laplace.DenseFisher{}, program.Target())
	part := infer.Batch{"x": batch["x"].MustNarrow(0, 0, 5, false), "y": batch["y"].MustNarrow(0, 0, 5, false)}
	s, _ := update(t, transform, begin(t, transform, at), part)
	streams := torch.NewStreams(1, 1)
	_, err = transform.(infer.Sampler).Sample(s, 2, &streams)
	require.ErrorContains(t, err, "laplace.DenseFisher: chain 0 has seen 5 data of 17: make one pass over all of them")
}

// Data that are in no plate are summed. Data that depend on each other have no density of their own; the error says so
// and names the method that takes them. So has a batch that does not count its data.
func TestLikelihoodOfSingleData(t *testing.T) {
	y := []float64{0.5, -1, 2, 0.3}
	batch := infer.Batch{"y": vector(y)}
	mean := func(c *ppl.Ctx) torch.Tensor { return torch.Of(c.Sample("m", dist.Normal(0, 2))) }
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
		c.Observe("y", dist.Normal(torch.Of(c.Data("y")).Mean().Sub(mean(c)), 1), c.Data("y"))
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
	y := must(torch.FromSlice([]float64{0.4, -0.3, 1.2, 0.7}))
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
