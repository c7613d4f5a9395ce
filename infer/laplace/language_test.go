package laplace_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// A compiled model of logistic regression with prior w ~ N(0, 1/2): both of its scales give the Hessian XᵀWX + 4I in minibatches.
func TestCompiledModel(t *testing.T) {
	const n, d = 17, 3
	x, w := normals(1, n*d), []float64{0.5, -1, 0.3}
	y := make([]float64, n)
	want := identity(d, 4)
	for i := range n {
		y[i] = float64(i % 2)
		row := mat.NewVecDense(d, x[i*d:(i+1)*d])
		p := 1 / (1 + math.Exp(-mat.Dot(row, mat.NewVecDense(d, w))))
		want.SymRankOne(want, p*(1-p), row)
	}
	batch := infer.Batch{"x": vector(x, n, d), "y": vector(y)}
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Independent(dist.Normal(0, 0.5).Expand(d), 1))
		c.Plate("data", n, func(c *ppl.Ctx) {
			c.Observe("y", dist.BernoulliLogits(c.Data("x").MustMatmul(w, false)), c.Data("y"))
		})
	}, batch)
	require.NoError(t, err)
	at := params(program.Layout(), w, 0)
	for name, c := range map[string]struct {
		m laplace.DenseHessian
		f infer.LogPosterior
	}{
		"mean": {laplace.DenseHessian{}, program.MeanLogPosterior()},
		"sum":  {laplace.DenseHessian{SumOver: program.Data()}, program.LogPosterior()},
	} {
		for _, size := range []int64{1, 5, n} {
			within(t, entries(want), precision(pass(t, build(t, c.m, c.f), at, batch, size)), 1e-11, fmt.Sprintf("%s, batches of %d", name, size))
		}
	}
}
