// Package ppl is the language: a model is a Go function of an explicit context, and everything that inference needs
// comes from running it.
//
//	func logistic(c *ppl.Ctx) {
//		x := c.Data("x")                              // [N, 8], from the batch
//		w := c.Sample("w", dist.Normal(0, 1).Expand(8))
//		c.Plate("data", 0, func(c *ppl.Ctx) {         // N data; a minibatch of n counts N/n times
//			c.Observe("y", dist.BernoulliLogits(x.MatMul(w)), c.Data("y"))
//		})
//	}
//
// [Compile] runs the model once, finds its sites and their supports, and returns a [Program]: a layout on unconstrained
// space, the log posterior with the Jacobians, and the way back to named, constrained values. Handlers ([Condition],
// [Do], [Substitute], ...) turn a model into another. There is no global state: models run in any number of goroutines.
//
// Inside a model a mistake panics with a [*SiteError]; every public function of the package returns it as an error.
package ppl
