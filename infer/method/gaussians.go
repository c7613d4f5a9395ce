package method

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// DrawGaussians draws n points, of shape [n, d], from K Gaussians with the given means, [d] or [K, d]; point i is from
// that of chain i mod K. A draw takes width standard normal numbers: deviations maps those of m draws of each, [K, m,
// width], to deviations from the means, [K, m, d].
func DrawGaussians(means infer.Params, n int, width int, streams *torch.Streams,
	deviations func(eps torch.Tensor) (torch.Tensor, error)) (infer.Params, error) {
	if deviations == nil || streams == nil {
		return infer.Params{}, fmt.Errorf("the deviations or the streams are nil: %w", infer.ErrConfig)
	}
	out := infer.Params{Layout: means.Layout}
	err := torch.Do(func(scope *torch.Scope) error {
		k, d, c := means.Chains(), means.Layout.Dim(), len(streams.Chains)
		each := (n + k - 1) / k // draws of each Gaussian, and some of them too many
		device, err := torch.DeviceOf(means.Flat)
		if err != nil {
			return err
		}
		eps, err := streams.Normal([]int{(each*k + c - 1) / c, width}, means.Flat.T().DType(), device)
		if err != nil {
			return err
		}
		eps = torch.Of(eps.Reshape(-1, width).T().MustNarrow(0, 0, int64(each*k),
			false).MustReshape([]int64{int64(each), int64(k),
			int64(width)}, false))
		delta, err := deviations(torch.Of(eps.T().MustTranspose(0, 1, false)))
		if err != nil {
			return err
		}
		points := delta.T().MustTranspose(0, 1, false).MustAdd(means.Flat.Reshape(1, k, d).T(), false)
		points = points.MustReshape([]int64{int64(each * k), int64(d)}, false).MustNarrow(0, 0, int64(n), false)
		out.Flat, err = torch.Copy(torch.Of(points))
		scope.Keep(out.Flat)
		return err
	})
	return out, err
}
