package ppl_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Whole numbers are converted once, when the model is compiled: evaluations see float64 where they calculate with them,
// in a GLM and as counts, and whole numbers where they are indices. Values are those of a batch of float64, also after
// a change in place and on another batch, where nothing was converted before.
func TestWholeNumbersAreConvertedOnce(t *testing.T) {
	seen := map[string]gotch.DType{}
	model := func(c *ppl.Ctx) {
		w, a := c.Sample("w", dist.Normal(0, 1).Expand(2)), c.Sample("a", dist.Normal(0, 1).Expand(3))
		x, group, y := c.Data("x"), c.Data("group"), c.Data("y")
		for name, d := range map[string]torch.Tensor{"x": x, "group": group, "y": y} {
			seen[name] = d.T().DType()
		}
		c.Plate("data", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.PoissonLogGLM(x, w, a.IndexSelect(0, group)), y)
		})
	}
	ints := func(v []int, shape ...int) torch.Tensor {
		return torch.New(v, shape...)
	}
	batch := infer.Batch{"x": ints([]int{1, 2, 0, -1, 3, 1, 1, 1}, 4, 2),
		"group": ints([]int{0, 2, 2, 1}, 4), "y": ints([]int{3, 0, 1, 2}, 4)}
	floats := infer.Batch{"x": vec(1, 2, 0, -1, 3, 1, 1, 1).Reshape(4, 2), "group": batch["group"],
		"y": vec(3, 0, 1, 2)}
	point := []float64{0.1, -0.2, 0.3, 0.4, -0.5}

	p, f := compiled(t, model, batch)
	_, g := compiled(t, model, floats)
	require.Equal(t, g(floats, point...), f(batch, point...))
	require.Equal(t, map[string]gotch.DType{"x": gotch.Double, "y": gotch.Double, "group": gotch.Int64}, seen)
	require.Equal(t, gotch.Int64, p.Batch()["x"].T().DType(), "the user's batch is as it was")

	other := infer.Batch{"x": ints([]int{1, 2, 0, -1, 3, 1, 1, 1}, 4, 2), "group": batch["group"], "y": batch["y"]}
	require.Equal(t, g(floats, point...), f(other, point...))
	require.Equal(t, gotch.Int64, seen["x"], "this batch was not there when the model was compiled")

	for _, x := range []infer.Batch{batch, floats} {
		x["x"].T().MustNarrow(0, 0, 1, false).MustFill_(ts.FloatScalar(4))
	}
	require.Equal(t, g(floats, point...), f(batch, point...))
}

// Float32 data of a linear model are converted once too: it calculates with the weights in float64.
func TestSinglesOfALinearModelAreConverted(t *testing.T) {
	var seen gotch.DType
	model := func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 1).Expand(1))
		seen = c.Data("x").T().DType()
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.NormalGLM(c.Data("x"), w, 0.5, 2), c.Data("y")) })
	}
	y := []float64{1, -2, 3, 0.5}
	batch := infer.Batch{"y": vec(y...), "x": torch.Of(matrix(4, 1, 1, 2, 0.5, -1).T().MustTotype(gotch.Float, false))}
	_, f := compiled(t, model, batch)
	want := normal(0.3, 0, 1)
	for i, x := range []float64{1, 2, 0.5, -1} {
		want += normal(y[i], 0.3*x+0.5, 2)
	}
	require.InDelta(t, want, f(batch, 0.3), 1e-12)
	require.Equal(t, gotch.Double, seen)
}

// Whole numbers that the model calculates with give the posterior of float64, also where libtorch's functions of them
// are float32, whose logarithms have seven digits. Where products of whole numbers overflow, no density is right:
// Compile refuses them by name.
func TestWholeNumbersThatOverflowAreRefused(t *testing.T) {
	model := func(f func(x torch.Tensor) torch.Tensor) ppl.Model {
		return func(c *ppl.Ctx) {
			b := c.Sample("b", dist.Normal(0, 1))
			x := f(c.Data("x"))
			c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(b.Mul(x), 1), c.Data("y")) })
		}
	}
	logarithm := model(func(x torch.Tensor) torch.Tensor { return x.Log() })
	square := model(func(x torch.Tensor) torch.Tensor { return x.Mul(x).Div(1e10) })
	y := vec(1, 2, 3)
	ints := infer.Batch{"y": y, "x": torch.New([]int32{3, 20, 25})}
	floats := infer.Batch{"y": y, "x": vec(3, 20, 25)}
	_, f := compiled(t, logarithm, ints)
	_, g := compiled(t, logarithm, floats)
	require.Equal(t, g(floats, 0.7), f(ints, 0.7))

	for _, x := range []torch.Tensor{
		torch.New([]int32{100_000, 200_000, 250_000}),
		torch.New([]uint8{100, 200, 250}),
	} {
		if x.T().DType() == gotch.Uint8 {
			square = model(func(x torch.Tensor) torch.Tensor { return x.Square().Div(1e4) })
		}
		_, err := ppl.Compile(square, infer.Batch{"y": y, "x": x})
		require.ErrorIs(t, err, infer.ErrConfig)
		require.ErrorContains(t, err, `batch tensor "x"`)
		require.ErrorContains(t, err, "what is calculated of whole numbers overflows; convert it once, torch.To(")
		wide, err := torch.To(x, torch.CPU, gotch.Double)
		require.NoError(t, err)
		_, err = ppl.Compile(square, infer.Batch{"y": y, "x": wide})
		require.NoError(t, err)
	}
}

// Whole numbers that float64 rounds are refused by Compile and in batches; those that it has, such as 2^60, are not.
func TestWholeNumbersThatRoundAreRefused(t *testing.T) {
	model := func(c *ppl.Ctx) {
		b := c.Sample("b", dist.Normal(0, 1))
		x := c.Data("x").Div(10).Tanh()
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(b.Mul(x), 1), c.Data("y")) })
	}
	batch := func(x ...int) infer.Batch {
		return infer.Batch{"y": vec(1, 2, 3), "x": torch.New(x)}
	}
	_, err := ppl.Compile(model, batch(1, 2, 1<<53+1))
	require.ErrorIs(t, err, infer.ErrConfig)
	require.ErrorContains(t, err, `batch tensor "x" has whole numbers beyond 2^53`)
	_, err = ppl.Compile(model, batch(1, 1<<60, 1<<53))
	require.NoError(t, err)
	p, err := ppl.Compile(model, batch(1, 2, 3))
	require.NoError(t, err)
	_, err = p.ConvertBatch(batch(4, 5, -1<<53-1))
	require.ErrorContains(t, err, `batch tensor "x" has whole numbers beyond 2^53`)
	_, err = p.ConvertBatch(batch(4, 5, math.MaxInt64))
	require.ErrorContains(t, err, `batch tensor "x" has whole numbers beyond 2^53`)
	_, err = p.ConvertBatch(batch(4, 5, 1<<62))
	require.NoError(t, err)
}
