package dist_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// bigMixture is log Σ w exp(l)/Σ w in 80 digits; l of minus infinity and weights of 0 add nothing.
func bigMixture(w, l []float64) float64 {
	sum, total := bigNew(0), bigNew(0)
	for i := range w {
		total.Add(total, bigNew(w[i]))
		if w[i] != 0 && !math.IsInf(l[i], -1) {
			sum.Add(sum, bigMul(bigNew(w[i]), bigExp(bigNew(l[i]))))
		}
	}
	if sum.Sign() == 0 {
		return math.Inf(-1)
	}
	return bigFloat(bigLog(bigQuo(sum, total)))
}

// The density against 80-digit sums of gonum's densities: of several families at once, of one family, and from logits.
func TestMixtureLogProb(t *testing.T) {
	scoped(t, func() {
		w := []float64{0.2, 0.5, 1.3}
		logs := []float64{math.Log(0.2) + 3, math.Log(0.5) + 3, math.Log(1.3) + 3}
		loc, scale := []float64{-1, 0.5, 30}, []float64{0.3, 2, 1}
		same := []dist.Distribution{
			dist.Normal(loc[0], scale[0]),
			dist.Normal(loc[1], scale[1]),
			dist.Normal(loc[2], scale[2]),
		}
		batched := dist.Normal(scalarVec(loc...), scalarVec(scale...))
		any3 := []dist.Distribution{dist.Normal(-1, 0.3), dist.Exponential(0.5), dist.Gamma(2, 3)}
		x := []float64{-40, -1, 0.3, 2, 29, 500}
		for k, v := range x {
			lsame := make([]float64, 3)
			for i := range loc {
				lsame[i] = distuv.Normal{Mu: loc[i], Sigma: scale[i]}.LogProb(v)
			}
			lany := []float64{
				distuv.Normal{Mu: -1, Sigma: 0.3}.LogProb(v),
				distuv.Exponential{Rate: 0.5}.LogProb(v),
				math.Inf(-1),
			}
			if v > 0 {
				lany[2] = distuv.Gamma{Alpha: 2, Beta: 3}.LogProb(v)
			}
			for name, c := range map[string]struct {
				d    dist.Distribution
				want float64
			}{
				"weights of numbers": {dist.Mixture(w, same...), bigMixture(w, lsame)},
				"a tensor":           {dist.Mixture(scalarVec(w...), same...), bigMixture(w, lsame)},
				"logits":             {dist.Mixture(dist.CategoricalLogits(scalarVec(logs...)), same...), bigMixture(w, lsame)},
				"one family":         {dist.MixtureSameFamily(dist.Categorical(scalarVec(w...)), batched), bigMixture(w, lsame)},
				"logits, one family": {dist.MixtureSameFamily(dist.CategoricalLogits(scalarVec(logs...)), batched),
					bigMixture(w, lsame)},
				"several families": {dist.Mixture(w, any3...), bigMixture(w, lany)},
			} {
				countClose(t, c.want, scalarRead(c.d.LogProb(torch.Of(scalarVec(x...))).T())[k], 1e-10, 1e-13, "%s at %v", name, v)
			}
		}
	})
}

