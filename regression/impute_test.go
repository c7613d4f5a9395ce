package regression_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"
)

// Missing values of mi(x) are latent variables with the law of the formula of x: beside a model written by hand, and in
// predictions, where those of new rows are drawn. Other columns are complete, or rows are dropped by them alone.
func TestMissingCovariates(t *testing.T) {
	nan := math.NaN()
	x, z := []float64{-1, nan, 2, 3.5, nan, 1}, []float64{1, 3, 2, 2, 7, 0}
	y := []float64{1, 3, 2, 5, 1.5, 0.5}
	table := tableOf(t, numbers("x", x...), numbers("z", z...), numbers("y", y...))
	f := regression.Formula{Mean: "y ~ z + mi(x)", Params: map[string]string{"x": "~ z"}, DropMissing: true}
	m, err := f.Fit(table)
	require.NoError(t, err)
	require.Zero(t, m.Dropped())
	meanX, sdX := stat.MeanStdDev([]float64{-1, 2, 3.5, 1}, nil)
	meanZ, sdZ := stat.MeanStdDev(z, nil)
	meanY, sdY := stat.MeanStdDev(y, nil)
	sameDensity(t, m, func(c *ppl.Ctx) {
		centred := column(z...).Sub(meanZ)
		bx := c.Sample("b_x", dist.Normal(0, column(2.5*sdX/sdZ)))
		ax := c.Sample("intercept_centred_x", dist.Normal(meanX, 2.5*sdX))
		sx := c.Sample("sigma_x", dist.Exponential(1/sdX))
		full := c.Impute("x", dist.Normal(centred.Mul(bx).Add(ax), sx), column(x...), []int{1, 4})
		b := c.Sample("b", dist.Normal(0, column(2.5*sdY/sdZ)))
		a := c.Sample("intercept_centred", dist.Normal(meanY, 2.5*sdY))
		mi := c.Sample("b[mi(x)]", dist.Normal(0, 2.5*sdY/sdX))
		sigma := c.Sample("sigma", dist.Exponential(1/sdY))
		c.Observe("y", dist.Normal(centred.Mul(b).Add(a).Add(full.Sub(meanX).Mul(mi)), sigma), column(y...))
	})
	d, err := infer.Sample(context.Background(), m, hmc.NUTS{}, infer.Options{Chains: 1, Warmup: 100, Draws: 2000,
		Observer: infer.Silent})
	require.NoError(t, err)
	expected, err := m.Expected(d, regression.Rows{})
	require.NoError(t, err)
	of := func(name string) float64 { return at(t, d, 0, 9, name) }
	eta := func(x, z float64) float64 { return of("intercept") + of("b[z]")*z + of("b[mi(x)]")*x }
	missing, err := d.Site("x_missing")
	require.NoError(t, err)
	require.InDelta(t, eta(2, 2), expected.Row(0, 9)[2], 1e-9)
	require.InDelta(t, eta(d.Row(0, 9)[missing.Offset+1], 7), expected.Row(0, 9)[4], 1e-9)

	fresh, err := m.Expected(d, regression.Rows{Seed: 1,
		Table: tableOf(t, numbers("x", 2, nan), numbers("z", 2, 1))})
	require.NoError(t, err)
	require.InDelta(t, eta(2, 2), fresh.Row(0, 9)[0], 1e-9)
	var off, scale []float64 // of a drawn x from its law, whose mean is that of the formula of x
	for i := range 2000 {
		of := func(name string) float64 { return at(t, d, 0, i, name) }
		drawn := (fresh.Row(0, i)[1] - of("intercept") - of("b[z]")) / of("b[mi(x)]")
		off = append(off, (drawn-of("intercept_x")-of("b_x[z]"))/of("sigma_x"))
		scale = append(scale, off[i]*off[i])
	}
	require.InDelta(t, 0, stat.Mean(off, nil), 4/math.Sqrt(2000))
	require.InDelta(t, 1, stat.Mean(scale, nil), 4*math.Sqrt(2./2000))

	effect, err := m.Compare(d, regression.Rows{}, regression.Comparison{Column: "x", From: 1, To: 3})
	require.NoError(t, err)
	require.InDelta(t, 2*of("b[mi(x)]"), effect.Row(0, 9)[0], 1e-9)
	slope, err := m.Slope(d, regression.Rows{}, "x", "")
	require.NoError(t, err)
	require.InDelta(t, of("b[mi(x)]"), slope.Row(0, 9)[0], 1e-6)

	loglik, err := m.LogLikelihood(d)
	require.NoError(t, err)
	accuracy, err := m.LOO(d)
	require.NoError(t, err)
	require.Equal(t, len(y), loglik.Dim())
	require.Len(t, accuracy.Pointwise, len(y))

	f.Params = nil
	m, err = f.Fit(table)
	require.NoError(t, err)
	require.Contains(t, m.String(), "intercept_x")
	require.NotContains(t, m.String(), "b_x")
	for says, f := range map[string]regression.Formula{
		"column \"x\": it is missing":            {Mean: "y ~ x"},
		"the column has the name of a parameter": {Mean: "y ~ mi(sigma)"},
		"mi() is of the mean":                    {Mean: "y ~ mi(x)", Params: map[string]string{"x": "~ mi(z)"}},
		"mi() is added or multiplied":            {Mean: "y ~ (mi(x) | z)"},
	} {
		with, err := table.With(numbers("sigma", z...))
		require.NoError(t, err)
		_, err = f.Fit(with)
		require.ErrorContains(t, err, says)
	}
}

