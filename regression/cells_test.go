package regression_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// logPosterior is the log posterior at a point from which a chain may start, and its gradient.
func logPosterior(t *testing.T, m *regression.Model, batch infer.Batch, seed uint64) []float64 {
	t.Helper()
	start, err := m.Start(m.Batch(), 1, seed)
	require.NoError(t, err)
	values, err := start.Values()
	require.NoError(t, err)
	gradient, err := infer.NewGradient(m.Target())
	require.NoError(t, err)
	var out []float64
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		point, err := infer.NewParams(m.Layout(), values)
		if err != nil {
			return err
		}
		of, err := gradient.ValueAndGrad(point, batch, 0)
		if err != nil {
			return err
		}
		out = append(of.Grad.Values(), of.Value.Item())
		return nil
	}))
	return out
}

// Rows with the same columns are merged where there are at most half as many, and the posterior is the one of the rows:
// value and gradient are the same by the batch with cells and by that without.
func TestCells(t *testing.T) {
	var x, z, y, count, success, n []float64
	var g []string
	for i := range 60 {
		x, z, g = append(x, float64(i%3)), append(z, float64(i/2%2)), append(g, string(rune('a'+i%4)))
		y = append(y, math.Sin(float64(i))*3+x[i])
		count, success, n = append(count, float64(i*i%7)), append(success, float64(i*i%5)), append(n, float64(4+i%2))
	}
	table := tableOf(t, numbers("x", x...), numbers("z", z...), labels("g", g...), numbers("y", y...),
		numbers("count", count...), numbers("s", success...), numbers("n", n...),
		data.Column{Name: "yes", Numbers: each(success, func(v float64) float64 { return math.Min(v, 1) })})
	for _, f := range []regression.Formula{
		{Mean: "y ~ x + (1 + x | g)"}, {Mean: "y ~ x*z + (1 | g)", Params: map[string]string{"sigma": "~ z + (1 | g)"}},
		{Mean: "y ~ 1"}, {Mean: "y ~ mo(x) + s(x, k = 3) + offset(z)", Family: regression.Gaussian{Link: "identity"}},
		{Mean: "count ~ x*z + (1 | g)", Family: regression.Poisson{}},
		{Mean: "count ~ x + offset(log(z + 1))", Family: regression.Poisson{}},
		{Mean: "s | trials(n) ~ x + (1 | g)", Family: regression.Binomial{}},
		{Mean: "yes ~ x*z + (1 | g)", Family: regression.Bernoulli{}},
	} {
		name := fmt.Sprintf("%T %s", f.Family, f.Mean)
		m, err := f.Fit(table)
		require.NoError(t, err, name)
		require.Contains(t, m.String(), "60 rows, merged to ", name)
		for seed := range uint64(3) {
			merged, rows := logPosterior(t, m, m.MergedBatch(), seed+1), logPosterior(t, m, m.Batch(), seed+1)
			for i, v := range rows {
				require.InDelta(t, v, merged[i], 1e-11*math.Max(1, math.Abs(v)), "%s %d", name, i)
			}
		}
		d := sampled(t, m, 1)
		loglik, err := m.LogLikelihood(d)
		require.NoError(t, err)
		require.Equal(t, 60, loglik.Dim())
	}
	for _, f := range []regression.Formula{{Mean: "y ~ y"}, {Mean: "y ~ x", Family: regression.StudentT{}},
		{Mean: "y | weights(n) ~ x"}, {Mean: "yes ~ x", Family: regression.Bernoulli{Link: "probit"}}} {
		m, err := f.Fit(table)
		require.NoError(t, err)
		require.NotContains(t, m.String(), "merged")
	}
}

func each(x []float64, f func(v float64) float64) (out []float64) {
	for _, v := range x {
		out = append(out, f(v))
	}
	return out
}
