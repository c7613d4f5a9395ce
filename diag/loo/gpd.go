package loo

import (
	"math"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// fitGPD estimates shape k and scale σ of a generalised Pareto distribution from positive numbers,
//
//	P(X > x) = (1 + k x/σ)^(-1/k),  exp(-x/σ) for k = 0
//
// by the empirical Bayes method of Zhang and Stephens (2009), Technometrics 51, 316-325. With θ = -k/σ, the profile
// likelihood of θ is averaged over a grid of 30 + floor(sqrt(n)) quantiles of a data-dependent prior; then
// k = mean log(1 - θ x), in which a prior of ten observations at 1/2 steadies small samples:
//
//	k' = (n k + 5) / (n + 10)
//
// as in Vehtari, Simpson, Gelman, Yao and Gabry (2024), Journal of Machine Learning Research 25. σ belongs to the k
// before that. The sign of k is that of modern texts: heavy tails are positive.
//
// x has at least 5 numbers, positive, finite and sorted. k is +Inf where the fit fails, which needs extreme numbers.
func fitGPD(x []float64) (k, sigma float64) {
	n := float64(len(x))
	grid := 30 + int(math.Sqrt(n))
	quarter := x[int(n/4+0.5)-1]
	largest := x[len(x)-1]
	shape := func(theta float64) float64 {
		sum := 0.0
		for _, v := range x {
			sum += math.Log1p(-theta * v)
		}
		return sum / n
	}
	theta, logl := make([]float64, grid), make([]float64, grid)
	for j := range grid {
		theta[j] = 1/largest + (1-math.Sqrt(float64(grid)/(float64(j)+0.5)))/(3*quarter)
		s := shape(theta[j])
		logl[j] = n * (math.Log(-theta[j]/s) - s - 1)
	}
	norm := sample.LogSumExp(logl)
	best := 0.0
	for j := range grid {
		best += theta[j] * math.Exp(logl[j]-norm)
	}
	k = shape(best)
	sigma = -k / best
	k = (n*k + 5) / (n + 10)
	if math.IsNaN(k) {
		return math.Inf(1), sigma
	}
	return k, sigma
}

// quantileGPD is the quantile of a generalised Pareto distribution at p in (0, 1).
func quantileGPD(p, k, sigma float64) float64 {
	if math.Abs(k) < 1e-12 {
		return -sigma * math.Log1p(-p)
	}
	return sigma * math.Expm1(-k*math.Log1p(-p)) / k
}
