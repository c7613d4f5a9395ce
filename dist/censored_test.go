package dist_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// What is censored has the density in between and the rest at the bounds: together they are 1.
func TestCensoredSumsToOne(t *testing.T) {
	for _, of := range []dist.Distribution{
		dist.Normal(1, 2), dist.Gamma(0.7, 0.4), dist.StudentT(3, 1, 1), dist.Beta(2, 5), dist.SkewNormal(0, 2, 3),
		dist.Weibull(2, 1.5),
	} {
		scoped(t, func() {
			low, high := 0.2, 0.9
			d := dist.Censored(of, low, high)
			require.NoError(t, d.Validate())
			const n = 2000
			x := make([]float64, n)
			for i := range x {
				x[i] = low + (high-low)*(float64(i)+0.5)/n // the rule of midpoints, to h²
			}
			ends := d.LogProb(torch.New([]float64{low, high})).Exp().Values()
			inside := d.LogProb(torch.New(x)).Exp().Mean().Item() * (high - low)
			require.InDelta(t, 1, ends[0]+ends[1]+inside, 1e-7, of.Name())
			require.Equal(t, of.LogProb(torch.Of(0.5)).Item(), d.LogProb(torch.Of(0.5)).Item())
			outside := d.LogProb(torch.New([]float64{low - 0.1, high + 0.1})).Values()
			require.Equal(t, []float64{math.Inf(-1), math.Inf(-1)}, outside)
		})
	}
	scoped(t, func() {
		for _, of := range []dist.Distribution{dist.Poisson(4), dist.Binomial(10, 0.4), dist.NegativeBinomial(3, 2)} {
			p := dist.Censored(of, 2, 6).LogProb(torch.New([]float64{2, 3, 4, 5, 6})).Exp().Values()
			sum := 0.0
			for _, v := range p {
				sum += v
			}
			require.InDelta(t, 1, sum, 1e-13, of.Name())
		}
	})
}

// Each datum has a bound of its own, and infinity is none.
func TestCensoredPerDatum(t *testing.T) {
	scoped(t, func() {
		high := torch.New([]float64{math.Inf(1), 3, 2})
		d := dist.Censored(dist.Exponential(torch.New([]float64{0.5, 1, 2})), 0, high)
		require.NoError(t, d.Validate())
		got := d.LogProb(torch.New([]float64{4, 3, 1})).Values()
		require.InDeltaSlice(t, []float64{math.Log(0.5) - 2, -3, math.Log(2) - 2}, got, 1e-14)
		require.NoError(t, d.Support().Check(torch.New([]float64{4, 3, 1})))
		require.Error(t, d.Support().Check(torch.New([]float64{4, 3.5, 1})))
	})
}

// E min(X, h) = (1 − e^(−rh))/r, and E min(X, h)² = 2 (1 − e^(−rh) (1 + rh))/r². Draws have these moments too.
func TestCensoredMoments(t *testing.T) {
	scoped(t, func() {
		const rate, high = 0.8, 1.5
		d := dist.Censored(dist.Exponential(rate), 0, high)
		e := math.Exp(-rate * high)
		mean, square := (1-e)/rate, 2*(1-e*(1+rate*high))/(rate*rate)
		require.InDelta(t, mean, d.Mean().Item(), 1e-9)
		require.InDelta(t, square-mean*mean, d.Variance().Item(), 1e-9)
		const n = 40000
		x := d.Sample(torch.NewSource(1, 0), n)
		require.InDelta(t, mean, x.Mean().Item(), 4*math.Sqrt((square-mean*mean)/n))
		at := torch.Where(x.Eq(high), 1, 0).Mean().Item()
		require.InDelta(t, e, at, 4*math.Sqrt(e*(1-e)/n))
		require.True(t, math.IsNaN(dist.Censored(dist.Poisson(3), 2, math.Inf(1)).Mean().Item()))
	})
}

