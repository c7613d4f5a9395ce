package dist_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// countSettings are parameters whose mass beyond 300 is below 1e-12.
var countSettings = map[string][][]float64{
	"Bernoulli":              {{0.3}, {1}, {0}},
	"BernoulliLogits":        {{-1}, {1000}},
	"Binomial":               {{7, 0.3}, {200, 0.6}, {5, 0}, {5, 1}, {0, 0.5}},
	"BinomialLogits":         {{7, 1}, {200, -0.5}},
	"Categorical":            {{0.5, 0, 1.5, 3}, {2, 1, 0, 0}},
	"CategoricalLogits":      {{1, 0, -1, 2}, {0, -1000, 0, 1}},
	"Poisson":                {{0.4}, {4}, {100}, {0}},
	"PoissonLog":             {{1.5}, {-2}},
	"NegativeBinomial":       {{3, 2}, {0.7, 0.5}, {40, 50}, {0, 1}},
	"NegativeBinomialProbs":  {{3, 0.6}, {0.5, 0.2}},
	"NegativeBinomialLogits": {{2.5, 1}, {10, -1}},
	"Geometric":              {{0.3}, {0.9}, {1}},
	"BetaBinomial":           {{20, 2, 3}, {5, 0.3, 0.2}, {100, 30, 10}},
	"OrderedLogistic":        {{0.3, -1, 0, 2}, {4, -1, 0, 2}},
	"ZeroInflated":           {{0.3, 4}, {0, 2}, {1, 2}},
}

// countMass is the probabilities of 0, 1, …, by the reference, up to the end of the support or 300.
func (c countCase) countMass(p []float64) []float64 {
	n := c.top(p) + 1
	if n == 0 {
		n = 301
	}
	mass := make([]float64, n)
	for x := range mass {
		mass[x] = math.Exp(c.want(p, float64(x)))
		if tail := mass[x] < 1e-18 && x > 200; tail && c.top(p) < 0 {
			break
		}
	}
	return mass
}

func massMoments(mass []float64) (mean, variance float64) {
	for x, m := range mass {
		mean += m * float64(x)
	}
	for x, m := range mass {
		variance += m * (float64(x) - mean) * (float64(x) - mean)
	}
	return mean, variance
}

func TestCountMomentsAndDraws(t *testing.T) {
	eachCount(t, func(t *testing.T, c countCase, _ *rand.Rand) {
		require.NotEmpty(t, countSettings[c.name])
		for k, p := range countSettings[c.name] {
			mass := c.countMass(p)
			total := 0.0
			for _, m := range mass {
				total += m
			}
			require.InDelta(t, 1, total, 1e-11, "the reference sums to 1")

			mean, variance := massMoments(mass)
			d := c.make(anys(p)...)
			columns := make([][]float64, len(p))
			for i, v := range p {
				columns[i] = []float64{v, v}
			}
			params, _ := countLeaves(columns)
			for _, d := range []dist.Distribution{d, d.Expand(2), c.make(params...)} {
				for _, v := range countFloats(d.Mean().T()) {
					countClose(t, mean, v, 1e-10, 1e-10, "mean of %v", p)
				}
				for _, v := range countFloats(d.Variance().T()) {
					countClose(t, variance, v, 1e-10, 1e-9, "variance of %v", p)
				}
			}

			const n = 10000
			// Parameters as tensors and as numbers draw alike; the batch of two must not be the same numbers twice.
			of := c.make(params...)
			if k%2 == 1 {
				of = d.Expand(2)
			}
			draws := of.Sample(torch.NewSource(11, uint64(k)), n).T()
			require.Equal(t, []int{n, 2}, countShape(draws))
			require.NoError(t, d.Support().Check(draws))
			x := countFloats(draws)
			chiSquare(t, mass, x, "draws of %v", p)
			if variance > 0 {
				equal := 0.0
				for i := 0; i < len(x); i += 2 {
					if x[i] == x[i+1] {
						equal++
					}
				}
				same := 0.0
				for _, m := range mass {
					same += m * m
				}
				countClose(t, same, equal/n, 0, 4*math.Sqrt(same*(1-same)/n), "independent draws of %v: how often two are equal", p)
			}
		}
	})
}

