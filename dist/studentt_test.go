package dist_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mathext"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// lowerT is the distribution function of Student's t at x < 0 by gonum's incomplete beta function.
func lowerT(df, x float64) float64 { return 0.5 * mathext.RegIncBeta(df/2, 0.5, df/(df+x*x)) }

// The CDF against gonum, relative to the smaller tail, from a fraction of a degree of freedom to almost normal.
func TestStudentTCDF(t *testing.T) {
	at := []float64{-1e4, -300, -8, -2, -1, -0.3, -1e-3}
	scoped(t, func() {
		for _, df := range []float64{0.3, 1, 2, 3.5, 7, 30, 1000} {
			d := dist.StudentT(df, 0.7, 2)
			x, want, mirrored := make([]float64, len(at)), make([]float64, len(at)), make([]float64, len(at))
			for i, z := range at {
				x[i], want[i], mirrored[i] = 0.7+2*z, lowerT(df, z), 0.7-2*z
			}
			low := scalarRead(d.(dist.CDFer).CDF(torch.Of(scalarVec(x...))).T())
			high := scalarRead(d.(dist.CDFer).CDF(torch.Of(scalarVec(mirrored...))).T())
			for i := range at {
				z := (x[i] - 0.7) / 2 // what is left of z after rounding
				require.InDelta(t, lowerT(df, z), low[i], 1e-10*want[i]+1e-300, "df %v, z %v", df, at[i])
				require.InDelta(t, 1-want[i], high[i], 1e-10, "df %v, z %v", df, -at[i])
			}
		}
		// Near the middle it is a half less the density times the distance, where gonum's argument rounds to 1.
		d := dist.StudentT(0.3, 0, 1)
		density := d.LogProb(torch.Of(0)).Exp().Item()
		require.InDelta(t, 0.5-1e-9*density, d.(dist.CDFer).CDF(torch.Of(-1e-9)).Item(), 1e-12)
		// One degree of freedom is Cauchy's distribution.
		ends := dist.StudentT(1, 0, 1).(dist.CDFer).CDF(torch.Of(scalarVec(math.Inf(-1), -1, 0, 1, math.Inf(1))))
		require.InDeltaSlice(t, []float64{0, 0.25, 0.5, 0.75, 1}, ends.Values(), 1e-14)
	})
}

// The quantile function undoes the CDF, far out too.
func TestStudentTICDF(t *testing.T) {
	p := []float64{1e-12, 1e-4, 0.2, 0.5, 0.7, 0.999}
	scoped(t, func() {
		for _, df := range []float64{0.5, 3, 40} {
			d := dist.StudentT(df, -1, 0.5)
			back := d.(dist.CDFer).CDF(d.(dist.ICDFer).ICDF(torch.Of(scalarVec(p...))))
			for i, q := range back.Values() {
				require.InEpsilon(t, p[i], q, 1e-9, "df %v", df)
			}
		}
	})
}

// Derivatives of the CDF in its value and in all parameters, on both sides and in the middle, by central differences.
func TestStudentTCDFGradients(t *testing.T) {
	for _, at := range [][]float64{{3, 0.2, 1.5, -2.1}, {0.8, 0.2, 1.5, 4}, {12, -1, 0.7, -1.3}} {
		f := func(p torch.Tensor) torch.Tensor {
			v := p
			d := dist.StudentT(v.At(0), v.At(1), v.At(2))
			return d.(dist.CDFer).CDF(v.At(3)).Sum()
		}
		at := scalarVec(at...)
		_, grad, err := torch.ValueAndGrad(f, torch.Of(at))
		require.NoError(t, err)
		x, g := scalarRead(at), scalarRead(grad.T())
		for k := range x {
			const h = 1e-5
			step := func(sign float64) (y float64) {
				z := append([]float64{}, x...)
				z[k] += sign * h
				scoped(t, func() { y = scalarRead(f(torch.Of(scalarVec(z...))).T())[0] })
				return y
			}
			// Differences of a value good to 1e-15 in steps of 1e-5, and a term of h².
			require.InDelta(t, (step(1)-step(-1))/(2*h), g[k], 1e-8, "parameter %d at %v", k, x)
		}
	}
}

// In the middle the derivative in the value is the density.
func TestStudentTCDFGradientInTheMiddle(t *testing.T) {
	_, grad, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
		return dist.StudentT(12, -1, 0.7).(dist.CDFer).CDF(x)
	}, torch.Scalar(-1))
	require.NoError(t, err)
	g, _ := math.Lgamma(6.5)
	f, _ := math.Lgamma(6)
	require.InEpsilon(t, math.Exp(g-f)/math.Sqrt(12*math.Pi)/0.7, scalarRead(grad.T())[0], 1e-13)
}

// A half-Student-t is twice the density on one side, with draws there, for chains of parameters under vmap as well.
func TestHalfStudentT(t *testing.T) {
	scoped(t, func() {
		half := dist.Truncated(dist.StudentT(3, 0, 2.5), 0, math.Inf(1))
		x := torch.Of(scalarVec(0, 0.3, 4, 1e5))
		want := dist.StudentT(3, 0, 2.5).LogProb(x).Add(math.Ln2).Values()
		require.InDeltaSlice(t, want, half.LogProb(x).Values(), 1e-12)
		require.True(t, math.IsInf(half.LogProb(torch.Of(-1)).Item(), -1))
		draws := half.Sample(torch.NewSource(3, 0), 4000).Values()
		require.Less(t, ks(draws, func(x float64) float64 { return 1 - 2*lowerT(3, -x/2.5) }), 2.28)
		scales := scalarVec(1, 2.5)
		out, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			return []torch.Tensor{dist.Truncated(dist.StudentT(3, 0, in[0]), 0, math.Inf(1)).LogProb(x)}, nil
		}, []torch.Tensor{torch.Of(scales)}, nil)
		require.NoError(t, err)
		require.InDeltaSlice(t, want, scalarRead(out[0].T())[4:], 1e-12)
	})
}

// Flat priors add nothing and have the support that their names say.
func TestFlat(t *testing.T) {
	scoped(t, func() {
		require.Equal(t, []float64{0, 0}, dist.Flat(2).LogProb(torch.Of(scalarVec(-3, 1e9))).Values())
		require.Equal(t, "a real number", dist.Flat().Support().String())
		require.Equal(t, []int{3, 2}, dist.FlatPositive(3, 2).BatchShape())
		require.Equal(t, "a number greater than 0", dist.FlatPositive().Support().String())
	})
}
