package diag

import "math"

// checkLogLik checks a pointwise log likelihood, [draw][observation], and returns the number of observations.
func checkLogLik(doing string, loglik [][]float64) (observations int, err error) {
	if len(loglik) < 2 || len(loglik[0]) == 0 {
		return 0, failf(ErrSize, "%s: the log likelihood needs at least 2 draws of at least 1 observation", doing)
	}
	n := len(loglik[0])
	for s, row := range loglik {
		if len(row) != n {
			return 0, failf(ErrSize, "%s: draw %d has %d observations, want %d as draw 0", doing, s, len(row), n)
		}
		for i, v := range row {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return 0, failf(ErrNotFinite, "%s: the log likelihood of observation %d in draw %d is %v", doing, i, s, v)
			}
		}
	}
	return n, nil
}

// observation is column i of a log likelihood.
func observation(loglik [][]float64, i int) []float64 {
	column := make([]float64, len(loglik))
	for s, row := range loglik {
		column[s] = row[i]
	}
	return column
}

// total is the sum of n numbers and its standard error sqrt(n v), v their variance (divisor n-1).
func total(n int, of func(i int) float64) (sum, se float64) {
	x := make([]float64, n)
	for i := range x {
		x[i] = of(i)
	}
	mean, variance := meanVar(x)
	return mean * float64(n), math.Sqrt(float64(n) * variance)
}

// RelativeEfficiency is, for each observation, the effective sample size of the likelihood over the number of draws: the
// relative efficiencies of [LOO] and [PSIS] for draws of Markov chains. loglik is [draw][observation], the draws of
// the chains one chain after the other, all of one length. The effective sample size is [ESSBasic] of exp(loglik), as
// relative_eff of the R package loo; ArviZ uses one number, the average over the parameters. Where it is not defined, for
// a likelihood that never varies, it is 1.
//
// [ErrSize], [ErrNotFinite], and [ErrRange] for chains that do not divide the draws are the errors.
func RelativeEfficiency(loglik [][]float64, chains int) ([]float64, error) {
	n, err := checkLogLik("relative efficiency", loglik)
	if err != nil {
		return nil, err
	}
	if chains < 1 || len(loglik)%chains != 0 {
		return nil, failf(ErrRange, "relative efficiency: %d chains do not divide %d draws", chains, len(loglik))
	}
	length := len(loglik) / chains
	reff := make([]float64, n)
	each(n, func(i int) {
		column := observation(loglik, i)
		highest := math.Inf(-1)
		for _, v := range column {
			highest = max(highest, v)
		}
		x := make([][]float64, chains)
		for c := range x {
			x[c] = column[c*length : (c+1)*length]
		}
		size := ESSBasic(mapped(x, func(v float64) float64 { return math.Exp(v - highest) }))
		if reff[i] = size / float64(len(loglik)); math.IsNaN(reff[i]) {
			reff[i] = 1
		}
	})
	return reff, nil
}
