package laplace

import (
	"github.com/kelvin-ppl/kelvin/torch"
)

// SampleOutputs are the draws of outputs that [Softmax] averages: [samples, n, C].
func SampleOutputs(mean, cov torch.Tensor, samples int, streams *torch.Streams) (z torch.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		z = drawOutputs(mean, outputRoot("Softmax", mean, cov, samples, streams), samples, streams)
		scope.Keep(z)
		return nil
	})
	return z, err
}
