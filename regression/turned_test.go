package regression_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"
)

// Columns that depend on each other strongly have coefficients in an orthogonal basis, and the same priors and
// posterior as without: beside the same priors given by hand, which leave the columns as they are, means and standard
// deviations agree within 4.5 standard errors, of which there are 24 at three seeds, and draws of the
// prior have its moments.
func TestTurned(t *testing.T) {
	var x, z, y []float64
	for i := range 40 {
		v := float64(i) / 10
		x, z = append(x, 50+v), append(z, 3*(50+v)+math.Sin(float64(3*i))/4)
		y = append(y, 2*v+math.Cos(float64(i*i)))
	}
	table := tableOf(t, numbers("x", x...), numbers("z", z...), numbers("y", y...))
	f := regression.Formula{Mean: "y ~ x + z"}
	turned, err := f.Fit(table)
	require.NoError(t, err)
	require.Contains(t, turned.String(), "orthogonal basis")
	scale := map[string]float64{"x": 2.5 * stat.StdDev(y, nil) / stat.StdDev(x, nil),
		"z": 2.5 * stat.StdDev(y, nil) / stat.StdDev(z, nil)}
	f.Priors = regression.Priors{"b[x]": dist.Normal(0, scale["x"]), "b[z]": dist.Normal(0, scale["z"])}
	plain, err := f.Fit(table)
	require.NoError(t, err)
	require.NotContains(t, plain.String(), "orthogonal")
	for seed := range uint64(3) {
		var of [2]map[string][2]float64
		var errs [2]map[string][2]float64
		for k, m := range []*regression.Model{turned, plain} {
			d, err := infer.Sample(context.Background(), m, hmc.NUTS{}, infer.Options{Seed: seed + 1, Draws: 1500,
				Observer: infer.Silent})
			require.NoError(t, err)
			of[k], errs[k] = map[string][2]float64{}, map[string][2]float64{}
			for _, name := range []string{"intercept", "b[x]", "b[z]", "sigma"} {
				var chains [][]float64
				var all []float64
				for c := range d.Chains() {
					var chain []float64
					for i := range d.Len(c) {
						chain = append(chain, at(t, d, c, i, name))
					}
					chains, all = append(chains, chain), append(all, chain...)
				}
				mean, sd := stat.MeanStdDev(all, nil)
				of[k][name], errs[k][name] = [2]float64{mean, sd}, [2]float64{diag.MCSEMean(chains), diag.MCSESD(chains)}
			}
		}
		for name := range of[0] {
			for i := range 2 {
				require.InDelta(t, of[1][name][i], of[0][name][i], 4.5*math.Hypot(errs[0][name][i], errs[1][name][i]), name)
			}
		}
	}
	prior, err := ppl.Predictive{Model: turned.Model(), Batch: turned.Batch(), Sites: []string{"b"}}.Prior(4000)
	require.NoError(t, err)
	b := prior["b"]
	flat := b.Values()
	for k, name := range []string{"x", "z"} {
		var u []float64
		for i := k; i < len(flat); i += 2 {
			u = append(u, flat[i]/scale[name])
		}
		require.InDelta(t, 1, stat.Variance(u, nil), 4*math.Sqrt(2./4000), name)
		require.InDelta(t, 0, stat.Mean(u, nil), 4/math.Sqrt(4000), name)
	}
	var product float64
	for i := 0; i < len(flat); i += 2 {
		product += flat[i] * flat[i+1] / scale["x"] / scale["z"] / 4000
	}
	require.InDelta(t, 0, product, 4/math.Sqrt(4000), "the priors are independent")
}
