package dist_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Parameters that are tensors of whole numbers are those numbers: neither densities nor draws
// become integers or float32.
func TestIntegerParameters(t *testing.T) {
	scoped(t, func() {
		ints := func(x ...int) *ts.Tensor { return torch.New(x).T() }
		floats := func(x ...int) *ts.Tensor { return ints(x...).MustTotype(gotch.Double, false) }
		narrow := func(x ...float64) *ts.Tensor { return torch.Must(torch.FromSliceOn(torch.CPU, gotch.Float, x)).T() }
		for name, f := range map[string]func(of func(x ...int) *ts.Tensor) dist.Distribution{
			"Binomial": func(of func(x ...int) *ts.Tensor) dist.Distribution { return dist.Binomial(of(5, 9), 0.3) },
			"BinomialLogits": func(of func(x ...int) *ts.Tensor) dist.Distribution {
				return dist.BinomialLogits(of(5, 9),
					of(1, 0))
			},
			"BetaBinomial": func(of func(x ...int) *ts.Tensor) dist.Distribution {
				return dist.BetaBinomial(of(5, 9), of(2, 3), 1.5)
			},
			"NegativeBinomial": func(of func(x ...int) *ts.Tensor) dist.Distribution {
				return dist.NegativeBinomial(2.5,
					of(5, 9))
			},
			"NegativeBinomialProbs": func(of func(x ...int) *ts.Tensor) dist.Distribution {
				return dist.NegativeBinomialProbs(of(5, 9), 0.5)
			},
			"NegativeBinomialLogits": func(of func(x ...int) *ts.Tensor) dist.Distribution {
				return dist.NegativeBinomialLogits(of(5, 9), 0.5)
			},
			"Poisson":    func(of func(x ...int) *ts.Tensor) dist.Distribution { return dist.Poisson(of(5, 9)) },
			"PoissonLog": func(of func(x ...int) *ts.Tensor) dist.Distribution { return dist.PoissonLog(of(1, 2)) },
			"Bernoulli":  func(of func(x ...int) *ts.Tensor) dist.Distribution { return dist.BernoulliLogits(of(1, 2)) },
			"ZeroInflated": func(of func(x ...int) *ts.Tensor) dist.Distribution {
				return dist.ZeroInflated(0.5, dist.Poisson(of(5, 9)))
			},
			"Normal":      func(of func(x ...int) *ts.Tensor) dist.Distribution { return dist.Normal(of(5, 9), 1.5) },
			"Gamma":       func(of func(x ...int) *ts.Tensor) dist.Distribution { return dist.Gamma(of(5, 9), of(3, 2)) },
			"Categorical": func(of func(x ...int) *ts.Tensor) dist.Distribution { return dist.Categorical(of(5, 9)) },
		} {
			a, b := f(ints), f(floats)
			x := scalarVec(1, 0)
			require.Equal(t, gotch.Double, a.LogProb(torch.Of(x)).T().DType(), name)
			require.Equal(t, scalarRead(b.LogProb(torch.Of(x)).T()), scalarRead(a.LogProb(torch.Of(x)).T()), name)
			// An integer value too, below float64 precision otherwise.
			require.Equal(t, scalarRead(b.LogProb(torch.Of(x)).T()), scalarRead(a.LogProb(torch.Of(ints(1, 0))).T()), name)
			draws := a.Sample(torch.NewSource(1, 0), 3).T()
			if name != "Categorical" {
				require.Equal(t, gotch.Double, draws.DType(), name)
			}
			require.Equal(t, scalarRead(b.Sample(torch.NewSource(1, 0), 3).T()), scalarRead(draws), name)
			require.Equal(t, scalarRead(b.Mean().T()), scalarRead(a.Mean().T()), name)
		}
		// The other parameters decide the type.
		single := dist.Binomial(ints(5, 9), narrow(0.3, 0.4))
		require.Equal(t, gotch.Float, single.LogProb(torch.Of(narrow(1, 2))).T().DType())
		require.Equal(t, gotch.Float, single.Sample(torch.NewSource(1, 0)).T().DType())
		many := dist.Multinomial(ints(5), scalarVec(1, 2))
		require.Equal(
			t,
			scalarRead(dist.Multinomial(5, scalarVec(1, 2)).LogProb(torch.Of(scalarVec(2, 3))).T()),
			scalarRead(many.LogProb(torch.Of(ints(2, 3))).T()),
		)
		require.Equal(t, gotch.Double, many.Sample(torch.NewSource(1, 0)).T().DType())
		// A point keeps its type, its log density does not take it.
		point := dist.Delta(ints(3, 4))
		require.Equal(t, gotch.Int64, point.Sample(nil).T().DType())
		require.Equal(t, []float64{0, math.Inf(-1)}, scalarRead(point.LogProb(torch.Of(ints(3, 3))).T()))
		require.Equal(t, gotch.Double, point.LogProb(torch.Of(ints(3, 3))).T().DType())
	})
}

