package diag

import "math"

// VarianceParts is the variance of a prediction split by the law of total variance,
//
//	Var y = E[Var(y | θ)] + Var(E[y | θ])
//
// The first part stays when the parameters θ are known, the second is their uncertainty.
type VarianceParts struct {
	// Mean is the mean of the prediction; Total is its variance, the sum of Aleatoric and Epistemic.
	Mean, Total, Aleatoric, Epistemic float64
}

// VarianceOf splits the variance of a continuous prediction, the mixture over draws s of laws with the means f(s) and the
// variances σ²(s), one number for all if variances has one:
//
//	Aleatoric = (1/S) Σ σ²(s),  Epistemic = (1/S) Σ (f(s) - f̄)²
//
// The divisor is S: the figures are those of the mixture itself, as of an ensemble (Lakshminarayanan, Pritzel and Blundell
// 2017, Advances in Neural Information Processing Systems 30). Of few draws from a larger posterior, Epistemic is too small
// by the factor (S-1)/S on average. [ErrSize], [ErrNotFinite], and [ErrRange] for variances below 0 are the errors.
func VarianceOf(means, variances []float64) (VarianceParts, error) {
	s := len(means)
	if s == 0 || len(variances) != 1 && len(variances) != s {
		return VarianceParts{}, failf(ErrSize, "variance: %d means and %d variances, want at least one mean, and one variance or as many", s, len(variances))
	}
	for i, v := range means {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return VarianceParts{}, failf(ErrNotFinite, "variance: the mean of draw %d is %v", i, v)
		}
	}
	for i, v := range variances {
		if !(v >= 0) || math.IsInf(v, 1) {
			return VarianceParts{}, failf(ErrRange, "variance: the variance of draw %d is %v, want a number not below 0", i, v)
		}
	}
	var p VarianceParts
	p.Mean, p.Epistemic = meanVar(means)
	p.Epistemic *= float64(s-1) / float64(s)
	if s == 1 {
		p.Epistemic = 0
	}
	p.Aleatoric, _ = meanVar(variances)
	p.Total = p.Aleatoric + p.Epistemic
	return p, nil
}

// BernoulliVarianceOf splits the variance p̄(1 - p̄) of a binary prediction, from the probabilities of 1 under each draw:
//
//	Aleatoric = (1/S) Σ p(s) (1 - p(s)),  Epistemic = (1/S) Σ (p(s) - p̄)²
//
// Depeweg et al. (2018). [ErrSize] and [ErrRange] are the errors.
func BernoulliVarianceOf(p []float64) (VarianceParts, error) {
	if len(p) == 0 {
		return VarianceParts{}, failf(ErrSize, "variance: no probabilities")
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

// UnknownAUROC says how well parts of the uncertainty tell unknown inputs from known ones.
type UnknownAUROC struct {
	// Each is the [AUROC] of that part of [Uncertainty], larger for unknown inputs.
	Total, Aleatoric, Epistemic float64
}

// AUROCOfUncertainty compares the uncertainties of predictions at unknown inputs, such as those of another data set, with
// those at known ones. The errors are those of [AUROC].
func AUROCOfUncertainty(unknown, known []Uncertainty) (UnknownAUROC, error) {
	var r UnknownAUROC
	for _, part := range []struct {
		to *float64
		of func(Uncertainty) float64
	}{
		{&r.Total, func(u Uncertainty) float64 { return u.Total }},
		{&r.Aleatoric, func(u Uncertainty) float64 { return u.Aleatoric }},
		{&r.Epistemic, func(u Uncertainty) float64 { return u.Epistemic }},
	} {
		column := func(u []Uncertainty) []float64 {
			x := make([]float64, len(u))
			for i, v := range u {
				x[i] = part.of(v)
			}
			return x
		}
		v, err := AUROC(column(unknown), column(known))
		if err != nil {
			return UnknownAUROC{}, err
		}
		*part.to = v
	}
	return r, nil
}
