package loo

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// goldenLogLik is the log likelihood of 12 observations under a normal distribution of the given scale, whose mean has
// 200 draws of two AR(1) chains; the last observation is an outlier. [draw][observation].
func goldenLogLik(seed lcg, scale float64) [][]float64 {
	mu := slices.Concat(goldenAR(2, 100, 0.5, 0, seed)...)
	return filled(200, 12, func(s, i int) float64 {
		y := float64((7*i)%12)/3 - 1.8
		if i == 11 {
			y = 4
		}
		z := (y - mu[s]*0.5) / scale
		return -0.5*z*z - math.Log(scale) - 0.5*math.Log(2*math.Pi)
	})
}

// psis of loo 2.5.1 in R 4.2.2, psis(-loglik, r_eff = 0.7); psislw of ArviZ 0.23.4 agrees to 14 digits.
func TestPSISGolden(t *testing.T) {
	ll := goldenLogLik(11, 1)
	k := []float64{0.001886526466225863, 0.11100296907038579, -0.019922749941807316, 0.1141178752800069,
		-0.019489861669058542,
		0.13331297419306545, 0.13863212628132227, -0.010168755429850004, 0.10871934028933887, -0.025156695915353272,
		0.12284839498510464, 0.2136694300025172}
	ess := []float64{128.03755967981641, 138.87950738430118, 134.98883136733127, 134.54859939032107, 139.07785898807558,
		127.39446828586588, 139.8167682365509, 131.82772037017421, 137.10598564756268, 137.42971539571366,
		131.28130107111369,
		94.581916387945554}
	var last Weights
	for i := range k {
		ratios := observation(ll, i)
		for s := range ratios {
			ratios[s] = -ratios[s]
		}
		var err error
		last, err = PSIS(ratios, 0.7)
		require.NoError(t, err)
		require.Equal(t, 40, last.Tail)
		near(t, "k", last.K, k[i], 1e-11)
		near(t, "ess", last.ESS, ess[i], 1e-11)
	}
	for s, want := range []float64{-4.3872147694275068, -4.8837322308361522, -4.8310831964975662, -4.1788832378816352,
		-5.5872518176757922} {
		near(t, "log weight", last.LogWeights[s], want, 1e-11)
	}
}

// The same with a tail that the efficiency shortens, and for ratios |x| with tails like 1/x.
func TestPSISGoldenTails(t *testing.T) {
	ratios := observation(goldenLogLik(11, 1), 11)
	for s := range ratios {
		ratios[s] = -ratios[s]
	}
	heavy := slices.Concat(sample.Mapped(goldenHeavy(2, 50, 4),
		func(v float64) float64 { return math.Log(math.Abs(v)) })...)
	for _, c := range []struct {
		ratios  []float64
		reff    float64
		tail    int
		k, ess  float64
		weights []float64
	}{
		{ratios, 2, 30, 0.34496370988660152, 273.37526535552877,
			[]float64{-4.4283966606063974, -4.8688940194314814, -4.7922933649441291}},
		{heavy, 1, 20, 1.3120352201135248, 4.2300709079184688,
			[]float64{-0.76716961538767503, -9.3318378638799828, -3.9897760844621031}},
	} {
		r, err := PSIS(c.ratios, c.reff)
		require.NoError(t, err)
		require.Equal(t, c.tail, r.Tail)
		near(t, "k", r.K, c.k, 1e-11)
		near(t, "ess", r.ESS, c.ess, 1e-11)
		for s, want := range c.weights {
			near(t, "log weight", r.LogWeights[s], want, 1e-11)
		}
	}
}

// gpdfit of loo 2.5.1, with its weak prior, on 40 quantiles of a generalised Pareto distribution of shape 0.6, scale 2.
func TestFitGPDGolden(t *testing.T) {
	var x []float64
	for i := range 40 {
		p := (float64(i) + 0.5) / 40
		x = append(x, quantileGPD(p, 0.6, 2))
	}
	k, sigma := fitGPD(slices.Sorted(slices.Values(x)))
	require.InDelta(t, 0.58435488797196766, k, 1e-12)
	require.InDelta(t, 1.9620917047533308, sigma, 1e-12)
}

// The fit is equivariant: k stays and σ scales.
func TestFitGPDScale(t *testing.T) {
	x := make([]float64, 100)
	for i := range x {
		x[i] = quantileGPD((float64(i)+0.5)/100, -0.3, 1)
	}
	k, sigma := fitGPD(slices.Sorted(slices.Values(x)))
	for i := range x {
		x[i] *= 1e6
	}
	k2, sigma2 := fitGPD(slices.Sorted(slices.Values(x)))
	require.InDelta(t, k, k2, 1e-9)
	require.InDelta(t, 1e6, sigma2/sigma, 1e-3)
	for i := range x { // exponential tails
		x[i] = -math.Log1p(-(float64(i) + 0.5) / 100)
	}
	k, _ = fitGPD(slices.Sorted(slices.Values(x)))
	require.InDelta(t, 0, k, 0.1)
}

