package curvature_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// A block of a single row has the gradients of larger ones, whether the model reads its sites, the flat vector beside
// them, or that alone, and where it leaves out a site. The closed form has the gradient of l_i in its rows.
func TestSingleRowsOfAnyModel(t *testing.T) {
	layout := layoutOf(t, infer.Shapes{"a": {2}, "b": {}, "c": {3}})
	p := pointOf(t, layout, 0.5, -1, 2, 1, 0.25, -0.5)
	x := []float64{1, -2, 0.5}
	b := infer.Batch{"x": vec(x)}
	for name, c := range map[string]struct {
		z        func(p infer.Params) torch.Tensor // a linear function of θ
		gradient []float64
	}{
		"sites": {func(p infer.Params) torch.Tensor {
			return p.Get("a").Sum().Add(p.Get("b").Mul(2)).Add(p.Get("c").Sum().Mul(3))
		}, []float64{1, 1, 2, 3, 3, 3}},
		"a site left out": {func(p infer.Params) torch.Tensor { return p.Get("a").At(1).Add(p.Get("b")) },
			[]float64{0, 1, 1, 0, 0, 0}},
		"sites and vector": {func(p infer.Params) torch.Tensor { return p.Get("b").Add(p.Flat.Sum()) },
			[]float64{1, 1, 2, 1, 1, 1}},
		"vector": {func(p infer.Params) torch.Tensor { return p.Flat.Sum() }, []float64{1, 1, 1, 1, 1, 1}},
	} {
		f := func(p infer.Params, b infer.Batch) torch.Tensor { return b.Get("x").Mul(c.z(p)) }
		outer := func(z torch.Tensor, b infer.Batch) torch.Tensor { return z.Square().Mul(-0.5) }
		convex := func(z torch.Tensor, b infer.Batch) torch.Tensor { return z.Square().Mul(0.5) }
		want, rows := make([]float64, layout.Dim()), make([]float64, 0, 3*layout.Dim())
		for _, xi := range x {
			for j, g := range c.gradient {
				want[j] += xi * xi * g * g
				rows = append(rows, xi*g)
			}
		}
		minus := make([]float64, len(want))
		for j, v := range want {
			minus[j] = -v
		}
		for _, memory := range []int{8 * (6 + 4*6 + 3), 0} { // one row at a time, and all
			o := curvature.Options{Memory: memory}
			d, err := curvature.FisherDiag(f, p, b, o)
			near(t, want, must(t, d, err), 1e-14, "%s", name)
			d, err = curvature.GGNDiag(f, outer, p, b, o)
			near(t, want, must(t, d, err), 1e-14, "%s", name)
			d, err = curvature.GGNDiag(f, convex, p, b, o)
			near(t, minus, must(t, d, err), 1e-14, "%s", name)
		}
		for i := range x { // one datum is one row
			one := infer.Batch{"x": vec(x[i : i+1])}
			_, g, err := curvature.Gradients(f, p, one, curvature.Options{})
			near(t, rows[i*6:i*6+6], must(t, g, err), 1e-14, "%s", name)
			require.Equal(t, []int{1, 6}, shapeOf(g))
			_, g, _, err = curvature.GradientSums(f, p, one, curvature.Options{})
			near(t, rows[i*6:i*6+6], must(t, g, err), 1e-14, "%s", name)
		}
	}
}

// What single rows cannot be differentiated in is an error, as in larger blocks, and no row's gradient is that of
// another: a model may read sites for some data and the flat vector for others.
func TestSingleRowsOfUnusualModels(t *testing.T) {
	layout := layoutOf(t, infer.Shapes{"a": {2}, "b": {}, "c": {3}})
	p := pointOf(t, layout, 0.5, -1, 2, 1, 0.25, -0.5)
	b := infer.Batch{"x": vec([]float64{1, -2, 0.5})}
	one := curvature.Options{Memory: 8 * (6 + 4*6 + 3)}
	foreign, err := torch.Leaf(vec([]float64{2}))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		z     func(p infer.Params) torch.Tensor
		error string
	}{
		"without a derivative": {func(p infer.Params) torch.Tensor {
			return p.Get("b").Add(torch.Of(p.Flat.T().MustNextafter(p.Flat.T().MustOnesLike(false), false)).Sum())
		}, "nextafter"},
		"changed in place": {func(p infer.Params) torch.Tensor {
			e := p.Flat.Exp().T()
			sum := torch.Of(e.MustSquare(false)).Sum()
			require.NoError(t, torch.NoGrad(func() error { e.MustMulScalar_(ts.FloatScalar(2)); return nil }))
			return p.Get("b").Add(sum)
		}, "inplace operation"},
		"of another leaf": {func(infer.Params) torch.Tensor { return foreign.Sum() }, "not have been used"},
	} {
		f := func(p infer.Params, b infer.Batch) torch.Tensor { return b.Get("x").Mul(c.z(p)) }
		for _, o := range []curvature.Options{one, {}} {
			_, err := curvature.FisherDiag(f, p, b, o)
			require.ErrorContains(t, err, c.error, name)
		}
	}
	d, err := curvature.FisherDiag(func(p infer.Params, b infer.Batch) torch.Tensor {
		z := p.Get("b")
		if x := b.Get("x"); x.Values()[0] < 0 {
			z = z.Add(p.Flat.Sum())
		}
		return b.Get("x").Mul(z)
	}, p, b, one)
	// 1² + 0.5² for b alone, and (−2)² times 1 for each number and 2² for b.
	near(t, []float64{4, 4, 17.25, 4, 4, 4}, must(t, d, err), 1e-14, "data of two kinds")
}
