// Package sbc is simulation-based calibration: whether a method finds the posterior of a model, whatever both are.
//
// Parameters are drawn from the prior, data from the model with these parameters, and draws from the posterior given
// these data by the method. The rank of the true value of a quantity among L such draws is uniform on 0, ..., L where
// the draws are independent ones of the posterior (Talts, Betancourt, Simpson, Vehtari and Gelman 2018, Validating
// Bayesian inference algorithms with simulation-based calibration). Whether ranks are uniform is judged by their
// empirical distribution with simultaneous bands (Säilynoja, Bürkner and Vehtari 2022, Graphical test for discrete
// uniformity and its applications in goodness-of-fit evaluation and multiple sample comparison, Statistics and
// Computing 32).
//
//	result, err := sbc.Run(ctx, func(ctx context.Context, seed uint64) (sbc.Case, error) { ... }, sbc.Options{})
//	fmt.Print(result.Diagnose())
//
// The package is plain Go and knows nothing of tensors.
package sbc
