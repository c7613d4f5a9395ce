package dist_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Known families as transformed ones: log densities, supports and moments.
func TestTransformedFamilies(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		x := []float64{1e-3, 0.2, 1, 2.5, 9}
		tensor := vectorTensor(x, 5)
		cases := []struct {
			d    dist.Distribution
			s    support.Support
			logp func(x float64) float64
		}{
			{dist.Transformed(dist.Normal(0.3, 0.7), bijector.Exp()), support.Positive,
				distuv.LogNormal{Mu: 0.3, Sigma: 0.7}.LogProb},
			{dist.Transformed(dist.Normal(0, 1), bijector.Affine(-1, 3)), support.Real,
				distuv.Normal{Mu: -1, Sigma: 3}.LogProb},
			{
				dist.Transformed(dist.Exponential(1), bijector.Affine(0, 0.5)),
				support.Support{Kind: support.KindInterval, Low: torch.Of(0), High: torch.Of(math.Inf(1)), Closed: true},
				distuv.Exponential{Rate: 2}.LogProb,
			},
			// A power of an exponential number: Weibull.
			{
				dist.Transformed(
					dist.Exponential(1),
					bijector.Inverse(bijector.Exp()),
					bijector.Affine(math.Log(2), 1/1.5),
					bijector.Exp(),
				),
				support.Positive,
				distuv.Weibull{K: 1.5, Lambda: 2}.LogProb,
			},
		}
		for _, c := range cases {
			want := make([]float64, len(x))
			for i := range x {
				want[i] = c.logp(x[i])
			}
			vectorNear(t, want, vectorFloats(c.d.LogProb(torch.Of(tensor)).T()), 1e-12, c.d.Name())
			s := c.d.Support()
			s.Closed = c.s.Closed
			require.Equal(t, c.s, s, c.d.Name())
			require.NoError(t, c.d.Validate())
		}
		d := dist.Transformed(dist.Normal(2, 3), bijector.Affine(-1, -2)).(interface {
			dist.Distribution
			dist.Parameterised
			Base() dist.Distribution
			Bijector() bijector.Bijector
		})
		require.Equal(t, []float64{-5}, vectorFloats(d.Mean().T()))
		require.InDelta(t, 36, vectorFloats(d.Variance().T())[0], 1e-13)
		require.Equal(t, "Transformed(Normal, Affine)", d.Name())
		require.Equal(t, "Affine", d.Bijector().Name())
		require.Equal(t, "Normal", d.Base().Name())
		require.Equal(t, map[string]any{"loc": torch.Of(2), "scale": torch.Of(3)}, d.Params())
		p := dist.Transformed(
			dist.Normal(vectorTensor([]float64{1, 2}, 2), vectorTensor([]float64{3, 4}, 2)),
			bijector.Permute(1, 0),
		)
		require.Equal(t, []float64{2, 1}, vectorFloats(p.Mean().T()))
		require.Equal(t, []float64{16, 9}, vectorFloats(p.Variance().T()))
		return nil
	}))
}

