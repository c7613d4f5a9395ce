package ppl

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Scan is a loop over n steps of time, in which each step takes over what the last one has made:
//
//	carry_0 = carry,  (carry_{t+1}, out_t) = f(t, carry_t),  t = 0, …, n − 1
//
// It returns the carry behind the last step, and the outputs of all steps stacked along a new first dimension: shape
// [n] + shape of an output. The tensors of the carry keep their number and their shapes. A step takes its part of data
// and parameters with x.At(t), and may use anything else around it; gradients of what it shares with other steps add
// up. An output that nobody needs may be torch.Of(0).
//
// What f declares on its context has the step in its name: c.Observe("y", …) is the site "y[3]" of step 3, and its log
// density counts like that of any other site. It is cheaper to return an output, and to observe all outputs at once
// behind the loop, in a plate.
//
// A log density with a Scan is compiled to loops over time, forward and backward, in which steps that do not need the
// last one are vectors. The first steps and the last ones may differ from the others. Where f does something else in
// every step, the compiled function has all steps one after the other.
func (c *Ctx) Scan(n int, carry []torch.Tensor, f func(c *Ctx, t int, carry []torch.Tensor) (next []torch.Tensor,
	out torch.Tensor)) (last []torch.Tensor, outs torch.Tensor) {
	fail := func(format string, args ...any) {
		panic(&SiteError{Message: "Scan: " + fmt.Sprintf(format, args...)})
	}
	switch {
	case n < 1:
		fail("it has %d steps; there must be at least 1", n)
	case f == nil:
		fail("its function is nil")
	}
	all := make([]any, n)
	var first []int // the shape of the first output
	shapes := shapesOf(carry)
	carry = slices.Clone(carry)
	for t := range n {
		next, out := f(c.step(t), t, carry)
		if len(next) != len(carry) {
			fail("step %d takes over %d tensors and hands on %d", t, len(carry), len(next))
		}
		for i, shape := range shapesOf(next) {
			if !slices.Equal(shape, shapes[i]) {
				fail("tensor %d of the carry has shape %v, and step %d hands on one of shape %v: give the first one the shape "+
					"of the others, for example with Expand", i, shapes[i], t, shape)
			}
		}
		if shape := out.Shape(); t == 0 {
			first = shape
		} else if !slices.Equal(shape, first) {
			fail("the output of step %d has shape %v, and that of step 0 has %v", t, shape, first)
		}
		carry, all[t] = slices.Clone(next), out
	}
	return carry, torch.Stack(0, all...)
}

// step is the context of a step of a Scan.
func (c *Ctx) step(t int) *Ctx {
	inner := *c
	name := fmt.Sprintf("[%d]", t)
	inner.steps += name
	inner.slot += name
	return &inner
}

func shapesOf(tensors []torch.Tensor) [][]int {
	out := make([][]int, len(tensors))
	for i, x := range tensors {
		out[i] = x.Shape()
	}
	return out
}

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
