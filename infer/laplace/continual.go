package laplace

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// LogPrior makes a log prior of a posterior: the log density of N(θ̂, (λP)⁻¹), a function of a point of shape [d] that
// can be part of a log posterior, also under vmap,
//
//	½ log |λP| − (d/2) log 2π − (λ/2) (θ − θ̂)ᵀ P (θ − θ̂)
//
// It carries what was learned in one episode to the next. P holds the curvature of all episodes before, so one penalty,
// centred at the last optimum, takes the place of a sum of penalties centred at each (Huszár 2018, a correction of
// elastic weight consolidation). weight is λ; 1 is Bayes. The value is on the scale of the sum over data: a mean log
// posterior needs 1/N of it.
//
// The damping of the state is no part of P here, or it would add up over the episodes; neither is its temperature.
func LogPrior(s infer.State, weight float64) (func(p infer.Params) *ts.Tensor, error) {
	posterior, err := single("LogPrior", s)
	if err != nil {
		return nil, err
	}
	if err := method.CheckValue("laplace.LogPrior", "weight", weight, 0, true); err != nil {
		return nil, err
	}
	mean := s.Position()
	var constant float64
	var quadratic func(x *ts.Tensor) *ts.Tensor
	err = torch.Do(func(scope *torch.Scope) error {
		logDet, err := posterior.logDet(true)
		if err != nil {
			return err
		}
		constant = 0.5*logDet + 0.5*float64(mean.Layout.Dim())*math.Log(weight/(2*math.Pi))
		quadratic, err = posterior.quadratic(scope)
		mean.Flat = same(mean.Flat) // the prior may outlive the state
		scope.Keep(mean.Flat)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("laplace.LogPrior: %w", err)
	}
	return func(p infer.Params) *ts.Tensor {
		if !p.Layout.Equal(mean.Layout) {
			torch.Must(p.Flat, fmt.Errorf("laplace.LogPrior: the point has layout %v, expected %v: %w", p.Layout,
				mean.Layout, infer.ErrLayout))
		}
		x := p.Flat.MustSub(mean.Flat, false)
		return quadratic(x).MustMulScalar(ts.FloatScalar(-weight/2), false).MustAddScalar(ts.FloatScalar(constant),
			false)
	}, nil
}

// PrecisionOf is the precision of a posterior as the PriorPrecision of the next episode, P_n = P_{n−1} + curvature of
// episode n, without its damping. The precision of [KFAC] is a dense matrix here.
func PrecisionOf(s infer.State) (p Precision, err error) {
	posterior, err := posteriorOf("PrecisionOf", s)
	if err != nil {
		return p, err
	}
	return posterior.handed()
}
