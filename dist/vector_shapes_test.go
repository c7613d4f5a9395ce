package dist_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// batched makes a case with raw parameters of a batch shape.
func (c vectorCase) batched(rng *rand.Rand, batch ...int) (dist.Distribution, []*ts.Tensor) {
	var p []*ts.Tensor
	for _, s := range c.raw {
		shape := append(append([]int{}, batch...), s...)
		p = append(p, vectorTensor(vectorNormals(rng, vectorNumel(shape)), shape...))
	}
	return c.make(p), p
}

// Shapes are sample + batch + event; Expand makes independent draws; a smaller value broadcasts; each element of a
// batch is the distribution of its own parameters.
func TestVectorShapes(t *testing.T) {
	eachVector(t, func(t *testing.T, c vectorCase, rng *rand.Rand) {
		d, p := c.batched(rng, 2)
		require.Equal(t, c.name, d.Name())
		require.Equal(t, []int{2}, d.BatchShape())
		require.Equal(t, c.event, d.EventShape())
		wide := d.Expand(3, 2)
		require.Equal(t, []int{3, 2}, wide.BatchShape())
		for _, d := range []dist.Distribution{d, wide} {
			full := append(d.BatchShape(), c.event...)
			require.Equal(t, full, vectorShape(d.Mean().T()))
			require.Equal(t, full, vectorShape(d.Variance().T()))
			draws := d.Sample(torch.NewSource(1, 0), 5, 1).T()
			require.Equal(t, append([]int{5, 1}, full...), vectorShape(draws))
			require.Equal(t, append([]int{5, 1}, d.BatchShape()...), vectorShape(d.LogProb(torch.Of(draws)).T()))
			require.Equal(t, d.BatchShape(), vectorShape(d.LogProb(torch.Of(vectorTensor(c.value(rng), c.event...))).T()))
		}
		draws := wide.Sample(torch.NewSource(1, 0)).T()
		at := func(x *ts.Tensor, i, j int) []float64 {
			return vectorFloats(x.MustSelect(0, int64(i), false).MustSelect(0, int64(j), false))
		}
		require.NotEqual(t, at(draws, 0, 1), at(draws, 1, 1))
		require.NotEqual(t, at(draws, 0, 1), at(draws, 2, 1))

		x := c.value(rng)
		got := vectorFloats(wide.LogProb(torch.Of(vectorTensor(x, c.event...))).T())
		for i := 0; i < 2; i++ {
			var row []*ts.Tensor
			for _, v := range p {
				row = append(row, v.MustSelect(0, int64(i), false))
			}
			one := c.make(row)
			require.Empty(t, one.BatchShape())
			want := vectorFloats(one.LogProb(torch.Of(vectorTensor(x, c.event...))).T())[0]
			for j := 0; j < 3; j++ {
				require.InDelta(t, want, got[2*j+i], 1e-12*max(1, math.Abs(want)))
			}
			vectorNear(t, vectorFloats(one.Mean().T()), vectorFloats(d.Mean().T().MustSelect(0, int64(i), false)), 1e-14)
			vectorNear(t, vectorFloats(one.Variance().T()), vectorFloats(d.Variance().T().MustSelect(0, int64(i), false)), 1e-14)
		}
		err := torch.Do(func(*torch.Scope) error { d.Expand(3); return nil })
		require.ErrorContains(t, err, "dist."+c.name)
	})
}

// In float32 everything is float32, and near what float64 gives.
func TestVectorFloat32(t *testing.T) {
	eachVector(t, func(t *testing.T, c vectorCase, rng *rand.Rand) {
		p, x := c.random(rng), c.value(rng)
		params := c.tensors(p)
		for i, v := range params {
			params[i] = v.MustTotype(gotch.Float, false)
		}
		d := c.make(params)
		for _, out := range []*ts.Tensor{d.Sample(torch.NewSource(1, 0), 3).T(), d.Mean().T(), d.Variance().T(),
			d.LogProb(torch.Of(vectorTensor(x, c.event...).MustTotype(gotch.Float, false))).T()} {
			require.Equal(t, gotch.Float, out.DType())
		}
		got := vectorFloats(d.LogProb(torch.Of(vectorTensor(x, c.event...).MustTotype(gotch.Float, false))).T())
		require.InDelta(t, c.law(p, x), got[0], 1e-3*max(1, math.Abs(c.law(p, x))))
	})
}

