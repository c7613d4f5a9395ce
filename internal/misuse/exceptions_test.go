package main

import "regexp"

// exceptions are the entries whose panics are meant, and why.
var exceptions = map[string]string{
	"infer.Compile().Eval":      "it panics where sizes are wrong, as indexing does: an error would cost the inner loop",
	"(*serve.Model).LogDensity": "likewise",
	"(*serve.Model).Constrain":  "likewise",
	"method.CheckMasses":        "c and mass are fields of a method's own, which its author never leaves nil",
}

// counts are the entries that do something as often as an argument says; huge numbers would take for ever.
var counts = map[string]bool{
	"infer.ConfigurationalTemperatures": true,
	"(*ppl.Program).Start":              true,
	"method.GradientMoments":            true,
}

// isOutside says whether an operation is outside the promise: it takes as long as a number of the user's is large, the
// order of a polynomial or the number of bins.
func isOutside(name string) bool { return endless.MatchString(name) }

var endless = regexp.MustCompile(
	`^ts\.(Special(Shifted)?(Chebyshev|Hermite|Laguerre|Legendre)Polynomial|ChooseQparamsOptimized$)`)
