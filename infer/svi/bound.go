package svi

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Bound estimates a bound on a batch at T = 1, for each chain, from samples draws of the guide of the stream (seed,
// chain): on the scale of the sum over data, in nats. nil means [Trace]. Of data that were held out it says how well
// guide and model do on them.
func (s State) Bound(elbo ELBO, batch infer.Batch, samples int, seed uint64) (values []float64, err error) {
	if s.Optimizer == nil || s.plan == nil {
		return nil, fmt.Errorf("svi.State: Bound: the state is empty: a transform makes states")
	}
	if samples < 1 || samples > maxSamples {
		return nil, fmt.Errorf("svi.State: Bound: %d samples, there must be from 1 to %d: %w", samples, maxSamples,
			infer.ErrConfig)
	}
	if elbo == nil {
		elbo = Trace{}
	}
	if err := elbo.check(1); err != nil {
		return nil, err
	}
	err = torch.Do(func(*torch.Scope) error {
		return torch.NoGrad(func() error {
			phi := s.Optimizer.Position()
			k, n, d := int64(phi.Chains()), int64(samples), int64(phi.Layout.Dim())
			rows := phi.Flat.MustReshape([]int64{k, 1, d}, false).MustExpand([]int64{k, n, d}, true, false)
			streams := torch.NewStreams(seed, int(k))
			out, err := mapped(rows.MustReshape([]int64{k * n, d}, false), phi.Layout, &streams, samples,
				func(phi infer.Params, source *torch.Source) []*ts.Tensor {
					terms := s.plan.shoot(phi, batch, source).terms(weights{prior: 1, guide: 1}, elbo.closed())
					return []*ts.Tensor{total(terms)}
				})
			if err != nil {
				return err
			}
			values, err = torch.ToSlice[float64](elbo.bound(out[0].MustReshape([]int64{k, n}, false), 1))
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("svi.State: Bound: %w", err)
	}
	return values, nil
}