// Weights and densities of 0: the value is exact, and gradients are those of calculus, by 80-digit differences.
func TestMixtureOfNothing(t *testing.T) {
	// log Σ w exp(l)/Σ w with l of Normal(loc, 1) and Exponential(rate).
	reference := func(p []*big.Float, x float64) *big.Float {
		z := bigSub(bigNew(x), p[2])
		normal := bigExp(bigSub(bigMul(bigNew(-0.5), bigMul(z, z)), bigMul(bigNew(0.5), bigLog(bigMul(bigInt(2), bigPi())))))
		sum := bigMul(p[0], normal)
		if x >= 0 {
			sum = bigAdd(sum, bigMul(p[1], bigMul(p[3], bigExp(bigNeg(bigMul(p[3], bigNew(x)))))))
		}
		if sum.Sign() == 0 {
			return nil
		}
		return bigLog(bigQuo(sum, bigAdd(p[0], p[1])))
	}
	scoped(t, func() {
		for _, c := range []struct {
			p []float64 // two weights, loc, rate
			x float64
		}{
			{[]float64{0, 1, 0.3, 2}, 1.5}, {[]float64{1, 0, 0.3, 2}, 1.5}, {[]float64{1, 0, 0.3, 2}, -1.5},
			{[]float64{0.4, 0.6, 0.3, 2}, -1.5},
			{[]float64{0, 1, 40, 2}, 0.5}, {[]float64{1, 0, 30, 2}, 0.5}, {[]float64{0.5, 0.5, 40, 2}, 0.5},
			{[]float64{1e-300, 1, 0, 1}, 3},
			{[]float64{0, 1, 0.3, 2}, -1.5}, // no component has any density here
		} {
			leaves := make([]torch.Tensor, 5)
			for i, v := range append(slices.Clone(c.p), c.x) {
				leaves[i] = torch.Must(torch.Leaf(torch.Scalar(v)))
			}
			weights := torch.Stack(0, leaves[:2])
			for name, d := range map[string]dist.Distribution{
				"tensor": dist.Mixture(weights, dist.Normal(leaves[2], 1), dist.Exponential(leaves[3])),
				"logits": dist.Mixture(dist.CategoricalLogits(weights.T().MustLog(false).MustDetach(false)),
					dist.Normal(leaves[2], 1),
					dist.Exponential(leaves[3])),
				"numbers": dist.Mixture(c.p[:2], dist.Normal(leaves[2], 1), dist.Exponential(leaves[3])),
			} {
				logp := d.LogProb(leaves[4]).T()
				grads := scalarGrad(logp, leaves)
				want := reference(bigs(c.p), c.x)
				if want == nil {
					require.Equal(t, math.Inf(-1), scalarRead(logp)[0], name)
					for i, g := range grads {
						require.Zero(t, g[0], "%s: gradient %d", name, i)
					}
					continue
				}
				countClose(t, bigFloat(want), scalarRead(logp)[0], 1e-10, 1e-14, "%s: log p(%v; %v)", name, c.x, c.p)
				h := bigNew(1e-40)
				for i := range 5 {
					at := func(sign int) *big.Float {
						p := bigs(c.p)
						if i < 4 {
							p[i].Add(p[i], bigMul(bigInt(sign), h))
						}
						return reference(p, c.x)
					}
					if i < 2 && name != "tensor" {
						continue
					}
					if i < 4 {
						countClose(
							t,
							bigFloat(bigQuo(bigSub(at(1), at(-1)), bigMul(bigInt(2), h))),
							grads[i][0],
							1e-9,
							1e-30,
							"%s: gradient %d at %v of %v",
							name,
							i,
							c.x,
							c.p,
						)
						continue
					}
					f := func(x float64) float64 { return bigFloat(reference(bigs(c.p), x)) }
					countClose(
						t,
						(f(c.x+1e-5)-f(c.x-1e-5))/2e-5,
						grads[4][0],
						1e-6,
						1e-8,
						"%s: gradient in x at %v of %v",
						name,
						c.x,
						c.p,
					)
				}
			}
		}
		// A component that has no finite density, or no moments, counts for nothing at weight 0.
		x := torch.Must(torch.Leaf(torch.Of(scalarVec(0.7))))
		w := torch.Must(torch.Leaf(torch.Of(scalarVec(0, 1))))
		d := dist.Mixture(w, dist.Cauchy(0, 1), dist.Beta(2, 3))
		require.InDelta(t, 0.4, scalarRead(d.Mean().T())[0], 1e-15)
		require.InDelta(t, 0.04, scalarRead(d.Variance().T())[0], 1e-15)
		require.InDelta(t, distuv.Beta{Alpha: 2, Beta: 3}.LogProb(0.7), scalarRead(d.LogProb(x).T())[0], 1e-13)
		end := dist.Mixture(w, dist.Beta(0.5, 1), dist.Normal(0, 1)).LogProb(torch.Of(scalarVec(0))).T()
		require.InDelta(t, -0.5*math.Log(2*math.Pi), scalarRead(end)[0], 1e-15)
		for _, g := range scalarGrad(end, []torch.Tensor{w})[0] {
			require.False(t, math.IsNaN(g) || math.IsInf(g, 0))
		}
	})
}

