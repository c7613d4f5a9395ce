package method

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Noise appends scale·z to the terms of an update, with z standard normal in the form of like. At scale
// 0 nothing is drawn.
func (m *Move) Noise(scale float64, like *ts.Tensor, terms ...torch.Term) []torch.Term {
	if scale == 0 {
		return terms
	}
	return append(terms, Term(scale, m.Normal(like)))
}

// CorrectedNoise appends noise that makes up for what the gradient lacks of the noise that is wanted: injected
// noise has variance wanted, times the masses unless they are nil, less the gradient's own, lost·V. If the gradient
// noise already exceeds the wanted noise, nothing is injected; the statistic "clipped" is the share of such
// elements in each chain.
func (m *Move) CorrectedNoise(wanted float64, masses *ts.Tensor, lost float64, v, like *ts.Tensor,
	terms ...torch.Term) []torch.Term {
	if v == nil {
		torch.Must(0, fmt.Errorf("EstimateBeta is given and nothing was estimated yet: call Prepare before "+
			"Update, as infer.Run does: %w",
			infer.ErrConfig))
	}
	if wanted == 0 {
		m.Info.Stats = map[string][]float64{"clipped": make([]float64, len(m.Info.LogPosterior))}
		return terms
	}
	variance := Combine(Term(-lost, v))
	if masses == nil {
		variance.MustAddScalar_(ts.FloatScalar(wanted))
	} else {
		variance = Combine(Term(1, variance), Term(wanted, masses))
	}
	clipped := shareBelowZero(variance)
	m.Info.Stats = map[string][]float64{"clipped": clipped}
	if slices.Max(clipped) > 0 {
		variance.MustClampMin_(ts.FloatScalar(0))
	}
	variance.MustSqrt_()
	z := m.Normal(like)
	z.MustMul_(variance)
	return append(terms, Term(1, z))
}

// shareBelowZero is the share of negative elements in each row.
func shareBelowZero(x *ts.Tensor) []float64 {
	low := torch.Must(torch.ToSlice[float64](x.MustAmin([]int64{-1}, false, false)))
	if slices.Min(low) >= 0 {
		return make([]float64, len(low))
	}
	below := x.MustLt(ts.FloatScalar(0), false)
	return torch.Must(torch.ToSlice[float64](below.MustMeanDim([]int64{-1}, false, torch.DTypeOf[float64](), false)))
}

// DrawGaussians draws n points, of shape [n, d], from K Gaussians with the given means, [d] or [K, d]; point i is from
// that of chain i mod K. A draw takes width standard normal numbers: deviations maps those of m draws of each, [K, m,
// width], to deviations from the means, [K, m, d].
func DrawGaussians(means infer.Params, n int, width int64, streams *torch.Streams,
	deviations func(eps *ts.Tensor) (*ts.Tensor, error)) (infer.Params, error) {
	if deviations == nil || streams == nil {
		return infer.Params{}, fmt.Errorf("the deviations or the streams are nil: %w", infer.ErrConfig)
	}
	out := infer.Params{Layout: means.Layout}
	err := torch.Do(func(scope *torch.Scope) error {
		k, d, c := int64(means.Chains()), int64(means.Layout.Dim()), int64(len(streams.Chains))
		each := (int64(n) + k - 1) / k // draws of each Gaussian, and some of them too many
		device, err := torch.DeviceOf(means.Flat)
		if err != nil {
			return err
		}
		eps, err := streams.Normal([]int64{(each*k + c - 1) / c, width}, means.Flat.DType(), device)
		if err != nil {
			return err
		}
		eps = eps.MustReshape([]int64{-1, width}, false).MustNarrow(0, 0, each*k, false).MustReshape([]int64{each, k,
			width}, false)
		delta, err := deviations(eps.MustTranspose(0, 1, false))
		if err != nil {
			return err
		}
		points := delta.MustTranspose(0, 1, false).MustAdd(means.Flat.MustReshape([]int64{1, k, d}, false), false)
		points = points.MustReshape([]int64{each * k, d}, false).MustNarrow(0, 0, int64(n), false)
		out.Flat, err = torch.Copy(points)
		scope.Keep(out.Flat)
		return err
	})
	return out, err
}