// Outside the support the mass is 0: at negative numbers, above the end, between whole numbers and at infinities. There
// are no gradients there, and a value inside beside them keeps its own.
func TestCountsOutsideTheSupport(t *testing.T) {
	for _, c := range countFamilies {
		countScope(t, func() {
			p := countSettings[c.name][0]
			outside := []float64{-1, -0.5, 0.5, 1e300, math.Inf(1), math.Inf(-1), -3}
			if top := c.top(p); top >= 0 {
				outside = append(outside, float64(top+1), float64(top)+0.5)
			} else {
				outside[3] = 2.5
			}
			columns := make([][]float64, len(p))
			for i, v := range p {
				columns[i] = []float64{v}
			}
			params, leaves := countLeaves(columns)
			for _, d := range []dist.Distribution{c.make(anys(p)...), c.make(params...)} {
				for _, v := range outside {
					require.Equal(
						t,
						[]float64{math.Inf(-1)},
						countFloats(d.LogProb(torch.Of(scalarVec(v))).T()),
						"%s at %v",
						c.name,
						v,
					)
				}
			}
			inside := countGrad(c.make(params...).LogProb(torch.Of(scalarVec(0))).T(), leaves)
			mixed := c.make(params...).LogProb(torch.Of(scalarVec(append(outside, 0)...))).T()
			require.Equal(t, inside, countGrad(mixed, leaves), "%s: gradients", c.name)
		})
	}
	countScope(t, func() {
		d := dist.Multinomial(5, scalarVec(1, 2, 3))
		logits := dist.MultinomialLogits(scalarVec(5, 5), scalarVec(1, 2, 3))
		for _, x := range [][]float64{{1, 2, 3}, {1, 2, 1}, {-1, 3, 3}, {0.5, 1.5, 3}, {0, 0, 0}, {6, 0, -1}} {
			require.Equal(t, math.Inf(-1), countFloats(d.LogProb(torch.Of(scalarVec(x...))).T())[0], "%v", x)
			require.Equal(
				t,
				[]float64{math.Inf(-1), math.Inf(-1)},
				countFloats(logits.LogProb(torch.Of(scalarVec(x...))).T()),
				"%v",
				x,
			)
		}
		require.False(t, math.IsInf(countFloats(d.LogProb(torch.Of(scalarVec(1, 2, 2))).T())[0], 0))
	})
}

// At xᵢ = 0 with concentration 1 the density does not depend on xᵢ but for the others' share: the gradient is finite.
func TestDirichletGradientAtTheEdge(t *testing.T) {
	scoped(t, func() {
		x, a := torch.Must(torch.Leaf(torch.Of(scalarVec(0, 0.25, 0.75)))), torch.Must(torch.Leaf(torch.Of(scalarVec(1, 2,
			3))))
		y := dist.Dirichlet(a).LogProb(x).T()
		// log 5!/(0! 1! 2!) + log x₂ + 2 log x₃
		require.InDelta(t, math.Log(60)+math.Log(0.25)+2*math.Log(0.75), scalarRead(y)[0], 1e-13)
		grads := scalarGrad(y, []torch.Tensor{x, a})
		for i := range 3 {
			require.False(t, math.IsNaN(grads[0][i]) || math.IsNaN(grads[1][i]))
		}
		// On the simplex only differences of the gradient count: those of (α − 1)/x.
		require.InDelta(t, 1/0.25-2/0.75, grads[0][1]-grads[0][2], 1e-12)
		require.InDelta(t, 0-2/0.75, grads[0][0]-grads[0][2], 1e-12)
		// The same in the beta and gamma families, whose parameters may be numbers.
		for name, d := range map[string]dist.Distribution{
			"Beta": dist.Beta(scalarVec(1), 3), "numbers": dist.Beta(1, 3), "Gamma": dist.Gamma(scalarVec(1), 2),
			"Gamma of numbers": dist.Gamma(1, 2),
			"Beta above 1":     dist.Beta(2, 3), "Gamma above 1": dist.Gamma(2, 2), "tensors": dist.Gamma(scalarVec(2), 2)} {
			x := torch.Must(torch.Leaf(torch.Of(scalarVec(0))))
			require.False(t, math.IsNaN(scalarGrad(d.LogProb(x).T(), []torch.Tensor{x})[0][0]), name)
			w := dist.Mixture([]float64{1, 1}, d, dist.HalfNormal(1)).LogProb(x).T()
			require.False(t, math.IsNaN(scalarGrad(w, []torch.Tensor{x})[0][0]), "%s in a mixture", name)
		}
	})
}

// Probability vectors with elements next to 0: the density by its formula in 80 digits.
func TestDirichletNearTheEdge(t *testing.T) {
	scoped(t, func() {
		for _, c := range []struct{ alpha, x []float64 }{
			{[]float64{2, 3, 4}, []float64{1e-300, 0.25, 0.75}}, {[]float64{0.5, 1, 2}, []float64{1e-300, 1e-10, 1}},
			{[]float64{1, 1, 1}, []float64{0, 0, 1}},
			{[]float64{1e-3, 50, 1}, []float64{1e-200, 1, 1e-17}}, {[]float64{30, 20, 10}, []float64{1e-15, 0.5, 0.5}},
		} {
			want, total := bigNew(0), bigNew(0)
			for i, a := range c.alpha {
				want = bigSub(bigAdd(want, bigXlogy(bigOneLess(a), bigNew(c.x[i]))), bigLgamma(bigNew(a)))
				total.Add(total, bigNew(a))
			}
			want.Add(want, bigLgamma(total))
			countClose(
				t,
				bigFloat(want),
				scalarRead(dist.Dirichlet(scalarVec(c.alpha...)).LogProb(torch.Of(scalarVec(c.x...))).T())[0],
				1e-10,
				1e-14,
				"%v at %v",
				c.alpha,
				c.x,
			)
		}
	})
}