// Dimensions: those of the batch that the bijector works on become the event's, parameters that are tensors widen the
// batch, and what a bijector does to single numbers is summed over the event.
func TestTransformedShapes(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		loc := vectorTensor([]float64{1, 2, 3}, 3)
		tril := vectorTensor([]float64{1, 0, 0, 2, 1, 0, 3, 4, 1}, 3, 3)
		cases := []struct {
			d            dist.Distribution
			batch, event []int
			s            support.Support
		}{
			{dist.Transformed(dist.Normal(0, 1), bijector.Affine(loc, 2)), []int{3}, []int{}, support.Real},
			{dist.Transformed(dist.Normal(loc, 1).Expand(5, 3), bijector.Ordered()), []int{5}, []int{3}, support.Ordered},
			{
				dist.Transformed(dist.Normal(loc, 1).Expand(5, 3), bijector.StickBreaking()),
				[]int{5},
				[]int{4},
				support.Simplex,
			},
			{
				dist.Transformed(dist.Normal(loc, 1).Expand(5, 3), bijector.CorrCholesky()),
				[]int{5},
				[]int{3, 3},
				support.CorrCholesky,
			},
			{
				dist.Transformed(
					dist.Normal(loc, 1).Expand(5, 3),
					bijector.LowerCholesky(),
					bijector.Inverse(bijector.LowerCholesky()),
				),
				[]int{5},
				[]int{3},
				support.Real.Independent(1),
			},
			{
				dist.Transformed(dist.MultivariateNormalCholesky(loc, tril), bijector.Exp()),
				[]int{},
				[]int{3},
				support.Positive.Independent(1),
			},
			{
				dist.Transformed(dist.MultivariateNormalCholesky(loc, tril).Expand(2), bijector.StickBreaking()),
				[]int{2},
				[]int{4},
				support.Simplex,
			},
			{
				dist.Transformed(dist.Independent(dist.Normal(0, 1).Expand(2, 5, 3), 2), bijector.PositiveOrdered()),
				[]int{2},
				[]int{5, 3},
				support.PositiveOrdered.Independent(1),
			},
			{
				dist.Independent(dist.Transformed(dist.Normal(loc, 1).Expand(5, 3), bijector.Exp()), 1),
				[]int{5},
				[]int{3},
				support.Positive.Independent(1),
			},
		}
		for i, c := range cases {
			for _, d := range []dist.Distribution{c.d, c.d.Expand(append([]int{7}, c.batch...)...)} {
				batch := c.batch
				if len(d.BatchShape()) != len(c.batch) {
					batch = append([]int{7}, batch...)
				}
				require.Equal(t, batch, append([]int{}, d.BatchShape()...), i)
				require.Equal(t, c.event, d.EventShape(), i)
				require.Equal(t, c.s, d.Support(), i)
				draws := d.Sample(torch.NewSource(1, 0), 4).T()
				require.Equal(t, append(append([]int{4}, batch...), c.event...), vectorShape(draws), i)
				require.NoError(t, d.Support().Check(draws), i)
				require.Equal(t, append([]int{4}, batch...), vectorShape(d.LogProb(torch.Of(draws)).T()), i)
			}
		}
		// The elementwise log-Jacobian of a vector of logarithms is their sum.
		d := cases[5].d
		y := []float64{0.5, 2, 3}
		logs, total := make([]float64, 3), 0.0
		for i, v := range y {
			logs[i] = math.Log(v)
			total += logs[i]
		}
		want := vectorFloats(dist.MultivariateNormalCholesky(loc,
			tril).LogProb(torch.Of(vectorTensor(logs, 3))).T())[0] - total
		require.InDelta(t, want, vectorFloats(d.LogProb(torch.Of(vectorTensor(y, 3))).T())[0], 1e-12)
		return nil
	}))
}

// The logistic-normal density on the simplex against draws: the share of draws in the corner x₁ > ½ is the integral of
// the density there, and the whole integrates to 1.
func TestTransformedIntegratesOverTheSimplex(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		d := dist.Transformed(dist.Normal(vectorTensor([]float64{0.4, -0.3}, 2), 0.9), bijector.StickBreaking())
		// midpoints of the triangle's square, those outside left out; the density is 0 at the edge with all its slopes
		const n = 400
		var points []float64
		for i := range n {
			for j := range n {
				a, b := (float64(i)+0.5)/n, (float64(j)+0.5)/n
				// Duffy's map of the square to the triangle has the determinant 1 − a.
				points = append(points, a, b*(1-a), (1-a)*(1-b))
			}
		}
		l := vectorFloats(d.LogProb(torch.Of(vectorTensor(points, n*n, 3))).T())
		all, corner := 0.0, 0.0
		for k, v := range l {
			mass := math.Exp(v) * (1 - points[3*k]) / n / n
			all += mass
			if points[3*k] > 0.5 {
				corner += mass
			}
		}
		require.InDelta(t, 1, all, 1e-6)
		const draws = 40000
		x := vectorFloats(d.Sample(torch.NewSource(4, 0), draws).T())
		inside := 0.0
		for i := 0; i < len(x); i += 3 {
			if x[i] > 0.5 {
				inside++
			}
		}
		require.InDelta(t, corner, inside/draws, 4*math.Sqrt(corner*(1-corner)/draws))
		return nil
	}))
}

