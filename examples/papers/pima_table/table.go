package main

import (
	"math"
	"math/rand/v2"
)

// ksdTable3 is the number called kernel Stein discrepancy in table 3 of Duffield, Donatella, Chiu, Klett and Simpson
// (2025), "Scalable Bayesian Learning with posteriors". It is here so that the table can be reproduced, and is no
// measure of quality. As computed there it differs from the discrepancy, diag.KSD, in three ways:
//
//   - s is the gradient of the log posterior divided by the number of data.
//   - The sign of ∇x k and ∇y k is turned, so that the number falls as draws spread.
//   - Each draw is paired with a random subset of the draws, which are chosen with replacement.
//
// With the Gaussian kernel of length 1 and u = x - y,
//
//	k0 = k (d - ‖u‖² + u·(s(y) - s(x)) + s(x)·s(y)),  the number = sqrt(mean k0)
//
// (the discrepancy has minus before u). x and the gradients of the mean log posterior s are rows of dim numbers. subset
// 0 is all draws, once each. The result is NaN if the mean is negative.
func ksdTable3(x, s []float64, dim, subset int, seed uint64) float64 {
	k0 := func(i, j int) float64 {
		r2, along, ss := 0.0, 0.0, 0.0
		for a := range dim {
			u := x[i*dim+a] - x[j*dim+a]
			sx, sy := s[i*dim+a], s[j*dim+a]
			r2 += u * u
			along += u * (sy - sx)
			ss += sx * sy
		}
		return math.Exp(-r2/2) * (float64(dim) - r2 + along + ss)
	}
	n := len(x) / dim
	mean := 0.0
	for i := range n {
		if subset == 0 {
			for j := range n {
				mean += k0(i, j) / float64(n) / float64(n)
			}
			continue
		}
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		for range subset {
			mean += k0(i, rng.IntN(n)) / float64(subset) / float64(n)
		}
	}
	return math.Sqrt(mean)
}
