package score

import (
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// TemperatureScaling is the temperature that logits are divided by for calibration.
type TemperatureScaling struct {
	// T is the temperature: above 1 predictions were over-confident, below 1 under-confident.
	T float64
	// Before and After are the mean negative log likelihoods of the data at temperature 1 and T; After is not larger.
	Before, After float64
}

// FitTemperature finds the temperature of logits z, [case][class], that maximises the likelihood of labels,
//
//	NLL(b) = (1/n) Σ log Σ exp(b z(k)) - b z(y),  b = 1/T
//
// Guo, Pleiss, Sun and Weinberger (2017), Proceedings of Machine Learning Research 70. The data should be validation
// data, not those that trained the model. NLL is convex in b; its minimum is found by Newton's method between brackets,
// to a relative accuracy of 1e-12. Dividing logits by T keeps their order and so the accuracy.
//
// There is no minimum at T above 0 and finite, and the error wraps
//   - [ErrSeparable], where every label has the largest logit: the likelihood rises as T falls to 0
//   - [draws.ErrRange], where logits say nothing of the labels, or the wrong thing: it rises as T goes to infinity
//
// [draws.ErrSize], [diag.ErrNotFinite], and [draws.ErrRange] for labels are the other errors.
func FitTemperature(logits [][]float64, label []int) (TemperatureScaling, error) {
	if err := checkLabels("temperature scaling", logits, label); err != nil {
		return TemperatureScaling{}, err
	}
	if err := checkLogits("temperature scaling", logits); err != nil {
		return TemperatureScaling{}, err
	}
	// Margins z(k) - z(y) in units of the largest, so that b is of order 1 up.
	scale := 0.0
	above := false // some margin is positive: a label that is not the top class
	margins := make([][]float64, len(logits))
	for i, row := range logits {
		margins[i] = make([]float64, len(row))
		for k, v := range row {
			d := v - row[label[i]]
			margins[i][k] = d
			scale = max(scale, math.Abs(d))
			above = above || d > 0
		}
	}
	if math.IsInf(scale, 1) {
		return TemperatureScaling{}, failf(diag.ErrNotFinite, "temperature scaling: differences of logits overflow")
	}
	if scale == 0 {
		return TemperatureScaling{}, failf(draws.ErrRange, "temperature scaling: the logits of each case are equal, "+
			"so that no temperature matters")
	}
	for _, row := range margins {
		for k := range row {
			row[k] /= scale
		}
	}
	if _, slope, _ := temperedNLL(margins, 0); slope >= 0 {
		return TemperatureScaling{}, failf(draws.ErrRange,
			"temperature scaling: labels are no likelier at large logits, so that the best temperature is infinite")
	}
	if !above {
		return TemperatureScaling{}, failf(ErrSeparable,
			"temperature scaling: the label of every case has the largest logit, so that the best temperature is 0; "+
				"use more, or harder, data")
	}
	b, err := temperatureRoot(margins)
	if err != nil {
		return TemperatureScaling{}, err
	}
	t := TemperatureScaling{T: scale / b}
	t.Before, _, _ = temperedNLL(margins, scale)
	t.After, _, _ = temperedNLL(margins, b)
	if t.After > t.Before { // by rounding, where T is 1 but for that
		t.T, t.After = 1, t.Before
	}
	return t, nil
}

// temperatureRoot is where the slope of the NLL is 0: below 0 at 0, above 0 far out.
func temperatureRoot(margins [][]float64) (float64, error) {
	low, high := 0.0, 1.0
	for {
		_, slope, _ := temperedNLL(margins, high)
		if slope >= 0 {
			break
		}
		low, high = high, 2*high
		if math.IsInf(high, 1) {
			return 0, failf(ErrSeparable, "temperature scaling: the best temperature is 0 but for rounding")
		}
	}
	b := (low + high) / 2
	for range 200 {
		_, slope, curvature := temperedNLL(margins, b)
		switch {
		case slope == 0:
			return b, nil
		case slope < 0:
			low = b
		default:
			high = b
		}
		next := b - slope/curvature
		if !(next > low && next < high) { // outside, or no curvature
			next = (low + high) / 2
		}
		if math.Abs(next-b) <= 1e-13*b || high-low <= 1e-13*high {
			return next, nil
		}
		b = next
	}
	return 0, failf(draws.ErrRange, "temperature scaling: 1/T is between %v and %v of the largest margin after 200 steps",
		low, high)
}

// temperedNLL is the mean of log Σ exp(b d(k)) with its first two derivatives in b, of margins d.
func temperedNLL(margins [][]float64, b float64) (value, slope, curvature float64) {
	n := float64(len(margins))
	for _, d := range margins {
		class, largest := top(d)
		rest, first := 0.0, 0.0 // sums over the other classes, of weights exp(b (d - largest))
		for k, v := range d {
			if k != class {
				w := math.Exp(b * (v - largest))
				rest += w
				first += w * (v - largest)
			}
		}
		mean := first / (1 + rest) // of d less the largest
		square := mean * mean
		for k, v := range d {
			if k != class {
				u := v - largest - mean
				square += math.Exp(b*(v-largest)) * u * u
			}
		}
		value += (b*largest + math.Log1p(rest)) / n
		slope += (largest + mean) / n
		curvature += square / (1 + rest) / n
	}
	return value, slope, curvature
}

// FitBinaryTemperature is [FitTemperature] of logits of y = 1, one per case.
func FitBinaryTemperature(logits []float64, y []bool) (TemperatureScaling, error) {
	if len(logits) != len(y) {
		return TemperatureScaling{}, failf(draws.ErrSize, "temperature scaling: %d logits and %d outcomes, want equally many",
			len(logits), len(y))
	}
	rows, label := make([][]float64, len(logits)), make([]int, len(y))
	for i, z := range logits {
		rows[i] = []float64{0, z}
		if y[i] {
			label[i] = 1
		}
	}
	return FitTemperature(rows, label)
}

// LogProbabilities are the calibrated log probabilities of logits, [case][class]: the log softmax of z/T.
func (t TemperatureScaling) LogProbabilities(logits [][]float64) [][]float64 {
	p := make([][]float64, len(logits))
	for i, row := range logits {
		z := make([]float64, len(row))
		for k, v := range row {
			z[k] = v / t.T
		}
		p[i] = logSoftmax(z)
	}
	return p
}