// mixtureCases are mixtures with their laws: weights and gonum's components.
type mixtureLaw interface {
	CDF(float64) float64
	Mean() float64
	Variance() float64
}

func mixtureCases() []struct {
	name    string
	d       dist.Distribution
	weights []float64
	laws    []mixtureLaw
} {
	w := []float64{0.3, 0, 0.7}
	loc, scale := []float64{-2, 50, 3}, []float64{0.5, 2, 1.5}
	var laws []mixtureLaw
	for i := range loc {
		laws = append(laws, distuv.Normal{Mu: loc[i], Sigma: scale[i]})
	}
	return []struct {
		name    string
		d       dist.Distribution
		weights []float64
		laws    []mixtureLaw
	}{
		{
			"same family",
			dist.MixtureSameFamily(dist.Categorical(scalarVec(w...)), dist.Normal(scalarVec(loc...), scalarVec(scale...))),
			w,
			laws,
		},
		{"normals", dist.Mixture(w, dist.Normal(-2, 0.5), dist.Normal(50, 2), dist.Normal(3, 1.5)), w, laws},
		{
			"families",
			dist.Mixture(dist.CategoricalLogits(scalarVec(1, 0)), dist.Normal(-1, 2), dist.Weibull(3, 2)),
			[]float64{math.E, 1},
			[]mixtureLaw{distuv.Normal{Mu: -1, Sigma: 2}, distuv.Weibull{Lambda: 3, K: 2}},
		},
	}
}

// Moments are by the law of total variance, the CDF is the mean of gonum's, and draws follow it.
func TestMixtureMomentsCDFAndDraws(t *testing.T) {
	scoped(t, func() {
		for k, c := range mixtureCases() {
			total, mean, square := 0.0, 0.0, 0.0
			for i, w := range c.weights {
				total += w
				mean += w * c.laws[i].Mean()
				square += w * (c.laws[i].Variance() + c.laws[i].Mean()*c.laws[i].Mean())
			}
			mean, square = mean/total, square/total
			cdf := func(x float64) (p float64) {
				for i, w := range c.weights {
					p += w / total * c.laws[i].CDF(x)
				}
				return p
			}
			require.InDelta(t, mean, scalarRead(c.d.Mean().T())[0], 1e-12, c.name)
			require.InDelta(t, square-mean*mean, scalarRead(c.d.Variance().T())[0], 1e-11, c.name)
			at := []float64{-5, -1, 0.5, 4}
			leaf := torch.Must(torch.Leaf(torch.Of(scalarVec(at...))))
			values := c.d.(dist.CDFer).CDF(leaf).T()
			slope := scalarGrad(values, []torch.Tensor{leaf})[0]
			density := scalarRead(c.d.LogProb(leaf).T())
			for i, p := range scalarRead(values) {
				require.InDelta(t, cdf(at[i]), p, 1e-10, c.name)
				require.InDelta(t, math.Exp(density[i]), slope[i], 1e-10, "%s: the derivative of the CDF is the density", c.name)
			}
			draws := c.d.Sample(torch.NewSource(3, uint64(k)), scalarDraws).T()
			require.NoError(t, c.d.Support().Check(draws))
			x := scalarRead(draws)
			require.Less(t, ks(x, cdf), 2.28, c.name)
			got := 0.0
			for _, v := range x {
				got += v / scalarDraws
			}
			require.InDelta(t, mean, got, 4*math.Sqrt((square-mean*mean)/scalarDraws), c.name)
		}
		// Gradients of draws go to the component that was drawn.
		loc := torch.Must(torch.Leaf(torch.Of(scalarVec(-100, 100))))
		x := dist.MixtureSameFamily(dist.Categorical(scalarVec(1, 3)), dist.Normal(loc, 1)).
			Sample(torch.NewSource(1, 0), 1000).
			T()
		left := 0.0
		for _, v := range scalarRead(x) {
			if v < 0 {
				left++
			}
		}
		require.Equal(t, []float64{left, 1000 - left}, scalarGrad(x, []torch.Tensor{loc})[0])
	})
}