func TestCensoredErrors(t *testing.T) {
	for _, c := range []struct {
		d    dist.Distribution
		want string
	}{
		{dist.Censored(dist.VonMises(0, 1), 0, 1), "no distribution function"},
		{dist.Censored(nil, 0, 1), "a distribution of single numbers"},
		{dist.Censored(dist.Normal(0, 1), 2, 1), "greater than low"},
		{dist.Censored(dist.Dirichlet(torch.New([]float64{1, 2})), 0, 1), "no distribution function"},
		{dist.Binned(dist.Normal(0, 1), torch.New([]float64{1, 0})), "greater than low"},
		{dist.Binned(dist.Normal(0, 1), 1), "last dimension"},
	} {
		require.ErrorContains(t, c.d.Validate(), c.want)
	}
}

// A bin has the probability of its interval, also where each datum has cuts of its own, some of them infinite.
func TestBinned(t *testing.T) {
	scoped(t, func() {
		d := dist.Binned(dist.Normal(1, 2), torch.New([]float64{-1, 0, 3}))
		phi := func(x float64) float64 { return math.Erfc(-(x-1)/2/math.Sqrt2) / 2 }
		want := []float64{phi(-1), phi(0) - phi(-1), phi(3) - phi(0), 1 - phi(3)}
		p := d.LogProb(torch.New([]float64{0, 1, 2, 3})).Exp().Values()
		require.InDeltaSlice(t, want, p, 1e-15)
		const n = 40000
		x := d.Sample(torch.NewSource(1, 0), n)
		for k, w := range want {
			require.InDelta(t, w, torch.Where(x.Eq(float64(k)), 1, 0).Mean().Item(), 4*math.Sqrt(w*(1-w)/n))
		}
		require.InDelta(t, want[1]+2*want[2]+3*want[3], d.Mean().Item(), 1e-14)

		inf := math.Inf(1)
		visits := dist.Binned(dist.Exponential(torch.New([]float64{1, 2, 0.5})),
			torch.New([]float64{0, 1, 2, 3, 4, inf}, 3, 2))
		require.NoError(t, visits.Validate())
		got := visits.LogProb(torch.Of(1.0)).Exp().Values()
		require.InDeltaSlice(t, []float64{1 - math.Exp(-1), math.Exp(-4) - math.Exp(-6), math.Exp(-2)}, got, 1e-15)
	})
}

// Of whole numbers P(X ≤ x) is the sum of the masses, between them it is that of the last.
func TestLogCDFOfCounts(t *testing.T) {
	logits := torch.New([]float64{0.3, -1, 0.5, 2})
	for _, d := range []dist.Distribution{
		dist.Poisson(3.2), dist.Binomial(6, 0.3), dist.NegativeBinomial(2, 0.7), dist.Geometric(0.3), dist.Bernoulli(0.3),
		dist.BernoulliLogits(-1.2), dist.BetaBinomial(5, 2, 0.8), dist.CategoricalLogits(logits),
		dist.OrderedLogistic(0.4, torch.New([]float64{-1, 0.5, 2})), dist.ZeroInflated(0.2, dist.Poisson(2)),
		dist.Truncated(dist.Poisson(3), 1, 6), dist.Mixture([]float64{1, 2}, dist.Poisson(1), dist.Poisson(6)),
		dist.Binned(dist.Normal(0, 1), torch.New([]float64{-1, 1})), dist.Delta(2),
	} {
		scoped(t, func() {
			sum := 0.0
			for k := range 4 {
				if p := math.Exp(d.LogProb(torch.Of(float64(k))).Item()); !math.IsNaN(p) {
					sum += p
				}
				for _, x := range []float64{float64(k), float64(k) + 0.6} {
					require.InDelta(t, sum, math.Exp(dist.LogCDF(d, x).Item()), 1e-13, "%s at %v", d.Name(), x)
					require.InDelta(t, 1-sum, math.Exp(dist.LogSurvival(d, x).Item()), 1e-13, "%s at %v", d.Name(), x)
				}
			}
			require.Equal(t, math.Inf(-1), dist.LogCDF(d, -1).Item(), d.Name())
			require.Equal(t, 0.0, math.Abs(dist.LogSurvival(d, -1).Item()), d.Name())
			require.Equal(t, math.Inf(-1), dist.LogInterval(d, 2, 2).Item(), d.Name())
		})
	}
}
