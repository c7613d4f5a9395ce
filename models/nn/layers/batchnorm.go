package layers

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// BatchNorm normalises each channel of inputs [channels, ...] (Ioffe and Szegedy 2015):
//
//	y = scale (x − mean) / √(variance + Epsilon) + bias
//
// Its sites are "scale" and "bias", [channels], and the choice is where mean and variance come from:
//
//   - As it is, they are the sites "mean" and "variance", [channels], so that the network is a function of one datum.
//     [FreezeMoments] finds their values, infer.Subspace holds them there.
//   - With Batch they are those of the batch at hand, over its data and the axes after the channels; the variance is
//     divided by their number. Then the likelihood of a datum depends on the other data of its batch, a minibatch
//     estimates the log likelihood of no model, and SG-MCMC with it samples from no known posterior (Wenzel et al.
//     2020, appendix K). Gradients for each datum do not exist either: mapped over data, each is a batch of one.
//
// [FRN] normalises without this.
type BatchNorm struct {
	Batch   bool
	Epsilon float64 // 0 means 1e-5
}

// Plan takes [channels] and [channels, ...].
func (l BatchNorm) Plan(in []int) (nn.Plan, error) {
	if len(in) == 0 {
		return nn.Plan{}, misfit(in, "[channels, ...]")
	}
	epsilon, err := positive("BatchNorm", "Epsilon", l.Epsilon, 1e-5)
	if err != nil {
		return nn.Plan{}, err
	}
	axes, shape := append([]int{0}, rest(in)...), along(in)
	params := []nn.Param{perFeature("scale", in[0], false, 1), perFeature("bias", in[0], true, 0)}
	if !l.Batch {
		params = append(params, perFeature("mean", in[0], true, 0), perFeature("variance", in[0], false, 1))
	}
	return nn.Plan{
		Out:    in,
		Params: params,
		Forward: func(c nn.Call, x torch.Tensor) torch.Tensor {
			if l.Batch && c.Observe == nil && len(in) > 1 {
				// libtorch's own has fewer passes over images. Compiled gradients know the operations below instead.
				return torch.Of(ts.MustBatchNorm(x.T(), c.Params[0].T(), c.Params[1].T(), ts.None, ts.None, true, 0, epsilon,
					true))
			}
			var mean, variance torch.Tensor
			if l.Batch {
				mean = x.Mean(axes...)
				x = x.Sub(mean.Reshape(shape...))
				variance = x.Square().Mean(axes...)
			} else {
				mean, variance = c.Params[2], c.Params[3]
				x = x.Sub(mean.Reshape(shape...))
			}
			if l.Batch && c.Observe != nil {
				c.Observe("mean", mean)
				c.Observe("variance", variance)
			}
			factor := c.Params[0].Div(variance.Add(epsilon).Sqrt())
			return x.Mul(factor.Reshape(shape...)).Add(c.Params[1].Reshape(shape...))
		},
	}, nil
}

// FreezeMoments gives a network whose BatchNorm layers hold their moments the point p of the same network with Batch:
// the moments are those of the data x, [n, in...], all in one batch, and every other site is p's.
func FreezeMoments(batch, frozen *nn.Network, p infer.Params, x torch.Tensor) (infer.Params, error) {
	if batch == nil || frozen == nil {
		return infer.Params{}, fmt.Errorf("layers.FreezeMoments: two networks are needed: %w", infer.ErrConfig)
	}
	out := infer.Params{Layout: frozen.Layout()}
	err := torch.Do(func(s *torch.Scope) error {
		return torch.NoGrad(func() error {
			moments := map[string]torch.Tensor{}
			batch.ForwardWith(p, x, nn.Run{Observe: func(site string, v torch.Tensor) { moments[site] = v }})
			var parts []torch.Tensor
			for _, site := range frozen.Layout().Sites {
				v, ok := moments[site.Name]
				if _, own := p.Layout.Site(site.Name); !ok && !own {
					have := slices.Sorted(maps.Keys(moments))
					return &infer.ModelError{Name: site.Name, What: "site", Have: append(p.Layout.Names(), have...)}
				}
				if !ok {
					v = p.Get(site.Name)
				}
				if v.Numel() != site.Size {
					return fmt.Errorf("site %q has shape %v: expected %v: %w", site.Name, v.Shape(), site.Shape,
						infer.ErrLayout)
				}
				parts = append(parts, v.Reshape(-1))
			}
			out.Flat = torch.Cat(0, parts)
			s.Keep(out.Flat)
			return nil
		})
	})
	if err != nil {
		return infer.Params{}, fmt.Errorf("layers.FreezeMoments: %w", err)
	}
	return out, nil
}
