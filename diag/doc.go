// Package diag says whether posterior draws can be trusted: convergence and efficiency of Markov chains, a summary
// table, findings with advice, and the kernel Stein discrepancy.
//
//	table, err := diag.Summary(d, diag.SummaryOptions{})    // mean, sd, hdi, mcse, ess, r_hat of every element
//	fmt.Print(table)
//	report, err := diag.Diagnose(d, diag.DiagnoseOptions{}) // divergences, held updates, R-hat, ESS, what the run noted
//	fmt.Print(report)
//
// Packages below it: diag/loo has leave-one-out cross-validation and the comparison of models, diag/score the
// averages, scores and calibration of predictions, diag/thermo the temperatures of stochastic-gradient
// samplers, and diag/plot pictures.
//
// # Chains
//
// A function of chains takes the traces of one scalar, [chain][draw], as [draws.Draws.Element] gives them.
//
//   - Chains of different lengths are cut to the first n draws, n the length of the shortest: the formulas need equal
//     lengths.
//   - The answer is NaN where it is not defined: no chains, fewer than 4 draws in a chain, a NaN or an infinity
//     anywhere in the draws used, and draws that are all equal. Effective sample sizes over split chains, and the
//     standard errors made of them, need 6 draws in a chain. The R package posterior does the same; ArviZ ranks
//     infinities, and takes the number of draws as the effective sample size of equal ones.
//   - One chain is enough wherever chains are split in halves.
//   - An odd chain is split without its middle draw.
//
// # Sources
//
// Definitions are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Bayesian Analysis 16, 667-718, and
// agree with the R packages posterior and loo; where these and ArviZ differ, the function says which is followed.
//
// The package is plain Go and knows nothing of tensors.
package diag

import (
	"errors"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// ErrNotFinite is wrapped by the error of an input with a NaN, or with an infinity where none has a
// meaning. Other errors of this package and of those below it wrap [draws.ErrRange],
// [draws.ErrSize], [draws.ErrNoDraws] or [draws.ErrUnknownName].
var ErrNotFinite = errors.New("not finite")

func failf(kind error, format string, args ...any) error {
	return sample.Failf("diag", kind, format, args...)
}
