package thermo

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Traces of the law that the target has, moved by gradient noise of known variance: the figures come back.
func TestThermostat(t *testing.T) {
	const chains, n = 4, 2000
	law := func(seed uint64, mean, variance float64) [][]float64 {
		return sample.Mapped(ar1(seed, chains, n, 0.6), func(v float64) float64 { return mean + math.Sqrt(variance)*v })
	}
	sgnht := SGNHT{Step: 0.1, Alpha: 0.7, Temperature: 0.5, Beta: 3, Sigma: 2, Dim: 10}
	const noise = 2.2
	s, err := sgnht.Summarise(law(1, 0.7+0.1*(noise-0.25*3)/(2*0.5), 0.5*4/10))
	require.NoError(t, err)
	require.Equal(t, 0.7, s.ExactMean)
	require.InDelta(t, 0.2, s.ExactVariance, 1e-15)
	require.InDelta(t, noise, s.Noise, 4*s.NoiseSE)
	require.InDelta(t, s.MCSE*2*0.5/0.1, s.NoiseSE, 1e-12)
	require.InDelta(t, 1, s.VarianceRatio, 4*s.VarianceSE)
	require.Less(t, s.VarianceSE, 0.1)
	require.Greater(t, s.Z, 5.0)

	atmc := ATMC{Step: 0.01, Temperature: 2, Mass: 5}
	s, err = atmc.Summarise(law(2, 0.01*300/(2*5*2), 2))
	require.NoError(t, err)
	require.Zero(t, s.ExactMean)
	require.InDelta(t, 300, s.Noise, 4*s.NoiseSE)
	require.InDelta(t, 1, s.VarianceRatio, 4*s.VarianceSE)

	plain, err := SGNHT{Step: 0.1, Alpha: 1, Temperature: 1}.Summarise(law(3, 1, 1)) // sigma and dim 1
	require.NoError(t, err)
	require.Equal(t, 1.0, plain.ExactVariance)
	require.InDelta(t, 0, plain.Z, 4)
	plain, err = ATMC{Step: 0.1, Temperature: 1}.Summarise([][]float64{{0.5, 0.5, 0.5, 0.5}})
	require.NoError(t, err)
	require.Equal(t, 10.0, plain.Noise) // mass 1
	require.True(t, math.IsNaN(plain.NoiseSE))
}

// The standard error of the variance is the spread of the variance over runs.
func TestThermostatVarianceSE(t *testing.T) {
	var ratios, ses []float64
	for seed := range uint64(300) {
		s, err := ATMC{Step: 0.1, Temperature: 1}.Summarise(ar1(seed, 2, 500, 0.5))
		require.NoError(t, err)
		ratios, ses = append(ratios, s.VarianceRatio), append(ses, s.VarianceSE)
	}
	mean, variance := sample.MeanVar(ratios)
	se, _ := sample.MeanVar(ses)
	require.InDelta(t, 1, mean, 4*math.Sqrt(variance/300))
	require.InEpsilon(t, math.Sqrt(variance), se, 4/math.Sqrt(2*300))
}

func TestThermostatErrors(t *testing.T) {
	x := [][]float64{{1, 2, 3, 4}}
	for _, s := range []SGNHT{{}, {Step: 1}, {Step: -1, Temperature: 1},
		{Step: 1, Temperature: 1, Alpha: -1}, {Step: 1, Temperature: 1, Beta: nan},
		{Step: 1, Temperature: 1, Sigma: -2}, {Step: 1, Temperature: 1, Dim: -1}, {Step: 1, Temperature: inf}} {
		_, err := s.Summarise(x)
		require.ErrorIs(t, err, draws.ErrRange, s)
	}
	for _, s := range []ATMC{{}, {Step: 1}, {Step: 1, Temperature: 1, Mass: -1}} {
		_, err := s.Summarise(x)
		require.ErrorIs(t, err, draws.ErrRange, s)
	}
	_, err := ATMC{Step: 1, Temperature: 1}.Summarise(nil)
	require.EqualError(t, err, "diag/thermo: thermostat of ATMC: no chains")
	_, err = SGNHT{Step: 1, Temperature: 1}.Summarise([][]float64{{nan}})
	require.ErrorIs(t, err, diag.ErrNotFinite)
	_, err = SGNHT{Temperature: 1}.Summarise(x)
	require.EqualError(t, err, "diag/thermo: thermostat of SGNHT: step is 0, want a positive number")
}
