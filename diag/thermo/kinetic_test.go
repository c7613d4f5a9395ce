package thermo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// momenta are d draws of N(0, variance mass).
func momenta(rng *rand.Rand, d int, variance, mass float64) []float64 {
	m := make([]float64, d)
	for i := range m {
		m[i] = math.Sqrt(variance*mass) * rng.NormFloat64()
	}
	return m
}

// By hand, with no mass, one, and one each.
func TestKineticTemperature(t *testing.T) {
	for _, c := range []struct {
		mass []float64
		want float64
	}{{nil, 14.0 / 3}, {[]float64{2}, 7.0 / 3}, {[]float64{1, 2, 3}, 2}} {
		got, err := kineticTemperature([]float64{1, -2, 3}, c.mass)
		require.NoError(t, err)
		require.InDelta(t, c.want, got, 1e-15)
	}
	_, err := kineticTemperature(nil, nil)
	require.ErrorIs(t, err, draws.ErrSize)
	require.EqualError(t, err, "diag/thermo: kinetic temperature: no momenta")
	_, err = kineticTemperature([]float64{1, 2, 3}, []float64{1, 2})
	require.ErrorIs(t, err, draws.ErrSize)
	require.EqualError(t, err, "diag/thermo: kinetic temperature: 2 masses of 3 momenta, want none, one, or one each")
	_, err = kineticTemperature([]float64{1, inf}, nil)
	require.ErrorIs(t, err, diag.ErrNotFinite)
	require.EqualError(t, err, "diag/thermo: kinetic temperature: momentum 1 is +Inf")
	for _, bad := range []float64{0, -1, nan, inf} {
		_, err = kineticTemperature([]float64{1}, []float64{bad})
		require.ErrorIs(t, err, draws.ErrRange)
	}
}

// Against quantiles of χ² computed with 40 digits, and for many degrees of freedom against the expansion of Cornish and
// Fisher, x = d + z sqrt(2d) + 2(z² - 1)/3 + (z³ - 7z)/(9 sqrt(2d)) + O(1/d).
func TestKineticInterval(t *testing.T) {
	for _, c := range []struct {
		d         int
		low, high float64
	}{
		{1, 3.9270422220515902e-5, 7.8794385766224174}, {2, 0.010025083647088564, 10.596634733096073},
		{10, 2.155856481304639, 25.188179571971172},
		{1000, 888.56352318146832, 1118.9480663231917}, {100000, 98851.810939110039, 101155.70224030754},
		{1000000, 996360.98393538224, 1003646.5292584808},
	} {
		low, high, err := kineticInterval(c.d, 1, 0)
		require.NoError(t, err)
		require.InEpsilon(t, c.low, low*float64(c.d), 1e-12, c.d)
		require.InEpsilon(t, c.high, high*float64(c.d), 1e-12, c.d)
		hot, hotter, err := kineticInterval(c.d, 2.5, 0.99)
		require.NoError(t, err)
		require.InEpsilon(t, 2.5*low, hot, 1e-12)
		require.InEpsilon(t, 2.5*high, hotter, 1e-12)
	}
	for _, d := range []int{100_000, 1_000_000, 10_000_000} {
		for _, level := range []float64{0.5, 0.9, 0.99, 0.999} {
			low, high, err := kineticInterval(d, 1, level)
			require.NoError(t, err)
			for side, got := range []float64{low, high} {
				z := distuv.UnitNormal.Quantile((1 + level) / 2)
				if side == 0 {
					z = -z
				}
				s := math.Sqrt(2 * float64(d))
				want := float64(d) + z*s + 2*(z*z-1)/3 + (z*z*z-7*z)/(9*s)
				require.InDelta(t, want, got*float64(d), 10/float64(d)+1e-12*float64(d), "%d %v", d, level)
			}
		}
	}
	for _, c := range []struct {
		d           int
		temperature float64
		level       float64
	}{{0, 1, 0}, {1, 0, 0}, {1, nan, 0}, {1, inf, 0}, {1, 1, 1}, {1, 1, -0.1}, {1, 1, nan}} {
		_, _, err := kineticInterval(c.d, c.temperature, c.level)
		require.ErrorIs(t, err, draws.ErrRange, c)
	}
	_, _, err := kineticInterval(3, -1, 0)
	require.EqualError(t, err, "diag/thermo: kinetic interval: temperature is -1, want a positive number")
}

// Scores of exact data are standard normal, and far out they are ordered and finite.
func TestChiScore(t *testing.T) {
	for _, d := range []float64{1, 2, 7, 300, 1e4, 1e5, 1e7} {
		law := distuv.ChiSquared{K: d}
		for _, z := range []float64{-3, -1, 0, 0.5, 2, 4} {
			require.InDelta(t, z, chiScore(d, law.Quantile(distuv.UnitNormal.CDF(z))), 1e-8, "%v %v", d, z)
		}
		before := math.Inf(-1)
		for _, x := range []float64{0, 1e-300, 1e-9, 0.01, 0.3, 0.9, 0.99, 1, 1.01, 1.5, 3, 100, 1e6, 1e30} {
			got := chiScore(d, x*d)
			require.GreaterOrEqual(t, got, before, "%v %v", d, x)
			require.False(t, math.IsInf(got, 0))
			before = got
		}
	}
	// Either side of the place where the cube root takes over.
	require.InDelta(t, chiScore(1e5, 1e5-4.75*math.Sqrt(2e5)), chiScore(1e5, 1e5-4.76*math.Sqrt(2e5)), 0.012)
}