// chiSquare asserts that counts follow a law: the statistic is within what a normal number exceeds at 4 standard
// errors, and so is the mean.
func chiSquare(t *testing.T, mass, x []float64, message string, args ...any) {
	t.Helper()
	n := float64(len(x))
	mean, variance := massMoments(mass)
	got := 0.0
	for _, v := range x {
		got += v / n
	}
	countClose(t, mean, got, 1e-12, 4*math.Sqrt(variance/n), message+": the mean", args...)
	assert.Greater(t, chiSquareTail(t, mass, x), 6.3e-5/2, message, args)
}

// chiSquareTail is the p-value of Pearson's statistic. Neighbouring values share a bin until 10 draws are expected in
// it.
func chiSquareTail(t *testing.T, mass, x []float64) float64 {
	t.Helper()
	n := float64(len(x))
	seen := make([]float64, len(mass))
	for _, v := range x {
		if v < 0 || int(v) >= len(mass) || mass[int(v)] == 0 {
			require.Failf(t, "impossible", "%v was drawn", v)
		}
		seen[int(v)]++
	}
	var statistic, expected, observed float64
	bins := 0
	left := n
	for v, m := range mass {
		expected += n * m
		observed += seen[v]
		left -= n * m
		if expected >= 10 && left >= 10 || v == len(mass)-1 && expected > 1e-6 {
			statistic += (observed - expected) * (observed - expected) / expected
			bins++
			expected, observed = 0, 0
		}
	}
	if bins < 2 {
		return 1
	}
	return distuv.ChiSquared{K: float64(bins - 1)}.Survival(statistic)
}

