package score

import (
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Uncertainty is the uncertainty of one class prediction in nats, split in two.
type Uncertainty struct {
	// Total is the entropy of the averaged probabilities; Aleatoric is the average of the entropies, what stays when the
	// parameters are known; Epistemic is the difference, the mutual information of label and parameters, at least 0.
	Total, Aleatoric, Epistemic float64
}

// EntropyOf splits the uncertainty of a class prediction, from the class probabilities under each draw, [draw][class]:
//
//	H[mean p] = mean H[p] + I
//
// Depeweg, Hernández-Lobato, Doshi-Velez and Udluft (2018), Proceedings of Machine Learning Research 80.
// [draws.ErrSize] and [draws.ErrRange] are the errors.
func EntropyOf(p [][]float64) (Uncertainty, error) {
	if err := checkProbabilities("entropy", p, make([]int, len(p))); err != nil {
		return Uncertainty{}, err
	}
	var u Uncertainty
	mean := make([]float64, len(p[0]))
	for _, row := range p {
		u.Aleatoric += entropy(row) / float64(len(p))
		for k, v := range row {
			mean[k] += v / float64(len(p))
		}
	}
	u.Total = entropy(mean)
	u.Epistemic = max(u.Total-u.Aleatoric, 0) // below 0 by rounding only
	return u, nil
}

func entropy(p []float64) float64 {
	h := 0.0
	for _, v := range p {
		if v > 0 {
			h -= v * math.Log(v)
		}
	}
	return h
}

// VarianceParts is the variance of a prediction split by the law of total variance,
//
//	Var y = E[Var(y | θ)] + Var(E[y | θ])
//
// The first part stays when the parameters θ are known, the second is their uncertainty.
type VarianceParts struct {
	// Mean is the mean of the prediction; Total is its variance, the sum of Aleatoric and Epistemic.
	Mean, Total, Aleatoric, Epistemic float64
}

// VarianceOf splits the variance of a continuous prediction, the mixture over draws s of laws with the means f(s) and
// the variances σ²(s), one number for all if variances has one:
//
//	Aleatoric = (1/S) Σ σ²(s),  Epistemic = (1/S) Σ (f(s) - f̄)²
//
// The divisor is S: the figures are those of the mixture itself, as of an ensemble (Lakshminarayanan, Pritzel and
// Blundell 2017, Advances in Neural Information Processing Systems 30). Of few draws from a larger posterior, Epistemic
// is too small by the factor (S-1)/S on average. [draws.ErrSize], [diag.ErrNotFinite], and [draws.ErrRange] for
// variances below 0 are the errors.
func VarianceOf(means, variances []float64) (VarianceParts, error) {
	s := len(means)
	if s == 0 || len(variances) != 1 && len(variances) != s {
		return VarianceParts{}, failf(draws.ErrSize, "variance: %d means and %d variances, want at least one mean, "+
			"and one variance or as many", s, len(variances))
	}
	for i, v := range means {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return VarianceParts{}, failf(diag.ErrNotFinite, "variance: the mean of draw %d is %v", i, v)
		}
	}
	for i, v := range variances {
		if !(v >= 0) || math.IsInf(v, 1) {
			return VarianceParts{}, failf(draws.ErrRange, "variance: the variance of draw %d is %v, want a number not below 0",
				i, v)
		}
	}
	var p VarianceParts
	p.Mean, p.Epistemic = sample.MeanVar(means)
	p.Epistemic *= float64(s-1) / float64(s)
	if s == 1 {
		p.Epistemic = 0
	}
	p.Aleatoric, _ = sample.MeanVar(variances)
	p.Total = p.Aleatoric + p.Epistemic
	return p, nil
}

// BernoulliVarianceOf splits the variance p̄(1 - p̄) of a binary prediction, from the probabilities of
// 1 under each draw:
//
//	Aleatoric = (1/S) Σ p(s) (1 - p(s)),  Epistemic = (1/S) Σ (p(s) - p̄)²
//
// Depeweg et al. (2018). [draws.ErrSize] and [draws.ErrRange] are the errors.
func BernoulliVarianceOf(p []float64) (VarianceParts, error) {
	if len(p) == 0 {
		return VarianceParts{}, failf(draws.ErrSize, "variance: no probabilities")
	}
	variances := make([]float64, len(p))
	for i, v := range p {
		if err := checkProbability("variance", v); err != nil {
			return VarianceParts{}, err
		}
		variances[i] = v * (1 - v)
	}
	return VarianceOf(p, variances)
}
