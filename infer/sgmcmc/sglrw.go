package sgmcmc

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/sugarme/gotch/ts"
)

// SGLRW is the stochastic gradient lattice random walk (Duffield et al. 2025, arXiv 2508.20883; Mensch et al. 2026):
// each element of θ moves by the same distance, up or down.
//
//	δ  = √(2τε),  τ = T/N
//	θ' = θ + δ with probability ½(1 + clip(εg(θ)/δ, −1, 1)), else θ − δ
//
// The mean of a move is that of SGLD while |εg| < δ, and its variance never grows with the gradient, so that the walk
// is stable at every step and under heavy-tailed gradient noise. For a Gaussian target of precision λ the variance is
// τ/λ, but for moves that are clipped: those from beyond √(2/(ελ)) standard deviations. At T = 0 it stands still.
type SGLRW struct {
	LR          infer.Schedule // step size ε; required
	Temperature infer.Schedule // T; nil means 1, the Bayes posterior
}

// SGLRWState is the state of [SGLRW].
type SGLRWState struct{ method.State }

// Defaults are those of the options of a run.
func (c SGLRW) Defaults() infer.Options { return defaults }

// Build checks the configuration and binds it to a target.
func (c SGLRW) Build(target infer.Target) (infer.Transform, error) {
	check := &method.Checks{Name: "sgmcmc.SGLRW"}
	check.LR(c.LR, "a tenth of 2/λ, with λ the largest curvature of the mean log posterior")
	check.Schedule("Temperature", &c.Temperature, 1, false)
	return method.Build(check, target, method.Algorithm[SGLRWState]{
		LR: c.LR, Temperature: c.Temperature,
		Step: func(s, next *SGLRWState, m *method.Move) {
			delta := math.Sqrt(2 * m.Tau * m.LR)
			if delta == 0 {
				next.Params.Flat = combine(term(1, s.Params.Flat))
				return
			}
			// A uniform u in (−1, 1) is below clip(p, −1, 1) with probability ½(1 + clip(p, −1, 1)).
			up := combine(term(m.LR/delta, m.Grad), term(-2, m.Uniform(s.Params.Flat))).MustAddScalar(ts.FloatScalar(1),
				false)
			next.Params.Flat = combine(term(1, s.Params.Flat), term(delta, up.MustSign(false)))
		},
	})
}
