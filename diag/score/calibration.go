package score

import (
	"math"
	"slices"
	"sort"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Bin is one bin of a [Reliability].
type Bin struct {
	// Low and High are the ends of the bin; confidences equal to High belong to it, and those equal to Low do not (but
	// 0 belongs to the first).
	Low, High float64
	// Cases is the number of cases; Confidence is the mean of their confidences and Accuracy the share that was right,
	// both NaN in an empty bin.
	Cases                int
	Confidence, Accuracy float64
}

// Reliability compares confidence with accuracy.
type Reliability struct {
	Bins []Bin // in the order of their probabilities
	// ECE is the expected calibration error, Σ (cases/n) |accuracy - confidence|; MCE is the largest of the differences.
	ECE, MCE float64
}

// Calibration bins the confidences, probabilities in [0, 1] that a prediction is right, and compares them with how
// often predictions were right. Guo, Pleiss, Sun and Weinberger (2017), Proceedings of Machine Learning Research 70.
// The error depends on the number of bins, and is above 0 also where predictions are calibrated. [draws.ErrSize] and
// [draws.ErrRange] are the errors.
func Calibration(confidence []float64, right []bool, binning Binning) (*Reliability, error) {
	if len(confidence) == 0 || len(right) != len(confidence) {
		return nil, failf(draws.ErrSize, "calibration: %d confidences and %d outcomes, want equally many and at least one",
			len(confidence), len(right))
	}
	high, err := binning.ends("calibration", confidence)
	if err != nil {
		return nil, err
	}
	r := &Reliability{Bins: make([]Bin, len(high))}
	for i, v := range confidence {
		b := &r.Bins[binOf(high, v)]
		b.Cases++
		b.Confidence += v
		if right[i] {
			b.Accuracy++
		}
	}
	low := 0.0
	for k := range r.Bins {
		b := &r.Bins[k]
		b.Low, b.High = low, high[k]
		low = b.High
		b.Confidence /= float64(b.Cases) // NaN for an empty bin
		b.Accuracy /= float64(b.Cases)
		if b.Cases > 0 {
			gap := math.Abs(b.Accuracy - b.Confidence)
			r.ECE += gap * float64(b.Cases) / float64(len(confidence))
			r.MCE = max(r.MCE, gap)
		}
	}
	return r, nil
}

// ClassCalibration is [Calibration] of the most probable class of predicted probabilities, [case][class].
func ClassCalibration(p [][]float64, label []int, binning Binning) (*Reliability, error) {
	if err := checkProbabilities("calibration", p, label); err != nil {
		return nil, err
	}
	confidence, right := make([]float64, len(p)), make([]bool, len(p))
	for i, row := range p {
		class, v := top(row)
		confidence[i], right[i] = v, class == label[i]
	}
	return Calibration(confidence, right, binning)
}

// CRPS is the continuous ranked probability score of predictive draws x for the outcome y,
//
//	mean |x - y| - (1/2) mean |x - x'|
//
// the second mean over all pairs of different draws, so that the score of few draws is unbiased ("fair"; Ferro
// 2014, Quarterly Journal of the Royal Meteorological Society 140, 1917-1923). It is in the units of y, 0 at best,
// |x - y| for a single draw. Gneiting and Raftery (2007). The time is n log n. [draws.ErrSize] and
// [diag.ErrNotFinite] are the errors.
func CRPS(x []float64, y float64) (float64, error) {
	if len(x) == 0 {
		return 0, failf(draws.ErrSize, "crps: no draws")
	}
	if low, high := sample.Extremes([][]float64{x, {y}}); math.IsNaN(low) || math.IsInf(low, 0) || math.IsInf(high, 0) {
		return 0, failf(diag.ErrNotFinite, "crps: a draw or the outcome is not finite")
	}
	sorted := sortedCopy(x)
	n := float64(len(x))
	toOutcome, pairs := 0.0, 0.0 // pairs: Σ over i < j of x(j) - x(i)
	for i, v := range sorted {
		toOutcome += math.Abs(v-y) / n
		pairs += (2*float64(i) - n + 1) * (v - sorted[0])
	}
	if n == 1 {
		return toOutcome, nil
	}
	return toOutcome - pairs/(n*(n-1)), nil
}

// PIT is the probability integral transform of the outcome y in the predictive draws x, (#{x < y} + #{x = y}/2) / n.
// Over many outcomes it is uniform where predictions are calibrated (Dawid 1984; Gneiting, Balabdaoui and Raftery 2007,
// Journal of the Royal Statistical Society B 69, 243-268). NaN if there are no draws, or one of them or y is NaN.
func PIT(x []float64, y float64) float64 {
	if low, _ := sample.Extremes([][]float64{x, {y}}); len(x) == 0 || math.IsNaN(low) {
		return math.NaN()
	}
	sorted := sortedCopy(x)
	return float64(below(sorted, y, false)+below(sorted, y, true)) / 2 / float64(len(x))
}

func sortedCopy(x []float64) []float64 {
	y := slices.Clone(x)
	slices.Sort(y)
	return y
}

// below counts the numbers of a sorted list that are less than v, or equal to it too.
func below(sorted []float64, v float64, orEqual bool) int {
	return sort.Search(len(sorted), func(i int) bool {
		if orEqual {
			return sorted[i] > v
		}
		return sorted[i] >= v
	})
}