func TestMultinomial(t *testing.T) {
	countScope(t, func() {
		// Against the product of the conditional binomials.
		rng := rand.New(rand.NewPCG(3, 3))
		for range 20 {
			total := float64(rng.IntN(100))
			w := []float64{rng.Float64(), rng.Float64(), 0, rng.Float64()}
			x := make([]float64, 4)
			left := int(total)
			for i, c := range []int{0, 1, 3} {
				k := left
				if i < 2 {
					k = rng.IntN(left + 1)
				}
				x[c] = float64(k)
				left -= k
			}
			want, rest, sum := 0.0, total, w[0]+w[1]+w[3]
			for i := range 3 {
				if w[i] > 0 {
					want += bigFloat(bigBinomial(bigNew(rest), bigNew(w[i]/sum), bigNew((sum-w[i])/sum), bigNew(x[i])))
				}
				rest, sum = rest-x[i], sum-w[i]
			}
			logs := make([]float64, 4)
			for i := range w {
				logs[i] = math.Log(w[i]) + 3
			}
			wt := torch.Must(torch.Leaf(torch.Of(countTensor(w))))
			p := dist.Multinomial(total, wt).LogProb(torch.Of(countTensor(x))).T()
			l := dist.MultinomialLogits(torch.Scalar(total), countTensor(logs)).LogProb(torch.Of(countTensor(x))).T()
			require.Empty(t, countShape(p))
			countClose(t, want, countFloats(p)[0], 1e-10, 1e-13, "Multinomial %v %v", w, x)
			countClose(t, want, countFloats(l)[0], 1e-10, 1e-13, "MultinomialLogits %v %v", w, x)
			// d/dwᵢ = xᵢ/wᵢ − n/Σw, also where a weight is 0.
			for i, g := range countGrad(p, []torch.Tensor{wt})[0] {
				ratio := 0.0
				if w[i] > 0 {
					ratio = x[i] / w[i]
				}
				countClose(t, ratio-total/(w[0]+w[1]+w[3]), g, 1e-9, 1e-11, "gradient in weight %d", i)
			}
		}
		// Large counts near the mode: the normal density of the whitened counts, corrected by their Stirling errors, is
		// checked through the multinomial of two categories, a binomial.
		n := 1e9
		m := dist.Multinomial(n, countTensor([]float64{0.3, 0.7})).
			LogProb(torch.Of(countTensor([]float64{3e8 + 12345, 7e8 - 12345}))).
			T()
		countClose(t, countFamily("Binomial").want([]float64{n, 0.3}, 3e8+12345), countFloats(m)[0], 1e-10, 0, "large counts")
		assert.Equal(
			t,
			[]float64{math.Inf(-1)},
			countFloats(dist.Multinomial(2, countTensor([]float64{0, 1})).LogProb(torch.Of(countTensor([]float64{1, 1}))).T()),
		)
		// A certain outcome has probability 1, and one nearly certain keeps its digits.
		assert.Zero(
			t,
			countFloats(dist.Multinomial(20, countTensor([]float64{0, 1})).LogProb(torch.Of(countTensor([]float64{0,
				20}))).T())[0],
		)
		got := countFloats(dist.Multinomial(20, countTensor([]float64{1e-18, 1})).LogProb(torch.Of(countTensor([]float64{0,
			20}))).T())[0]
		countClose(t, -20e-18, got, 1e-10, 0, "a nearly certain outcome")

		// Draws: the marginal laws are binomial.
		w := []float64{1, 0, 2, 5}
		for _, d := range []dist.Distribution{dist.Multinomial(12, countTensor(w)).Expand(2),
			dist.MultinomialLogits(countTensor([]float64{12, 12}), countTensor(w).MustLog(false))} {
			require.Equal(t, []int{2}, d.BatchShape())
			require.Equal(t, []int{4}, d.EventShape())
			draws := d.Sample(torch.NewSource(5, 0), 4000).T()
			require.Equal(t, []int{4000, 2, 4}, countShape(draws))
			require.NoError(t, d.Support().Check(draws))
			for i := range w {
				mass := countFamily("Binomial").countMass([]float64{12, w[i] / 8})
				chiSquare(t, mass, countFloats(draws.MustSelect(-1, int64(i), false)), "category %d", i)
				mean, variance := massMoments(mass)
				countClose(t, mean, countFloats(d.Mean().T())[4+i], 1e-12, 0, "mean of category %d", i)
				countClose(t, variance, countFloats(d.Variance().T())[4+i], 1e-12, 0, "variance of category %d", i)
			}
		}
		countVmap(
			t,
			"Multinomial",
			func(p ...any) dist.Distribution { return dist.Multinomial(p[0], p[1]) },
			[]torch.Tensor{
				torch.Of(countTensor([]float64{5, 9})),
				torch.Of(countTensor([]float64{1, 2, 3, 3, 1, 4}, 2, 3)),
			},
			countTensor([]float64{1, 1, 3, 4, 0, 5}, 2, 3),
		)
	})
}

func TestCountVmap(t *testing.T) {
	eachCount(t, func(t *testing.T, c countCase, rng *rand.Rand) {
		_, columns, x := c.table(rng, 4)
		params := make([]torch.Tensor, len(columns))
		for i := range columns {
			params[i] = torch.Of(countTensor(columns[i]))
		}
		countVmap(t, c.name, c.make, params, countTensor(x))
	})
}

