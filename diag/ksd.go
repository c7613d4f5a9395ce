package diag

import (
	"math"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Kernel is a radial kernel k(x, y) = φ(r²), r = ‖x - y‖, for [KSD]: [IMQ] or [Gaussian].
type Kernel interface {
	// radial is φ and its first and second derivative by r², at r².
	radial(r2 float64) (value, first, second float64)
	check() error
}

// IMQ is the inverse multiquadric kernel (C² + r²)^Beta. It detects every failure to converge, also in many dimensions
// (Gorham and Mackey 2017, Proceedings of Machine Learning Research 70), which kernels with lighter tails do not.
type IMQ struct {
	// C is a length on the scale of the draws, positive; 0 is the default 1.
	C float64
	// Beta is above -1 and below 0; 0 is the default -1/2.
	Beta float64
}

func (k IMQ) defaults() IMQ {
	if k.C == 0 {
		k.C = 1
	}
	if k.Beta == 0 {
		k.Beta = -0.5
	}
	return k
}

func (k IMQ) check() error {
	switch k = k.defaults(); {
	case !(k.C > 0) || math.IsInf(k.C, 1):
		return failf(draws.ErrRange, "ksd: C is %v, want a positive number, or 0 for 1", k.C)
	case !(k.Beta > -1 && k.Beta < 0):
		return failf(draws.ErrRange, "ksd: Beta is %v, want above -1 and below 0, or 0 for -0.5", k.Beta)
	}
	return nil
}

func (k IMQ) radial(r2 float64) (value, first, second float64) {
	k = k.defaults()
	q := k.C*k.C + r2
	if k.Beta == -0.5 {
		value = 1 / math.Sqrt(q)
	} else {
		value = math.Pow(q, k.Beta)
	}
	first = k.Beta * value / q
	return value, first, (k.Beta - 1) * first / q
}

// Gaussian is the kernel exp(-r² / (2 Length²)). It is for comparison with published figures: in more than two
// dimensions it can be small for draws that do not converge.
type Gaussian struct {
	// Length is positive; 0 is the default 1.
	Length float64
}

func (k Gaussian) check() error {
	if !(k.Length >= 0) || math.IsInf(k.Length, 1) {
		return failf(draws.ErrRange, "ksd: Length is %v, want a positive number, or 0 for 1", k.Length)
	}
	return nil
}

func (k Gaussian) radial(r2 float64) (value, first, second float64) {
	rate := 0.5
	if k.Length != 0 {
		rate = 0.5 / (k.Length * k.Length)
	}
	value = math.Exp(-rate * r2)
	return value, -rate * value, rate * rate * value
}

// KSDResult is a kernel Stein discrepancy.
type KSDResult struct {
	// KSD is sqrt(V): 0 only where draws and target agree, and above 0 for finitely many draws of the target itself.
	KSD float64
	// V is the mean of the Stein kernel over all pairs of draws, at least 0. U is that over pairs of different draws,
	// which is unbiased for the square of the discrepancy and scatters around 0 for independent draws of the target.
	V, U float64
}

// KSD is the kernel Stein discrepancy between draws x and the target whose log density has the gradients s at them.
// Both are rows of dim numbers, row-major; the gradient is that of the log density itself, not of its mean over data,
// and needs no normalising constant. kernel nil is IMQ{}. With the Stein kernel
//
//	k0(x, y) = ∇x·∇y k + s(x)·∇y k + s(y)·∇x k + k s(x)·s(y)
//	V = (1/n²) Σ k0(x(i), x(j)),  U = 1/(n(n-1)) Σ over i ≠ j,  KSD = sqrt(V)
//
// Liu, Lee and Jordan (2016) and Chwialkowski, Strathmann and Gretton (2016), Proceedings of Machine Learning Research
// 48; Gorham and Mackey (2017). For k = φ(r²) with derivatives φ1 and φ2: ∇x k = 2 φ1 (x - y), ∇y k = -∇x k, and ∇x·∇y
// k = -2 d φ1 - 4 φ2 r².
//
// The time is n² dim / 2. The sum is made in blocks, in the same order however many processors share it. U is NaN for a
// single draw. [draws.ErrSize], [ErrNotFinite], also where squares overflow, and [draws.ErrRange] for the kernel are
// the errors.
func KSD(x, s []float64, dim int, kernel Kernel) (KSDResult, error) {
	n, err := checkKSD(x, s, dim)
	if err != nil {
		return KSDResult{}, err
	}
	if kernel == nil {
		kernel = IMQ{}
	}
	if err := kernel.check(); err != nil {
		return KSDResult{}, err
	}
	const block = 64
	blocks := (n + block - 1) / block
	sums := make([]float64, blocks) // of pairs i < j, i in the block
	sample.Each(blocks, func(b int) {
		last := min((b+1)*block, n)
		for first := b * block; first < n; first += block { // a tile of rows b and columns first
			for i := b * block; i < last; i++ {
				xi, si := x[i*dim:(i+1)*dim], s[i*dim:(i+1)*dim]
				for j := max(first, i+1); j < min(first+block, n); j++ {
					sums[b] += steinKernel(kernel, xi, x[j*dim:(j+1)*dim], si, s[j*dim:(j+1)*dim])
				}
			}
		}
	})
	pairs, diagonal := 0.0, 0.0
	for _, v := range sums {
		pairs += v
	}
	for i := range n {
		xi, si := x[i*dim:(i+1)*dim], s[i*dim:(i+1)*dim]
		diagonal += steinKernel(kernel, xi, xi, si, si)
	}
	m := float64(n)
	r := KSDResult{V: (2*pairs + diagonal) / m / m, U: 2 * pairs / m / (m - 1)}
	if r.V-r.V != 0 {
		return KSDResult{}, failf(ErrNotFinite, "ksd: squares of draws or gradients overflow beside a length of the kernel: "+
			"divide the draws by their standard deviations, and multiply the gradients by them")
	}
	r.KSD = math.Sqrt(max(r.V, 0))
	return r, nil
}

// steinKernel is k0.
func steinKernel(kernel Kernel, x, y, sx, sy []float64) float64 {
	r2, along, ss := 0.0, 0.0, 0.0
	for i, xi := range x {
		u := xi - y[i]
		r2 += u * u
		along += u * (sy[i] - sx[i])
		ss += sx[i] * sy[i]
	}
	k, first, second := kernel.radial(r2)
	return -2*float64(len(x))*first - 4*second*r2 + 2*first*along + k*ss
}

// checkKSD returns the number of draws.
func checkKSD(x, s []float64, dim int) (int, error) {
	if dim < 1 {
		return 0, failf(draws.ErrRange, "ksd: dim is %d, want at least 1", dim)
	}
	if len(x) == 0 || len(x)%dim != 0 {
		return 0, failf(draws.ErrSize, "ksd: x has %d numbers, want a positive multiple of %d", len(x), dim)
	}
	if len(s) != len(x) {
		return 0, failf(draws.ErrSize, "ksd: s has %d numbers, want %d as x", len(s), len(x))
	}
	for i := range x {
		if v := x[i] - x[i] + s[i] - s[i]; v != 0 { // NaN for an infinity too
			return 0, failf(ErrNotFinite, "ksd: draw %d: x is %v and s is %v at element %d", i/dim, x[i], s[i], i%dim)
		}
	}
	return len(x) / dim, nil
}
