package main

// exceptions are the entries whose panics are meant, and why.
var exceptions = map[string]string{
	"infer.Compile().Eval": "it panics where the sizes are wrong, as indexing does: an error would cost the inner loop",
	"method.CheckMasses":   "c and mass are fields of a method's own, which its author never leaves nil",
}

// counts are the entries that do something as often as an argument says; huge numbers would take for ever.
var counts = map[string]bool{
	"infer.ConfigurationalTemperatures": true,
	"(*ppl.Program).Start":              true,
	"method.GradientMoments":            true,
}