// Numbers as parameters, and a location that broadcasts, mean the same as tensors of them.
func TestVectorNumbers(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		cov := vectorTensor([]float64{2, 1, 1, 1}, 2, 2)
		locs := vectorTensor([]float64{0.5, 0.5}, 2)
		x := vectorTensor([]float64{1, 2, 3, 4, 5, 6}, 3, 2)
		same := func(a, b dist.Distribution) {
			t.Helper()
			require.Equal(t, a.BatchShape(), b.BatchShape())
			vectorNear(t, vectorFloats(a.LogProb(torch.Of(x)).T()), vectorFloats(b.LogProb(torch.Of(x)).T()), 1e-14)
			vectorNear(t, vectorFloats(a.Mean().T()), vectorFloats(b.Mean().T()), 0)
			vectorNear(t, vectorFloats(a.Variance().T()), vectorFloats(b.Variance().T()), 1e-14)
			vectorNear(
				t,
				vectorFloats(a.Sample(torch.NewSource(1, 0), 4).T()),
				vectorFloats(b.Sample(torch.NewSource(1, 0), 4).T()),
				1e-14,
			)
		}
		same(dist.MultivariateNormal(locs, cov), dist.MultivariateNormal(0.5, cov))
		same(dist.MultivariateNormal(locs, cov), dist.MultivariateNormal(vectorTensor([]float64{0.5}, 1), cov))
		same(
			dist.LowRankMultivariateNormal(locs, cov, vectorTensor([]float64{2, 2}, 2)),
			dist.LowRankMultivariateNormal(0.5, cov, 2),
		)
		same(dist.GaussianRandomWalk(2, vectorTensor([]float64{3})), dist.GaussianRandomWalk(2, 3))
		// What is above the diagonal of a Cholesky factor is not read.
		same(
			dist.MultivariateNormalCholesky(0, vectorTensor([]float64{1, 0, 2, 3}, 2, 2)),
			dist.MultivariateNormalCholesky(0, vectorTensor([]float64{1, 9, 2, 3}, 2, 2)),
		)
		// The three ways to say the same distribution.
		l := vectorTensor([]float64{2, 0, 1, 3}, 2, 2)
		full := l.MustMatmul(l.MustTranspose(0, 1, false), false)
		for _, d := range []dist.Distribution{dist.MultivariateNormalCholesky(locs, l),
			dist.MultivariateNormalPrecision(locs, full.MustInverse(false))} {
			vectorNear(
				t,
				vectorFloats(dist.MultivariateNormal(locs, full).LogProb(torch.Of(x)).T()),
				vectorFloats(d.LogProb(torch.Of(x)).T()),
				1e-13,
			)
		}
		// Several matrices for one set of vectors: each with each.
		two := vectorTensor([]float64{2, 1, 1, 1, 1, 0, 0, 1}, 2, 1, 2, 2)
		got := dist.MultivariateNormal(0, two).LogProb(torch.Of(x)).T()
		require.Equal(t, []int{2, 3}, vectorShape(got))
		vectorNear(t, vectorFloats(dist.MultivariateNormal(0, cov).LogProb(torch.Of(x)).T()), vectorFloats(got)[:3], 1e-14)

		// Dimension one of LKJ is the matrix [1].
		one := dist.LKJCholesky(1, 2).Expand(2)
		require.Equal(t, []float64{1, 1}, vectorFloats(one.Sample(torch.NewSource(1, 0)).T()))
		require.Equal(t, []float64{1, 1}, vectorFloats(one.Mean().T()))
		require.Equal(t, []float64{0, 0}, vectorFloats(one.Variance().T()))
		require.Equal(t, []float64{0, 0}, vectorFloats(one.LogProb(torch.Of(vectorTensor([]float64{1}, 1, 1))).T()))
		return nil
	}))
}

// A matrix that is not positive definite gives NaN, alone among its batch; Validate names it.
func TestVectorNotPositiveDefinite(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		m := vectorTensor([]float64{1, 0, 0, 1, 1, 2, 2, 1}, 2, 2, 2)
		for _, d := range []dist.Distribution{dist.MultivariateNormal(0, m), dist.MultivariateNormalPrecision(0, m)} {
			l := vectorFloats(d.LogProb(torch.Of(vectorTensor([]float64{0, 0}, 2))).T())
			require.InDelta(t, -math.Log(2*math.Pi), l[0], 1e-15)
			require.True(t, math.IsNaN(l[1]))
		}
		return nil
	}))
}

