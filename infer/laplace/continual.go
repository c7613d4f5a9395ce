package laplace

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// logPrior is LogPrior.
func logPrior(s Posterior, weight float64) (func(p infer.Params) torch.Tensor, error) {
	if err := single("LogPrior", s); err != nil {
		return nil, err
	}
	if err := method.CheckValue("laplace.LogPrior", "weight", weight, 0, true); err != nil {
		return nil, err
	}
	mean := s.Position()
	var constant float64
	var quadratic func(x *ts.Tensor) *ts.Tensor
	err := torch.Do(func(scope *torch.Scope) error {
		logDet, err := s.logDet(true)
		if err != nil {
			return err
		}
		constant = 0.5*logDet + 0.5*float64(mean.Layout.Dim())*math.Log(weight/(2*math.Pi))
		quadratic, err = s.quadratic(scope)
		mean.Flat = same(mean.Flat) // the prior may outlive the state
		scope.Keep(mean.Flat)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("laplace.LogPrior: %w", err)
	}
	return func(p infer.Params) torch.Tensor {
		if !p.Layout.Equal(mean.Layout) {
			torch.Must(p.Flat, fmt.Errorf("laplace.LogPrior: the point has layout %v, expected %v: %w", p.Layout,
				mean.Layout, infer.ErrLayout))
		}
		x := p.Flat.MustSub(mean.Flat, false)
		return torch.Of(quadratic(x)).Mul(-weight / 2).Add(constant)
	}, nil
}
