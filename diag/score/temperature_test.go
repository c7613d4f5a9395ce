package score

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// labelled draws labels with the probabilities of logits divided by the temperature.
func labelled(seed uint64, logits [][]float64, temperature float64) []int {
	rng := source(seed)
	label := make([]int, len(logits))
	for i, row := range logits {
		u := rng.Float64()
		for k, p := range softmax(sample.Mapped([][]float64{row},
			func(v float64) float64 { return v / temperature })[0]) {
			if u -= p; u < 0 {
				label[i] = k
				break
			}
		}
	}
	return label
}

// The temperature is where the slope changes sign, by plain bisection of -mean z(y) + mean E[z], and near the one that
// the labels were drawn with; the likelihood does not fall, classes do not change, and units of the logits cancel.
func TestFitTemperature(t *testing.T) {
	for _, truth := range []float64{0.2, 1, 3, 20} {
		for _, unit := range []float64{1, 1e-8, 1e8} {
			logits := randomLogits(100, 1, 2000, 4, 2)[0]
			label := labelled(101, logits, truth)
			scaled := sample.Mapped(logits, func(v float64) float64 { return unit * v })
			fit, err := FitTemperature(scaled, label)
			require.NoError(t, err)
			slope := func(b float64) float64 {
				sum := 0.0
				for i, row := range logits {
					p := softmax(sample.Mapped([][]float64{row}, func(v float64) float64 { return b * v })[0])
					for k, v := range row {
						sum += p[k] * v
					}
					sum -= row[label[i]]
				}
				return sum
			}
			low, high := 1e-6, 1e3
			for range 200 {
				if mid := (low + high) / 2; slope(mid) < 0 {
					low = mid
				} else {
					high = mid
				}
			}
			require.InEpsilon(t, unit/low, fit.T, 1e-10, truth)
			// The standard error of b is that of maximum likelihood, 1/sqrt(n NLL'').
			_, _, curvature := temperedNLL(logits, low)
			require.InDelta(t, 1/truth, low, 4/math.Sqrt(2000*curvature), truth)
			require.LessOrEqual(t, fit.After, fit.Before)
			before, err := Score(logSoftmaxRows(scaled), label)
			require.NoError(t, err)
			after, err := Score(fit.LogProbabilities(scaled), label)
			require.NoError(t, err)
			require.InDelta(t, before.LogLoss, fit.Before, 1e-12*(1+before.LogLoss))
			require.InDelta(t, after.LogLoss, fit.After, 1e-12)
			require.Equal(t, before.Accuracy, after.Accuracy)
		}
	}
}

// A case in closed form: logits ±z of which a share a is right have the best 1/T at log(a/(1-a))/z.
func TestFitBinaryTemperature(t *testing.T) {
	fit, err := FitBinaryTemperature([]float64{5, 5, 5, -5, -5, -5, 5, -5},
		[]bool{true, true, true, false, false, false, false, true})
	require.NoError(t, err)
	require.InEpsilon(t, 5/math.Log(3), fit.T, 1e-14)
	require.InDelta(t, math.Log(4)-0.75*math.Log(3), fit.After, 1e-15)
	// Already best: T is 1 and nothing is lost.
	z := math.Log(3)
	fit, err = FitBinaryTemperature([]float64{z, z, z, z}, []bool{true, true, true, false})
	require.NoError(t, err)
	require.InDelta(t, 1, fit.T, 1e-14)
	require.LessOrEqual(t, fit.After, fit.Before)
	// Wrong once in a million, by a margin far from the others'.
	far, err := FitBinaryTemperature([]float64{1e6, 1e-3, 1e-3, -1e-3}, []bool{true, true, true, true})
	require.NoError(t, err)
	require.InEpsilon(t, 1e-3/math.Log(2), far.T, 1e-10)
}

func TestTemperatureDerivatives(t *testing.T) {
	d := [][]float64{{0, 0.3, -0.5}, {0.7, 0, 1}}
	for _, b := range []float64{0, 0.5, 3} {
		const h = 1e-5
		up, upSlope, _ := temperedNLL(d, b+h)
		down, downSlope, _ := temperedNLL(d, b-h)
		_, slope, curvature := temperedNLL(d, b)
		require.InDelta(t, (up-down)/(2*h), slope, 1e-9)
		require.InDelta(t, (upSlope-downSlope)/(2*h), curvature, 1e-9)
	}
}

func TestFitTemperatureErrors(t *testing.T) {
	_, err := FitTemperature([][]float64{{1, 0}, {0, 2}}, []int{0, 1})
	require.ErrorIs(t, err, ErrSeparable)
	require.EqualError(t, err, "diag/score: temperature scaling: the label of every case has the largest logit, so "+
		"that the best temperature is 0; use more, or harder, data")
	_, err = FitTemperature([][]float64{{1, 1, 0}, {0, 2, 0}}, []int{0, 1}) // a tie is no mistake
	require.ErrorIs(t, err, ErrSeparable)
	_, err = FitTemperature([][]float64{{1, 0}, {1, 0}}, []int{0, 1}) // right by chance
	require.ErrorIs(t, err, draws.ErrRange)
	require.ErrorContains(t, err, "the best temperature is infinite")
	_, err = FitTemperature([][]float64{{1, 0}, {0, 2}}, []int{1, 0})
	require.ErrorContains(t, err, "the best temperature is infinite")
	_, err = FitTemperature([][]float64{{3, 3}}, []int{1})
	require.ErrorContains(t, err, "the logits of each case are equal")
	_, err = FitTemperature([][]float64{{1, nan}}, []int{1})
	require.ErrorIs(t, err, diag.ErrNotFinite)
	_, err = FitTemperature([][]float64{{1e308, -1e308}}, []int{1})
	require.ErrorContains(t, err, "differences of logits overflow")
	_, err = FitTemperature(nil, nil)
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = FitTemperature([][]float64{{1, 2}}, []int{2})
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = FitBinaryTemperature([]float64{1}, nil)
	require.ErrorIs(t, err, draws.ErrSize)
}
