package diag

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Autocorrelation is c(t)/c(0) of one chain at the lags t = 0 to n-1, with the biased autocovariance
//
//	c(t) = (1/n) Σ (x(i) - m)(x(i+t) - m),  i from 0 to n-1-t
//
// and m the mean. The divisor n at every lag keeps the noise of long lags small (Geyer 1992, Statistical Science 7,
// 473-483). It is computed by a Fourier transform of the chain padded with zeros, in n log n operations. It is nil for
// no draws, and NaN at every lag if the draws are all equal or not all finite.
func Autocorrelation(x []float64) []float64 {
	if len(x) == 0 {
		return nil
	}
	rho := make([]float64, len(x))
	if low, high := sample.Extremes([][]float64{x}); !(low < high) || math.IsInf(low, 0) || math.IsInf(high, 0) {
		for t := range rho {
			rho[t] = math.NaN()
		}
		return rho
	}
	y, _ := standardised([][]float64{x})
	newTransform(len(x)).autocovariance(rho, y[0])
	for t := len(rho) - 1; t >= 0; t-- {
		rho[t] /= rho[0]
	}
	return rho
}

// transform is a Fourier transform with its buffers, for chains of n draws.
type transform struct {
	fft              *fourier.FFT
	padded           []float64
	coeffs, spectrum []complex128
}

func newTransform(n int) *transform {
	m := fastLength(2 * n)
	return &transform{fourier.NewFFT(m), make([]float64, m), make([]complex128, m/2+1), make([]complex128, m/2+1)}
}

// autocovariance writes the mean of the biased autocovariances of some chains into cov. Their spectra are added, so
// that one inverse transform does.
func (f *transform) autocovariance(cov []float64, chains ...[]float64) {
	for k, x := range chains {
		clear(f.padded)
		mean, _ := sample.MeanVar(x)
		for i, v := range x {
			f.padded[i] = v - mean
		}
		f.coeffs = f.fft.Coefficients(f.coeffs, f.padded)
		for i, c := range f.coeffs {
			power := real(c)*real(c) + imag(c)*imag(c)
			if k == 0 {
				f.spectrum[i] = complex(power, 0)
			} else {
				f.spectrum[i] += complex(power, 0)
			}
		}
	}
	f.padded = f.fft.Sequence(f.padded, f.spectrum) // as many times the inverse as it is long
	scale := 1 / (float64(len(f.padded)) * float64(len(cov)) * float64(len(chains)))
	for t := range cov {
		cov[t] = f.padded[t] * scale
	}
}

// fastLength is the smallest number of at least n with no prime factor above 5.
func fastLength(n int) int {
	for ; ; n++ {
		m := n
		for _, p := range []int{2, 3, 5} {
			for m%p == 0 {
				m /= p
			}
		}
		if m == 1 {
			return n
		}
	}
}
