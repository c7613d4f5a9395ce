// Package fuse makes the updates of stochastic-gradient methods: those of small states in one loop of C, with gradient,
// noise and update of K chains, without tensors; others after the gradient, in one pass over the memory of tensors or,
// on other devices, by libtorch's operations.
//
// A method writes its update once, as a [Program] of operations on registers, with the coefficients of each update:
// [Chains] run it on small states, [Pass] and [Tensors] on tensors. The noise is that of [torch.Streams], bit for bit,
// at the same positions.
//
// [torch.Streams]: https://pkg.go.dev/github.com/kelvin-ppl/kelvin/torch#Streams
package fuse
