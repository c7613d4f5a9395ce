package posteriors

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// What the models share.

// flat is a flat prior on n numbers, or on one for n = 0.
func flat(on support.Support, n int) dist.Distribution {
	if n == 0 {
		return dist.ImproperUniform(on, nil, nil)
	}
	return dist.ImproperUniform(on, []int64{int64(n)}, nil)
}

// each is f at every index.
func each(n int, f func(i int) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

func ones(n int) []float64 { return each(n, func(int) float64 { return 1 }) }

func product(a, b []float64) []float64 {
	return each(len(a), func(i int) float64 { return a[i] * b[i] })
}

func sum(x torch.Tensor) torch.Tensor { return x.Sum() }
