package ekf

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// walk is the random walk of the parameters before each update: independent normal steps.
type walk struct {
	method string
	sd     infer.Schedule
	sds    *ts.Tensor // [d], or nil for 1
}

func newWalk(name string, sd infer.Schedule, sds *ts.Tensor) (walk, error) {
	least := infer.Constant(0)
	if sds != nil {
		least = infer.Constant(1)
	}
	sd, err := method.CheckSchedule(name, "TransitionSD", sd, least, 0, false)
	if err != nil || sds == nil {
		return walk{method: name, sd: sd}, err
	}
	// All updates use it, whatever becomes of the given one.
	err = torch.Do(func(*torch.Scope) error {
		sds, err = torch.Combine(torch.Term{Coeff: 1, Tensor: sds.MustDetach(false).MustMulScalar(ts.FloatScalar(1), false)})
		torch.Detach(sds)
		return err
	})
	if err != nil {
		return walk{}, fmt.Errorf("%s: TransitionSDs: %w", name, err)
	}
	return walk{method: name, sd: sd, sds: sds}, nil
}

// check checks the factors against the point that the filter starts at.
func (w walk) check(p infer.Params) error {
	if w.sds == nil {
		return nil
	}
	factors, err := positive(w.method, "TransitionSDs", w.sds, p, false, true)
	torch.Free(factors)
	return err
}

// at is q at an update.
func (w walk) at(step int64) (float64, error) {
	q := w.sd(step)
	return q, method.CheckValue(w.method, fmt.Sprintf("TransitionSD at update %d", step), q, 0, false)
}

// variance is the variance of a step: a tensor of shape [d], or [1] where all parameters have the same.
func (w walk) variance(q float64, p infer.Params) (*ts.Tensor, error) {
	device, err := torch.DeviceOf(p.Flat)
	if err != nil {
		return nil, err
	}
	if w.sds == nil {
		return ts.Full([]int64{1}, ts.FloatScalar(q*q), p.Flat.DType(), device)
	}
	factors, err := torch.To(w.sds, device, p.Flat.DType())
	if err != nil {
		return nil, err
	}
	return factors.MustDetach(false).MustSquare(false).MulScalar(ts.FloatScalar(q*q), false)
}

// initialVariance is the variance to start with, of the shape of the point.
func initialVariance(method string, sd float64, sds *ts.Tensor, p infer.Params) (v *ts.Tensor, err error) {
	if sds != nil {
		if sds, err = positive(method, "InitSDs", sds, p, true, false); err != nil {
			return nil, err
		}
	}
	err = torch.Do(func(scope *torch.Scope) error {
		if sds == nil {
			device, err := torch.DeviceOf(p.Flat)
			if err != nil {
				return err
			}
			v, err = ts.Full(torch.Must(torch.Shape(p.Flat)), ts.FloatScalar(sd*sd), p.Flat.DType(), device)
			scope.Keep(v)
			return err
		}
		zeros, err := torch.Combine(torch.Term{Coeff: 0, Tensor: p.Flat}, torch.Term{Coeff: 1, Tensor: sds.MustSquare(false)})
		v = zeros
		scope.Keep(v)
		return err
	})
	return v, err
}
