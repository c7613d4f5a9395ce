package diag

import "math"

// SymmetricKL is the mean over cases of the symmetrised Kullback-Leibler divergence between two predictions of class
// probabilities, [case][class], in nats:
//
//	(1/n) Σ (1/2) [KL(p ‖ q) + KL(q ‖ p)] = (1/n) Σ (1/2) Σ over classes of (p - q) (log p - log q)
//
// Twice that is the divergence of Jeffreys (1946); texts differ in which one they mean. It is 0 where the predictions are
// equal, and +Inf where only one of them is 0. [ErrSize] and [ErrRange] are the errors.
func SymmetricKL(p, q [][]float64) (float64, error) {
	if len(p) != len(q) {
		return 0, failf(ErrSize, "symmetric kl: %d and %d cases, want equally many", len(p), len(q))
	}
	for _, x := range [][][]float64{p, q} {
		if err := checkProbabilities("symmetric kl", x, make([]int, len(x))); err != nil {
			return 0, err
		}
	}
	return symmetricKL(mapped(p, math.Log), mapped(q, math.Log))
}

// SymmetricKLLog is [SymmetricKL] of log probabilities, such as those of [Predictive.LogMean]: it is finite also where
// probabilities underflow.
func SymmetricKLLog(logp, logq [][]float64) (float64, error) {
	if len(logp) != len(logq) {
		return 0, failf(ErrSize, "symmetric kl: %d and %d cases, want equally many", len(logp), len(logq))
	}
	for _, x := range [][][]float64{logp, logq} {
		if err := checkLabels("symmetric kl", x, make([]int, len(x))); err != nil {
			return 0, err
		}
		if err := checkLogProbabilities("symmetric kl", x); err != nil {
			return 0, err
		}
	}
	return symmetricKL(logp, logq)
}

func symmetricKL(logp, logq [][]float64) (float64, error) {
	if len(logp[0]) != len(logq[0]) {
		return 0, failf(ErrSize, "symmetric kl: %d and %d classes, want equally many", len(logp[0]), len(logq[0]))
	}
	sum := 0.0
	for i, row := range logp {
		for k, a := range row {
			if b := logq[i][k]; a != b {
				if math.IsInf(a, -1) || math.IsInf(b, -1) {
					return math.Inf(1), nil
				}
				sum += (math.Exp(a) - math.Exp(b)) * (a - b) / 2
			}
		}
	}
	return sum / float64(len(logp)), nil
}
