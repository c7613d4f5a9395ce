package approx_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Modes and precisions that are known: of a normal distribution with independent elements, of one with a correlation,
// and of logarithms of gamma variables.
func TestGaussianOfKnownDensities(t *testing.T) {
	l := infertest.Layout(infer.Shapes{"x": {2}})
	centred := func(p infer.Params) torch.Tensor { return p.Flat.Sub(vec([]float64{1, -2})) }
	for name, c := range map[string]struct {
		f         func(p infer.Params) torch.Tensor
		mode      []float64
		precision []float64 // of shape [2], where it is diagonal
	}{
		"independent": {func(p infer.Params) torch.Tensor {
			return centred(p).Square().Mul(vec([]float64{-1, -4})).Sum()
		}, []float64{1, -2}, []float64{2, 8}},
		"correlated": {func(p infer.Params) torch.Tensor {
			x := centred(p)
			return x.MatMul(vec([]float64{2, 1, 1, 3}, 2, 2)).Mul(x).Sum().Mul(-0.5)
		}, []float64{1, -2}, []float64{2, 1, 1, 3}},
		// Σ ax − e^x has its mode at log a, with the precision a.
		"log of a gamma": {func(p infer.Params) torch.Tensor {
			x := p.Flat
			return x.Mul(vec([]float64{3, 5})).Sub(x.Exp()).Sum()
		}, []float64{math.Log(3), math.Log(5)}, []float64{3, 5}},
	} {
		log := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) { return c.f(p), nil }
		for _, start := range [][]float64{{0, 0}, {4, -6}} {
			require.NoError(t, torch.Do(func(*torch.Scope) error {
				mode, precision, err := approx.Gaussian(log, infertest.Params(l, start, 0), nil, 0, "m.M")
				require.NoError(t, err, name)
				infertest.Within(t, c.mode, infertest.Values(mode.T()), 1e-8, name+": mode")
				infertest.Within(t, c.precision, infertest.Values(precision.T()), 1e-7, name+": precision")
				return nil
			}))
		}
	}
	flat := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) { return p.Flat.Sum(), nil }
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		_, _, err := approx.Gaussian(flat, infertest.Params(l, []float64{0, 0}, 0), nil, 0, "m.M")
		assert.ErrorIs(t, err, approx.ErrNoGaussian)
		return nil
	}))
}

// A trend keeps the mean of all updates but those that were held, in at most 64 windows, through a checkpoint too; it
// tells a fit that climbs from one that has settled.
func TestTrend(t *testing.T) {
	for _, c := range []struct {
		updates int
		slope   float64
		kinds   []string
	}{{8, 0, []string{"elbo_not_settled"}}, {4000, 0, nil}, {4000, 0.01, []string{"elbo_not_settled"}}} {
		var trend *approx.Trend
		sum := 0.0
		for i := range c.updates {
			held := []bool{false, i%3 == 0}
			v := []float64{-c.slope*float64(i) + math.Sin(float64(i)), 5 + math.Sin(float64(i))}
			if !held[1] {
				sum += v[1]
			}
			trend = trend.With(v, held)
			require.LessOrEqual(t, len(trend.Means[0]), 64)
		}
		mean, count := 0.0, 0
		for i, n := range trend.Counts[1] {
			mean, count = mean+float64(n)*trend.Means[1][i], count+n
		}
		assert.InDelta(t, sum, mean, 1e-9)
		assert.EqualValues(t, c.updates-(c.updates+2)/3, count)

		again, err := approx.ReadTrend(trend.Bytes())
		require.NoError(t, err)
		assert.Equal(t, trend, again)
		trend.Means, trend.Counts = trend.Means[:1], trend.Counts[:1]
		notes, _ := trend.Notes("m.M", 100, "go on.", c.updates, 1)
		var kinds []string
		for _, n := range notes {
			kinds = append(kinds, n.Kind)
		}
		assert.Equal(t, c.kinds, kinds, fmt.Sprint(c))
	}
	for _, damaged := range []string{"{", `{"Means":[[1],[2]],"Counts":[[1]]}`} {
		_, err := approx.ReadTrend([]byte(damaged))
		assert.Error(t, err, damaged)
	}
}
