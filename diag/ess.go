package diag

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// ESSBulk is the bulk effective sample size: that of the mean of the normal scores of the ranks, over split chains. It
// says how well the centre of the distribution is known, also where moments are infinite. Less than 100 per chain is
// too few for any diagnostic to be trusted. Vehtari et al. (2021).
func ESSBulk(x [][]float64) float64 {
	return over(x, func(u [][]float64) float64 { return ess(normalScores(split(u))) })
}

// ESSTail is the tail effective sample size: the smaller one of those of the 5% and the 95% quantile, see
// [ESSQuantile]. Vehtari et al. (2021). It is NaN where one of them is: with few distinct values, as of a coin, a
// quantile can be the largest value, and then there is nothing to estimate. ArviZ gives the number of draws there.
func ESSTail(x [][]float64) float64 {
	return over(x, func(u [][]float64) float64 {
		all := pooled(u)
		slices.Sort(all)
		return min(essQuantile(u, all, 0.05), essQuantile(u, all, 0.95)) // a NaN stays
	})
}

// ESSMean is the effective sample size of the mean, over split chains. It needs a finite variance.
func ESSMean(x [][]float64) float64 {
	return over(x, func(u [][]float64) float64 {
		y, _ := standardised(u)
		return ess(split(y))
	})
}

// over is f of the chains that can be used, or NaN.
func over(x [][]float64, f func(u [][]float64) float64) float64 {
	if u := usable(x); u != nil {
		return f(u)
	}
	return math.NaN()
}

// squares is (x - m)² with m the mean of all draws.
func squares(x [][]float64) [][]float64 {
	m, _ := sample.MeanVar(pooled(x))
	return sample.Mapped(x, func(v float64) float64 { return (v - m) * (v - m) })
}

// ESSQuantile is the effective sample size of the quantile for the probability p: that of the mean of the indicator x
// <= q, over split chains, with q the sample quantile of type 7. p = 1 stands for (S - 1/2)/S with S draws, as in
// posterior. Vehtari et al. (2021). A [draws.ErrRange] says that p is outside [0, 1].
func ESSQuantile(x [][]float64, p float64) (float64, error) {
	if err := checkProbability("ess of a quantile", p); err != nil {
		return math.NaN(), err
	}
	return over(x, func(u [][]float64) float64 {
		all := pooled(u)
		slices.Sort(all)
		return essQuantile(u, all, p)
	}), nil
}

// convergence is RHat, ESSBulk and ESSTail at once, which saves half of the time.
func convergence(x [][]float64) (r, bulk, tail float64) {
	u := usable(x)
	if u == nil {
		return math.NaN(), math.NaN(), math.NaN()
	}
	scores := normalScores(split(u))
	all := pooled(u)
	slices.Sort(all)
	r = rhatOf(scores, u)
	return r, ess(scores), min(essQuantile(u, all, 0.05), essQuantile(u, all, 0.95))
}

func essQuantile(u [][]float64, sorted []float64, p float64) float64 {
	if p == 1 {
		p = (float64(len(sorted)) - 0.5) / float64(len(sorted))
	}
	q := sample.Quantile(sorted, p)
	return ess(split(sample.Mapped(u, func(v float64) float64 {
		if v <= q {
			return 1
		}
		return 0
	})))
}

// ESSBasic is the effective sample size of the mean over whole chains, neither split nor ranked. Relative efficiencies
// of package loo are made of it.
func ESSBasic(x [][]float64) float64 {
	return over(x, func(u [][]float64) float64 {
		y, _ := standardised(u)
		return ess(y)
	})
}

// ess is the effective sample size of m chains of n draws. With the autocovariances c of each chain, W the mean of
// c(0) n/(n-1), and V = (n-1)/n W + the variance of the chain means,
//
//	ρ(t) = 1 - (W - mean c(t)) / V
//	τ    = -1 + 2 Σ (ρ(2k) + ρ(2k+1)),  over Geyer's initial monotone sequence
//	ess  = m n / τ
//
// The sum ends before the first negative pair, and a pair larger than the one before is lowered to it. The even member
// of the pair that ended it counts once if positive, which helps antithetic chains. τ is at least 1/log10(m n).
// Geyer (1992); Vehtari et al. (2021). Draws all equal are NaN.
//
// This is ArviZ step by step. posterior differs in two corners: of chains whose length, or half length, is odd it looks
// at one pair of lags less, which shows in very short and in very slow chains; and where the first pair is not positive
// (chains that alternate) it puts τ = 2. With 3 or 4 draws there is no second pair to look at; τ is 2 then, as in
// posterior, and not the lower limit, as in ArviZ. Of 2 draws, the halves of 4 or 5, there is none, as in posterior:
// NaN.
func ess(x [][]float64) float64 {
	n := len(x[0])
	if low, high := sample.Extremes(x); n < 3 || !(low < high) {
		return math.NaN()
	}
	means := make([]float64, len(x))
	for i, c := range x {
		means[i], _ = sample.MeanVar(c)
	}
	mean := make([]float64, n) // of the autocovariances of the chains
	newTransform(n).autocovariance(mean, x...)
	within := mean[0] * float64(n) / float64(n-1)
	total := mean[0]
	if len(x) > 1 {
		_, between := sample.MeanVar(means)
		total += between
	}
	correlation := func(t int) float64 { return 1 - (within-mean[t])/total }

	rho := make([]float64, n)
	even, odd := 1.0, correlation(1)
	rho[0], rho[1] = even, odd
	last := 0 // the even lag of the pair looked at last
	for last < n-4 && even+odd > 0 {
		last += 2
		even, odd = correlation(last), correlation(last+1)
		if even+odd >= 0 {
			rho[last], rho[last+1] = even, odd
		}
	}
	if even > 0 {
		rho[last] = even
	}
	for t := 2; t <= last-2; t += 2 { // monotone
		if before := rho[t-2] + rho[t-1]; rho[t]+rho[t+1] > before {
			rho[t], rho[t+1] = before/2, before/2
		}
	}
	tau := -1 + rho[last]
	for _, r := range rho[:last] {
		tau += 2 * r
	}
	if n < 5 {
		tau = 2
	}
	draws := float64(n * len(x))
	return draws / max(tau, 1/math.Log10(draws))
}
