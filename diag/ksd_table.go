package diag

import (
	"math"
	"math/rand/v2"
)

// KSDTable3Options are options of [KSDTable3].
type KSDTable3Options struct {
	// Data is the number of data points N, at least 1; gradients are divided by it. 0 is 1, for gradients that are those
	// of the mean already.
	Data int
	// Subset is the number of draws that each draw is paired with, chosen with replacement; 0 is all draws, once each.
	Subset int
	// Seed is that of the choice.
	Seed uint64
}

// KSDTable3 is the number called kernel Stein discrepancy in table 3 of Duffield, Donatella, Chiu, Klett and Simpson
// (2025), "Scalable Bayesian Learning with posteriors". It is here so that the table can be reproduced, and is no
// measure of quality: use [KSD]. As computed there it differs from the discrepancy in that
//
//   - s is the gradient of the log posterior divided by the number of data,
//   - the sign of ∇x k and ∇y k is turned, so that the number falls as draws spread,
//   - each draw is paired with a random subset of 100 draws, itself among them.
//
// With the Gaussian kernel of length 1 and u = x - y,
//
//	k0 = k (d - ‖u‖² + u·(s(y) - s(x)) + s(x)·s(y)),  the number = sqrt(mean k0)
//
// (the discrepancy has minus before u). x and gradient are rows of dim numbers. It is NaN where the mean is negative.
// [ErrSize], [ErrNotFinite] and [ErrRange] are the errors.
func KSDTable3(x, gradient []float64, dim int, opt KSDTable3Options) (float64, error) {
	n, err := checkKSD(x, gradient, dim)
	if err != nil {
		return 0, err
	}
	if opt.Data < 0 || opt.Subset < 0 {
		return 0, failf(ErrRange, "ksd: Data is %d and Subset is %d, want at least 0", opt.Data, opt.Subset)
	}
	data := float64(max(opt.Data, 1))
	k0 := func(i, j int) float64 {
		r2, along, ss := 0.0, 0.0, 0.0
		for a := range dim {
			u := x[i*dim+a] - x[j*dim+a]
			sx, sy := gradient[i*dim+a]/data, gradient[j*dim+a]/data
			r2 += u * u
			along += u * (sy - sx)
			ss += sx * sy
		}
		return math.Exp(-r2/2) * (float64(dim) - r2 + along + ss)
	}
	rows := make([]float64, n)
	each(n, func(i int) {
		if opt.Subset == 0 {
			for j := range n {
				rows[i] += k0(i, j) / float64(n)
			}
			return
		}
		rng := rand.New(rand.NewPCG(opt.Seed, uint64(i)))
		for range opt.Subset {
			rows[i] += k0(i, rng.IntN(n)) / float64(opt.Subset)
		}
	})
	mean := 0.0
	for _, v := range rows {
		mean += v / float64(n)
	}
	return math.Sqrt(mean), nil
}
