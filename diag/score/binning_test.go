package score

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Bins of equal mass hold n/bins cases each, equal probabilities stay together, and every case is in the
// bin of its ends.
func TestEqualMass(t *testing.T) {
	rng := source(80)
	p, y := make([]float64, 1200), make([]bool, 1200)
	for i := range p {
		p[i] = math.Pow(rng.Float64(), 0.1)
		y[i] = rng.Float64() < p[i]
	}
	r, err := Calibration(p, y, Binning{Bins: 8, EqualMass: true})
	require.NoError(t, err)
	require.Len(t, r.Bins, 8)
	for k, b := range r.Bins {
		require.Equal(t, 150, b.Cases)
		inside := 0
		for _, v := range p {
			if v > b.Low && v <= b.High {
				inside++
			}
		}
		require.Equal(t, 150, inside)
		if k > 0 {
			require.Equal(t, r.Bins[k-1].High, b.Low)
		}
	}
	require.Zero(t, r.Bins[0].Low)
	require.Equal(t, 1.0, r.Bins[7].High)

	for _, c := range []struct {
		p     []float64
		bins  int
		cases []int
	}{
		{[]float64{0.3, 0.3, 0.3, 0.3}, 3, []int{4}},
		{[]float64{0.1, 0.5, 0.5, 0.5, 0.5, 0.9}, 3, []int{5, 1}},
		{[]float64{0.2, 0.9, 0.4}, 10, []int{1, 1, 1}},
		{[]float64{0, 0, 0, 1, 1}, 2, []int{3, 2}},
		{[]float64{0.5, 0.1, 0.7, 0.2, 0.6}, 2, []int{3, 2}},
	} {
		r, err := Calibration(c.p, make([]bool, len(c.p)), Binning{Bins: c.bins, EqualMass: true})
		require.NoError(t, err)
		var cases []int
		for _, b := range r.Bins {
			cases = append(cases, b.Cases)
		}
		require.Equal(t, c.cases, cases, c.p)
		order := slices.Clone(c.p)
		slices.Reverse(order)
		again, err := Calibration(order, make([]bool, len(c.p)), Binning{Bins: c.bins, EqualMass: true})
		require.NoError(t, err)
		require.InDelta(t, r.ECE, again.ECE, 1e-15)
	}
	c, err := ClassCalibration([][]float64{{0.9, 0.1}, {0.2, 0.8}, {0.6, 0.4}}, []int{0, 0, 0},
		Binning{Bins: 3, EqualMass: true})
	require.NoError(t, err)
	require.InDelta(t, (0.4+0.8+0.1)/3, c.ECE, 1e-15)
	_, err = Calibration([]float64{0.1}, []bool{true}, Binning{Bins: -1, EqualMass: true})
	require.EqualError(t, err, "diag/score: calibration: -1 bins, want at least 1, or 0 for 15")
	_, err = Calibration([]float64{nan}, []bool{true}, Binning{EqualMass: true})
	require.ErrorIs(t, err, draws.ErrRange)
}

// The parts add up to the score with any bins, and where predictions in a bin are equal the last two
// are 0 (Murphy 1973).
func TestBrierOf(t *testing.T) {
	rng := source(81)
	p, y := make([]float64, 500), make([]bool, 500)
	for i := range p {
		p[i] = rng.Float64()
		y[i] = rng.Float64() < p[i]*p[i] // not calibrated
	}
	for _, binning := range []Binning{{}, {Bins: 1}, {Bins: 3}, {Bins: 7, EqualMass: true},
		{Bins: 500, EqualMass: true}} {
		b, err := BrierOf(p, y, binning)
		require.NoError(t, err)
		want := 0.0
		for i, v := range p {
			want += math.Pow(v-indicator(y[i]), 2) / 500
		}
		require.InDelta(t, want, b.Score, 1e-14)
		require.InDelta(t, want, b.Reliability-b.Resolution+b.Uncertainty+b.Within-b.Covariance, 1e-14, binning)
		require.InDelta(t, want, b.Reliability-b.Refinement()+b.Uncertainty, 1e-14)
		if binning.Bins == 3 {
			require.Greater(t, b.Within, 0.001) // the three terms alone are not exact
			require.Greater(t, b.Reliability, 0.005)
		}
	}
	two := [][]float64{{0.3, 0.7}, {0.8, 0.2}}
	s, err := Score(logs(two), []int{1, 1})
	require.NoError(t, err)
	b, err := BrierOf([]float64{0.7, 0.2}, []bool{true, true}, Binning{})
	require.NoError(t, err)
	require.InDelta(t, s.Brier/2, b.Score, 1e-15)

	// By hand: 4 cases at 0.25 with 2 hits and 2 at 0.75 with 2 hits; o = 4/6.
	b, err = BrierOf([]float64{0.25, 0.25, 0.25, 0.25, 0.75, 0.75}, []bool{true, true, false, false, true, true},
		Binning{Bins: 2})
	require.NoError(t, err)
	require.InDelta(t, 4.0/6*0.0625+2.0/6*0.0625, b.Reliability, 1e-15)
	require.InDelta(t, 4.0/6/36+2.0/6/9, b.Resolution, 1e-15)
	require.InDelta(t, 2.0/9, b.Uncertainty, 1e-15)
	require.Zero(t, b.Within)
	require.Zero(t, b.Covariance)
	_, err = BrierOf(nil, nil, Binning{})
	require.EqualError(t, err, "diag/score: brier: 0 probabilities and 0 outcomes, want equally many and at least one")
	_, err = BrierOf([]float64{2}, []bool{true}, Binning{})
	require.ErrorIs(t, err, draws.ErrRange)
}

func TestReliabilityText(t *testing.T) {
	r, err := Calibration([]float64{0, 0.5, 0.5, 0.75, 1, 1}, []bool{false, true, false, true, true, true},
		Binning{Bins: 4})
	require.NoError(t, err)
	require.Equal(t, `confidence   cases  accuracy
0.000-0.250      1  0.000 |
0.250-0.500      2  0.500 ####################|
0.500-0.750      1  1.000 ##############################|#########
0.750-1.000      2  1.000 ########################################|
ECE 0.0417, largest gap 0.2500
`, r.String())
	var b bytes.Buffer
	require.NoError(t, r.Format(&b))
	require.Equal(t, r.String(), b.String())
	require.ErrorContains(t, r.Format(brokenWriter{}), "diag/score: write reliability diagram: broken")
	low, high := r.Bins[1].AccuracyInterval(0.95) // of 1 in 2: 1 - sqrt(0.975) at the lower end
	require.InDelta(t, 1-math.Sqrt(0.975), low, 1e-12)
	require.InDelta(t, math.Sqrt(0.975), high, 1e-12)
	low, _ = Bin{}.AccuracyInterval(0.95)
	require.True(t, math.IsNaN(low))
	low, _ = r.Bins[1].AccuracyInterval(1)
	require.True(t, math.IsNaN(low))
}
