package vi

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Linearized is the law of a model's outputs when the model is linearised at μ:
//
//	z_i ~ N(f(μ, x_i), J_i FFᵀ J_iᵀ + NoiseSD² I)
//
// with the mean of shape [n, C] and the covariance [n, C, C], as [curvature.Linearized] has them. The temperature is in
// F. The state must be of one distribution.
func (s State) Linearized(f curvature.Forward, b infer.Batch, o curvature.LinearizedOptions) (mean, cov *ts.Tensor,
	err error) {
	switch {
	case s.empty():
		return nil, nil, fmt.Errorf("vi.State: Linearized: the state is empty: a transform makes states: %w",
			infer.ErrConfig)
	case s.Mean.Chains() > 1:
		return nil, nil, fmt.Errorf("vi.State: Linearized: the state has %d distributions: fit one at a time: %w",
			s.Mean.Chains(), infer.ErrConfig)
	}
	err = torch.Do(func(scope *torch.Scope) error {
		one := func(x *ts.Tensor) *ts.Tensor { return x.MustSelect(0, 0, false) }
		p := infer.Params{Layout: s.Mean.Layout, Flat: one(rows(s.Mean.Flat))}
		switch q := s.gaussian().(type) {
		case diagGaussian:
			mean, cov, err = curvature.Linearized(f, p, b, one(q.variance()), o)
		case lowRankGaussian:
			// The factor [W, diag e^s] has d columns too many.
			if mean, cov, err = curvature.LinearizedFactor(f, p, b, one(q.w), o); err != nil {
				return err
			}
			o.NoiseSD = 0
			_, rest, failed := curvature.Linearized(f, p, b, one(one(q.sd)).MustSquare(false), o)
			if failed != nil {
				return failed
			}
			cov = cov.MustAdd(rest, false)
		default:
			mean, cov, err = curvature.LinearizedFactor(f, p, b, one(q.factor()), o)
		}
		scope.Keep(mean, cov)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("vi.State: Linearized: %w", err)
	}
	return mean, cov, nil
}
