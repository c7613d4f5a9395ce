package dist_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Where the CDF is 1 to rounding what is left is that of mpmath in 60 digits.
func TestTruncatedFarAbove(t *testing.T) {
	for _, c := range []struct {
		of              dist.Distribution
		low, high, x, p float64
	}{
		{dist.HalfNormal(1), 12, 13, 12.5, -3.633262088215372},
		{dist.InverseGaussian(3, 0.6), 1300, 1400, 1340, -4.714155404750548},
		{dist.TruncatedNormal(0, 1, -5, 20), 12, 13, 12.5, -3.633262088215372},
	} {
		scoped(t, func() {
			d := dist.Truncated(c.of, c.low, c.high)
			require.NoError(t, d.Validate())
			require.InDelta(t, c.p, scalarRead(d.LogProb(torch.Of(c.x)).T())[0], 1e-9, c.of.Name())
		})
	}
	scoped(t, func() {
		d := dist.Truncated(dist.HalfNormal(1), 12, 13)
		x := d.(dist.ICDFer).ICDF(torch.Of(scalarVec(0.1, 0.5, 0.9)))
		require.InDeltaSlice(t, []float64{0.1, 0.5, 0.9}, scalarRead(d.(dist.CDFer).CDF(x).T()), 1e-9)
	})
}

// Differences that cancel in the textbook's formulas, against mpmath in 60 digits.
func TestGradientsThatCancel(t *testing.T) {
	scoped(t, func() {
		k := torch.Must(torch.Leaf(torch.Of(scalarVec(1e9))))
		d := dist.VonMises(0, k)
		require.InEpsilon(t, 5.00000000125e-10, scalarRead(d.Variance().T())[0], 1e-12)
		grad := scalarGrad(d.LogProb(torch.Of(1e-5)).T(), []torch.Tensor{k})
		require.InEpsilon(t, 4.500000001254167e-10, grad[0][0], 1e-12)
		scale := torch.Must(torch.Leaf(torch.Of(scalarVec(1e9))))
		grad = scalarGrad(dist.Pareto(scale, 1e-10).LogProb(torch.Of(4e9)).T(), []torch.Tensor{scale})
		require.InEpsilon(t, 1e-19, grad[0][0], 1e-12) // alpha/scale
	})
}
