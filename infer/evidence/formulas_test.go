package evidence_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
)

// Two rungs with slopes of mean 1 and variance 4/3, and of mean 5 and variance 16/3 (four draws ±1 and ±2 around them):
// the trapezoid is 3, and the correction −(16/3 − 4/3)/12 = −1/3. The stones are log cosh(1) + 1. The result is shifted
// by log Z(0).
func TestRules(t *testing.T) {
	slopes := [][][]float64{{{0, 2, 2, 0}, {3, 7, 7, 3}}}
	r, err := evidence.Integrate([]float64{0, 1}, slopes, 10)
	require.NoError(t, err)
	require.Equal(t, "trapezoid", r.Beside[0].Name)
	require.InDelta(t, 13, r.Beside[0].LogZ, 1e-12)
	require.InDelta(t, 1.0/3, r.Beside[0].Error, 1e-12)
	require.Equal(t, "stepping stones", r.Beside[1].Name)
	require.InDelta(t, 11+math.Log(math.Cosh(1)), r.Beside[1].LogZ, 1e-12)
	if r.LogZ != r.Beside[1].LogZ { // the two differ by more than four draws can say or not
		require.InDelta(t, 13-1.0/3, r.LogZ, 1e-12)
	}
	require.Equal(t, []float64{1, 5}, r.Trace.Y)
	_, err = evidence.Integrate([]float64{0, 1}, nil, 0)
	require.ErrorIs(t, err, infer.ErrConfig)
	_, err = evidence.Integrate([]float64{0, 1}, [][][]float64{{{1, 2, 3, 4}}}, 0)
	require.ErrorContains(t, err, "chain 0 has 1 rungs")
	_, err = evidence.Integrate([]float64{0, 1}, [][][]float64{{{1, 2, 3, 4}, {1}}}, 0)
	require.ErrorContains(t, err, "rung 1 of chain 0")
}

// The corrected rule is exact where the mean slope is a polynomial of third degree in β: f = β³, V = f' = 3β², whose
// integral is ¼. Draws f ± s with s² = 3V/4 have the variance V with n − 1 = 3.
func TestCorrectedRuleIsOfFourthOrder(t *testing.T) {
	beta := []float64{0, 0.3, 1}
	chain := make([][]float64, len(beta))
	for k, b := range beta {
		f, s := b*b*b, math.Sqrt(0.75*3*b*b)
		chain[k] = []float64{f - s, f + s, f + s, f - s}
	}
	r, err := evidence.Integrate(beta, [][][]float64{chain}, 0)
	require.NoError(t, err)
	trapezoid := 0.3*0.027/2 + 0.7*(0.027+1)/2
	require.InDelta(t, trapezoid, r.Beside[0].LogZ, 1e-12)
	require.InDelta(t, trapezoid-0.25, r.Beside[0].Error, 1e-12)
}

// Odds of 3 : 1 and prior probabilities 1 : 3 make both models as likely; the errors are those of the delta method,
// p(1 − p) of the standard error of the log odds for two models.
func TestComparison(t *testing.T) {
	a := &evidence.Result{LogZ: math.Log(3) - 100, SE: 0.3}
	b := &evidence.Result{LogZ: -100, SE: 0.4}
	log, se, err := evidence.BayesFactor(a, b)
	require.NoError(t, err)
	require.InDelta(t, math.Log(3), log, 1e-12)
	require.InDelta(t, 0.5, se, 1e-12)
	p, errs, err := evidence.Probabilities([]*evidence.Result{a, b}, nil)
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{0.75, 0.25}, p, 1e-12)
	require.InDeltaSlice(t, []float64{0.1875 * 0.5, 0.1875 * 0.5}, errs, 1e-12)
	p, _, err = evidence.Probabilities([]*evidence.Result{a, b}, []float64{1, 3})
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{0.5, 0.5}, p, 1e-12)
	_, _, err = evidence.BayesFactor(a, nil)
	require.ErrorIs(t, err, infer.ErrConfig)
	_, _, err = evidence.Probabilities([]*evidence.Result{a}, []float64{1, 2})
	require.ErrorIs(t, err, infer.ErrConfig)
	_, _, err = evidence.Probabilities([]*evidence.Result{a, b}, []float64{-1, 2})
	require.ErrorContains(t, err, "prior[0]")
}
