package score

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// logs are the logarithms of probabilities.
func logs(p [][]float64) [][]float64 { return sample.Mapped(p, math.Log) }

// Hand-written: two of three cases are right.
func TestScore(t *testing.T) {
	s, err := Score(logs([][]float64{{0.7, 0.3}, {0.4, 0.6}, {0.5, 0.5}}), []int{0, 0, 0})
	require.NoError(t, err)
	require.InDelta(t, -(math.Log(0.7)+math.Log(0.4)+math.Log(0.5))/3, s.LogLoss, 1e-15)
	require.InDelta(t, 2*(0.09+0.36+0.25)/3, s.Brier, 1e-15)
	require.InDelta(t, 2.0/3, s.Accuracy, 1e-15)
	s, err = Score(logs([][]float64{{1, 0}}), []int{1})
	require.NoError(t, err)
	require.True(t, math.IsInf(s.LogLoss, 1))
	require.Equal(t, 2.0, s.Brier)
}

// Against all pairs.
func TestAUROC(t *testing.T) {
	rng := source(30)
	var a, b []float64
	for range 40 {
		a, b = append(a, math.Round(10*rng.Float64())+2), append(b, math.Round(10*rng.Float64()))
	}
	want := 0.0
	for _, x := range a {
		for _, y := range b {
			if x > y {
				want += 1.0 / 1600
			} else if x == y {
				want += 0.5 / 1600
			}
		}
	}
	got, err := AUROC(a, b)
	require.NoError(t, err)
	require.InDelta(t, want, got, 1e-12)
	got, err = AUROC([]float64{inf, 3}, []float64{-inf, 1})
	require.NoError(t, err)
	require.Equal(t, 1.0, got)
	_, err = AUROC(nil, b)
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = AUROC([]float64{nan}, b)
	require.ErrorIs(t, err, diag.ErrNotFinite)
}

// By hand with two bins, the upper end of a bin in it; and calibrated predictions, whose error falls like 1/sqrt(n).
func TestCalibration(t *testing.T) {
	r, err := Calibration([]float64{0, 0.2, 0.5, 0.6, 1}, []bool{false, false, true, true, false}, Binning{Bins: 2})
	require.NoError(t, err)
	require.Equal(t, []int{3, 2}, []int{r.Bins[0].Cases, r.Bins[1].Cases})
	gap0, gap1 := 1.0/3-0.7/3, 0.8-0.5
	require.InDelta(t, (3*gap0+2*gap1)/5, r.ECE, 1e-15)
	require.InDelta(t, gap1, r.MCE, 1e-15)
	require.Equal(t, []float64{0.5, 1}, []float64{r.Bins[1].Low, r.Bins[1].High})

	rng := source(31)
	const n = 20000
	confidence, right := make([]float64, n), make([]bool, n)
	for i := range confidence {
		confidence[i] = rng.Float64()
		right[i] = rng.Float64() < confidence[i]
	}
	r, err = Calibration(confidence, right, Binning{})
	require.NoError(t, err)
	require.Len(t, r.Bins, 15)
	// Each gap has standard deviation at most sqrt(15/n)/2 and so ECE is on average below that.
	require.Less(t, r.ECE, 2*math.Sqrt(15.0/n)/2)

	c, err := ClassCalibration([][]float64{{0.9, 0.1}, {0.2, 0.8}}, []int{0, 0}, Binning{Bins: 10})
	require.NoError(t, err)
	require.InDelta(t, (0.1+0.8)/2, c.ECE, 1e-12)
	require.True(t, math.IsNaN(c.Bins[0].Accuracy))
}

// Against the mean over pairs, and for normal draws against the closed form of the normal distribution:
// σ (z (2Φ(z) - 1) + 2φ(z) - 1/sqrt(π)).
func TestCRPS(t *testing.T) {
	rng := source(32)
	x := normals(rng, 1, 30)[0]
	first, second := 0.0, 0.0
	for i, v := range x {
		first += math.Abs(v-0.4) / 30
		for j, w := range x {
			if i != j {
				second += math.Abs(v-w) / 30 / 29
			}
		}
	}
	got, err := CRPS(x, 0.4)
	require.NoError(t, err)
	require.InDelta(t, first-second/2, got, 1e-14)

	const z = 0.8
	want := z*math.Erf(z/math.Sqrt2) + 2*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi) - 1/math.Sqrt(math.Pi)
	var scores []float64
	for range 50 {
		v, err := CRPS(normals(rng, 1, 400)[0], z)
		require.NoError(t, err)
		scores = append(scores, v)
	}
	mean, se := meanSE(scores)
	require.InDelta(t, want, mean, 4*se)

	got, err = CRPS([]float64{3}, 5)
	require.NoError(t, err)
	require.Equal(t, 2.0, got)
	_, err = CRPS(nil, 0)
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = CRPS([]float64{1, inf}, 0)
	require.ErrorIs(t, err, diag.ErrNotFinite)
}

func TestPIT(t *testing.T) {
	require.Equal(t, 0.625, PIT([]float64{3, 1, 2, 4}, 3))
	require.Equal(t, 0.0, PIT([]float64{3, 1}, 0))
	require.True(t, math.IsNaN(PIT(nil, 0)))
	require.True(t, math.IsNaN(PIT([]float64{nan}, 0)))
	require.True(t, math.IsNaN(PIT([]float64{1}, nan)))
}

// Draws that are sure but disagree are all epistemic; draws that agree are all aleatoric.
func TestEntropyOf(t *testing.T) {
	u, err := EntropyOf([][]float64{{1, 0}, {0, 1}})
	require.NoError(t, err)
	require.InDelta(t, math.Ln2, u.Total, 1e-15)
	require.Equal(t, 0.0, u.Aleatoric)
	require.InDelta(t, math.Ln2, u.Epistemic, 1e-15)
	u, err = EntropyOf([][]float64{{0.25, 0.75}, {0.25, 0.75}})
	require.NoError(t, err)
	require.Equal(t, 0.0, u.Epistemic)
	require.InDelta(t, -0.25*math.Log(0.25)-0.75*math.Log(0.75), u.Total, 1e-15)
}

func TestPredictionErrors(t *testing.T) {
	for name, c := range map[string]struct {
		p     [][]float64
		label []int
		kind  error
	}{
		"none": {nil, nil, draws.ErrSize}, "labels": {[][]float64{{1}}, nil, draws.ErrSize},
		"ragged":   {[][]float64{{1}, {0.5, 0.5}}, []int{0, 0}, draws.ErrSize},
		"negative": {[][]float64{{-0.5, 1.5}}, []int{0}, draws.ErrRange},
		"sum":      {[][]float64{{0.5, 0.4}}, []int{0}, draws.ErrRange},
		"label":    {[][]float64{{0.5, 0.5}}, []int{2}, draws.ErrRange},
		"NaN":      {[][]float64{{nan, 1}}, []int{0}, draws.ErrRange},
	} {
		_, err := Score(logs(c.p), c.label)
		require.ErrorIs(t, err, c.kind, name)
		_, err = ClassCalibration(c.p, c.label, Binning{})
		require.ErrorIs(t, err, c.kind, name)
	}
	_, err := Calibration([]float64{0.5}, nil, Binning{})
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = Calibration([]float64{0.5}, []bool{true}, Binning{Bins: -1})
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = Calibration([]float64{1.5}, []bool{true}, Binning{})
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = EntropyOf(nil)
	require.ErrorIs(t, err, draws.ErrSize)
}
