// Package baseline has three hand-written C functions, with which the benchmarks of package vm compare: what a C
// compiler makes of the same density for this processor, with the vector functions of glibc. Nothing but tests uses it.
package baseline

/*
#cgo CFLAGS: -O3 -ffast-math
#cgo linux,amd64 LDFLAGS: -lmvec
#cgo LDFLAGS: -lm
#include "baseline.h"
*/
import "C"

import "unsafe"

func pointer(v []float64) *C.double { return (*C.double)(unsafe.Pointer(unsafe.SliceData(v))) }

// EightSchools runs the function n times and gives its value. The gradient goes to grad.
func EightSchools(n int, x, grad []float64) float64 {
	return float64(C.baseline_eight_schools(C.long(n), pointer(x), pointer(grad)))
}

// Logistic has rows x len(x) data, row by row, and labels of 0 and 1.
func Logistic(n int, x, grad, data, label []float64) float64 {
	return float64(C.baseline_logistic(C.long(n), C.long(len(label)), C.long(len(x)), pointer(x), pointer(grad),
		pointer(data), pointer(label), pointer(make([]float64, len(label)))))
}

// LogLinear has columns u, v, u·v and y.
func LogLinear(n int, x, grad, u, v, both, y []float64) float64 {
	return float64(C.baseline_log_linear(C.long(n), C.long(len(y)), pointer(x), pointer(grad), pointer(u), pointer(v),
		pointer(both), pointer(y)))
}
