package thermo

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Of a Gaussian energy Σ (θ - μ)²/(2 s²), with draws of exp(-U/T): the mean is T and the variance of a reading, centred
// at μ, that of T χ²/d, 2T²/d; counted from 0 it is larger by T Σ μ²/s² / d².
func TestConfigurationalTemperature(t *testing.T) {
	const d, chains, n, temperature = 5, 4, 2500, 0.3
	rng := source(41)
	mu, s := []float64{0, 1, -2, 3, 0.5}, []float64{1, 0.1, 2, 3, 0.5}
	extra := 0.0
	for i := range mu {
		extra += temperature * mu[i] * mu[i] / s[i] / s[i] / d / d
	}
	zero := func(int, int) float64 { return 0 }
	plain, centred := filled(chains, n, zero), filled(chains, n, zero)
	for c := range chains {
		for k := range n {
			theta, off, gradient := make([]float64, d), make([]float64, d), make([]float64, d)
			for i := range d {
				off[i] = math.Sqrt(temperature) * s[i] * rng.NormFloat64()
				theta[i], gradient[i] = mu[i]+off[i], off[i]/s[i]/s[i]
			}
			var err error
			plain[c][k], err = ConfigurationalTemperature(theta, gradient)
			require.NoError(t, err)
			centred[c][k], err = ConfigurationalTemperature(off, gradient)
			require.NoError(t, err)
		}
	}
	for name, x := range map[string][][]float64{"plain": plain, "centred": centred} {
		m, err := meanTemperature(x, temperature)
		require.NoError(t, err)
		require.InDelta(t, temperature, m.Mean, 4*m.MCSE, name)
		require.InDelta(t, (m.Mean-temperature)/m.MCSE, m.Z, 1e-12)
		want := 2 * temperature * temperature / d
		if name == "plain" {
			want += extra
		}
		_, variance := sample.MeanVar(slices.Concat(x...))
		// The relative standard error of a variance is sqrt((kurtosis - 1)/n), the kurtosis at most that of χ² of 5, 5.4.
		require.InEpsilon(t, want, variance, 4*math.Sqrt(4.4/(chains*n)), name)
		require.InEpsilon(t, math.Sqrt(want/(chains*n)), m.MCSE, 0.15, name)
	}
	m, err := meanTemperature(centred, 2*temperature)
	require.NoError(t, err)
	require.Less(t, m.Z, -20.0)
}

func TestConfigurationalErrors(t *testing.T) {
	got, err := ConfigurationalTemperature([]float64{1, 2}, []float64{3, 4})
	require.NoError(t, err)
	require.Equal(t, 5.5, got)
	_, err = ConfigurationalTemperature([]float64{1}, nil)
	require.ErrorIs(t, err, draws.ErrSize)
	require.EqualError(t, err,
		"diag/thermo: configurational temperature: 1 parameters and 0 gradients, want equally many and at least one")
	_, err = ConfigurationalTemperature([]float64{1, 1}, []float64{1, nan})
	require.ErrorIs(t, err, diag.ErrNotFinite)
	_, err = meanTemperature(nil, 1)
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = meanTemperature([][]float64{{1}, {}}, 1)
	require.EqualError(t, err, "diag/thermo: mean temperature: chain 1 has no readings")
	_, err = meanTemperature([][]float64{{1, inf}}, 1)
	require.EqualError(t, err, "diag/thermo: mean temperature: reading 1 of chain 0 is +Inf")
	_, err = meanTemperature([][]float64{{1}}, 0)
	require.ErrorIs(t, err, draws.ErrRange)
	// too few for a standard error, and cut to the shortest
	m, err := meanTemperature([][]float64{{1, 2}, {3, 4, 5}}, 1)
	require.NoError(t, err)
	require.Equal(t, 2.5, m.Mean)
	require.True(t, math.IsNaN(m.MCSE) && math.IsNaN(m.Z))
}
