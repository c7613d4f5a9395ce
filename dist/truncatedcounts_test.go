package dist_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// leftOut is the probability outside the interval.
func leftOut(d dist.Distribution) []float64 {
	return countFloats(d.(interface{ LeftOut() torch.Tensor }).LeftOut().T())
}

// Masses are those of the whole distribution over their sum: values, moments, support, and draws within four standard
// errors in each cell.
func TestTruncatedCounts(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		poisson := distuv.Poisson{Lambda: 3.5}
		binomial := distuv.Binomial{N: 9, P: 0.3}
		geometric := func(k float64) float64 { return math.Log(0.2) + k*math.Log(0.8) }
		for _, c := range []struct {
			d         dist.Distribution
			low, high float64
			from, to  int // what of it is in the support
			law       func(k float64) float64
		}{
			{dist.Poisson(3.5), 0, 12, 0, 12, poisson.LogProb},
			{dist.Poisson(3.5), 2, 5, 2, 5, poisson.LogProb},
			{dist.Poisson(3.5), -4, 3.5, 0, 3, poisson.LogProb},
			{dist.Binomial(9, 0.3), 1, math.Inf(1), 1, 9, binomial.LogProb},
			{dist.Geometric(0.2), 3, 40, 3, 40, geometric},
		} {
			d := dist.Truncated(c.d, c.low, c.high)
			require.Equal(t, "Truncated("+c.d.Name()+")", d.Name())
			require.Equal(t, support.IntegerInterval(float64(c.from), float64(c.to)), d.Support())
			require.NoError(t, d.Validate())
			total, mean, square := 0.0, 0.0, 0.0
			for k := c.from; k <= c.to; k++ {
				p := math.Exp(c.law(float64(k)))
				total, mean, square = total+p, mean+p*float64(k), square+p*float64(k*k)
			}
			mean /= total
			require.InDelta(t, mean, countFloats(d.Mean().T())[0], 1e-12)
			require.InDelta(t, square/total-mean*mean, countFloats(d.Variance().T())[0], 1e-11)
			require.InDelta(t, 1-total, leftOut(d)[0], 1e-14)

			const n = 20000
			draws := d.Sample(torch.NewSource(4, 0), n).T()
			require.NoError(t, d.Support().Check(draws))
			seen := map[int]float64{}
			for _, k := range countFloats(draws) {
				seen[int(k)]++
			}
			values := countFloats(d.(dist.Enumerable).EnumerateSupport().T())
			table := countFloats(d.LogProb(d.(dist.Enumerable).EnumerateSupport()).T())
			require.Len(t, values, c.to-c.from+1)
			for i, k := range values {
				want := c.law(k) - math.Log(total)
				require.InDelta(t, want, table[i], 1e-12)
				p := math.Exp(want)
				require.InDelta(t, p, seen[int(k)]/n, 4*math.Sqrt(p*(1-p)/n)+1e-12, "%s %v", d.Name(), k)
			}
			outside := d.LogProb(torch.Of(countTensor([]float64{float64(c.from) - 1, float64(c.to) + 1, 2.5}))).T()
			for _, v := range countFloats(outside) {
				require.True(t, math.IsInf(v, -1))
			}
		}
		return nil
	}))
}

