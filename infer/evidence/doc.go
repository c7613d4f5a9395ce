// Package evidence estimates the log evidence log Z = log ∫ p(y|θ) p(θ) dθ of a model, and compares models by it.
//
//	z, err := evidence.Run(ctx, program, evidence.SMC{}, infer.Options{}) // sequential Monte Carlo
//	z, err := evidence.Run(ctx, program, evidence.TI{}, infer.Options{})  // thermodynamic integration
//	z, err := evidence.Run(ctx, program, evidence.AIS{}, infer.Options{}) // annealed importance sampling
//	z, err := evidence.Bridge(program, draws, evidence.BridgeOptions{})   // from draws of NUTS
//	z, err := evidence.Laplace(program, run)                              // from a run of package laplace
//
// Each gives log Z with a standard error, a trace for plot.Curve, and warnings in words where the error is not to be
// trusted. [BayesFactor] and [Probabilities] compare. The first three walk a path of package infer/path and are methods
// of inference too: infer.Sample with one of them gives draws of the posterior.
//
// The evidence depends on the prior as much as on the likelihood: the prior must be normalized, and what it says of
// values that the data exclude still counts. [docs/evidence.md] says when to use it.
//
// [docs/evidence.md]: https://github.com/kelvin-ppl/kelvin/blob/main/docs/evidence.md
package evidence
