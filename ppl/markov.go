package ppl

import "fmt"

// Markov is a loop over n steps of time with discrete variables, each of which depends on those of the step before:
//
//	var z torch.Tensor
//	c.Markov(n, func(c *ppl.Ctx, t int) {
//		if t == 0 {
//			z = c.Sample("z", dist.Categorical(initial))
//		} else {
//			z = c.Sample("z", dist.Categorical(transition.Take(z)))
//		}
//		c.Observe("y", dist.Normal(loc.Take(z), 1), y.At(t))
//	})
//
// What f declares has the step in its name, as in [Ctx.Scan]: "z[3]". Where the discrete variables are summed out (see
// [Enumerate]), the sums go from step to step, so that their cost grows with n and not with a power of it. For that, a
// step may use the discrete variables of its own and of the last step, and those from outside the loop. A step that
// reaches further back is refused. Continuous variables have no such limit.
func (c *Ctx) Markov(n int, f func(c *Ctx, t int)) {
	switch {
	case n < 1 || n > maxSteps:
		panic(&SiteError{Message: fmt.Sprintf("Markov: it has %d steps; there must be from 1 to %d", n, maxSteps)})
	case f == nil:
		panic(&SiteError{Message: "Markov: its function is nil"})
	}
	for t := range n {
		inner := c.step(t)
		inner.slot = c.slot + fmt.Sprintf("[%d of 2]", t%2)
		f(inner, t)
	}
}

// maxSteps is the most steps of a Markov.
const maxSteps = 1 << 20
