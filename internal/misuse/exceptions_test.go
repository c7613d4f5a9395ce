package main

import "regexp"

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

// Why operations are outside the promise.
const (
	unchecked = "libtorch does not check sizes, indices or places that do not fit"
	forOrder  = "it takes as long as the order is large"
	forever   = "its iteration does not end where numbers are not finite, or are out of range"
)

// outside are the operations that end the process, or hang, with arguments that Go allows, on libtorch 1.13.
var outside = map[string]string{
	"FractionalMaxPool2dBackward": unchecked, "FractionalMaxPool2dBackwardGradInput": unchecked,
	"FractionalMaxPool3dBackward": unchecked, "FractionalMaxPool3dBackwardGradInput": unchecked,
	"LinalgPinv": forever, "LinalgPinvRcondTensor": forever, "RandomFrom": forever,
	"MatrixExpBackward": unchecked, "MatrixPower": forOrder,
	"MaxUnpool2d": unchecked, "MaxUnpool2dOut": unchecked, "MaxUnpool3d": unchecked, "MaxUnpool3dOut": unchecked,
	"NativeChannelShuffle": unchecked,
	"ReflectionPad1d":      unchecked, "ReflectionPad1dBackward": unchecked, "ReflectionPad1dBackwardGradInput": unchecked,
	"ReflectionPad1dOut": unchecked, "ReflectionPad2d": unchecked, "ReflectionPad2dBackward": unchecked,
	"ReflectionPad2dBackwardGradInput": unchecked, "ReflectionPad2dOut": unchecked,
	"SlowConv3d": unchecked, "SlowConv3dOut": unchecked, "ts.ChooseQparamsOptimized": unchecked,
	"ts.EmbeddingBackward": unchecked, "ts.EmbeddingBag": unchecked, "ts.EmbeddingDenseBackward": unchecked,
	"ts.EmbeddingDenseBackwardOut": unchecked, "ts.QuantizedLstmCell": unchecked,
	"ts.UnfoldBackward": unchecked, "ts.UnfoldBackwardOut": unchecked,
}

// orthogonal are the families of polynomials whose order is a number of the user's.
var orthogonal = regexp.MustCompile(`^ts\.Special(Shifted)?(Chebyshev|Hermite|Laguerre|Legendre)Polynomial`)

// isOutside says why an operation is outside the promise; empty where it is within.
func isOutside(name string) string {
	if orthogonal.MatchString(name) {
		return forOrder
	}
	return outside[name]
}
