// Package score says how good predictions are: averages over draws, scores, calibration and the parts of uncertainty.
//
//	err = predictive.AddLogits(logits)                          // of one draw, [case][class]
//	scores, err := score.Score(predictive.LogMean(), labels)    // log loss, Brier score, accuracy
//	r, err := score.ClassCalibration(predictive.Mean(), labels, score.Binning{})
//
// The package is plain Go and knows nothing of tensors. Its errors wrap [draws.ErrSize], [draws.ErrRange],
// [diag.ErrNotFinite] and [ErrSeparable].
package score

import (
	"errors"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// ErrSeparable is wrapped by the error of a temperature scaling whose best temperature is 0: every
// case is predicted right.
var ErrSeparable = errors.New("separable")

func failf(kind error, format string, args ...any) error {
	return sample.Failf("diag/score", kind, format, args...)
}

// checkProbability refuses probabilities outside [0, 1].
func checkProbability(what string, p float64) error {
	return sample.CheckProbability("diag/score", draws.ErrRange, what, p)
}