func bigOneLess(a float64) *big.Float { return bigSub(bigNew(a), bigInt(1)) }

// The interval from the scale to infinity: numbers go there and back, and the Jacobian is the derivative.
func TestParetoBijector(t *testing.T) {
	scoped(t, func() {
		for _, scale := range []any{2.5, scalarVec(2.5, 1e-3, 40)} {
			d := dist.Pareto(scale, 3)
			b, err := bijector.For(d.Support())
			require.NoError(t, err)
			x := torch.Must(torch.Leaf(torch.Of(scalarVec(-2, 0.5, 3))))
			y := b.Forward(x).T()
			require.NoError(t, d.Support().Check(y))
			vectorNear(t, []float64{-2, 0.5, 3}, scalarRead(b.Inverse(torch.Of(y)).T()), 1e-12)
			jacobian := scalarGrad(y, []torch.Tensor{x})[0]
			for i, l := range scalarRead(b.LogAbsDetJacobian(x, torch.Of(y)).T()) {
				require.InDelta(t, math.Log(jacobian[i]), l, 1e-14)
			}
			// The density over the whole line integrates to 1.
			const n, h = 8000, 0.01
			grid := make([]float64, n)
			for i := range grid {
				grid[i] = (float64(i) - n/2) * h
			}
			line := torch.New(grid, n, 1)
			at := b.Forward(line).T()
			p := d.LogProb(torch.Of(at)).
				T().
				MustAdd(b.LogAbsDetJacobian(line, torch.Of(at)).T(), false).
				MustExp(false).
				MustSumDimIntlist([]int64{0}, false, gotch.Double, false)
			for _, total := range scalarRead(p) {
				require.InDelta(t, 1, total*h, 1e-6)
			}
		}
	})
}

// The support of a point is the point.
func TestDeltaSupport(t *testing.T) {
	scoped(t, func() {
		s := dist.Delta(3).Support()
		require.NoError(t, s.Check(scalarVec(3, 3)))
		require.ErrorContains(t, s.Check(scalarVec(3, 2.5)), "element [1] of shape [2] is 2.5: it must be 3")
		s = dist.Delta(scalarVec(1, 2)).Support()
		require.NoError(t, s.Check(scalarVec(1, 2)))
		require.ErrorContains(t, s.Check(scalarVec(1, 1)), "element [1] of shape [2] is 1: it must be 2")
		require.Equal(t, "its single value", s.String())
		require.NoError(t, dist.Delta(math.Inf(1)).Support().Check(scalarVec(math.Inf(1))))
		require.NoError(
			t,
			dist.Delta(0.1).Support().Check(torch.Must(torch.FromSliceOn(torch.CPU, gotch.Float, []float64{0.1}))),
		)
		require.NoError(t, dist.Independent(dist.Delta(scalarVec(1, 2)), 1).Support().Check(scalarVec(1, 2)))
	})
}

// Γ(1 + 2/k) − Γ(1 + 1/k)² in 80 digits.
func TestWeibullVariance(t *testing.T) {
	scoped(t, func() {
		for _, k := range []float64{0.5, 1, 10, 49.9, 50, 50.1, 51, 200, 1e4, 1e6, 1e8, 1e12, 1e15} {
			gamma := func(times int) *big.Float { return bigExp(bigLfact(bigQuo(bigInt(times), bigNew(k)))) }
			one := gamma(1)
			want := bigFloat(bigMul(bigInt(9), bigSub(gamma(2), bigMul(one, one))))
			for _, d := range []dist.Distribution{dist.Weibull(3, k), dist.Weibull(scalarVec(3), scalarVec(k))} {
				countClose(t, want, scalarRead(d.Variance().T())[0], 1e-10, 0, "variance at %v", k)
			}
		}
	})
}

// Counts of all sizes, against the formula in 80 digits.
func TestPoissonLogGLMLargeCounts(t *testing.T) {
	scoped(t, func() {
		for _, y := range []float64{0, 3, 70, 1e6, 1e7 + 3, 1e9} {
			for _, eta := range []float64{math.Log(y + 1), math.Log(y+1) + 1e-4} {
				one := torch.New([]float64{1}, 1, 1)
				got := scalarRead(dist.PoissonLogGLM(one, torch.Of(scalarVec(eta)),
					0).LogProb(torch.Of(scalarVec(y))).T())[0]
				countClose(t, countFamily("PoissonLog").want([]float64{eta}, y), got, 1e-10, 0, "%v at predictor %v", y, eta)
			}
		}
	})
}
