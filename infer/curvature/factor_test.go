package curvature_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A factor times itself is the Gauss-Newton matrix, which its own tests compare with plain Go: for all kinds of
// outputs, for more and fewer rows than parameters, and in blocks of a row, where it is reduced on the way.
func TestGGNFactor(t *testing.T) {
	for _, k := range kinds {
		m := newNetwork(t, k)
		a := given(t, m)
		d := len(m.flat)
		ggn, err := curvature.GGN(a.forward, a.outer, a.p, a.b, a.o)
		want := must(t, ggn, err)
		for _, o := range []curvature.Options{{}, {Memory: 8 * 2 * d * d}, {Normalize: true}} {
			factor, err := curvature.GGNFactor(a.forward, a.outer, a.p, a.b, o)
			if k.name == "coupled [n, 3]" || k.name == "coupled [n, 2, 2]" { // which are not log-concave
				assert.ErrorIs(t, err, curvature.ErrIndefinite)
				continue
			}
			require.NoError(t, err, k.name)
			assert.LessOrEqual(t, shapeOf(factor)[0], 2*d, k.name)
			scale := 1.0
			if o.Normalize {
				scale = 7
			}
			near(t, want, floats(scaled(torch.Of(factor.T().MustTranspose(0, 1, false).MustMatmul(factor.T(), false)), scale)),
				1e-12, "%s",
				k.name)
		}
	}
	// 300 data and 3 parameters: rows are reduced again and again.
	l := layoutOf(t, infer.Shapes{"w": {3}})
	x := vec(numbers(900, 1), 300, 3)
	forward := func(p infer.Params, b infer.Batch) torch.Tensor {
		return b.Get("x").MatMul(p.Get("w"))
	}
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor { return z.Square().Mul(-0.5) }
	p := pointOf(t, l, 1, 2, 3)
	for _, memory := range []int{0, 8 * 20} { // all at once, and a row at a time
		factor, err := curvature.GGNFactor(forward, outer, p, infer.Batch{"x": x}, curvature.Options{Memory: memory})
		require.NoError(t, err)
		assert.LessOrEqual(t, shapeOf(factor)[0], 6)
		near(t, floats(x.T().MustTranspose(0, 1, false).MustMatmul(x.T(), false)),
			floats(factor.T().MustTranspose(0, 1, false).MustMatmul(factor.T(), false)), 1e-13, "memory %d", memory)
	}
	convex := func(z torch.Tensor, b infer.Batch) torch.Tensor { return z.Square() }
	_, err := curvature.GGNFactor(forward, convex, p, infer.Batch{"x": x}, curvature.Options{})
	assert.ErrorIs(t, err, curvature.ErrIndefinite)
	_, err = curvature.GGNFactor(forward, outer, p, infer.Batch{"x": x},
		curvature.Options{Memory: 100, MemoryField: "ekf.GaussNewton.Memory"})
	assert.ErrorContains(t, err, "a factor of shape [6, 3] takes 144 bytes, and ekf.GaussNewton.Memory allows 100 bytes")
}

// Sums over the data of what Gradients returns, in blocks of a row and at once.
func TestGradientSums(t *testing.T) {
	m := newNetwork(t, kinds[1])
	a := given(t, m)
	d := len(m.flat)
	l, g, err := curvature.Gradients(a.density, a.p, a.b, a.o)
	require.NoError(t, err)
	value, mean, squares := 0.0, make([]float64, d), make([]float64, d)
	for _, v := range floats(l) {
		value += v
	}
	for i, v := range floats(g) {
		mean[i%d] += v
		squares[i%d] += v * v
	}
	for _, o := range []curvature.Options{{}, {Memory: 1}, {Normalize: true}} {
		l, g, s, err := curvature.GradientSums(a.density, a.p, a.b, o)
		require.NoError(t, err)
		assert.Empty(t, shapeOf(l))
		scale := 1.0
		if o.Normalize {
			scale = 7
		}
		near(t, []float64{value}, floats(scaled(l, scale)), 1e-13, "values")
		near(t, mean, floats(scaled(g, scale)), 1e-13, "gradients")
		near(t, squares, floats(scaled(s, scale)), 1e-13, "squares")
	}
}