// Values, draws and gradients under vmap are those of the loop; gradients in value and parameters those of differences.
func TestTransformedVmapAndGradients(t *testing.T) {
	make := func(p *ts.Tensor) dist.Distribution {
		base := dist.Independent(dist.Normal(p.MustNarrow(-1, 0, 3, false), p.MustNarrow(-1, 3, 3, false).MustExp(false)), 1)
		return dist.Transformed(base, bijector.Affine(p.MustNarrow(-1, 6, 3, false), 0.5), bijector.StickBreaking())
	}
	logp := func(flat torch.Tensor) torch.Tensor {
		x := flat.T().MustNarrow(-1, 9, 4, false).MustSoftmax(-1, gotch.Double, false)
		return make(flat.T().MustNarrow(-1, 0, 9, false)).LogProb(torch.Of(x))
	}
	draw := func(flat *ts.Tensor, src *dist.Source) *ts.Tensor {
		return make(flat.MustNarrow(-1, 0, 9, false)).Sample(src, 2).T().MustSquare(false).MustSum(gotch.Double, false)
	}
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		const k, n = 3, 13
		rows := vectorNormals(rand.New(rand.NewPCG(1, 1)), k*n)
		values, grads, err := torch.VmapValueAndGrad(logp, torch.Of(vectorTensor(rows, k, n)))
		require.NoError(t, err)
		leaf := torch.Must(torch.Leaf(torch.Of(vectorTensor(rows, k, n))))
		streams := torch.NewStreams(7, k)
		mapped, err := torch.VmapSources(func(in []torch.Tensor, src *torch.Source) ([]torch.Tensor, error) {
			return []torch.Tensor{torch.Of(draw(in[0].T(), src))}, nil
		}, []torch.Tensor{leaf}, &streams, nil)
		require.NoError(t, err)
		all := torch.Must(torch.Grad(
			[]torch.Tensor{torch.Of(mapped[0].T().MustSum(gotch.Double,
				false))}, []torch.Tensor{leaf}, &torch.GradOptions{KeepGraph: true}))
		for i := 0; i < k; i++ {
			row := rows[i*n : (i+1)*n]
			v, g, err := torch.ValueAndGrad(logp, torch.Of(vectorTensor(row, n)))
			require.NoError(t, err)
			vectorNear(t, vectorFloats(v.T()), vectorFloats(values.T())[i:i+1], 1e-13)
			vectorNear(t, vectorFloats(g.T()), vectorFloats(grads.T())[i*n:(i+1)*n], 1e-11)
			vectorNear(
				t,
				vectorSlope(func(x []float64) float64 { return vectorFloats(logp(torch.Of(vectorTensor(x, n))).T())[0] }, row),
				vectorFloats(g.T()),
				1e-8,
			)
			f := func(x torch.Tensor) torch.Tensor { return torch.Of(draw(x.T(), torch.NewSource(7, uint64(i)))) }
			v, g, err = torch.ValueAndGrad(f, torch.Of(vectorTensor(row, n)))
			require.NoError(t, err)
			vectorNear(t, vectorFloats(v.T()), vectorFloats(mapped[0].T())[i:i+1], 1e-13)
			vectorNear(t, vectorFloats(g.T()), vectorFloats(all[0].T())[i*n:(i+1)*n], 1e-12)
			vectorNear(
				t,
				vectorSlope(func(x []float64) float64 { return vectorFloats(f(torch.Of(vectorTensor(x, n))).T())[0] }, row),
				vectorFloats(g.T()),
				1e-9,
			)
		}
		return nil
	}))
}

