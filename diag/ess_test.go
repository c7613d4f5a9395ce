package diag

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// The autocorrelation of an AR(1) chain is phi^t, so that ESS / S = (1 - phi) / (1 + phi); that of its square is
// phi^2t. ESS is a ratio, biased by the noise of long lags and by splitting: a few per cent at these lengths.
func TestESSOfAR1(t *testing.T) {
	for _, phi := range []float64{-0.5, 0, 0.3, 0.7, 0.9} {
		var mean, bulk, sd []float64
		for seed := range uint64(30) {
			x := ar1(seed, 4, 2000, phi)
			mean = append(mean, ESSMean(x)/8000)
			bulk = append(bulk, ESSBulk(x)/8000)
			sd = append(sd, essSD(x)/8000)
		}
		want, wantSD := (1-phi)/(1+phi), (1-phi*phi)/(1+phi*phi)
		for _, c := range []struct {
			name string
			x    []float64
			want float64
		}{{"mean", mean, want}, {"bulk", bulk, want}, {"sd", sd, wantSD}} {
			m, se := meanSE(c.x)
			if math.Abs(m-c.want) > 4*se+0.04*c.want {
				t.Errorf("phi %v, %s: ESS/S is %.4f ± %.4f, want %.4f", phi, c.name, m, se, c.want)
			}
		}
	}
}

// Standard errors are right if estimates scatter by them: the mean of z² over independent repetitions is 1.
func TestMCSECoverage(t *testing.T) {
	const repetitions = 300
	upper := 1.2815515655446004 // the 90% quantile of the normal distribution
	var zMean, zSD, zQuantile, zMedian []float64
	for seed := range uint64(repetitions) {
		x := ar1(1000+seed, 4, 500, 0.5)
		all := pooled(x)
		mean, variance := sample.MeanVar(all)
		zMean = append(zMean, mean/MCSEMean(x))
		zSD = append(zSD, (math.Sqrt(variance)-1)/MCSESD(x))
		sorted := slices.Sorted(slices.Values(all))
		for p, z := range map[float64]*[]float64{0.9: &zQuantile, 0.5: &zMedian} {
			se, err := MCSEQuantile(x, p)
			require.NoError(t, err)
			truth := 0.0
			if p == 0.9 {
				truth = upper
			}
			*z = append(*z, (sample.Quantile(sorted, p)-truth)/se)
		}
	}
	for name, z := range map[string][]float64{"mean": zMean, "sd": zSD, "q90": zQuantile, "median": zMedian} {
		var squares []float64
		for _, v := range z {
			squares = append(squares, v*v)
		}
		m, se := meanSE(squares)
		if math.Abs(m-1) > 4*se+0.05 { // 5% for the noise of the standard error itself
			t.Errorf("%s: z² is %.3f ± %.3f, want 1", name, m, se)
		}
	}
}

// By the definition, and for a few lengths whose padded transform has other factors.
func TestAutocovariance(t *testing.T) {
	rng := source(4)
	for _, n := range []int{1, 2, 3, 7, 64, 101, 257} {
		x := normals(rng, 1, n)[0]
		mean := 0.0
		for _, v := range x {
			mean += v / float64(n)
		}
		got := autocovariance(x)
		rho := Autocorrelation(x)
		require.Len(t, got, n)
		for lag := range n {
			want := 0.0
			for i := range n - lag {
				want += (x[i] - mean) * (x[i+lag] - mean) / float64(n)
			}
			near(t, "autocovariance", got[lag], want, 1e-13)
			if n > 1 {
				near(t, "autocorrelation", rho[lag], want/got[0], 1e-12)
			}
		}
	}
	require.Nil(t, Autocorrelation(nil))
	for _, v := range append(Autocorrelation([]float64{3, 3}), Autocorrelation([]float64{1, nan})...) {
		require.True(t, math.IsNaN(v))
	}
}

// Autocorrelations of a long AR(1) chain, by Bartlett's formula with standard errors near
// sqrt((1 + phi²)/(1 - phi²)/n).
func TestAutocorrelationOfAR1(t *testing.T) {
	const n, phi = 20000, 0.7
	rho := Autocorrelation(ar1(9, 1, n, phi)[0])
	se := math.Sqrt((1 + phi*phi) / (1 - phi*phi) / n)
	for lag := range 10 {
		require.InDelta(t, math.Pow(phi, float64(lag)), rho[lag], 4*se)
	}
}

