package curvature_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer/curvature"
)

// sandwich is J Σ Jᵀ, flat.
func sandwich(j [][]float64, sigma []float64) []float64 {
	var out []float64
	for _, a := range j {
		s := times(sigma, a)
		for _, b := range j {
			v := 0.0
			for k := range b {
				v += b[k] * s[k]
			}
			out = append(out, v)
		}
	}
	return out
}

func TestLinearizedIsJSigmaJ(t *testing.T) {
	eachKind(t, func(t *testing.T, m network) {
		d, c, p, b := len(m.flat), m.c(), m.point(t), m.batch()
		variance, diag := make([]float64, d), make([]float64, d*d)
		for k, v := range numbers(d, 30) {
			variance[k] = v * v
			diag[k*d+k] = v * v
		}
		// Σ = S Sᵀ for a factor of rank d, and of rank 2.
		var full, low, fullSigma, lowSigma []float64
		full = numbers(d*d, 71)
		low = numbers(d*2, 23)
		for _, a := range rows(full, d) {
			for _, b := range rows(full, d) {
				fullSigma = append(fullSigma, dotOf(a, b))
			}
		}
		for _, a := range rows(low, 2) {
			for _, b := range rows(low, 2) {
				lowSigma = append(lowSigma, dotOf(a, b))
			}
		}
		var mean, wantDiag, wantFull, wantLow []float64
		for i := range m.n {
			j := m.jacobian(i)
			mean = append(mean, m.output(m.flat, i)...)
			wantDiag = append(wantDiag, sandwich(j, diag)...)
			wantFull = append(wantFull, sandwich(j, fullSigma)...)
			wantLow = append(wantLow, sandwich(j, lowSigma)...)
		}
		row := 8 * (4*d + 2*c*d + m.n*c*(1+c))
		for _, memory := range []int{0, row, 2 * row} {
			for _, sd := range []float64{0, 0.3} {
				o := curvature.LinearizedOptions{Memory: memory, NoiseSD: sd}
				noisy := func(cov []float64) []float64 {
					out := append([]float64{}, cov...)
					for i := range m.n {
						for k := range c {
							out[i*c*c+k*c+k] += sd * sd
						}
					}
					return out
				}
				z, cov, err := curvature.Linearized(m.forward, p, b, vec(variance), o)
				require.NoError(t, err)
				require.Equal(t, []int{m.n, c}, shapeOf(z))
				require.Equal(t, []int{m.n, c, c}, shapeOf(cov))
				near(t, mean, floats(z), 1e-14, "mean, %+v", o)
				near(t, noisy(wantDiag), floats(cov), 10*differences, "diagonal, %+v", o)
				z, cov, err = curvature.Linearized(m.forward, p, b, vec(fullSigma, d, d), o)
				near(t, mean, must(t, z, err), 1e-14, "mean, %+v", o)
				near(t, noisy(wantFull), floats(cov), 10*differences, "dense, %+v", o)
				z, cov, err = curvature.LinearizedFactor(m.forward, p, b, vec(full, d, d), o)
				near(t, mean, must(t, z, err), 1e-14, "mean, %+v", o)
				near(t, noisy(wantFull), floats(cov), 10*differences, "factor, %+v", o)
				_, cov, err = curvature.LinearizedFactor(m.forward, p, b, vec(low, d, 2), o)
				near(t, noisy(wantLow), must(t, cov, err), 10*differences, "low rank, %+v", o)
			}
		}
	})
}

func dotOf(a, b []float64) float64 {
	v := 0.0
	for k := range a {
		v += a[k] * b[k]
	}
	return v
}

// For a linear model the law is exact: z = x W has covariance Σ_jj' x_j x_j' Cov(w_jc, w_j'c').
func TestLinearizedIsExactForALinearModel(t *testing.T) {
	m := newLinear(t, 5, 2, 3)
	d := len(m.flat)
	factor := numbers(d*d, 9)
	var sigma []float64
	for _, a := range rows(factor, d) {
		for _, b := range rows(factor, d) {
			sigma = append(sigma, dotOf(a, b))
		}
	}
	var mean, want []float64
	for i := range m.n {
		mean = append(mean, m.logits(i)...)
		for a := range 3 {
			for b := range 3 {
				v := 0.0
				for j := range 2 {
					for k := range 2 {
						v += m.x[i*2+j] * m.x[i*2+k] * sigma[(j*3+a)*d+k*3+b]
					}
				}
				want = append(want, v)
			}
		}
	}
	z, cov, err := curvature.Linearized(m.forward, m.point(t), m.batch(), vec(sigma, d, d),
		curvature.LinearizedOptions{})
	near(t, mean, must(t, z, err), 1e-15, "mean")
	near(t, want, must(t, cov, err), 1e-14, "covariance")
}
