package diag

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// MCSEMean is the Monte-Carlo standard error of the mean of all draws: sd / sqrt(ESSMean).
func MCSEMean(x [][]float64) float64 {
	return over(x, func(u [][]float64) float64 {
		y, e := standardised(u)
		_, variance := sample.MeanVar(pooled(y))
		return math.Ldexp(math.Sqrt(variance/ess(split(y))), e)
	})
}

// MCSESD is the Monte-Carlo standard error of the standard deviation of all draws. With s = (x - m)² and E its mean,
// the variance of E is (mean s² - E²) / ESS(s), and by the delta method that of sqrt(E) is 1/(4E) of it:
//
//	mcse = sqrt((mean s² - E²) / (4 E ESS(s)))
//
// Kenney and Keeping (1951), Mathematics of Statistics, volume 2; as in ArviZ. Versions of posterior differ in the
// quantity whose effective sample size they take. No normal distribution is assumed.
func MCSESD(x [][]float64) float64 {
	return over(x, func(u [][]float64) float64 {
		y, e := standardised(u)
		s := squares(y)
		size := ess(split(s))
		all := pooled(s)
		n := float64(len(all))
		first, variance := sample.MeanVar(all)
		return math.Ldexp(math.Sqrt(variance*(n-1)/n/size/first/4), e)
	})
}

// MCSEQuantile is the Monte-Carlo standard error of the quantile for the probability p. The rank of the quantile among
// N = ESSQuantile independent draws has a Beta(N p + 1, N (1-p) + 1) distribution; its quantiles a and b for plus and
// minus one normal standard deviation are turned into order statistics of the S draws, and
//
//	mcse = (x(ceil(b S)) - x(floor(a S))) / 2
//
// Vehtari et al. (2021). A [draws.ErrRange] says that p is outside [0, 1].
func MCSEQuantile(x [][]float64, p float64) (float64, error) {
	if err := checkProbability("mcse of a quantile", p); err != nil {
		return math.NaN(), err
	}
	u := usable(x)
	if u == nil {
		return math.NaN(), nil
	}
	all := pooled(u)
	slices.Sort(all)
	size := essQuantile(u, all, p)
	if math.IsNaN(size) {
		return math.NaN(), nil
	}
	n := float64(len(all))
	rank := func(prob float64) float64 { return mathext.InvRegIncBeta(size*p+1, size*(1-p)+1, prob) * n }
	low := max(math.Floor(rank(0.1586553)), 1) // the rounded Φ(-1) and Φ(1) of posterior and ArviZ
	high := min(math.Ceil(rank(0.8413447)), n)
	return all[int(high)-1]/2 - all[int(low)-1]/2, nil
}