// Outputs [n, 1] against data of shape [n] give densities of shape [n] that are sums over all data. A batch of one has
// nothing to be wrong.
func TestOutputsThatDoNotMatchTheData(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {2}})
	p := pointOf(t, l, 0.3, -0.7)
	batch := infer.Batch{"x": vec(numbers(12, 1), 6, 2), "y": vec(numbers(6, 5))}
	column := func(p infer.Params, b infer.Batch) torch.Tensor {
		return b.Get("x").MatMul(p.Get("w")).Unsqueeze(1)
	}
	outer := curvature.Outer(func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return b.Get("y").Sub(z).Square().Mul(-0.5).Sum(-1)
	})
	const text = "the density of datum 0 changes with the other data"
	single := infer.Batch{"x": torch.Of(batch["x"].T().MustNarrow(0, 0, 1, false)),
		"y": torch.Of(batch["y"].T().MustNarrow(0, 0, 1, false))}
	right := infer.Batch{"x": batch["x"], "y": batch["y"].Unsqueeze(1)}
	for _, name := range []string{"GGN", "GGNDiag", "GGNVP"} {
		for _, c := range calls {
			if c.name != name {
				continue
			}
			a := arguments{forward: column, outer: outer, p: p, b: batch, v: vec([]float64{1, 2})}
			refused(t, c.err(a), name, text)
			refused(t, c.err(a), name, "z has shape [6 1], the batch has x [6 2], y [6]")
			a.p, a.b, a.v = torch.Must(p.To(torch.CPU, gotch.Float)), in32(batch),
				torch.Must(torch.To(a.v, torch.CPU, gotch.Float))
			refused(t, c.err(a), name, text)
			for _, b := range []infer.Batch{single, right} {
				a = arguments{forward: column, outer: outer, p: p, b: b, v: vec([]float64{1, 2})}
				assert.NoError(t, c.err(a), name)
			}
		}
	}
	_, err := curvature.GGNFactor(column, outer, p, batch, curvature.Options{})
	refused(t, err, "GGNFactor", text)
	z := column(p, batch).T()
	_, err = outer.Densities(torch.Of(z), batch)
	assert.ErrorContains(t, err, text)
	_, _, err = outer.Root(torch.Of(z), batch)
	assert.ErrorContains(t, err, text)
	_, err = outer.Densities(torch.Of(z), right)
	assert.NoError(t, err)
	_, err = curvature.Outer(nil).Densities(torch.Of(z), right)
	assert.ErrorIs(t, err, infer.ErrConfig)
}

// Roots make the second derivatives of plain Go, H = rootᵀ diag(signs) root.
func TestOuterRoot(t *testing.T) {
	for _, k := range kinds {
		m := newNetwork(t, k)
		a := given(t, m)
		z := m.forward(a.p, a.b).T()
		c := k.c()
		root, signs, err := curvature.Outer(m.outer).Root(torch.Of(z), a.b)
		require.NoError(t, err, k.name)
		assert.Equal(t, []int{7, c, c}, shapeOf(root))
		right := root
		if signs != (torch.Tensor{}) {
			right = root.Mul(signs.Unsqueeze(2).T())
		}
		got := floats(root.T().MustTranspose(1, 2, false).MustBmm(right.T(), false))
		outputs, data := rows(floats(z), c), rows(floats(a.b["y"]), len(floats(a.b["y"]))/7)
		for i := range 7 {
			var want []float64
			for _, row := range k.h(outputs[i], data[i]) {
				want = append(want, row...)
			}
			near(t, want, got[i*(c*c):(i+1)*(c*c)], 1e-12, "%s", k.name)
		}
	}
	negative := curvature.Outer(func(z torch.Tensor, b infer.Batch) torch.Tensor { return z.Square() })
	root, signs, err := negative.Root(vec([]float64{1, 2}), infer.Batch{"y": vec([]float64{1, 2})})
	near(t, []float64{math.Sqrt2, math.Sqrt2}, must(t, root, err), 1e-15, "root")
	assert.Equal(t, []float64{-1, -1}, floats(signs))
}

// The Hessian takes data that are no rows, a sum over data does not.
func TestDataWithoutRows(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {2}})
	batch := infer.Batch{"s": torch.Scalar(3)}
	f := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return total(p.Get("w").Square()).Mul(b.Get("s")).Neg(), nil
	}
	h, err := curvature.Hessian(f, pointOf(t, l, 1, 2), batch, curvature.Options{})
	near(t, []float64{6, 0, 0, 6}, must(t, h, err), 1e-14, "Hessian")
	_, err = curvature.Fisher(func(p infer.Params, b infer.Batch) torch.Tensor { return p.Get("w") },
		pointOf(t, l, 1, 2), batch, curvature.Options{})
	refused(t, err, "Fisher", `batch tensor "s" has shape []: its first dimension must count the data`)

	// The Hessian of −a Σx − b Σy² − a²b, of the data of two plates, is −[[2b, 2a], [2a, 0]] in (a, b).
	plates := infer.Batch{"x": vec([]float64{1, 2, 3}), "y": vec([]float64{4, 5})}
	g := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		w := p.Get("w").T()
		a, c := torch.Of(w.MustSelect(0, 0, false)), torch.Of(w.MustSelect(0, 1, false))
		return a.Mul(b.Get("x").Sum()).Add(c.Mul(b.Get("y").Square().Sum())).Add(a.Square().Mul(c)).Mul(-1), nil
	}
	h, err = curvature.Hessian(g, pointOf(t, l, 3, 5), plates, curvature.Options{})
	near(t, []float64{10, 6, 6, 0}, must(t, h, err), 1e-14, "Hessian of two plates")
	h, err = curvature.HessianDiag(g, pointOf(t, l, 3, 5), plates, curvature.Options{})
	near(t, []float64{10, 0}, must(t, h, err), 1e-14, "its diagonal")
	grad, hv, err := curvature.HVP(g, pointOf(t, l, 3, 5), plates, vec([]float64{1, 2}))
	near(t, []float64{-36, -50}, must(t, grad, err), 1e-14, "gradient")
	near(t, []float64{-22, -6}, must(t, hv, err), 1e-14, "Hessian times (1, 2)")
	_, err = curvature.Fisher(func(p infer.Params, b infer.Batch) torch.Tensor { return p.Get("w") },
		pointOf(t, l, 1, 2), plates, curvature.Options{})
	refused(t, err, "Fisher", `batch tensor "y" has 2 data, others 3`)
}
