package vi

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
)

// Trace is an observer that records the NELBO of a run.
type Trace struct {
	Steps []int       // the update that each row belongs to
	NELBO [][]float64 // for each update, K numbers: estimates from its samples, before it moved
}

// Observe appends a row.
func (t *Trace) Observe(p infer.Progress) {
	if nelbo, ok := p.Info.Stats["nelbo"]; ok {
		t.Steps = append(t.Steps, p.Step)
		t.NELBO = append(t.NELBO, slices.Clone(nelbo))
	}
}

// Converged is a rule for the Until field of infer.Options. It compares the mean NELBO of each window of updates with
// that of the window before, and stops the run when, in every chain, they differ by at most relTol times the greatest
// of their absolute values and the temperature T. (Kucukelbir et al. 2017 compare single values.) The NELBO over T is
// in nats, whatever the scale of the log posterior, so that a run stops at the latest where a window changes it by less
// than relTol nats, also where the NELBO goes to 0. At T = 0 there is no such unit, and the values alone count. A
// KLWeight does not enter. The noise in the mean of a window bounds how small a tolerance makes sense.
//
// A window in which a chain was held has no mean, and does not stop the run. The rule remembers one run at a time; it
// starts anew with the next, and when a run is resumed from a checkpoint.
func Converged(window int, relTol float64) (func(infer.Progress) bool, error) {
	if window < 1 {
		return nil, &infer.FieldError{Type: "vi.Converged", Field: "window", Value: window,
			Allowed: "it must be at least 1"}
	}
	if err := method.CheckValue("vi.Converged", "relTol", relTol, 0, true); err != nil {
		return nil, err
	}
	var step int              // the last that was seen
	var before, sum []float64 // the means of the window before, the sums of this one
	var n int                 // updates in this one
	return func(p infer.Progress) bool {
		nelbo := p.Info.Stats["nelbo"]
		if len(nelbo) == 0 {
			return false
		}
		if p.Step != step+1 || len(nelbo) != len(sum) {
			before, sum, n = nil, make([]float64, len(nelbo)), 0
		}
		step = p.Step
		n++
		for k, v := range nelbo {
			sum[k] += v / float64(window)
		}
		if n < window {
			return false
		}
		done := before != nil
		for k := range before {
			done = done && math.Abs(sum[k]-before[k]) <= relTol*max(math.Abs(sum[k]), math.Abs(before[k]),
				p.Info.Temperature)
		}
		before, sum, n = sum, make([]float64, len(sum)), 0
		return done
	}, nil
}
