package sgmcmc

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// startWithMomenta are the first parameters and momenta of a method: copies of the point and of the given momenta, or,
// when these are nil, momenta of law N(0, scale²·root²), with root of shape [d], or 1 when nil.
func startWithMomenta(method string, p infer.Params, given *ts.Tensor, scale float64, root *ts.Tensor, streams *torch.Streams) (theta, m *ts.Tensor, err error) {
	if err := checkStreams(method, p, *streams); err != nil {
		return nil, nil, err
	}
	if err := checkGivenMomenta(method, p, given); err != nil {
		return nil, nil, err
	}
	err = torch.Do(func(scope *torch.Scope) (err error) {
		if theta, err = torch.Copy(p.Flat); err != nil {
			return err
		}
		if given != nil {
			m, err = momentaLike(theta, given)
		} else {
			var z *ts.Tensor
			if z, err = streams.NormalLike(p.Flat); err != nil {
				return err
			}
			if root != nil {
				if z, err = z.Mul(root, false); err != nil {
					return err
				}
			}
			m, err = torch.Combine(torch.Term{Coeff: scale, Tensor: z})
		}
		scope.Keep(theta, m)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", method, err)
	}
	return theta, m, nil
}

// checkGivenMomenta checks that given momenta are finite and fit the point; nil fits.
func checkGivenMomenta(method string, p infer.Params, given *ts.Tensor) error {
	if given == nil {
		return nil
	}
	shape, err := torch.Shape(given)
	if err != nil {
		return fmt.Errorf("%s: Momenta: %w", method, err)
	}
	want, err := torch.Shape(p.Flat)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	row := want[len(want)-1:]
	if !slices.Equal(shape, want) && !slices.Equal(shape, row) {
		allowed := fmt.Sprintf("it must be of the params' shape, %v", want)
		if len(want) > 1 {
			allowed += fmt.Sprintf(", or of shape %v for all chains alike", row)
		}
		return &infer.FieldError{Type: method, Field: "Momenta", Value: fmt.Sprintf("of shape %v", shape), Allowed: allowed}
	}
	if err := (infer.Params{Layout: p.Layout, Flat: given}).Check(); err != nil {
		return fmt.Errorf("%s: Momenta: %w", method, err)
	}
	return nil
}

// momentaLike copies momenta in the type and on the device of θ; one vector becomes a row for each chain.
func momentaLike(theta, momenta *ts.Tensor) (*ts.Tensor, error) {
	device, err := torch.DeviceOf(theta)
	if err != nil {
		return nil, err
	}
	dtype, err := torch.DTypeOfTensor(theta)
	if err != nil {
		return nil, err
	}
	if momenta, err = torch.To(momenta, device, dtype); err != nil {
		return nil, err
	}
	if momenta, err = momenta.Detach(false); err != nil {
		return nil, err
	}
	return torch.Combine(torch.Term{Coeff: 0, Tensor: theta}, torch.Term{Coeff: 1, Tensor: momenta})
}

// heldPair keeps the rows of the chains that diverged in the parameters and in the momenta.
func heldPair(theta, m, nextTheta, nextM *ts.Tensor, diverged []bool) (heldTheta, heldM *ts.Tensor, err error) {
	if heldTheta, err = method.Hold(theta, nextTheta, diverged); err != nil {
		return nil, nil, err
	}
	heldM, err = method.Hold(m, nextM, diverged)
	return heldTheta, heldM, err
}