func TestFastLength(t *testing.T) {
	for n, want := range map[int]int{1: 1, 7: 8, 14: 15, 23: 24, 101: 108, 1025: 1080} {
		require.Equal(t, want, fastLength(n))
	}
}

// Independent energies change by twice their variance; a random walk of energies by little.
func TestEBFMI(t *testing.T) {
	rng := source(5)
	const n = 20000
	x := normals(rng, 1, n)[0]
	require.InDelta(t, 2, EBFMI(x), 4*math.Sqrt(8.0/n)) // a generous bound on the scatter
	// For AR(1) it is 2 (1 - phi).
	require.InDelta(t, 0.2, EBFMI(ar1(6, 1, n, 0.9)[0]), 0.02)
	// By hand, for 0 1 2 0: changes 1, 1, -2 have squares of sum 6, and deviations from 3/4 of sum 11/4.
	require.InDelta(t, 6/2.75, EBFMI([]float64{0, 1, 2, 0}), 1e-15)
	require.True(t, math.IsNaN(EBFMI([]float64{1, 1, 1, 1})))
	require.True(t, math.IsNaN(EBFMI([]float64{1, 2, nan, 1})))
}

func TestHDI(t *testing.T) {
	for _, c := range []struct {
		name      string
		x         []float64
		p         float64
		low, high float64
		fails     bool
	}{
		{name: "narrowest", x: []float64{9, 0, 1.5, 1, 2, 5}, p: 0.5, low: 0, high: 2},
		{name: "lowest of equals", x: []float64{4, 3, 2, 1}, p: 0.5, low: 1, high: 3},
		{name: "all", x: []float64{4, 3, 2, 1}, p: 1, low: 1, high: 4},
		{name: "one draw", x: []float64{7}, p: 0.9, low: 7, high: 7},
		{name: "NaN", x: []float64{7, nan}, p: 0.9, low: nan, high: nan},
		{name: "none", p: 0.9, low: nan, high: nan},
		{name: "probability 0", x: []float64{1}, p: 0, fails: true},
		{name: "probability NaN", x: []float64{1}, p: nan, fails: true},
	} {
		low, high, err := HDI(c.x, c.p)
		if c.fails {
			require.ErrorIs(t, err, draws.ErrRange, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		near(t, c.name, low, c.low, 0)
		near(t, c.name, high, c.high, 0)
	}
}

func TestQuantileArguments(t *testing.T) {
	x := goldenAR(2, 20, 0.5, 0, 1)
	for _, p := range []float64{-0.1, 1.1, nan} {
		_, err := ESSQuantile(x, p)
		require.ErrorIs(t, err, draws.ErrRange)
		_, err = MCSEQuantile(x, p)
		require.ErrorIs(t, err, draws.ErrRange)
	}
	_, err := ESSQuantile(x, 2)
	require.EqualError(t, err, "diag: ess of a quantile: probability is 2, want 0 to 1")
	for _, p := range []float64{0, 1} { // one draw of 40 is on one side
		v, err := ESSQuantile(x, p)
		require.NoError(t, err)
		require.Greater(t, v, 0.0)
	}
}

// Halves of 2 draws, of chains of 4 or 5, have no effective sample size; halves of 3 have τ = 2, m n/2 of the 6 that a
// chain has. R-hat has one of 4.
func TestESSOfShortChains(t *testing.T) {
	for seed := range uint64(3) {
		for n := minDraws; n < 9; n++ {
			x := normals(source(seed+70), 2, n)
			r, bulk, tail := convergence(x)
			require.False(t, math.IsNaN(r), n)
			for _, v := range []float64{bulk, ESSBulk(x), ESSMean(x), MCSEMean(x), MCSESD(x)} {
				require.Equal(t, n < essDraws, math.IsNaN(v), "%d draws", n)
			}
			if n < essDraws { // the middle draw of an odd chain may be the one below a quantile
				require.True(t, math.IsNaN(tail) && math.IsNaN(ESSTail(x)))
			}
			require.False(t, math.IsNaN(ESSBasic(x)), "whole chains")
			if n >= essDraws {
				require.InDelta(t, float64(4*(n/2))/2, bulk, 1e-12)
			}
		}
	}
}
