// Package ode solves ordinary differential equations inside models, with gradients:
//
//	dy/dt = f(t, y, θ),  y(start) = y0
//
// The right-hand side f is a Go function of tensors. [New] makes a [System] of it, and [Solve] gives the solution at
// given times, as a tensor that a model goes on with:
//
//	var decay = ode.New(func(t, y torch.Tensor, params []torch.Tensor) torch.Tensor {
//		return params[0].Neg().Mul(y)
//	}, ode.Options{})
//
//	y := ode.Solve(decay, y0, 0, times, rate) // [times, states]
//
// f is recorded once, with its derivatives, and compiled: to C where there is a compiler, else for Kelvin's virtual
// machine. The solver is C as well. In a run whose gradients are compiled a solution is one step of the compiled
// function; elsewhere it is one operation. Each chain has its own step control, so that its numbers do not depend on
// the other chains.
//
// Gradients are taken in y0, θ and the start, along with the solution: forward sensitivities, which are the exact
// derivatives of the numbers that the steps compute, and whose errors the step control bounds as it does those of y.
// Their cost grows with the number of states and parameters that have gradients.
//
// Where there is no solution (it blows up, or takes too many steps) all of it is NaN, and so is the log density: a
// divergence, not an error. The draws of a run have a note with the number of such solutions, "no_solution", and
// [System.Report] counts those of a system. Both say what to do.
package ode