// The derivative of log p(k) in the rate of a Poisson is (k − mean)/rate, with the mean of the truncated one: values,
// gradients and draws under vmap are those of the loop.
func TestTruncatedCountsGradientsAndVmap(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		rates := []float64{0.3, 2, 9}
		logp := func(rate torch.Tensor) torch.Tensor {
			return dist.Truncated(dist.Poisson(rate), 1, 7).LogProb(torch.Of(4))
		}
		values, grads, err := torch.VmapValueAndGrad(logp, torch.Of(countTensor(rates)))
		require.NoError(t, err)
		for i, rate := range rates {
			v, g, err := torch.ValueAndGrad(logp, torch.Scalar(rate))
			require.NoError(t, err)
			require.InDelta(t, countFloats(v.T())[0], countFloats(values.T())[i], 1e-14)
			mean := countFloats(dist.Truncated(dist.Poisson(rate), 1, 7).Mean().T())[0]
			require.InDelta(t, (4-mean)/rate, countFloats(g.T())[0], 1e-12)
			require.InDelta(t, (4-mean)/rate, countFloats(grads.T())[i], 1e-12)
		}
		streams := torch.NewStreams(5, 3)
		mapped, err := torch.VmapSources(func(in []torch.Tensor, src *torch.Source) ([]torch.Tensor, error) {
			return []torch.Tensor{dist.Truncated(dist.Poisson(in[0]), 1, 7).Sample(src, 6)}, nil
		}, []torch.Tensor{torch.Of(countTensor(rates))}, &streams, nil)
		require.NoError(t, err)
		for i, rate := range rates {
			one := dist.Truncated(dist.Poisson(rate), 1, 7).Sample(torch.NewSource(5, uint64(i)), 6).T()
			require.Equal(t, countFloats(one), countFloats(mapped[0].T().MustSelect(0, int64(i), false)))
		}
		return nil
	}))
}

// Batches and Expand have the shapes of others; types are the parameters'.
func TestTruncatedCountsShapes(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		d := dist.Truncated(dist.Poisson(countTensor([]float64{1, 4})), 0, 9)
		require.Equal(t, []int{2}, d.BatchShape())
		wide := d.Expand(3, 2)
		for _, d := range []dist.Distribution{d, wide} {
			for _, x := range []torch.Tensor{
				d.Mean(), d.Variance(), d.LogProb(torch.Of(2)), d.Sample(torch.NewSource(1, 0)),
			} {
				require.Equal(t, d.BatchShape(), x.Shape())
			}
			require.Equal(t, append([]int{5}, d.BatchShape()...), d.Sample(torch.NewSource(1, 0), 5).Shape())
		}
		float := countTensor([]float64{1, 4}).MustTotype(gotch.Float, false)
		d = dist.Truncated(dist.Poisson(float), 0, 9)
		for _, x := range []torch.Tensor{d.Mean(), d.Sample(torch.NewSource(1, 0)), d.LogProb(torch.Of(2))} {
			require.Equal(t, gotch.Float, x.T().DType())
		}
		return nil
	}))
}

// Far in a tail nothing underflows, and what is left out is the tail of the incomplete gamma function.
func TestTruncatedCountsExtremes(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		// P(X = 200 | 200 ≤ X ≤ 202) of a Poisson of rate 1e-3, where P(X = 200) is 1e-975.
		d := dist.Truncated(dist.Poisson(1e-3), 200, 202)
		want := -math.Log(1 + 1e-3/201 + 1e-6/(201*202))
		require.InDelta(t, want, countFloats(d.LogProb(torch.Of(200)).T())[0], 1e-9)
		require.Equal(t, 1.0, leftOut(d)[0])
		// P(X > n) = P(n + 1, rate).
		for _, rate := range []float64{0.5, 3, 12} {
			d := dist.Truncated(dist.Poisson(rate), 0, 10)
			require.InDelta(t, mathext.GammaIncReg(11, rate), leftOut(d)[0], 1e-14)
		}
		require.Zero(t, leftOut(dist.Truncated(dist.Poisson(0.5), 0, 100))[0])
		// The rate is 0: all mass is at 0, and none of it above. It is computed at a rate of 1e-150.
		one := dist.Truncated(dist.Poisson(0), 0, 5)
		require.InDelta(t, 0, countFloats(one.LogProb(torch.Of(0)).T())[0], 1e-149)
		require.ErrorContains(t, dist.Truncated(dist.Poisson(0), 1, 5).Validate(),
			"dist.Truncated: the log probability of the interval is -Inf")
		bad := dist.Truncated(dist.Poisson(countTensor([]float64{1, -1})), 0, 5)
		require.ErrorContains(t, bad.Validate(), "rate is -1")
		return nil
	}))
}
