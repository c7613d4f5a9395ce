package gibbs_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

func vec(x []float64) torch.Tensor { return torch.New(x) }

func matrix(x []float64, n, m int) torch.Tensor { return torch.New(x, n, m) }

func compiled(t testing.TB, m ppl.Model, data infer.Batch) *ppl.Program {
	t.Helper()
	p, err := ppl.CompileDiscrete(m, data)
	require.NoError(t, err)
	return p
}

func sampled(t testing.TB, p infer.Program, m infer.Method, o infer.Options) *draws.Draws {
	t.Helper()
	d, err := infer.Sample(context.Background(), p, m, o)
	require.NoError(t, err)
	return d
}

// means are those of f over the draws of each chain.
func means(t testing.TB, d *draws.Draws, f func(row []float64) float64) []float64 {
	t.Helper()
	out := make([]float64, d.Chains())
	for c := range out {
		for i := range d.Len(c) {
			out[c] += f(d.Row(c, i)) / float64(d.Len(c))
		}
	}
	return out
}

// agrees compares independent estimates with the exact value, by their own spread: |z| < 4.
func agrees(t testing.TB, what string, estimates []float64, want float64) {
	t.Helper()
	n, mean, square := float64(len(estimates)), 0.0, 0.0
	for _, e := range estimates {
		mean += e / n
	}
	for _, e := range estimates {
		square += (e - mean) * (e - mean) / (n - 1)
	}
	if z := (mean - want) / (math.Sqrt(square/n) + 1e-12); !(math.Abs(z) < 4) {
		t.Errorf("%s: %.5f ± %.5f, want %.5f (z = %.1f)", what, mean, math.Sqrt(square/n), want, z)
	}
}

func at(t testing.TB, d *draws.Draws, site string) draws.Site {
	t.Helper()
	s, err := d.Site(site)
	require.NoError(t, err)
	return s
}

// noise are n numbers of N(0, 1).
func noise(n int, seed uint64) []float64 {
	r, x := rand.New(rand.NewPCG(seed, 0)), make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}
