// Package mcmc draws from a log density by its values alone, as Markov chains: [Slice], [Elliptical], [Stretch],
// [DifferentialEvolution] and [RandomWalk] need no gradient, so that they draw from plain Go functions ([infer.Plain])
// and from densities that are not smooth. [Barker] takes one gradient an update. All of them leave the posterior as it
// is, adapt in the warm-up alone, and resume to the bit. In loops of one's own the first 1000 updates adapt.
package mcmc