// A mixture of counts: masses of all values against gonum's, and draws by their frequencies.
func TestMixtureOfCounts(t *testing.T) {
	scoped(t, func() {
		d := dist.Mixture([]float64{1, 3}, dist.Poisson(2), dist.Binomial(30, 0.5))
		require.Equal(t, support.NonnegativeInteger, d.Support())
		mass := make([]float64, 60)
		for x := range mass {
			mass[x] = 0.25 * distuv.Poisson{Lambda: 2}.Prob(float64(x))
			if x <= 30 {
				mass[x] += 0.75 * distuv.Binomial{N: 30, P: 0.5}.Prob(float64(x))
			}
			countClose(
				t,
				math.Log(mass[x]),
				countFloats(d.LogProb(torch.Of(scalarVec(float64(x)))).T())[0],
				1e-10,
				1e-13,
				"at %d",
				x,
			)
		}
		draws := d.Sample(torch.NewSource(5, 0), 10000).T()
		require.NoError(t, d.Support().Check(draws))
		chiSquare(t, mass, countFloats(draws), "a mixture of counts")
		mean, variance := massMoments(mass)
		countClose(t, mean, countFloats(d.Mean().T())[0], 1e-12, 0, "mean")
		countClose(t, variance, countFloats(d.Variance().T())[0], 1e-12, 0, "variance")
		require.Equal(t, math.Inf(-1), countFloats(d.LogProb(torch.Of(scalarVec(-1))).T())[0])

		// Indices, which are drawn as integers.
		index := dist.MixtureSameFamily(
			dist.Categorical(scalarVec(1, 1)),
			dist.Categorical(torch.New([]float64{1, 0, 0, 0, 1, 1}, 2, 3)),
		)
		require.Equal(t, support.IntegerInterval(0, 2), index.Support())
		x := index.Sample(torch.NewSource(5, 1), 4000).T()
		require.Equal(t, gotch.Int64, x.DType())
		chiSquare(t, []float64{0.5, 0.25, 0.25}, countFloats(x), "a mixture of indices")
		require.InDelta(
			t,
			math.Log(0.25),
			countFloats(index.LogProb(torch.New([]int{2})).T())[0],
			1e-15,
		)
	})
}

