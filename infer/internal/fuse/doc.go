// Package fuse makes the updates of stochastic-gradient methods on small states in one loop of C: gradient, noise and
// update of K chains, without tensors.
//
// A method writes its update as a [Program] of operations on registers, with the coefficients of each update; [Chains]
// run it. The noise is that of [torch.Streams], bit for bit, at the same positions.
//
// [torch.Streams]: https://pkg.go.dev/github.com/kelvin-ppl/kelvin/torch#Streams
package fuse
