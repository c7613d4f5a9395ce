// Package data leads from a file of comma-separated values, or from any columns, to the numbers that a model takes.
//
//	table, err := data.CSV{Factors: []string{"region"}}.Open("people.csv")
//	complete, dropped, err := table.DropMissing("age", "region", "income")
//	train, test, err := complete.Split(data.SplitOptions{Test: 0.25, Seed: 1})
//	design, err := data.Spec{
//		Terms:   []data.Term{{Column: "age", Scale: 1}, {Column: "region", Contrast: data.Sum}},
//		Outcome: data.Term{Column: "income", Scale: 1},
//	}.Fit(train)
//	frame, err := design.Frame(train)                        // x, y: numbers
//	tensors, err := batch.Of(frame)                          // an infer.Batch, by package data/batch
//	unseen, err := design.Frame(test)                        // with the means, scales and levels of the training data
//	intercept, w, err := design.Original(intercept, w)       // coefficients on the scale of the file
//	text, err := json.Marshal(design)                        // for a service: json.Unmarshal gives the design back
//
// A [Table] has columns of two kinds: numbers, and factors, whose values are among a few levels. A [Spec] says which of
// them a model takes and how; a [Design] is a Spec with what it has learned from the training data.
//
// Formulas are in package regression. A formula such as y ~ 0 + a*b leaves to rules which levels are left out, whether
// there is an intercept, and what is scaled; in a [Term] it is stated, and the compiler checks its fields. The matrix
// has no column of ones: the intercept of a Bayesian model is a parameter with a prior of its own.
//
// The package is plain Go and knows nothing of tensors. It builds on encoding/csv: the tables of a model are small
// beside its draws, and a module of data frames would add a way of its own to say each thing here. All errors of cells
// are *[Error], with file, line and column.
package data
