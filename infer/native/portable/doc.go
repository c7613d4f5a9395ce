// Package portable carries compiled log densities out of libtorch: it writes their plans as bytes, reads them with
// bounds, and runs them in plain Go. It imports neither gotch nor C, so what uses it builds with CGO_ENABLED=0.
// Programs use ppl.Program.Export, which writes a [File], and package serve, which reads one.
package portable
