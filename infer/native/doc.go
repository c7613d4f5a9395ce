// Package native makes one native function of a log density that is written with tensors, with its gradient.
//
// A log density of a small model is a hundred operations on a few numbers each. Run one by one they cost a microsecond
// each, whatever they compute. [Compile] records the operations of one evaluation, forward and backward, fuses them
// into loops and gives a function that is ten to a thousand times faster. It has tiers:
//
//   - [C] is linked into the program (see `kelvin compile`), or compiled by the machine's C compiler, once, and kept in
//     the user's cache.
//   - [VM] is a virtual machine with vector kernels, in every binary; it needs no compiler.
//   - [Replay] does the operations of libtorch that one evaluation did again, without autograd and vmap: for float32,
//     for other devices, and for operations that the compiler does not know. Its numbers have the bits of Eager.
//   - [Eager] is the log density itself, operation by operation.
//
// [Auto] takes C where it is linked or there is a compiler, else VM; Replay for what cannot be compiled, and Eager for
// what cannot be recorded, with the reason. The choice depends on the machine and the model, never on timing or on what
// the cache holds. A function is compared with eager evaluation before it is used. Sums run in another order than
// libtorch's, so that the last bits of C, VM and Eager differ.
//
// Package infer compiles by itself: [infer.Options] has the field Native. This package is what it stands on.
//
// [infer.Options]: https://pkg.go.dev/github.com/kelvin-ppl/kelvin/infer#Options
package native