// In exact simulation 99% of the readings are inside, for every size and temperature; with momenta of half the variance
// the share is that of χ² between the ends, and small for sites of any size.
func TestKineticCoverage(t *testing.T) {
	const n = 4000
	for _, d := range []int{1, 2, 5, 30, 200} {
		for _, temperature := range []float64{0.01, 1, 3} {
			for _, share := range []float64{1, 0.5} {
				rng := source(uint64(1000*d) + uint64(10*temperature))
				var k Kinetic
				for i := range n {
					_, err := k.Add("w", i%4, momenta(rng, d, share*temperature, 1.7), []float64{1.7}, temperature)
					require.NoError(t, err)
				}
				require.Len(t, k.Readings(), n)
				r, err := k.Result()
				require.NoError(t, err)
				law := distuv.ChiSquared{K: float64(d)}
				low, high, err := kineticInterval(d, 1, 0)
				require.NoError(t, err)
				want := law.CDF(float64(d)*high/share) - law.CDF(float64(d)*low/share)
				require.InDelta(t, want, r.Fraction, 4*math.Sqrt(want*(1-want)/n)+1e-9, "%d %v %v", d, temperature,
					share)
				require.Equal(t, share == 1, r.Exact(1e-5), "%d %v %v: %+v", d, temperature, share, r)
				require.InDelta(t, share, r.Ratio, 4*share*math.Sqrt(2/float64(d)/n))
			}
		}
	}
}

// The probabilities are uniform in exact simulation: of many runs, the share below p is p, for the binomial at most p.
func TestKineticProbabilities(t *testing.T) {
	rng := source(40)
	const runs = 3000
	below := map[string]int{}
	lags := make([]float64, runs)
	for run := range runs {
		var k Kinetic
		for i := range 60 {
			_, err := k.AddValue(fmt.Sprint(i%3), 0, []int{3, 10, 50}[i%3],
				exactTemperature(rng, []int{3, 10, 50}[i%3], 0.2), 0.2)
			require.NoError(t, err)
		}
		r, err := k.Result()
		require.NoError(t, err)
		for name, p := range map[string]float64{"ratio": r.PRatio, "score": r.PScore, "spread": r.PSpread} {
			if p < 0.05 {
				below[name]++
			}
		}
		if r.PInside < 0.05 {
			below["inside"]++
		}
		lags[run] = r.LagZ
	}
	for _, name := range []string{"ratio", "score", "spread"} {
		require.InDelta(t, 0.05, float64(below[name])/runs, 4*math.Sqrt(0.05*0.95/runs), name)
	}
	require.LessOrEqual(t, float64(below["inside"])/runs, 0.05+4*math.Sqrt(0.05*0.95/runs))
	// Taking out the mean of 20 readings biases the correlation by about -1/20, that is by -0.4 standard
	// errors of 57 pairs.
	mean, se := meanSE(lags)
	require.InDelta(t, -math.Sqrt(57)/20, mean, 4*se+0.05)
}

// exactTemperature has the law of T_K in exact simulation.
func exactTemperature(rng *rand.Rand, d int, temperature float64) float64 {
	sum := 0.0
	for range d {
		z := rng.NormFloat64()
		sum += z * z
	}
	return temperature * sum / float64(d)
}

// Binomial figures against sums of the binomial law, and the interval by its definition.
func TestBinomial(t *testing.T) {
	law := distuv.Binomial{N: 50, P: 0.9}
	for _, k := range []int{0, 1, 30, 44, 45, 49, 50} {
		atMost, atLeast := 0.0, 0.0
		for i := range 51 {
			if i <= k {
				atMost += law.Prob(float64(i))
			}
			if i >= k {
				atLeast += law.Prob(float64(i))
			}
		}
		require.InDelta(t, min(1, 2*min(atMost, atLeast)), binomialP(k, 50, 0.9), 1e-11, k)
		low, high := sample.ClopperPearson(k, 50, 0.95)
		if k > 0 { // P(X >= k) is 2.5% at the lower end
			require.InDelta(t, 0.975, distuv.Binomial{N: 50, P: low}.CDF(float64(k-1)), 1e-9)
		} else {
			require.Zero(t, low)
		}
		if k < 50 {
			require.InDelta(t, 0.025, distuv.Binomial{N: 50, P: high}.CDF(float64(k)), 1e-9)
		} else {
			require.Equal(t, 1.0, high)
		}
	}
}

// Each of the probabilities counts.
func TestKineticExact(t *testing.T) {
	good := KineticResult{PInside: 0.2, PRatio: 0.3, PScore: 0.4, PSpread: 0.5}
	require.True(t, good.Exact(0.2))
	for _, spoil := range []func(*KineticResult){
		func(r *KineticResult) { r.PInside = 0.1 }, func(r *KineticResult) { r.PRatio = 0.1 },
		func(r *KineticResult) { r.PScore = 0.1 }, func(r *KineticResult) { r.PSpread = 0.1 },
	} {
		bad := good
		spoil(&bad)
		require.False(t, bad.Exact(0.2))
	}
}

func TestKineticErrors(t *testing.T) {
	var k Kinetic
	_, err := k.Result()
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = k.Add("w", 0, nil, nil, 1)
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = k.AddValue("w", 0, 3, nan, 1)
	require.ErrorIs(t, err, diag.ErrNotFinite)
	require.EqualError(t, err, `diag/thermo: kinetic temperature: the value of "w" is NaN`)
	_, err = k.AddValue("w", 0, 3, -1, 1)
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = k.AddValue("w", 0, 3, 1, 0)
	require.ErrorIs(t, err, draws.ErrRange)
	require.Empty(t, k.Readings())
	k.Level = 2
	_, err = k.AddValue("w", 0, 3, 1, 1)
	require.ErrorIs(t, err, draws.ErrRange)
}
