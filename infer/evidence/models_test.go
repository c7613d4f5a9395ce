package evidence_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Linear regression with the conjugate prior w ~ N(0, I) and noise ½: y ~ N(0, XXᵀ + ¼I). Laplace is exact; the others
// are within three standard errors.
func TestConjugateRegression(t *testing.T) {
	const n, d, sigma = 12, 3, 0.5
	x, y := make([]float64, n*d), make([]float64, n)
	for i := range x {
		x[i] = math.Sin(1 + 1.7*float64(i*i))
	}
	for i := range y {
		y[i] = x[i*d] - 0.5*x[i*d+1] + 0.4*math.Cos(3*float64(i))
	}
	covariance := mat.NewSymDense(n, nil)
	covariance.SymOuterK(1, mat.NewDense(n, d, x))
	for i := range n {
		covariance.SetSym(i, i, covariance.At(i, i)+sigma*sigma)
	}
	var c mat.Cholesky
	require.True(t, c.Factorize(covariance))
	var solved mat.VecDense
	require.NoError(t, c.SolveVecTo(&solved, mat.NewVecDense(n, y)))
	want := -0.5*mat.Dot(mat.NewVecDense(n, y), &solved) - 0.5*c.LogDet() - 0.5*n*math.Log(2*math.Pi)

	xs, err := torch.FromSlice(x, n, d)
	require.NoError(t, err)
	ys, err := torch.FromSlice(y)
	require.NoError(t, err)
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 1).Expand(d))
		c.Plate("data", n, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Data("x").MatMul(w), sigma), c.Data("y"))
		})
	}, infer.Batch{"x": xs, "y": ys})
	require.NoError(t, err)
	all, err := infertest.EvidenceEstimates(context.Background(), p, infer.Options{Seed: 1})
	require.NoError(t, err)
	for name, r := range all {
		if name == "Laplace" {
			require.InDelta(t, want, r.LogZ, 1e-6)
			require.Less(t, r.SE, 1e-6)
			continue
		}
		require.InDelta(t, want, r.LogZ, 3*r.SE, name)
		require.Less(t, r.SE, 0.1, name)
		require.Empty(t, r.Warnings, name)
	}
}

// The logistic regression of 481 beetles: four estimators agree within three of their joint standard errors.
func TestEstimatorsAgree(t *testing.T) {
	m, err := models.Beetles()
	require.NoError(t, err)
	p, err := m.Compile()
	require.NoError(t, err)
	all, err := infertest.EvidenceEstimates(context.Background(), p, infer.Options{Seed: 1})
	require.NoError(t, err)
	for name, r := range all {
		t.Logf("seen: beetles, %s: log Z = %.3f ± %.3f", name, r.LogZ, r.SE)
	}
	require.NoError(t, infertest.EvidenceAgree(all, 0.1))
}

// A Gamma(3, 2) prior of a Poisson rate. At β the law is Gamma(3 + βΣy, 2 + βn), and the mean slope the mean log
// likelihood, Σy (ψ(a) − log b) − n a/b − Σ log y!. It is that of the draws at five β, and log Z is the closed form.
func TestGammaPoissonAtFiveBeta(t *testing.T) {
	counts := []float64{2, 5, 3, 1, 4}
	sum, n, factorials := 0.0, float64(len(counts)), 0.0
	lgamma := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	for _, y := range counts {
		sum += y
		factorials += lgamma(y + 1)
	}
	y, err := torch.FromSlice(counts)
	require.NoError(t, err)
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		rate := c.Sample("rate", dist.Gamma(3, 2))
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Poisson(rate), c.Data("y")) })
	}, infer.Batch{"y": y})
	require.NoError(t, err)
	beta := []float64{0, 0.1, 0.3, 0.6, 1}
	r, err := evidence.Run(context.Background(), p, evidence.TI{Ladder: beta}, infer.Options{})
	require.NoError(t, err)
	require.Equal(t, beta, r.Trace.X)
	for k, b := range beta {
		shape, rate := 3+b*sum, 2+b*n
		want := sum*(mathext.Digamma(shape)-math.Log(rate)) - n*shape/rate - factorials
		require.InDelta(t, want, r.Trace.Y[k], 4*r.Trace.SD[k], "β = %v", b)
		require.Less(t, r.Trace.SD[k], 0.2)
	}
	want := 3*math.Log(2) - lgamma(3) + lgamma(3+sum) - (3+sum)*math.Log(2+n) - factorials
	for name, m := range map[string]infer.Method{"TI": evidence.TI{}, "SMC": evidence.SMC{}, "AIS": evidence.AIS{}} {
		r, err := evidence.Run(context.Background(), p, m, infer.Options{})
		require.NoError(t, err)
		require.InDelta(t, want, r.LogZ, 3*r.SE, name)
	}
	// The draws of the methods are of the posterior: the mean rate of Gamma(3 + Σy, 2 + n).
	for name, m := range map[string]infer.Method{"TI": evidence.TI{}, "SMC": evidence.SMC{}} {
		d, err := infer.Sample(context.Background(), p, m, infer.Options{})
		require.NoError(t, err)
		values, err := d.Values("rate")
		require.NoError(t, err)
		mean, count := 0.0, 0.0
		for _, chain := range values {
			for _, v := range chain {
				mean += v[0]
				count++
			}
		}
		// The draws of either are worth half as many independent ones at least.
		sd := math.Sqrt(3+sum) / (2 + n)
		require.InDelta(t, (3+sum)/(2+n), mean/count, 4*sd/math.Sqrt(count/2), name)
	}
}

// The path from a harmonic reference within walls: ∫ exp(−x⁴ + x) dx over (−1, 1.2), by the midpoint rule.
func TestHarmonicReference(t *testing.T) {
	want, h := 0.0, 2.2/20000
	for i := range 20000 {
		x := -1 + (float64(i)+0.5)*h
		want += h * math.Exp(-x*x*x*x+x)
	}
	l, err := infer.NewLayout(infer.Shapes{"x": {1}})
	require.NoError(t, err)
	start, err := infer.Zeros(l)
	require.NoError(t, err)
	p := infer.Handwritten(infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		x := p.Get("x")
		return x.Sub(x.Square().Square()).Sum(), nil
	}, 1), start, nil)
	reference := path.Path{Reference: &path.Harmonic{Mean: []float64{0.5}, Precision: []float64{2}, Lower: []float64{-1},
		Upper: []float64{1.2}}}
	for name, m := range map[string]infer.Method{"TI": evidence.TI{Path: reference}, "SMC": evidence.SMC{Path: reference},
		"AIS": evidence.AIS{Path: reference}} {
		r, err := evidence.Run(context.Background(), p, m, infer.Options{})
		require.NoError(t, err)
		require.InDelta(t, math.Log(want), r.LogZ, 3*r.SE, name)
		require.Less(t, r.SE, 0.05, name)
	}
}
