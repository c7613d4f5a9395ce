package gp_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models/gp"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// approximate is the covariance of the approximation, Φ S Φᵀ.
func approximate(h gp.Hilbert, k gp.Kernel, x, y torch.Tensor) torch.Tensor {
	s := h.Scales(k)
	return h.Basis(x).Mul(s).MatMul(h.Basis(y).Mul(s).Transpose())
}

// With the numbers of Rule the error of the covariance, ∫ |k̃(τ, 0) − k(τ)| dτ / ∫ k(τ) dτ over the half range of the
// data, is the published 0.01 (Riutort-Mayol et al. 2023, section 4.2) for lengths of at least 0.3 of that. For
// shorter ones it grows with the number of waves that fit in: it is below 0.03.
func TestRule(t *testing.T) {
	for name, kernel := range map[string]func(length float64) gp.Kernel{
		"squared exponential": func(l float64) gp.Kernel { return gp.SquaredExponential{Scale: 1.3, Length: l} },
		"Matern 5/2":          func(l float64) gp.Kernel { return gp.Matern{Nu: 2.5, Scale: 1.3, Length: l} },
		"Matern 3/2":          func(l float64) gp.Kernel { return gp.Matern{Nu: 1.5, Scale: 1.3, Length: l} },
	} {
		for _, ratio := range []float64{0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1} {
			do(t, func() {
				const half, n = 3., 2001
				factor, m := rule(kernel(1), ratio)
				h := gp.Hilbert{Center: []float64{1}, Half: []float64{half}, Functions: []int{m}, Factor: factor}
				tau := make([]float64, n)
				for i := range tau {
					tau[i] = 1 + half*float64(i)/(n-1)
				}
				k := kernel(ratio * half)
				x, at := tensor(tau), tensor([]float64{1})
				exact, got := k.Between(x, at).Values(), approximate(h, k, x, at).Values()
				off, size := 0.0, 0.0
				for i := range tau {
					off, size = off+math.Abs(got[i]-exact[i]), size+exact[i]
				}
				bound := 0.01
				if ratio < 0.3 {
					bound = 0.03
				}
				assert.Less(t, off/size, bound, fmt.Sprint(name, ratio))
				short, err := h.Shortest(k)
				require.NoError(t, err)
				assert.InEpsilon(t, ratio*half, short[0], 1./float64(m-1)) // the number of functions is rounded up
			})
		}
	}
}

// With a wide box and many functions the approximation of a smooth process is exact to rounding: what is left out are
// spectral densities of e^{−(ω ℓ)²/2} and covariances of e^{−(2(L − S)/ℓ)²/2}. Here these are below e^−30, in two
// coordinates with lengths of their own, and for sums.
func TestHilbertIsExactInTheLimit(t *testing.T) {
	do(t, func() {
		x := points(12, 2, 0)
		h, err := gp.NewHilbert(x, 38, 34)
		require.NoError(t, err)
		h.Factor = 4 // the data reach to 1.7 and 1.6 from the middle, so that L − S is 5, and the last ω is 8.5
		k := gp.Sum(gp.SquaredExponential{Scale: 1.5, Length: tensor([]float64{0.9, 1})},
			gp.SquaredExponential{Scale: 0.5, Length: 1})
		want, got := k.Within(stacked(x)), approximate(h, k, stacked(x), stacked(x))
		assert.InDeltaSlice(t, want.Values(), got.Values(), 1e-12)
		y := tensor(numbers(12))
		exact := gp.Process{Kernel: k, X: stacked(x), Mean: 0.2, Jitter: 1e-15}.Marginal(0.5)
		assert.InDelta(t, exact.LogProb(y).Item(), h.Marginal(k, stacked(x), 0.2, 0.5).LogProb(y).Item(), 1e-9)
	})
}