// A product with mi() is less its mean over the rows that have it, as a column is; in predictions a missing value
// counts in all of its terms.
func TestMissingProducts(t *testing.T) {
	nan := math.NaN()
	x, z := []float64{-1, nan, 2, 3.5, nan, 1}, []float64{1, 3, 2, 2, 7, 0}
	y := []float64{1, 3, 2, 5, 1.5, 0.5}
	m, err := regression.Formula{Mean: "y ~ mi(x)*z"}.Fit(tableOf(t, numbers("x", x...), numbers("z", z...),
		numbers("y", y...)))
	require.NoError(t, err)
	meanX, sdX := stat.MeanStdDev([]float64{-1, 2, 3.5, 1}, nil)
	meanXZ, sdXZ := stat.MeanStdDev([]float64{-1, 4, 7, 0}, nil)
	meanZ, sdZ := stat.MeanStdDev(z, nil)
	meanY, sdY := stat.MeanStdDev(y, nil)
	sameDensity(t, m, func(c *ppl.Ctx) {
		ax := c.Sample("intercept_x", dist.Normal(meanX, 2.5*sdX))
		sigmaX := c.Sample("sigma_x", dist.Exponential(1/sdX))
		full := c.Impute("x", dist.Normal(ax, sigmaX).Expand(6), column(x...), []int{1, 4})
		b := c.Sample("b", dist.Normal(0, column(2.5*sdY/sdZ)))
		eta := column(z...).Sub(meanZ).Mul(b).Add(c.Sample("intercept_centred", dist.Normal(meanY, 2.5*sdY)))
		eta = eta.Add(full.Sub(meanX).Mul(c.Sample("b[mi(x)]", dist.Normal(0, 2.5*sdY/sdX))))
		both := c.Sample("b[mi(x):z]", dist.Normal(0, 2.5*sdY/sdXZ))
		eta = eta.Add(full.Mul(column(z...)).Sub(meanXZ).Mul(both))
		c.Observe("y", dist.Normal(eta, c.Sample("sigma", dist.Exponential(1/sdY))), column(y...))
	})
	d := sampled(t, m, 1)
	of := func(name string) float64 { return at(t, d, 0, 2, name) }
	expected, err := m.Expected(d, regression.Rows{})
	require.NoError(t, err)
	for row, v := range map[int]float64{2: 2, 4: of("x_missing[1]")} {
		want := of("intercept") + of("b[mi(x)]")*v + of("b[z]")*z[row] + of("b[mi(x):z]")*v*z[row]
		require.InDelta(t, want, expected.Row(0, 2)[row], 1e-9)
	}
}
