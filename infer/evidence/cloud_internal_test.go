package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

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
	u := make([]float64, n)
	for i := range u {
		u[i] = rng.Float64()
	}
	c.resample(Multinomial, u, 1)
	c.reweigh(append([]float64(nil), third...))
	require.InDelta(t, alone(product)+alone(third), c.Variance, 1e-12)
}
