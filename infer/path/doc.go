// Package path is the line of targets that thermodynamic integration, sequential Monte Carlo, annealed importance
// sampling and replica exchange walk: from a start with a known normalizer to the posterior.
//
// The targets have an inverse temperature β, from 0 at the start to 1 at the posterior. With J the Jacobian of the map
// from unconstrained space x to the parameters θ, which is never tempered, their densities on unconstrained space are
//
//	likelihood    p(θ) p(y|θ)^β |J|                       Path{}, from the prior
//	full          (p(θ) p(y|θ))^β |J|                     Path{Full: true}: β = 1/T; it has no start
//	observation   p(θ) Π p(y_i|θ)^β / Z_i(θ, β) |J|       Path{Normalizer: f}, from the prior
//	reference     h(x)^(1-β) (p(θ) p(y|θ) |J|)^β          Path{Reference: h}, from a normal density, in a box or not
//
// log Z(β) is the logarithm of the integral of that density, and log Z(1) the log evidence. Its derivative is the mean
// of the slope ∂ log density/∂β under the target at β, which is what all walkers need besides the gradient. β is an
// input of what is compiled, a coordinate beside those of x: one compiled function evaluates all rungs of a ladder, its
// gradient holds the slope, and no change of β compiles again.
//
//	e, err := path.Path{}.On(program, native.Auto) // or OnJob, in the run of a method that drives itself
//	x, err := e.Start(1000, 0, 0)                  // draws at β = 0, [1000, d]
//	logZ0, err := e.LogZ0()                        // of β = 0
//	var p path.Points
//	err = e.Eval(x, []float64{0.1}, &p)            // p.LogP, p.Slope, p.Grad at β = 0.1, or with a β for each row
//	higher := p.At(0, 0.2)                         // log density of row 0 at β = 0.2, without an evaluation
//
// All but the observation path have log densities that are linear in β, so that one evaluation gives those of a point
// at all β.
package path