// Shapes, with vectors as events and batches on all sides, and supports.
func TestMixtureShapes(t *testing.T) {
	scoped(t, func() {
		loc := torch.New([]float64{1, 2, 3, 4, 5, 6}, 3, 2)
		normal := dist.MultivariateNormal(loc, torch.New([]float64{1, 0.5, 0.5, 1}, 2, 2))
		vectors := dist.MixtureSameFamily(dist.Categorical(scalarVec(1, 2, 3)), normal)
		row := func(i int) dist.Distribution {
			return dist.MultivariateNormal(
				loc.T().MustSelect(0, int64(i), false),
				torch.New([]float64{1, 0.5, 0.5, 1}, 2, 2),
			)
		}
		listed := dist.Mixture(torch.New([]float64{1, 2, 3, 1, 1, 1}, 2, 3), row(0), row(1), row(2))
		for i, c := range []struct {
			d            dist.Distribution
			batch, event []int
		}{
			{vectors, nil, []int{2}}, {vectors.Expand(4, 5), []int{4, 5}, []int{2}}, {listed, []int{2}, []int{2}},
			{listed.Expand(4, 2), []int{4, 2}, []int{2}},
			{dist.Mixture(scalarVec(1, 2), dist.Normal(scalarVec(1, 2), 1), dist.Exponential(1)), []int{2}, nil},
			{dist.Mixture([]float64{1}, dist.Exponential(1)), nil, nil},
		} {
			require.Equal(t, append([]int{}, c.batch...), append([]int{}, c.d.BatchShape()...), i)
			require.Equal(t, append([]int{}, c.event...), append([]int{}, c.d.EventShape()...), i)
			x := c.d.Sample(torch.NewSource(1, 0), 6).T()
			whole := append(append([]int{}, c.batch...), c.event...)
			require.Equal(t, append([]int{6}, whole...), countShape(x), i)
			require.Equal(t, append([]int{6}, c.batch...), countShape(c.d.LogProb(torch.Of(x)).T()), i)
			one := dist.Distribution(c.d).LogProb(torch.Of(x.MustSelect(0, 0,
				false).MustReshape(torch.Int64s(whole), false))).T()
			require.Equal(t, append([]int{}, c.batch...), countShape(one), i)
			require.Equal(t, scalarRead(c.d.LogProb(torch.Of(x)).T())[:len(scalarRead(one))], scalarRead(one), i)
			require.Equal(t, whole, append([]int{}, countShape(c.d.Mean().T())...), i)
			require.Equal(t, whole, append([]int{}, countShape(c.d.Variance().T())...), i)
			require.NoError(t, c.d.Validate())
			require.Contains(t, c.d.(dist.Parameterised).Params(), "components")
		}
		// The two kinds agree, moments of vectors too.
		second := listed.LogProb(torch.Of(scalarVec(1, 2))).T()
		require.InDelta(t, scalarRead(vectors.LogProb(torch.Of(scalarVec(1, 2))).T())[0], scalarRead(second)[0], 1e-14)
		vectorNear(t, scalarRead(vectors.Mean().T()), scalarRead(listed.Mean().T())[:2], 1e-14)
		vectorNear(t, []float64{11. / 3, 14. / 3}, scalarRead(vectors.Mean().T()), 1e-14) // (1 + 2·3 + 3·5)/6, and 1 more
		vectorNear(t, []float64{1 + 20./9, 1 + 20./9}, scalarRead(vectors.Variance().T()), 1e-13)

		ends := dist.MixtureSameFamily(dist.Categorical(scalarVec(1, 1)), dist.Uniform(scalarVec(0, 2), scalarVec(1, 3))).
			Support()
		require.Equal(t, []float64{0, 3}, []float64{ends.Low.Item(), ends.High.Item()})
		for _, c := range []struct {
			a, b dist.Distribution
			want support.Support
		}{
			{dist.HalfNormal(1), dist.Normal(0, 1), support.Real},
			{dist.HalfNormal(1), dist.Gamma(1, 1), support.Nonnegative},
			{dist.Gamma(1, 1), dist.LogNormal(1, 1), support.Positive},
			{dist.Uniform(0, 1), dist.Uniform(2, 3), support.Interval(0, 3)},
			{dist.Bernoulli(0.5), dist.Poisson(1), support.NonnegativeInteger},
			{dist.Bernoulli(0.5), dist.Bernoulli(0.1), support.Boolean},
			{dist.Dirichlet(scalarVec(1, 1)), dist.Dirichlet(scalarVec(2, 1)), support.Simplex},
			{dist.Independent(dist.HalfNormal(scalarVec(1, 2)), 1), dist.Independent(dist.Normal(scalarVec(1, 2), 1), 1),
				support.Real.Independent(1)},
		} {
			require.Equal(t, c.want, dist.Mixture([]float64{1, 1}, c.a, c.b).Support())
		}
	})
}

