package check

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// Counted by hand: maxima 2, 3, 5 of replicates beside 3 of the data.
func TestStatistic(t *testing.T) {
	o, err := Statistic([]float64{1, 3}, [][]float64{{2, 0}, {3, 1}, {5, 5}}, slices.Max[[]float64])
	require.NoError(t, err)
	require.Equal(t, &Outcome{Observed: 3, Replicated: []float64{2, 3, 5}, P: 1.0/3 + 0.5/3}, o)
	_, err = Statistic([]float64{1}, [][]float64{{1, 2}}, slices.Max[[]float64])
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = Statistic([]float64{1}, [][]float64{{math.NaN()}}, slices.Max[[]float64])
	require.ErrorIs(t, err, diag.ErrNotFinite)
	_, err = Statistic([]float64{1}, [][]float64{{1}}, nil)
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = Statistic(nil, nil, slices.Max[[]float64])
	require.ErrorIs(t, err, draws.ErrSize)
}

// location is a conjugate model: n data y ~ N(μ, 1), μ ~ N(0, s²). Given the others, a datum is N(m, v + 1) with v =
// 1/(1/s² + n − 1) and m = v times the sum of the others.
func location(y []float64, s float64, draw int, rng *rand.Rand) (mu []float64, replicates, loglik [][]float64) {
	sum := 0.0
	for _, v := range y {
		sum += v
	}
	v := 1 / (1/(s*s) + float64(len(y)))
	for range draw {
		m := v*sum + math.Sqrt(v)*rng.NormFloat64()
		mu = append(mu, m)
		var r, l []float64
		for _, e := range y {
			r = append(r, m+rng.NormFloat64())
			l = append(l, distuv.Normal{Mu: m, Sigma: 1}.LogProb(e))
		}
		replicates, loglik = append(replicates, r), append(loglik, l)
	}
	return mu, replicates, loglik
}

// The transforms are those of the exact leave-one-out predictions, within four standard errors of a weighted share:
// √(p(1−p)/ESS), with an ESS of at least a half of the draws for these data, whose ratios vary little.
func TestLOOPIT(t *testing.T) {
	const s, n = 2.0, 20000
	y := []float64{-1.3, 0.2, 0.4, 1.1, 2.9}
	_, replicates, loglik := location(y, s, n, rand.New(rand.NewPCG(1, 2)))
	got, err := LOOPIT(y, replicates, loglik)
	require.NoError(t, err)
	for i, v := range y {
		sum := -v
		for _, e := range y {
			sum += e
		}
		variance := 1 / (1/(s*s) + float64(len(y)-1))
		want := distuv.Normal{Mu: variance * sum, Sigma: math.Sqrt(variance + 1)}.CDF(v)
		require.InDelta(t, want, got[i], 4*math.Sqrt(want*(1-want)/(n/2)))
	}
	_, err = LOOPIT(y, replicates, loglik[1:])
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = LOOPIT(y, replicates[:1], [][]float64{{1}})
	require.ErrorIs(t, err, draws.ErrSize)
	one, err := LOOPIT([]float64{1}, [][]float64{{1}, {0}, {2}, {1}}, [][]float64{{0}, {0}, {0}, {0}})
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{0.5}, one, 1e-15) // equal values count half
}

// The sensitivity of a normal location model is that of the exact posteriors at both powers, by quadrature of the same
// distance over the range of the draws: with precisions a of the prior and n of the data the posterior at α is N(v n ȳ,
// v), v = 1/(αa + n), or with α on the data N(v α n ȳ, v), v = 1/(a + αn).
func TestPowerScaling(t *testing.T) {
	y := []float64{2.5, 3.1, 2.2, 3.4}
	for _, s := range []float64{0.7, 10} {
		const n = 100000
		mu, _, loglik := location(y, s, n, rand.New(rand.NewPCG(3, 4)))
		d, err := draws.New([]draws.Site{{Name: "mu", Size: 1}}, nil, 1)
		require.NoError(t, err)
		prior, likelihood := make([]float64, n), make([]float64, n)
		for i, m := range mu {
			require.NoError(t, d.AppendChain(0, []float64{m}, nil))
			prior[i] = -0.5 * m * m / (s * s)
			for _, l := range loglik[i] {
				likelihood[i] += l
			}
		}
		got, err := PowerScaling(d, prior, likelihood)
		require.NoError(t, err)
		require.Len(t, got, 1)
		a, count, total := 1/(s*s), 4.0, 11.2
		exact := func(onPrior, onData float64) distuv.Normal {
			v := 1 / (onPrior*a + onData*count)
			return distuv.Normal{Mu: v * onData * total, Sigma: math.Sqrt(v)}
		}
		low, high := slices.Min(mu), slices.Max(mu)
		var want [2]float64
		for part := range 2 {
			for _, alpha := range powers {
				p, q := exact(1, 1), exact(alpha, 1)
				if part == 1 {
					q = exact(1, alpha)
				}
				far := math.Max(byQuadrature(p.CDF, q.CDF, low, high), byQuadrature(p.Survival, q.Survival, low, high))
				want[part] += far / math.Abs(math.Log2(alpha)) / 2
			}
		}
		// The weights are close to 1: their part of the noise is ε/√n times a few units of the distance per ε.
		require.InEpsilon(t, want[0], got[0].Prior, 0.05)
		require.InEpsilon(t, want[1], got[0].Likelihood, 0.05)
		if s < 1 { // a narrow prior far from the data
			require.Equal(t, "prior-data conflict", got[0].Diagnosis)
		} else {
			require.Empty(t, got[0].Diagnosis)
		}
		_, err = PowerScaling(d, prior[1:], likelihood)
		require.ErrorIs(t, err, draws.ErrSize)
	}
	_, err := PowerScaling(nil, nil, nil)
	require.ErrorIs(t, err, draws.ErrSize)
}

// byQuadrature is the distance of two distribution functions by the midpoint rule.
func byQuadrature(p, q func(x float64) float64, low, high float64) float64 {
	const n = 20000
	sum, total := 0.0, 0.0
	for i := range n {
		x := low + (float64(i)+0.5)/n*(high-low)
		a, b := p(x), q(x)
		sum += a*math.Log2(2*a/(a+b)) + b*math.Log2(2*b/(a+b))
		total += a + b
	}
	return math.Sqrt(sum / total)
}
