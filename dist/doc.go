// Package dist holds probability distributions over gotch tensors.
//
// Parameters are numbers or tensors and broadcast against each other to the batch shape; the event shape is the shape
// of one draw. Sample prepends its own shape: a draw has shape sample + batch + event. LogProb sums over the event
// only, so its result has the broadcast shape of the batch and of the value without its event. (The meaning of the
// shapes is Pyro's and TensorFlow Probability's.)
//
// Distributions are immutable values that any number of goroutines may share. They are meant for use inside
// models: a mistake panics with an [*Error] that the public functions of torch, infer and ppl return as an error.
// Constructors never panic with one. What they make of wrong parameters has the error: Validate returns it, a site of a
// model that uses the distribution is named with it, and any other method panics with it. Elements of tensors are
// checked by [Distribution.Validate] alone, since their values cannot be read under vmap.
package dist
