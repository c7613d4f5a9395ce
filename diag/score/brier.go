package score

import "github.com/kelvin-ppl/kelvin/draws"

// BrierScore is the Brier score of a binary prediction and its parts. With the n(k) cases of bin k, their mean
// probability f(k) and share of y = 1 o(k), o the share of all, and sums over cases j of a bin:
//
//	Reliability = (1/n) Σ n(k) (f(k) - o(k))²              0 where predictions are calibrated
//	Resolution  = (1/n) Σ n(k) (o(k) - o)²                 how far bins differ
//	Uncertainty = o (1 - o)                                of the data
//	Within      = (1/n) ΣΣ (p(j) - f(k))²                  variance of the predictions in their bins
//	Covariance  = (2/n) ΣΣ (p(j) - f(k)) (y(j) - o(k))     what that variance is worth
//
//	Score = Reliability - Resolution + Uncertainty + Within - Covariance
//
// Murphy (1973), Journal of Applied Meteorology 12, 595-600, has the first three, which suffice if the predictions in a
// bin are equal; Stephenson, Coelho and Jolliffe (2008), Weather and Forecasting 23, 752-757, the others.
type BrierScore struct {
	// Score is the mean of (p - y)², half of [Scores].Brier with two classes.
	Score                                                    float64
	Reliability, Resolution, Uncertainty, Within, Covariance float64
}

// Refinement is Resolution - Within + Covariance, the generalised resolution of Stephenson, Coelho and Jolliffe (2008):
// Score is Reliability - Refinement + Uncertainty.
func (b BrierScore) Refinement() float64 { return b.Resolution - b.Within + b.Covariance }

// BrierOf is the Brier score of the probabilities p of y = 1. [draws.ErrSize] and [draws.ErrRange] are the errors.
func BrierOf(p []float64, y []bool, binning Binning) (BrierScore, error) {
	if len(p) == 0 || len(p) != len(y) {
		return BrierScore{}, failf(draws.ErrSize,
			"brier: %d probabilities and %d outcomes, want equally many and at least one", len(p), len(y))
	}
	high, err := binning.ends("brier", p)
	if err != nil {
		return BrierScore{}, err
	}
	n := float64(len(p))
	cases, f, o := make([]float64, len(high)), make([]float64, len(high)), make([]float64, len(high))
	all := 0.0
	for i, v := range p {
		k := binOf(high, v)
		cases[k]++
		f[k] += v
		o[k] += indicator(y[i])
		all += indicator(y[i]) / n
	}
	b := BrierScore{Uncertainty: all * (1 - all)}
	for k, c := range cases {
		if c == 0 {
			continue
		}
		f[k] /= c
		o[k] /= c
		b.Reliability += c / n * (f[k] - o[k]) * (f[k] - o[k])
		b.Resolution += c / n * (o[k] - all) * (o[k] - all)
	}
	for i, v := range p {
		k, out := binOf(high, v), indicator(y[i])
		b.Score += (v - out) * (v - out) / n
		b.Within += (v - f[k]) * (v - f[k]) / n
		b.Covariance += 2 * (v - f[k]) * (out - o[k]) / n
	}
	return b, nil
}

func indicator(y bool) float64 {
	if y {
		return 1
	}
	return 0
}