func TestVectorErrors(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		v := vectorTensor([]float64{1, 2, 3}, 3)
		eye := ts.MustEye(2, gotch.Double, gotch.CPU)
		for want, f := range map[string]func(){
			"dist.MultivariateNormal: covariance_matrix is a tensor of shape [3]: " +
				"a tensor of square matrices is required": func() {
				dist.MultivariateNormal(0, v).Support()
			},
			"dist.MultivariateNormalPrecision: precision_matrix is a number: a tensor of square matrices is required": func() {
				dist.MultivariateNormalPrecision(0, 1).Support()
			},
			"dist.MultivariateNormalCholesky: loc is a tensor of shape [3]: its last dimension must be 2, " +
				"the size of the matrix": func() { dist.MultivariateNormalCholesky(v, eye).Support() },
			"dist.MultivariateNormal: loc is +Inf: it must be finite": func() {
				dist.MultivariateNormal(math.Inf(1), eye).Support()
			},
			"dist.MultivariateNormal: loc is a string: a number, a torch.Tensor or a *ts.Tensor is required": func() {
				dist.MultivariateNormal("0", eye).Support()
			},
			"dist.LowRankMultivariateNormal: cov_factor is a tensor of shape [3]: a tensor of matrices is required": func() {
				dist.LowRankMultivariateNormal(0, v, 1).Support()
			},
			"dist.LowRankMultivariateNormal: cov_diag is -1: it must be greater than 0": func() {
				dist.LowRankMultivariateNormal(0, eye, -1).Support()
			},
			"dist.LowRankMultivariateNormal: cov_diag is a tensor of shape [3]: its last dimension must be 2, " +
				"the size of the matrix": func() {
				dist.LowRankMultivariateNormal(0, eye, v).Support()
			},
			"dist.Dirichlet: concentration is a number: a tensor with a last dimension of at least 1 is required": func() {
				dist.Dirichlet(1).Support()
			},
			"dist.LKJCholesky: dim is 0: it must be at least 1": func() {
				dist.LKJCholesky(0, 1).Support()
			},
			"dist.LKJCholesky: eta is 0: it must be greater than 0": func() {
				dist.LKJCholesky(2, 0).Support()
			},
			"dist.WishartCholesky: df is 1: it must be greater than 1, one less than the size of the matrices": func() {
				dist.WishartCholesky(1, eye).Support()
			},
			"dist.InverseWishartCholesky: scale_tril is a number: a tensor of square matrices is required": func() {
				dist.InverseWishartCholesky(1, 1).Support()
			},
			"dist.ZeroSumNormal: n is 1: it must be at least 2":         func() { dist.ZeroSumNormal(1, 1).Support() },
			"dist.ZeroSumNormal: scale is 0: it must be greater than 0": func() { dist.ZeroSumNormal(2, 0).Support() },
			"dist.GaussianRandomWalk: steps is 0: it must be at least 1": func() {
				dist.GaussianRandomWalk(0, 1).Support()
			},
			"dist.GaussianRandomWalk: scale is -1: it must be greater than 0": func() {
				dist.GaussianRandomWalk(3, -1).Support()
			},
		} {
			err := torch.Do(func(*torch.Scope) error { f(); return nil })
			var e *dist.Error
			require.ErrorAs(t, err, &e)
			require.ErrorContains(t, err, want+" (at dist/")
		}
		nan := vectorTensor([]float64{0, math.NaN()}, 2)
		bad := vectorTensor([]float64{1, 0, 0, 1, 1, 2, 2, 1}, 2, 2, 2)
		for want, d := range map[string]dist.Distribution{
			"dist.MultivariateNormal: loc is NaN at element 1 of shape [2]: it must be finite": dist.MultivariateNormal(nan,
				eye),
			"dist.MultivariateNormal: covariance_matrix is [1 2 2 1] at [1] of [2]: it must be a symmetric positive-definite " +
				"matrix: its leading 2 x 2 block is not positive definite": dist.MultivariateNormal(0, bad),
			"dist.MultivariateNormalPrecision: precision_matrix is [1 2 3 4]: it must be a symmetric positive-definite " +
				"matrix: element [1 0] is 3 and element [0 1] is 2": dist.MultivariateNormalPrecision(0,
				vectorTensor([]float64{1, 2, 3, 4}, 2, 2)),
			"dist.MultivariateNormalCholesky: scale_tril is [1 0 3 -1]: it must be a lower-triangular matrix with positive " +
				"diagonal: element [1 1] is -1": dist.MultivariateNormalCholesky(0, vectorTensor([]float64{1, 2, 3, -1}, 2, 2)),
			"dist.LowRankMultivariateNormal: cov_diag is -1 at element 0 of shape " +
				"[2]: it must be greater than 0": dist.LowRankMultivariateNormal(0, eye, vectorTensor([]float64{-1, 1}, 2)),
			"dist.Dirichlet: concentration is 0 at element 1 of shape " +
				"[2]: it must be greater than 0": dist.Dirichlet(vectorTensor([]float64{1, 0}, 2)),
			"dist.LKJCholesky: eta is -1 at element 1 of shape " +
				"[2]: it must be greater than 0": dist.LKJCholesky(2, vectorTensor([]float64{1, -1}, 2)),
			"dist.WishartCholesky: df is 1 at element 0 of shape [2]: it must be greater than 1, one less than the size of " +
				"the matrices": dist.WishartCholesky(vectorTensor([]float64{1, 2}, 2), eye),
			"dist.InverseWishartCholesky: scale_tril is [1 0 3 -1]: it must be a lower-triangular matrix with positive " +
				"diagonal: element [1 1] is -1": dist.InverseWishartCholesky(3, vectorTensor([]float64{1, 2, 3, -1}, 2, 2)),
			"dist.ZeroSumNormal: scale is 0 at element 0 of shape " +
				"[2]: it must be greater than 0": dist.ZeroSumNormal(3, vectorTensor([]float64{0, 1}, 2)),
			"dist.GaussianRandomWalk: scale is 0 at element 0 of shape " +
				"[2]: it must be greater than 0": dist.GaussianRandomWalk(2, vectorTensor([]float64{0, 1}, 2)),
		} {
			require.EqualError(t, d.Validate(), want)
		}
		return nil
	}))
}
