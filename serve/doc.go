// Package serve uses models where there is neither libtorch nor C: [Load] reads what ppl.Program.Export wrote, and the
// program builds with CGO_ENABLED=0 into one static file for any platform of Go.
//
//	model, err := serve.Load(file)
//	logp := model.LogDensity(x, grad)
//	result, err := serve.Sample(ctx, model, kernel.Options{Seed: 1})
//	table, err := diag.Summary(result.Draws, diag.SummaryOptions{})
//
// A [Model] is data within bounds, and no code. docs/deploy.md says what is exported and what is refused.
package serve
