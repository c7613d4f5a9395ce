package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/stretchr/testify/require"
)

// Two stages without a resampling are one by the products of their weights, and a resampling begins the next.
func TestVarianceOfStages(t *testing.T) {
	const n = 50
	rng := rand.New(rand.NewPCG(3, 4))
	draw := func() []float64 {
		log := make([]float64, n)
		for i := range log {
			log[i] = rng.NormFloat64()
		}
		return log
	}
	fresh := func() *cloud {
		c := &cloud{Rows: newRows(n, 1), LogW: make([]float64, n), Family: make([]int, n)}
		for i := range c.LogW {
			c.LogW[i] = -math.Log(n)
		}
		return c
	}
	a, b, third := draw(), draw(), draw()
	product := make([]float64, n)
	for i := range product {
		product[i] = a[i] + b[i]
	}
	alone := func(log []float64) float64 {
		c := fresh()
		c.reweigh(append([]float64(nil), log...))
		return c.Variance
	}
	c := fresh()
	c.reweigh(a)
	c.reweigh(b)
	require.InDelta(t, alone(product), c.Variance, 1e-12)
	c.resample(rng.Float64(), 1)
	c.reweigh(append([]float64(nil), third...))
	require.InDelta(t, alone(product)+alone(third), c.Variance, 1e-12)
}

func TestLogMeanExp(t *testing.T) {
	// exp of the numbers is 1 and 3 times e^1000: mean 2, and the standard error of the mean 1, so ½ of it.
	v, se := logMeanExp([]float64{1000, 1000 + math.Log(3)})
	require.InDelta(t, 1000+math.Ln2, v, 1e-12)
	require.InDelta(t, 0.5, se, 1e-12)
	require.InDelta(t, 2, sample.Effective([]float64{-3, -3}), 1e-12)
	require.Equal(t, math.Inf(-1), sample.LogSumExp([]float64{math.Inf(-1)}))
}
