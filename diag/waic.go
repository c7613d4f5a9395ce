package diag

import "math"

// WAICPoint is the part of one observation in a [WAICResult].
type WAICPoint struct {
	// ELPD is the log pointwise predictive density less P; P is the variance of the log likelihood over the draws.
	ELPD, P float64
}

// WAICResult is the widely applicable information criterion of a model.
type WAICResult struct {
	// ELPD is the expected log pointwise predictive density, SE its standard error.
	ELPD, SE float64
	// P is the effective number of parameters, SEP its standard error.
	P, SEP float64
	// IC is -2 ELPD, which is what is called WAIC, and SEIC its standard error.
	IC, SEIC float64
	// Pointwise has one entry per observation.
	Pointwise []WAICPoint
	// Unreliable counts the observations with P above 0.4, for which WAIC tends to fail where [LOO] may not.
	Unreliable int
}

// WAIC is the widely applicable information criterion (Watanabe 2010, Journal of Machine Learning Research 11,
// 3571-3594) from the log likelihood of each observation in each draw, [draw][observation]:
//
//	elpd(i) = log (1/S) Σ p(y(i)|θ(s)) - Var log p(y(i)|θ(s))
//
// in the form of Vehtari, Gelman and Gabry (2017), with divisors S-1 and n-1 in variances as in the R package loo; ArviZ
// has S and n. Prefer [LOO], which says when it fails. [ErrSize] and [ErrNotFinite] are the errors. SE is NaN for a
// single observation.
func WAIC(loglik [][]float64) (*WAICResult, error) {
	n, err := checkLogLik("waic", loglik)
	if err != nil {
		return nil, err
	}
	r := &WAICResult{Pointwise: make([]WAICPoint, n)}
	for i := range n {
		ll := observation(loglik, i)
		_, variance := meanVar(ll)
		r.Pointwise[i] = WAICPoint{ELPD: logSumExp(ll) - math.Log(float64(len(ll))) - variance, P: variance}
		if variance > 0.4 {
			r.Unreliable++
		}
	}
	r.ELPD, r.SE = total(n, func(i int) float64 { return r.Pointwise[i].ELPD })
	r.P, r.SEP = total(n, func(i int) float64 { return r.Pointwise[i].P })
	r.IC, r.SEIC = -2*r.ELPD, 2*r.SE
	return r, nil
}

// Model is what [Compare] needs of a WAIC.
func (r *WAICResult) Model(name string) Model {
	m := Model{Name: name, Pointwise: make([]float64, len(r.Pointwise)), P: r.P}
	for i, p := range r.Pointwise {
		m.Pointwise[i] = p.ELPD
	}
	return m
}