// countVmap compares values, gradients and draws under vmap over the first dimension of the parameters, and of the
// value, with the loop.
func countVmap(t *testing.T, name string, build func(p ...any) dist.Distribution, params []torch.Tensor, x *ts.Tensor) {
	t.Helper()
	k := countShape(x)[0]
	make := func(in []*ts.Tensor) dist.Distribution {
		var p []any
		for _, v := range in {
			p = append(p, v)
		}
		return build(p...)
	}
	leaves := func() (out []*ts.Tensor) {
		for _, p := range params {
			out = append(out, torch.Must(torch.Leaf(p)).T())
		}
		return out
	}
	slice := func(in []*ts.Tensor, i int) (out []*ts.Tensor) {
		for _, v := range in {
			out = append(out, v.MustSelect(0, int64(i), false))
		}
		return out
	}
	// A value of its own for each evaluation, and one value for all.
	shared := x.MustSelect(0, 0, false).MustZerosLike(false)
	at := leaves()
	mapped := torch.Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
		d := make(raw.Pointers(in[:len(in)-1]))
		return []torch.Tensor{
			d.LogProb(in[len(in)-1]),
			d.LogProb(torch.Of(shared)),
			d.Mean(),
			d.Variance(),
		}, nil
	}, append(append([]torch.Tensor{}, raw.All(at)...), torch.Of(x)), nil))
	loopAt := leaves()
	var own, all, mean, variance []*ts.Tensor
	for i := range k {
		d := make(slice(loopAt, i))
		own, all = append(
			own,
			d.LogProb(torch.Of(x.MustSelect(0, int64(i), false))).T(),
		), append(
			all,
			d.LogProb(torch.Of(shared)).T(),
		)
		mean, variance = append(mean, d.Mean().T()), append(variance, d.Variance().T())
	}
	for i, list := range [][]*ts.Tensor{own, all, mean, variance} {
		loop := ts.MustStack(list, 0)
		require.Equal(t, countShape(loop), countShape(mapped[i].T()))
		want, got := countFloats(loop), countFloats(mapped[i].T())
		for j := range want {
			countClose(t, want[j], got[j], 1e-12, 1e-14, "%s under vmap, output %d", name, i)
		}
		if i < 2 {
			wants, gots := countGrad(loop, raw.All(loopAt)), countGrad(mapped[i].T(), raw.All(at))
			for p := range wants {
				for j := range wants[p] {
					countClose(t, wants[p][j], gots[p][j], 1e-11, 1e-13, "%s: gradient under vmap, output %d", name, i)
				}
			}
		}
	}
	// Draws.
	streams := &torch.Streams{Seed: 9}
	for i := range k {
		streams.Chains = append(streams.Chains, uint64(20+i))
	}
	draws := torch.Must(torch.VmapSources(func(in []torch.Tensor, src *torch.Source) ([]torch.Tensor, error) {
		return []torch.Tensor{make(raw.Pointers(in)).Sample(src, 3, 2)}, nil
	}, params, streams, nil))[0]
	for i := range k {
		want := make(slice(raw.Pointers(params), i)).Sample(torch.NewSource(9, uint64(20+i)), 3, 2).T()
		assert.Equal(t, countShape(want), countShape(draws.T())[1:])
		assert.Equal(t, countFloats(want), countFloats(draws.T().MustSelect(0, int64(i), false)),
			"%s: draws of evaluation %d",
			name, i)
	}
}