// Independent moves dimensions from the batch to the event and sums over them.
func TestIndependent(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		base := dist.Normal(vectorTensor([]float64{1, 2, 3}, 3), 2).Expand(4, 3)
		d := dist.Independent(base, 1)
		require.Equal(t, "Normal", d.Name())
		require.Equal(t, []int{4}, d.BatchShape())
		require.Equal(t, []int{3}, d.EventShape())
		require.Equal(t, support.Real.Independent(1), d.Support())
		x := []float64{0.5, 1.5, -2}
		want := 0.0
		for i, v := range x {
			want += distuv.Normal{Mu: float64(i + 1), Sigma: 2}.LogProb(v)
		}
		vectorNear(t, []float64{want, want, want, want}, vectorFloats(d.LogProb(torch.Of(vectorTensor(x, 3))).T()), 1e-14)
		require.Equal(t, []int{5, 4, 3}, vectorShape(d.Sample(torch.NewSource(1, 0), 5).T()))
		require.Equal(
			t,
			vectorFloats(base.Sample(torch.NewSource(1, 0)).T()),
			vectorFloats(d.Sample(torch.NewSource(1, 0)).T()),
		)
		require.Equal(t, vectorFloats(base.Mean().T()), vectorFloats(d.Mean().T()))
		require.Equal(t, vectorFloats(base.Variance().T()), vectorFloats(d.Variance().T()))

		wide := d.Expand(6, 4)
		require.Equal(t, []int{6, 4}, wide.BatchShape())
		require.Equal(t, []int{3}, wide.EventShape())
		both := dist.Independent(d, 1).(interface {
			dist.Distribution
			Base() dist.Distribution
			N() int
			Params() map[string]any
		})
		require.Equal(t, 2, both.N())
		require.Equal(t, []int{}, append([]int{}, both.BatchShape()...))
		require.Equal(t, []int{4, 3}, both.EventShape())
		require.Equal(t, "Normal", both.Base().Name())
		vectorNear(t, []float64{4 * want}, vectorFloats(both.LogProb(torch.Of(vectorTensor(x, 3))).T()), 1e-14)
		require.Equal(t, torch.Of(2), both.Params()["scale"])
		vectors := dist.Independent(dist.Dirichlet(vectorTensor([]float64{1, 2}, 2)).Expand(3), 1)
		require.Equal(t, []int{3, 2}, vectors.EventShape())
		require.Equal(t, 2, vectors.Support().EventDims())
		require.Equal(t, base, dist.Independent(base, 0))
		return nil
	}))
}

func TestTransformedErrors(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		loc := vectorTensor([]float64{1, 2, 3}, 3)
		for want, f := range map[string]func(){
			"dist.Independent: n is 2: Normal has batch shape [3], so it must be from 0 to 1": func() {
				dist.Independent(dist.Normal(loc, 1), 2).Support()
			},
			"dist.Transformed: bijectors is Chain(Exp, UnitVector): it must be one to one, and UnitVector is not": func() {
				dist.Transformed(dist.Normal(loc, 1), bijector.Exp(), bijector.UnitVector()).Support()
			},
			"dist.Transformed: bijectors is Ordered: it works on 1 dimensions, and a draw of Normal has shape []": func() {
				dist.Transformed(dist.Normal(0, 1), bijector.Ordered()).Support()
			},
			"dist.Transformed: bijectors is Affine: its parameters make a draw of GaussianRandomWalk, of shape [1], one of " +
				"shape [3]; they must broadcast to its event shape [1]": func() {
				dist.Transformed(dist.GaussianRandomWalk(1, 1), bijector.Affine(loc, 1)).Support()
			},
			"dist.Transformed(Normal, Exp): Mean: it has no closed form; average over draws": func() {
				dist.Transformed(dist.Normal(0, 1), bijector.Exp()).Mean().T()
			},
			"bijector.CorrCholesky: a vector of length 2: the length must be k(k−1)/2 for some k ≥ 1": func() {
				dist.Transformed(dist.Normal(0, 1).Expand(2), bijector.CorrCholesky()).Support()
			},
		} {
			require.ErrorContains(t, torch.Do(func(*torch.Scope) error { f(); return nil }), want+" (at dist/")
		}
		bad := dist.Transformed(dist.Normal(0, 1), bijector.Affine(0, vectorTensor([]float64{1, 0}, 2)))
		require.EqualError(t, bad.Validate(),
			"bijector.Affine: scale is 0 at element 1 of shape [2]: it must be finite and not 0")
		bad = dist.Transformed(dist.Normal(0, vectorTensor([]float64{-1}, 1)), bijector.Exp())
		require.EqualError(t, bad.Validate(), "dist.Normal: scale is -1: it must be greater than 0")
		return nil
	}))
}
