// Package regression fits regressions with groups by a formula, as users of brms and Bambi write them. A table and a
// formula make a compiled model: any method samples it, and predictions take tables of new rows.
//
//	model, err := regression.Formula{Mean: "reaction ~ days + (1 + days | subject)"}.Fit(table)
//	posterior, err := infer.Sample(ctx, model, hmc.NUTS{}, infer.Options{})
//	summary, err := model.Summary(posterior)
//
// It is not a language of models: what formulas do not say is written as a function of package ppl.
package regression