func TestCountShapes(t *testing.T) {
	eachCount(t, func(t *testing.T, c countCase, rng *rand.Rand) {
		p, x := c.random(rng)
		d := c.make(anys(p)...)
		assert.Empty(t, d.BatchShape())
		assert.Empty(t, d.EventShape())
		assert.NotNil(t, d.(dist.Parameterised).Params())
		assert.NoError(t, d.Validate())
		assert.True(t, d.Support().Discrete())
		assert.NoError(t, d.Support().Check(countTensor([]float64{x})))
		assert.Error(t, d.Support().Check(countTensor([]float64{-1})))
		assert.Error(t, d.Support().Check(countTensor([]float64{0.5})))
		if top := c.top(p); top >= 0 {
			assert.Error(t, d.Support().Check(countTensor([]float64{float64(top + 1)})))
		}
		assert.Equal(t, []int{3}, countShape(d.LogProb(torch.Of(countTensor([]float64{x, x, x}))).T()))
		assert.Empty(t, countShape(d.LogProb(torch.Scalar(x)).T()))
		e := d.Expand(4, 3)
		assert.Equal(t, []int{4, 3}, e.BatchShape())
		assert.Equal(t, []int{4, 3}, countShape(e.LogProb(torch.Scalar(x)).T()))
		assert.Equal(t, []int{4, 3}, countShape(e.LogProb(torch.Of(countTensor([]float64{x, x, x}))).T()))
		assert.Equal(t, []int{5, 1, 4, 3}, countShape(e.Sample(torch.NewSource(1, 1), 5, 1).T()))
		assert.Equal(t, []int{4, 3}, countShape(e.Mean().T()))
		assert.Equal(t, []int{4, 3}, countShape(e.Variance().T()))

		// Parameters [3] and a first one of shape [2, 1] make a batch of [2, 3].
		_, columns, _ := c.table(rng, 3)
		params, _ := countLeaves(columns)
		if len(params) == 2 {
			first, _ := c.random(rng)
			d := c.make(countTensor([]float64{first[0], first[0]}, 2, 1), params[1])
			assert.Equal(t, []int{2, 3}, d.BatchShape())
			assert.Equal(t, []int{2, 3}, countShape(d.LogProb(torch.Scalar(0)).T()))
			assert.Equal(t, []int{2, 3}, countShape(d.Sample(torch.NewSource(1, 1)).T()))
			assert.NoError(t, d.Validate())
		}
		b := c.make(params...)
		require.Equal(t, []int{3}, b.BatchShape())

		// The support.
		if f, ok := b.(dist.Enumerable); ok && c.domains[0] != 'n' {
			values := f.EnumerateSupport().T()
			n := c.top(p) + 1
			require.Equal(t, []int{n, 1}, countShape(values))
			assert.NoError(t, b.Support().Check(values))
			logp := b.LogProb(torch.Of(values)).T()
			require.Equal(t, []int{n, 3}, countShape(logp))
			for _, total := range countFloats(logp.MustExp(false).MustSumDimIntlist([]int64{0}, false, gotch.Double, false)) {
				assert.InDelta(t, 1, total, 1e-12)
			}
		} else if ok {
			values := d.(dist.Enumerable).EnumerateSupport().T()
			require.Equal(t, []int{int(p[0]) + 1}, countShape(values))
			assert.InDelta(t, 1, countFloats(d.LogProb(torch.Of(values)).T().MustExp(false).MustSum(gotch.Double, false))[0],
				1e-11)
			assert.PanicsWithError(t, "dist."+c.name+": total is a tensor: the support can be enumerated where it is a number",
				func() { f.EnumerateSupport().T() })
		}
		_, finite := d.(dist.Enumerable)
		assert.Equal(t, c.top(p) >= 0, finite)
	})
}

func TestCountFloat32(t *testing.T) {
	eachCount(t, func(t *testing.T, c countCase, rng *rand.Rand) {
		rows, columns, x := c.table(rng, 8)
		var params []any
		for _, col := range columns {
			params = append(params, countTensor(col).MustTotype(gotch.Float, false))
		}
		d := c.make(params...)
		logp := d.LogProb(torch.Of(countTensor(x).MustTotype(gotch.Float, false))).T()
		assert.Equal(t, gotch.Float, logp.DType())
		for k, v := range countFloats(logp) {
			for i := range rows[k] {
				rows[k][i] = float64(float32(rows[k][i]))
			}
			countClose(t, c.want(rows[k], x[k]), v, 1e-5, 2e-5, "log p(%v; %v)", x[k], rows[k])
		}
		draws := d.Sample(torch.NewSource(1, 1), 2).T()
		assert.Contains(t, []gotch.DType{gotch.Float, gotch.Int64}, draws.DType())
	})
}