// From n draws the estimate of k has the asymptotic standard error (1 + k)/sqrt(n) of maximum likelihood (k > -1/2);
// the prior moves it by (1/2 - k) 10/(n + 10).
func TestFitGPDRecovers(t *testing.T) {
	const n, repetitions = 2000, 40
	for _, shape := range []float64{-0.3, 0, 0.3, 0.7, 1.2} {
		rng := source(uint64(100 + 10*shape))
		var ks []float64
		for range repetitions {
			x := make([]float64, n)
			for i := range x {
				x[i] = quantileGPD(rng.Float64(), shape, 2)
			}
			k, _ := fitGPD(slices.Sorted(slices.Values(x)))
			require.InDelta(t, shape, k, 4*(1+shape)/math.Sqrt(n)+0.01)
			ks = append(ks, k-(0.5-shape)*10/(n+10))
		}
		mean, se := meanSE(ks)
		require.InDelta(t, shape, mean, 4*se+2.0/n, "shape %v", shape) // 2/n for the bias of order 1/n
	}
}

// Importance ratios u^-a with u uniform have a Pareto tail of shape a; PSIS sees it, and the mean of the smoothed
// weights estimates an expectation better than a plain average where the variance is infinite.
func TestPSISTail(t *testing.T) {
	const n = 4000
	for _, shape := range []float64{0.2, 0.5, 0.9} {
		rng := source(uint64(10 * shape))
		x := make([]float64, n)
		for i := range x {
			x[i] = -shape * math.Log(rng.Float64())
		}
		r, err := PSIS(x, 1)
		require.NoError(t, err)
		require.Equal(t, 190, r.Tail)
		require.InDelta(t, shape, r.K, 4*(1+shape)/math.Sqrt(190)+0.05)
		sum, largest := 0.0, math.Inf(-1)
		for _, w := range r.LogWeights {
			sum += math.Exp(w)
			largest = max(largest, w)
		}
		require.InDelta(t, 1, sum, 1e-12)
	}
}

// Ratios may have any constant factor. Weights keep the order of the ratios.
func TestPSISProperties(t *testing.T) {
	rng := source(7)
	x := normals(rng, 1, 500)[0]
	r, err := PSIS(x, 1)
	require.NoError(t, err)
	for i := range x {
		for j := range x {
			if x[i] < x[j] {
				require.LessOrEqual(t, r.LogWeights[i], r.LogWeights[j])
			}
		}
	}
	shifted := sample.Mapped([][]float64{x}, func(v float64) float64 { return v + 700 })[0]
	s, err := PSIS(shifted, 1)
	require.NoError(t, err)
	require.InDelta(t, r.K, s.K, 1e-9)
	require.InDeltaSlice(t, r.LogWeights, s.LogWeights, 1e-9)
}

func TestPSISCorners(t *testing.T) {
	r, err := PSIS([]float64{1, 2, 3}, 1)
	require.NoError(t, err)
	require.True(t, math.IsInf(r.K, 1), "too short a tail")
	require.Equal(t, 0, r.Tail)

	equal := make([]float64, 100)
	r, err = PSIS(equal, 1)
	require.NoError(t, err)
	require.True(t, math.IsInf(r.K, -1), "equal ratios")
	require.InDelta(t, 100, r.ESS, 1e-10)

	for i := range equal { // the tail is tied, the body is not
		equal[i] = min(float64(i), 50)
	}
	r, err = PSIS(equal, 1)
	require.NoError(t, err)
	require.True(t, math.IsInf(r.K, 1))

	for i := range equal { // zeros among the weights, more than the body
		equal[i] = -inf
		if i >= 85 {
			equal[i] = float64(i) / 10
		}
	}
	r, err = PSIS(equal, 1)
	require.NoError(t, err)
	for _, w := range r.LogWeights {
		require.False(t, math.IsNaN(w))
	}

	for _, x := range [][]float64{{1, nan}, {1, inf}, {-inf, -inf}} {
		_, err = PSIS(x, 1)
		require.ErrorIs(t, err, diag.ErrNotFinite)
	}
	_, err = PSIS(nil, 1)
	require.ErrorIs(t, err, draws.ErrSize)
	for _, reff := range []float64{0, -1, nan, inf} {
		_, err = PSIS([]float64{1, 2}, reff)
		require.ErrorIs(t, err, draws.ErrRange)
	}
}

// The figures of the formula: 100 draws stand for k up to 0.5, 1000 for 2/3, and 0.7 is reached at 10^(1/0.3) = 2154.4.
func TestKThreshold(t *testing.T) {
	require.InDelta(t, 0.5, KThreshold(100), 1e-15)
	require.InDelta(t, 2.0/3, KThreshold(1000), 1e-15)
	require.Less(t, KThreshold(2154), 0.7)
	require.Equal(t, 0.7, KThreshold(2155))
	require.True(t, math.IsInf(KThreshold(1), -1))
}

// One observation with 4000 draws.
func BenchmarkPSIS(b *testing.B) {
	x := normals(source(1), 1, 4000)[0]
	for b.Loop() {
		if _, err := PSIS(x, 1); err != nil {
			b.Fatal(err)
		}
	}
}
