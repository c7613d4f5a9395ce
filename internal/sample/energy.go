package sample

import "math"

// Energies are the marginal energies, less their mean over all chains, and the changes from each draw of a chain to the
// next; Betancourt (2016), arXiv:1604.00695. What is not finite is left out.
func Energies(chains [][]float64) (marginal, change []float64) {
	mean, n := 0.0, 0.0
	for _, e := range chains {
		for _, v := range e {
			if Finite(v) {
				n++
				mean += (v - mean) / n
			}
		}
	}
	for _, e := range chains {
		for i, v := range e {
			if !Finite(v) {
				continue
			}
			marginal = append(marginal, v-mean)
			if i > 0 && Finite(e[i-1]) {
				change = append(change, v-e[i-1])
			}
		}
	}
	return marginal, change
}

// Finite says that a number is neither infinite nor NaN.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
