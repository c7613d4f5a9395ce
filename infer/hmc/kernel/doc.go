// Package kernel holds Hamiltonian Monte Carlo in plain Go: integrator, metrics, HMC, MALA, NUTS, their adaptation,
// replica exchange, and the machinery that runs many chains on one batched gradient. It needs no tensors: whoever can
// write a log density and its gradient ([Density], [Func]) can sample with [Run], or step by step with a [Stepper].
//
// Notation. x is a point of R^d, logp(x) a log density up to a constant, U = -logp the energy, g its gradient ∇logp, p
// the momentum, M the mass matrix ("metric"), T the temperature. All kernels leave
//
//	exp(-H(x, p)),  H = -logp(x)/T + K(p),  K = p·M⁻¹p/2
//
// invariant, so that x has the density exp(logp/T): with T = 1 the posterior, with T < 1 a cold one. Momenta that are
// scaled by √T instead (p ~ N(0, MT), accept with exp(-ΔH/T), as Baldock and Marzari 2019 write it) give the same moves
// with the step size divided by √T. T must be positive. As T goes to 0 the law shrinks onto the modes, its scale goes
// like √T, and so must the step size; adaptation does that by itself. Where a part of the log density must not be
// divided by T, for example the Jacobian of a map, the density gets T and adds T times that part ([Density]).
//
// A divergence is a density or gradient that is not finite, or an energy that grows by more than a limit. It is data in
// [Info]. Errors are for what ends a run.
package kernel
