// Package loo estimates how well a model predicts new data: leave-one-out cross-validation by Pareto-smoothed
// importance sampling, WAIC, and the comparison of models.
//
//	reff, err := loo.RelativeEfficiency(loglik, d.Chains())    // loglik[draw][observation], chain after chain
//	result, err := loo.LOO(loglik, reff)                       // elpd, p_loo, standard errors, Pareto k
//	fmt.Print(result.Diagnose())                               // observations for which it fails
//	ranked, err := loo.Compare([]loo.Model{result.Model("linear"), other.Model("spline")}, loo.Options{})
//
// The package is plain Go and knows nothing of tensors. Its errors wrap
// [draws.ErrSize], [draws.ErrRange] and [diag.ErrNotFinite].
package loo

import "github.com/kelvin-ppl/kelvin/internal/sample"

func failf(kind error, format string, args ...any) error {
	return sample.Failf("diag/loo", kind, format, args...)
}
