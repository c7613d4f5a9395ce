// Package check compares data with what a model predicts, and asks what prior and likelihood contribute: statistics of
// replicated data, leave-one-out probability integral transforms, and power-scaling sensitivity. Pictures of them are
// in diag/plot. Replicates are rows of numbers, one for each draw: of prior draws the checks are prior
// predictive, of posterior draws posterior predictive.
//
// Errors wrap [draws.ErrSize], [draws.ErrRange] or [diag.ErrNotFinite].
package check
