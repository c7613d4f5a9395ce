package dist_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A constructor never panics with a mistake, so that priors may be made outside of models: what it makes has the error.
func TestMisfit(t *testing.T) {
	const want = "dist.Normal: scale is -1: it must be greater than 0"
	d := dist.Normal(0, -1)
	assert.Equal(t, "Normal", d.Name())
	for _, of := range []dist.Distribution{d, d.Expand(2), dist.Truncated(d, 0, 1), dist.Independent(d.Expand(2), 1),
		dist.Mixture([]float64{1, 1}, dist.Normal(0, 1), d)} {
		assert.EqualError(t, of.Validate(), want)
		x := torch.Of(0.5)
		for _, use := range []func(){
			func() { of.BatchShape() }, func() { of.EventShape() }, func() { of.Support() }, func() { of.LogProb(x) },
			func() { of.Sample(nil) }, func() { of.Mean() }, func() { of.Variance() },
			func() { of.(dist.CDFer).CDF(x) }, func() { of.(dist.ICDFer).ICDF(x) },
			func() { of.(dist.Enumerable).EnumerateSupport() },
			func() { of.(dist.Summer).SumLogProb(x, dist.Known{}) },
		} {
			assert.PanicsWithError(t, want, use)
		}
	}
	assert.EqualError(t, dist.Uniform("low", 1).Validate(),
		"dist.Uniform: low is a string: a number, a torch.Tensor or a *ts.Tensor is required")
}
