package sgmcmc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
)

// The recursion matrix of SGHMC in one dimension has trace 2 − ερα and determinant 1 − ερα + ε²ρλ. At moderate steps
// its eigenvalues are complex, of squared modulus equal to the determinant: it is below 1 exactly when ελ < α, whatever
// σ is.
func TestSGHMCIsStableExactlyBelowFriction(t *testing.T) {
	for _, lambda := range []float64{0.5, 1, 3} {
		for _, sigma := range []float64{0.8, 1, 2} {
			for _, eps := range []float64{0.01, 0.1, 0.3} {
				radius := func(share float64) float64 { // with α = ελ/share
					return setting{precision: scalar(lambda), eps: eps, sigma: sigma,
						alpha: eps * lambda / share}.sghmc().radius()
				}
				what := name("lambda %g, sigma %g, step %g", lambda, sigma, eps)
				assert.Less(t, radius(0.99), 1.0, what)
				assert.Greater(t, radius(1.01), 1.0, what)
				// Rounding of the eigenvalues of a matrix of size about 1.
				assert.InDelta(t, 1, radius(1), 1e-12, what)
				rho := 1 / (sigma * sigma)
				assert.InDelta(t, math.Sqrt(1-eps*rho*(eps*lambda/0.9)+eps*eps*rho*lambda), radius(0.9), 1e-12, what)
			}
		}
	}
}

// With several dimensions the largest eigenvalue of Λ decides.
func TestStabilityOfSGHMCIsDecidedByTheLargestCurvature(t *testing.T) {
	var eigen mat.EigenSym
	require.True(t, eigen.Factorize(correlated(), false))
	largest := eigen.Values(nil)[2]
	for _, c := range []struct {
		share  float64
		stable bool
	}{{0.98, true}, {1.02, false}} {
		s := setting{precision: correlated(), eps: 0.1, sigma: 1, alpha: 0.1 * largest / c.share}
		assert.Equal(t, c.stable, s.sghmc().radius() < 1, "ελ/α is %g", c.share)
	}
}

// SGLD is stable for ελ < 2.
func TestSGLDIsStableExactlyBelowTwoOverCurvature(t *testing.T) {
	for _, lambda := range []float64{0.5, 1, 3} {
		s := setting{precision: scalar(lambda), eps: 1.99 / lambda}
		assert.Less(t, s.sgld().radius(), 1.0)
		s.eps = 2.01 / lambda
		assert.Greater(t, s.sgld().radius(), 1.0)
	}
}

// The sampler itself does what the matrix says: at T = 0 an update multiplies (θ − μ, m) by it, so that along many
// updates the distance grows by the spectral radius in each.
func TestSGHMCGrowsByItsSpectralRadius(t *testing.T) {
	for _, share := range []float64{0.8, 1.2} {
		s := setting{precision: scalar(2), eps: 0.1, sigma: 0.8, alpha: 0.1 * 2 / share}
		g := newGaussian(s.precision, 1)
		transform := build(t, sgmcmc.SGHMC{LR: infer.Constant(s.eps), Alpha: infer.Constant(s.alpha), Sigma: s.sigma,
			Temperature: zero}, g.logPosterior)
		// The norm √(λ(θ − μ)² + m²/σ²) turns in the complex plane: over many updates only the growth of its envelope
		// stays, so its largest value over a turn is compared with that of later turns.
		const updates, turn = 4000, 200
		var first, last float64
		run(t, transform, params(g.layout, []float64{g.mean[0] + 1}, 0), g.batches(0, 0), updates, 1,
			func(state infer.State) {
				h := state.(sgmcmc.SGHMCState)
				x, m := values(h.Params.Flat.T())[0]-g.mean[0], values(h.Momenta.T())[0]/s.sigma
				norm := math.Sqrt(2*x*x + m*m)
				if n := h.Steps(); n <= turn {
					first = max(first, norm)
				} else if n > updates-turn {
					last = max(last, norm)
				}
			})
		rate := math.Log(last/first) / (updates - turn)
		want := math.Log(s.sghmc().radius())
		// The maxima are taken at points of the turn that differ by at most one update's angle: a factor below 1.1 on
		// the whole.
		assert.InDelta(t, want, rate, math.Log(1.1)/(updates-turn), "ελ/α is %g", share)
	}
}

// Stable says beforehand what the spectral radius of the recursion says, for a target with precisions λ and near 0,
// where SGHMC and the symplectic form multiply momenta by 1 − εα/σ² or 1 − hγ.
func TestStableAgreesWithTheRecursion(t *testing.T) {
	said := map[bool]int{}
	agrees := func(l law, friction float64, err error, what string) {
		t.Helper()
		r := max(l.radius(), math.Abs(1-friction))
		if math.Abs(r-1) < 1e-9 {
			return // neither, up to rounding
		}
		assert.Equal(t, r < 1, err == nil, "%s: radius %g, %v", what, r, err)
		if err != nil {
			assert.ErrorIs(t, err, sgmcmc.ErrUnstable)
		}
		said[err == nil]++
	}
	for _, lambda := range []float64{0.3, 1, 7} {
		for _, eps := range []float64{0.01, 0.1, 0.5, 1.3, 3} {
			lr := infer.Constant(eps)
			s := setting{precision: scalar(lambda), eps: eps, sigma: 1}
			agrees(s.sgld(), 0.5, sgmcmc.SGLD{LR: lr}.Stable(lambda), name("SGLD %+v", s))
			for _, alpha := range []float64{0.05, 0.8, 2.5, 9} {
				s.alpha = alpha
				for _, s.sigma = range []float64{0.7, 1, 2} {
					what := name("λ %g, ε %g, α %g, σ %g", lambda, eps, alpha, s.sigma)
					agrees(s.sghmc(), eps*alpha/(s.sigma*s.sigma), sgmcmc.SGHMC{LR: lr, Alpha: infer.Constant(alpha),
						Sigma: s.sigma}.Stable(lambda), "SGHMC "+what)
					agrees(s.baoa(), 0.5, sgmcmc.BAOA{LR: lr, Alpha: infer.Constant(alpha),
						Sigma: s.sigma}.Stable(lambda), "BAOA "+what)
				}
				s.sigma = 1
				agrees(s.symplectic(), eps*alpha, sgmcmc.SymplecticSGHMC{LR: lr,
					Gamma: infer.Constant(alpha)}.Stable(lambda), name("symplectic λ %g, h %g, γ %g", lambda, eps,
					alpha))
				if damp := eps * alpha; damp < 1 {
					// The same in the terms of SGD.
					m := sgmcmc.SymplecticSGHMC{LR: infer.Constant(eps * eps), Momentum: infer.Constant(1 - damp)}
					agrees(s.symplectic(), damp, m.Stable(lambda), name("momentum λ %g, h %g, γ %g", lambda, eps,
						alpha))
				}
			}
		}
	}
	assert.Greater(t, said[true], 50)
	assert.Greater(t, said[false], 50)
	require.EqualError(t, sgmcmc.SGHMC{LR: infer.Constant(0.1), Alpha: infer.Constant(0.01)}.Stable(1),
		"sgmcmc.SGHMC: with step size ε = 0.1 and curvature λ = 1 the recursion is unstable: ελ = 0.1 must be "+
			"below the friction α = 0.01: "+
			"LR below 0.01, or Alpha above 0.1: unstable")
	require.EqualError(t, sgmcmc.SGLD{LR: infer.Constant(0.1)}.Stable(-1),
		"sgmcmc.SGLD: lambda is -1: it must be finite and greater than 0")
}
