package ekf

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// walk is the random walk of the parameters before each update: independent normal steps.
type walk struct {
	sd  infer.Schedule
	sds torch.Tensor // [d], or nil for 1
}

// check looks at the schedule: without one it is 0, or 1 where there are factors.
func (w *walk) check(c *method.Checks) {
	least := 0.0
	if w.sds != (torch.Tensor{}) {
		least = 1
	}
	c.Schedule("TransitionSD", &w.sd, least, false)
}

// copied copies the factors: all updates use them, whatever becomes of the given ones.
func (w *walk) copied(name string) error {
	if w.sds == (torch.Tensor{}) {
		return nil
	}
	err := torch.Do(func(*torch.Scope) error {
		w.sds = approx.Copy(torch.Of(w.sds.T().MustDetach(false).MustMulScalar(ts.FloatScalar(1), false)))
		torch.Detach(w.sds)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: TransitionSDs: %w", name, err)
	}
	return nil
}

// at is q at an update.
func (w walk) at(name string, step int) (float64, error) {
	q := w.sd(step)
	return q, method.CheckValue(name, fmt.Sprintf("TransitionSD at update %d", step), q, 0, false)
}

// variance is the variance of a step: a tensor of shape [d], or [1] where all parameters have the same.
func (w walk) variance(q float64, p infer.Params) torch.Tensor {
	device := torch.Must(torch.DeviceOf(p.Flat))
	if w.sds == (torch.Tensor{}) {
		return torch.Of(ts.MustFull([]int64{1}, ts.FloatScalar(q*q), p.Flat.T().DType(), device))
	}
	factors := torch.Must(torch.To(w.sds, device, p.Flat.T().DType())).T().MustDetach(false)
	return torch.Of(factors.MustSquare(false).MustMulScalar(ts.FloatScalar(q*q), false))
}

// initialVariance is the variance to start with, of the shape of the point.
func (o *options) initialVariance(p infer.Params) torch.Tensor {
	if o.sds == (torch.Tensor{}) {
		return torch.Of(ts.MustFull(p.Flat.T().MustSize(), ts.FloatScalar(o.sd*o.sd), p.Flat.T().DType(),
			torch.Must(torch.DeviceOf(p.Flat))))
	}
	sds := positive(o.name, "InitSDs", o.sds, p, true, false)
	return approx.Copy(torch.Of(sds.Square().T().MustExpandAs(p.Flat.T(), false)))
}

// positive checks a tensor of one number for each parameter, positive or at least not negative, and copies it in the
// type and on the device of the point. The shape is [d], or that of the point where chains is set.
func positive(name, field string, given torch.Tensor, p infer.Params, chains, zero bool) torch.Tensor {
	shape, err := torch.Shape(given)
	if err != nil {
		approx.Fail("%s: %s: %w", name, field, err)
	}
	d, want := p.Layout.Dim(), p.Flat.Shape()
	if !slices.Equal(shape, []int{d}) && !(chains && slices.Equal(shape, want)) {
		allowed := fmt.Sprintf("it must be of shape [%d], one number for each parameter", d)
		if chains && len(want) == 2 {
			allowed += fmt.Sprintf(", or %v", want)
		}
		approx.Try(&infer.FieldError{Type: name, Field: field, Value: fmt.Sprintf("of shape %v", shape), Allowed: allowed})
	}
	v, err := torch.ToSlice[float64](given)
	if err != nil {
		approx.Fail("%s: %s: %w", name, field, err)
	}
	for i, x := range v {
		approx.Try(method.CheckValue(name, field+" of "+p.Layout.At(i%d), x, 0, !zero))
	}
	return like(p.Flat, given)
}

// like copies x in the type and on the device of another tensor, outside any graph.
func like(other, x torch.Tensor) torch.Tensor {
	return approx.Copy(torch.Of(torch.Must(torch.To(x, torch.Must(torch.DeviceOf(other)),
		other.T().DType())).T().MustDetach(false)))
}
