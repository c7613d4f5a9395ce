package evidence

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
)

// BayesFactor is the log Bayes factor log Z_a − log Z_b of two models of the same data, and its standard error.
// Positive numbers favour a. With equal prior odds its exponential is the posterior odds.
func BayesFactor(a, b *Result) (log, se float64, err error) {
	if a == nil || b == nil {
		return math.NaN(), math.NaN(), fmt.Errorf("evidence.BayesFactor: an estimate is nil: %w", infer.ErrConfig)
	}
	return a.LogZ - b.LogZ, math.Hypot(a.SE, b.SE), nil
}

// Probabilities are the posterior probabilities of models of the same data, Z_i π_i / Σ Z_j π_j, and their standard
// errors by the delta method. prior are the π, up to a common factor; nil is equal ones.
func Probabilities(models []*Result, prior []float64) (p, se []float64, err error) {
	if len(models) == 0 || prior != nil && len(prior) != len(models) {
		return nil, nil, fmt.Errorf("evidence.Probabilities: %d models with %d prior probabilities: %w", len(models),
			len(prior), infer.ErrConfig)
	}
	logs := make([]float64, len(models))
	for i, m := range models {
		if m == nil || !finite(m.LogZ) {
			return nil, nil, fmt.Errorf("evidence.Probabilities: model %d has no finite log Z: %w", i, infer.ErrNonFinite)
		}
		logs[i] = m.LogZ
		if prior != nil {
			if !(prior[i] >= 0) || math.IsInf(prior[i], 0) {
				return nil, nil, &infer.FieldError{Type: "evidence.Probabilities", Field: fmt.Sprintf("prior[%d]", i),
					Value: prior[i], Allowed: "it must be a number of at least 0"}
			}
			logs[i] += math.Log(prior[i])
		}
	}
	z := logSumExp(logs)
	if !finite(z) {
		return nil, nil, fmt.Errorf("evidence.Probabilities: all prior probabilities are 0: %w", infer.ErrConfig)
	}
	for _, l := range logs {
		p = append(p, math.Exp(l-z))
	}
	for i := range p {
		v := 0.0 // ∂p_i/∂log Z_j = p_i (δ_ij − p_j)
		for j, m := range models {
			d := -p[i] * p[j]
			if i == j {
				d += p[i]
			}
			v += d * d * m.SE * m.SE
		}
		se = append(se, math.Sqrt(v))
	}
	return p, se, nil
}