func TestMixtureErrors(t *testing.T) {
	scoped(t, func() {
		n := dist.Normal(0, 1)
		for want, f := range map[string]func(){
			"dist.Mixture: components is empty: at least one distribution is required": func() {
				dist.Mixture([]float64{1}).Support()
			},
			"dist.Mixture: probs is of 3 weights: there are 2 components": func() {
				dist.Mixture(scalarVec(1, 2, 3), n, n).Support()
			},
			"dist.Mixture: probs is a string: a number, a torch.Tensor or a *ts.Tensor is required": func() {
				dist.Mixture("1", n).Support()
			},
			"dist.Mixture: probs is empty: a weight for each component is required": func() {
				dist.Mixture([]float64{}, n).Support()
			},
			"dist.Mixture: probs is -1 at element 1 of shape [2]: it must be at least 0": func() {
				dist.Mixture([]float64{1, -1}, n, n).Support()
			},
			"dist.Mixture: probs is [0 0]: one of the categories must have a probability greater than 0": func() {
				dist.Mixture([]float64{0, 0}, n, n).Support()
			},
			"dist.Mixture: component 1 is nil: a distribution is required": func() {
				dist.Mixture([]float64{1, 1}, n, nil).Support()
			},
			"dist.Mixture: component 1 is Dirichlet, with event shape [2]: that of component 0, Normal, is []": func() {
				dist.Mixture([]float64{1, 1}, n, dist.Dirichlet(scalarVec(1, 1))).Support()
			},
			"dist.Mixture: component 1 is Poisson over a whole number of at least 0: " +
				"it cannot be mixed with Normal over a real number": func() {
				dist.Mixture([]float64{1, 1}, n, dist.Poisson(1)).Support()
			},
			"dist.Mixture: the shapes [[] [2] [3]]: they do not broadcast to one shape": func() {
				dist.Mixture([]float64{1, 1}, dist.Normal(scalarVec(1, 2), 1), dist.Normal(scalarVec(1, 2, 3), 1)).Support()
			},
			"dist.Mixture: component 1 is VonMises: it has no CDF in closed form": func() {
				dist.Mixture([]float64{1, 1}, n, dist.VonMises(0, 1)).(dist.CDFer).CDF(torch.Of(1))
			},
			"dist.MixtureSameFamily: components is VonMises: it has no CDF in closed form": func() {
				dist.MixtureSameFamily(dist.Categorical(scalarVec(1)), dist.VonMises(scalarVec(1), 1)).(dist.CDFer).CDF(torch.Of(1))
			},
			"dist.MixtureSameFamily: components is nil: a distribution is required": func() {
				dist.MixtureSameFamily(dist.Categorical(scalarVec(1)), nil).Support()
			},
			"dist.MixtureSameFamily: components is Normal, with batch shape [2]: the last dimension of the batch must have " +
				"size 3, that of the mixing distribution": func() {
				dist.MixtureSameFamily(dist.Categorical(scalarVec(1, 1, 1)), dist.Normal(scalarVec(1, 2), 1)).Support()
			},
		} {
			require.ErrorContains(t, torch.Do(func(*torch.Scope) error { f(); return nil }), want+" (at dist/")
		}
		require.EqualError(t, dist.Mixture(scalarVec(1, -1), n, n).Validate(), "dist.Mixture: probs is -1 at element 1 of "+
			"shape [2]: it must be at least 0")
		require.EqualError(t, dist.Mixture(scalarVec(1, 1), n, dist.Normal(0, scalarVec(-1))).Validate(), "dist.Normal: "+
			"scale is -1: it must be greater than 0")
	})
}

// Values, gradients, moments and draws under vmap are those of the loop.
func TestMixtureVmap(t *testing.T) {
	scoped(t, func() {
		weights := torch.New([]float64{1, 2, 3, 0, 4, 1, 0.5, 0.5, 0}, 3, 3)
		loc := torch.New([]float64{0, 1, 2, -1, 3, 1, 5, 0, -2}, 3, 3)
		countVmap(t, "MixtureSameFamily", func(p ...any) dist.Distribution {
			return dist.MixtureSameFamily(dist.Categorical(p[0]), dist.Normal(p[1], 0.7))
		}, []torch.Tensor{weights, loc}, scalarVec(0.3, 1, -2))
		countVmap(t, "Mixture", func(p ...any) dist.Distribution {
			return dist.Mixture(p[0], dist.Normal(p[1], 1), dist.Exponential(p[2]), dist.Gamma(2, 1))
		}, []torch.Tensor{weights, torch.Of(scalarVec(0, 1, -1)), torch.Of(scalarVec(1, 2, 3))}, scalarVec(0.3, 1, -2))
		countVmap(t, "Mixture of logits", func(p ...any) dist.Distribution {
			return dist.Mixture(dist.CategoricalLogits(p[0]), dist.Poisson(p[1]), dist.Geometric(0.3), dist.Poisson(10))
		}, []torch.Tensor{loc, torch.Of(scalarVec(4, 1, 2))}, scalarVec(3, 1, 0))
	})
}

