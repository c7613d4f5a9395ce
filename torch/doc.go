// Package torch is what Kelvin adds to gotch's tensors: the algebra of models, scopes that free tensors, gradients,
// vmap, random streams, devices, and the way between Go slices and tensors.
//
// A [Tensor] is a number or a gotch tensor, with methods that read like the formula: y.Sub(x.Mul(b)).Square().Sum(). It
// is the tensor of all of Kelvin's packages. [New] and [FromSlice] make one of a slice; T gives the gotch tensor
// (package ts) below it, and [Of] leads back. Its methods panic with typed errors, which [Do] returns; functions return
// errors, so that a program outside of Do uses New for what it states itself and FromSlice for what it reads.
//
// Model code never frees memory. [Do] opens a [Scope]; every tensor made while it
// is open is freed when it closes, except those handed to [Scope.Keep]. A tensor used after that gives an error.
//
// Errors of libtorch arrive as [*Error], with libtorch's message, the operation, the shapes and the line that asked for
// it. Inside Do the Must methods of gotch can be used freely: their panics are returned as errors.
//
// All functions may be called from any goroutine. State that libtorch keeps per thread (gradient recording, vmap
// levels, the scope) is set on a locked thread and restored before the thread is let go.
package torch
