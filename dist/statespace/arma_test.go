package statespace_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/dist/statespace"
	"github.com/kelvin-ppl/kelvin/torch"
)

// weights are the coefficients ψ_k of x_t = Σ_k ψ_k e_{t−k}, the moving average without an end (Brockwell and Davis
// 1991, equation 3.3.3).
func weights(ar, ma []float64, n int) []float64 {
	psi := make([]float64, n)
	psi[0] = 1
	for k := 1; k < n; k++ {
		if k <= len(ma) {
			psi[k] = ma[k-1]
		}
		for i, a := range ar {
			if k > i {
				psi[k] += a * psi[k-1-i]
			}
		}
	}
	return psi
}

// The likelihood of an ARMA series is exact: that of the dense normal distribution with the autocovariances
// scale² Σ_k ψ_k ψ_{k+h}, with and without noise, and with numbers missing.
func TestARMA(t *testing.T) {
	for name, c := range map[string]struct{ ar, ma []float64 }{
		"white":             {},
		"AR(1)":             {ar: []float64{0.8}},
		"nearly a walk":     {ar: []float64{0.999}},
		"AR(2) with cycles": {ar: []float64{1.2, -0.7}},
		"MA(1)":             {ma: []float64{0.6}},
		"MA(2) on the edge": {ma: []float64{-1.5, 1}},
		"ARMA(1, 1)":        {ar: []float64{0.7}, ma: []float64{-0.4}},
		"ARMA(1, 3)":        {ar: []float64{-0.5}, ma: []float64{0.3, 0.2, -0.6}},
		"ARMA(3, 1)":        {ar: []float64{0.5, -0.3, 0.2}, ma: []float64{0.9}},
		"a common root":     {ar: []float64{0.5}, ma: []float64{-0.5}},
	} {
		t.Run(name, func(t *testing.T) {
			const scale, steps = 0.8, 15
			psi := weights(c.ar, c.ma, 40000)
			gamma := make([]float64, steps)
			for h := range gamma {
				for k := 0; k+h < len(psi); k++ {
					gamma[h] += scale * scale * psi[k] * psi[k+h]
				}
			}
			do(t, func() {
				part := statespace.ARMA{Scale: scale}
				if c.ar != nil {
					part.AR = tensor(c.ar)
				}
				if c.ma != nil {
					part.MA = tensor(c.ma)
				}
				for _, h := range []float64{0, 0.4} {
					y := wave(steps, true)
					j := joint{steps: steps, p: 1, mean: mat.NewVecDense(steps, nil), cov: mat.NewSymDense(steps, nil)}
					for a := range steps {
						for b := range a + 1 {
							v := gamma[a-b]
							if a == b {
								v += h * h
							}
							j.cov.SetSym(a, b, v)
						}
					}
					got := statespace.New(steps, h, part).LogProb(tensor(y)).Item()
					assert.InDelta(t, j.logp(y), got, 1e-9)
				}
			})
		})
	}
}

// Coefficients of partial autocorrelations are stationary, and have them: the Durbin-Levinson recursion of their
// autocovariances gives them back.
func TestStationary(t *testing.T) {
	do(t, func() {
		r := []float64{0.9, -0.6, 0.3, -0.95}
		phi := statespace.Stationary(tensor(r)).Values()
		psi := weights(phi, nil, 5000)
		gamma := make([]float64, len(r)+1)
		for h := range gamma {
			for k := 0; k+h < len(psi); k++ {
				gamma[h] += psi[k] * psi[k+h]
			}
		}
		// The partial autocorrelation at lag k is the last coefficient of the regression on k numbers before.
		for k := 1; k <= len(r); k++ {
			a, b := mat.NewDense(k, k, nil), mat.NewVecDense(k, nil)
			for i := range k {
				b.SetVec(i, gamma[i+1])
				for j := range k {
					a.Set(i, j, gamma[int(math.Abs(float64(i-j)))])
				}
			}
			var x mat.VecDense
			if err := x.SolveVec(a, b); err != nil {
				t.Fatal(err)
			}
			assert.InDelta(t, r[k-1], x.AtVec(k-1), 1e-9)
		}
		assert.Equal(t, []float64{0.5}, statespace.Stationary(tensor([]float64{0.5})).Values())
	})
}

// A series that is not stationary has no density.
func TestARMANotStationary(t *testing.T) {
	do(t, func() {
		s := statespace.New(5, 0.1, statespace.ARMA{AR: tensor([]float64{1.1})})
		v := s.LogProb(tensor(wave(5, false))).Item()
		assert.True(t, math.IsNaN(v) || math.IsInf(v, -1), "%v", v)
		// With partial autocorrelations of −1 to 1 it always has.
		s = statespace.New(5, 0.1, statespace.ARMA{AR: statespace.Stationary(tensor([]float64{-0.99, 0.99, 0.99}))})
		v = s.LogProb(tensor(wave(5, false))).Item()
		assert.False(t, math.IsNaN(v) || math.IsInf(v, 0))
		assert.Equal(t, []int64{0}, statespace.Stationary(torch.Zeros(0)).Shape())
	})
}