// The error of a rough process is bounded by the spectral density beyond the last function, ∫_{ω_m}^∞ S dω · 2/π in
// one dimension, and by its covariance over the way to the boundary and back. In two dimensions the part of the
// spectrum beyond ω is (1 + (ℓω)²/(2ν))^−ν.
func TestHilbertMatern(t *testing.T) {
	do(t, func() {
		x := make([]float64, 41)
		for i := range x {
			x[i] = float64(i)/20 - 1
		}
		const factor, m, length = 3., 400, 0.4
		h := gp.Hilbert{Center: []float64{0}, Half: []float64{1}, Functions: []int{m}, Factor: factor}
		last := math.Pi * m / (2 * factor)
		for _, nu := range []float64{0.5, 1.5, 2.5} {
			k := gp.Matern{Nu: nu, Length: length}
			// The tail of ν = 1/2, which is the heaviest, and the covariance over 2(L − S) = 4.
			bound := 2 * (1 - 2/math.Pi*math.Atan(length*last))
			bound += 4 * k.Between(tensor([]float64{0}), tensor([]float64{4})).Item()
			got, want := approximate(h, k, tensor(x), tensor(x)).Values(), k.Within(tensor(x)).Values()
			assert.InDeltaSlice(t, want, got, bound, "%v", nu)
		}
		square := gp.Hilbert{
			Center: []float64{0, 0}, Half: []float64{1, 1}, Functions: []int{80, 80}, Factor: 6,
		}
		k := gp.Matern{Nu: 2.5, Length: tensor([]float64{1, 1.3})}
		p := tensor([]float64{0, 0, 0.5, -0.3, -0.8, 0.9}, 3, 2)
		// Beyond ω = 21 there are (1 + 21²/5)^−2.5 = 1.3e-5 of the variance; over 2(6 − 0.9)/1.3 lengths k is 3e-6.
		assert.InDeltaSlice(t, k.Within(p).Values(), approximate(square, k, p, p).Values(), 5e-5)
	})
}

// A latent approximation has the covariance Φ S Φᵀ.
func TestHilbertLatent(t *testing.T) {
	x := points(5, 1, 0)
	h, err := gp.NewHilbert(x, 8)
	require.NoError(t, err)
	k := gp.Matern{Nu: 1.5, Length: 0.8}
	root := rowsOf(t, func(c *ppl.Ctx) { h.Latent(c, "f", k, stacked(x), nil) }, 8)
	var got mat.Dense
	got.Mul(root.T(), root)
	do(t, func() {
		want := mat.NewDense(5, 5, approximate(h, k, stacked(x), stacked(x)).Values())
		assert.True(t, mat.EqualApprox(&got, want, 1e-12))
	})
}

// Inputs outside of the box, of the data and of a prediction, are an error with the box that would hold them. On its
// edge the process is 0, which is allowed.
func TestOutsideTheBox(t *testing.T) {
	h, err := gp.NewHilbert([][]float64{{-1, 4}, {1, 8}}, 5, 5)
	require.NoError(t, err)
	model := func(c *ppl.Ctx) {
		f := h.Latent(c, "f", gp.SquaredExponential{Length: 0.5}, c.Data("x"), 0)
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(f, 0.5), c.Data("y")) })
	}
	at := func(x ...float64) infer.Batch {
		n := len(x) / 2
		return infer.Batch{"x": tensor(x, n, 2), "y": torch.Zeros(n)}
	}
	_, err = ppl.Compile(model, at(-1, 4, 1.6, 6, 0, 8))
	require.ErrorContains(t, err, "from -1 to 1.6 in coordinate 0")
	require.ErrorContains(t, err, "the box reaches from -1.5 to 1.5")
	require.ErrorContains(t, err, "Half[0] of at least 1.6")
	p, err := ppl.Compile(model, at(-1, 4, 1.5, 6, 0, 8))
	require.NoError(t, err)
	d, err := infer.Sample(context.Background(), p, hmc.NUTS{}, infer.Options{Chains: 1, Warmup: 50, Draws: 10,
		Observer: infer.Silent})
	require.NoError(t, err)
	_, err = ppl.Predictive{Model: model, Batch: at(0, 8, 0, 9.5)}.Posterior(d)
	require.ErrorContains(t, err, "from 8 to 9.5 in coordinate 1")
}
