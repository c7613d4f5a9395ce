// Package fuse makes the updates of stochastic-gradient methods: those of small states in one loop of C, with gradient,
// noise and update of K chains, without tensors; others in one pass over the memory of tensors, after the gradient.
//
// A method writes its update as a [Program] of operations on registers, with the coefficients of each update; [Chains]
// run it on small states, [Pass] on tensors. The noise is that of [torch.Streams], bit for bit, at the same positions.
//
// [torch.Streams]: https://pkg.go.dev/github.com/kelvin-ppl/kelvin/torch#Streams
package fuse
