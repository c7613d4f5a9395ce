// Package method is for whoever writes an inference method: the checks of a configuration's fields, the motions that
// all methods share (hold a chain that diverged, keep tensors, say what an update did), and draws from Gaussians.
package method
