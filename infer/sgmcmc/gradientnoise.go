package sgmcmc

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// checkNoise checks EstimateBeta: it takes the place of Beta.
func checkNoise(method string, e *Estimate, beta float64) (*Estimate, error) {
	if e == nil {
		return nil, nil
	}
	if beta != 0 {
		return nil, &infer.FieldError{Type: method, Field: "Beta", Value: beta, Allowed: "it must be 0 when EstimateBeta is given, which finds it"}
	}
	checked, err := e.check(method, "EstimateBeta", 2)
	return &checked, err
}

// variance estimates V, the variance of the gradient of one minibatch, for each element: the variance of the gradients of several
// minibatches. It is unbiased for minibatches that are independent of each other; for B of N data without replacement it is
// N/(N − B) times V on average. A chain that meets something not finite keeps its old estimate, or 0. It belongs to no scope. Where nothing is
// to be estimated it is the old one.
func (e *Estimate) variance(name string, g infer.Gradient, p infer.Params, old *ts.Tensor, next func() (infer.Batch, error)) (variance *ts.Tensor, err error) {
	if e == nil {
		return old, nil
	}
	err = torch.Do(func(*torch.Scope) error {
		_, square, diverged, err := gradientMoments(g, p, next, e.Batches)
		if err != nil {
			return err
		}
		if variance, err = torch.Combine(torch.Term{Coeff: 1 / float64(e.Batches-1), Tensor: square}); err != nil {
			return err
		}
		if old == nil {
			if old, err = variance.ZerosLike(false); err != nil {
				return err
			}
		}
		if variance, err = method.Hold(old, variance, diverged); err != nil {
			return err
		}
		torch.Detach(variance)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: estimating β: %w", name, err)
	}
	return variance, nil
}

// withEstimatedNoise appends noise that makes up for what the gradient lacks of the noise that is wanted: injected
// noise has variance wanted, times the masses unless they are nil, less the gradient's own, lost·V. Where there is more of
// that than is wanted, nothing is injected; the statistic "clipped" is the share of such elements in each chain.
func withEstimatedNoise(terms []torch.Term, wanted float64, masses *ts.Tensor, lost float64, v, like *ts.Tensor, streams *torch.Streams) (all []torch.Term, stats map[string][]float64, err error) {
	if wanted == 0 {
		shape, err := torch.Shape(like)
		if err != nil {
			return nil, nil, err
		}
		chains := int64(1)
		if len(shape) > 1 {
			chains = shape[0]
		}
		return terms, map[string][]float64{"clipped": make([]float64, chains)}, nil
	}
	variance, err := torch.Combine(torch.Term{Coeff: -lost, Tensor: v})
	if err != nil {
		return nil, nil, err
	}
	if masses == nil {
		err = variance.AddScalar_(ts.FloatScalar(wanted))
	} else {
		variance, err = torch.Combine(torch.Term{Coeff: 1, Tensor: variance}, torch.Term{Coeff: wanted, Tensor: masses})
	}
	if err != nil {
		return nil, nil, err
	}
	clipped, err := shareBelowZero(variance)
	if err != nil {
		return nil, nil, err
	}
	if slices.Max(clipped) > 0 {
		if err = variance.ClampMin_(ts.FloatScalar(0)); err != nil {
			return nil, nil, err
		}
	}
	sd := variance
	if err = sd.Sqrt_(); err != nil {
		return nil, nil, err
	}
	z, err := streams.NormalLike(like)
	if err != nil {
		return nil, nil, err
	}
	if err = z.Mul_(sd); err != nil {
		return nil, nil, err
	}
	return append(terms, torch.Term{Coeff: 1, Tensor: z}), map[string][]float64{"clipped": clipped}, nil
}

// shareBelowZero is the share of negative elements in each row.
func shareBelowZero(x *ts.Tensor) ([]float64, error) {
	least, err := x.Amin([]int64{-1}, false, false)
	if err != nil {
		return nil, err
	}
	low, err := torch.ToSlice[float64](least)
	if err != nil {
		return nil, err
	}
	if slices.Min(low) >= 0 {
		return make([]float64, len(low)), nil
	}
	below, err := x.Lt(ts.FloatScalar(0), false)
	if err != nil {
		return nil, err
	}
	share, err := below.MeanDim([]int64{-1}, false, torch.DTypeOf[float64](), false)
	if err != nil {
		return nil, err
	}
	return torch.ToSlice[float64](share)
}

// checkPrepared makes sure that an estimate was made before the first update.
func checkPrepared(method string, e *Estimate, v *ts.Tensor) error {
	if e == nil || v != nil {
		return nil
	}
	return fmt.Errorf("%s: EstimateBeta is given and nothing was estimated yet: call Prepare before Update, as infer.Run does: %w", method, infer.ErrConfig)
}

const varianceName, massName = "gradient_variance", "mass"

// shared are the estimates of a state.
func shared(variance *ts.Tensor, m *masses) infer.Tensors {
	if variance == nil && m == nil {
		return nil
	}
	out := infer.Tensors{}
	if variance != nil {
		out[varianceName] = variance
	}
	if m != nil {
		out[massName] = m.mass
	}
	return out
}