// In float32 densities and draws are float32.
func TestMixtureFloat32(t *testing.T) {
	scoped(t, func() {
		f := func(x ...float64) *ts.Tensor { return torch.Must(torch.FromSliceOn(torch.CPU, gotch.Float, x)).T() }
		for _, d := range []dist.Distribution{
			dist.Mixture(f(0, 0.4, 0.6), dist.Normal(f(-30), f(1)), dist.Normal(f(0), f(1)), dist.Normal(f(30), f(2))),
			dist.MixtureSameFamily(dist.Categorical(f(0, 0.4, 0.6)), dist.Normal(f(-30, 0, 30), f(1, 1, 2))),
		} {
			x := f(-30)
			leaf := torch.Must(torch.Leaf(torch.Of(x)))
			logp := d.LogProb(leaf).T()
			require.Equal(t, gotch.Float, logp.DType())
			require.Equal(t, gotch.Float, d.Sample(torch.NewSource(1, 0), 3).T().DType())
			require.InDelta(t, -450-0.5*math.Log(2*math.Pi)+math.Log(0.4+0.3*math.Exp(0)), scalarRead(logp)[0], 0.2)
			require.InDelta(
				t,
				bigMixture(
					[]float64{0.4, 0.6},
					[]float64{distuv.UnitNormal.LogProb(-30), distuv.Normal{Mu: 30, Sigma: 2}.LogProb(-30)},
				),
				scalarRead(logp)[0],
				1e-4,
			)
			require.False(t, math.IsNaN(scalarGrad(logp, []torch.Tensor{leaf})[0][0]))
		}
	})
}

// At 0, which is outside of their supports, distributions of positive numbers add nothing to a normal one, whatever
// their formulas have there: infinity, a number, or minus infinity. Weights and logits are one density.
func TestMixtureAtOpenEnd(t *testing.T) {
	scoped(t, func() {
		at := torch.Of(scalarVec(0, 1.5))
		weights := map[string]any{"probs": []float64{0.25, 0.75},
			"logits": dist.CategoricalLogits(scalarVec(math.Log(0.25), math.Log(0.75)))}
		for family, of := range map[string]func(a torch.Tensor) dist.Distribution{
			"Gamma":        func(a torch.Tensor) dist.Distribution { return dist.Gamma(a, 1) },
			"Chi2":         func(a torch.Tensor) dist.Distribution { return dist.Chi2(a) },
			"Weibull":      func(a torch.Tensor) dist.Distribution { return dist.Weibull(1, a) },
			"InverseGamma": func(a torch.Tensor) dist.Distribution { return dist.InverseGamma(a, 1) },
			"LogNormal":    func(a torch.Tensor) dist.Distribution { return dist.LogNormal(a, 1) },
		} {
			for _, a := range []float64{0.5, 1, 2, 3} {
				alone := of(torch.Of(a)).LogProb(torch.Of(1.5)).Item()
				normal := func(x float64) float64 { return distuv.UnitNormal.LogProb(x) + math.Log(0.25) }
				want := []float64{normal(0), math.Log(math.Exp(normal(1.5)) + 0.75*math.Exp(alone))}
				for name, w := range weights {
					leaf := torch.Must(torch.Leaf(torch.Scalar(a)))
					logp := dist.Mixture(w, dist.Normal(0, 1), of(leaf)).LogProb(at)
					for i, v := range logp.Values() {
						require.InDelta(t, want[i], v, 1e-14, "%s, %s at %v", family, name, a)
					}
					grad := torch.Must(torch.Grad([]torch.Tensor{logp.At(0)}, []torch.Tensor{leaf}, nil))
					require.Zero(t, grad[0].Item(), "%s, %s at %v", family, name, a)
				}
			}
		}
		// Where a component is infinite inside of the support, so is the mixture, both ways.
		for name, w := range weights {
			logp := dist.Mixture(w, dist.Beta(0.5, 2), dist.Beta(2, 2)).LogProb(torch.Of(scalarVec(0)))
			require.Equal(t, []float64{math.Inf(1)}, logp.Values(), name)
		}
	})
}
