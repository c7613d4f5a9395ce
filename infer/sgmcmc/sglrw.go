package sgmcmc

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
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
			theta, delta := s.Params.Flat, math.Sqrt(2*m.Tau*m.LR)
			if delta == 0 {
				next.Params.Flat = torch.Must(torch.Copy(theta))
				return
			}
			// A uniform u in (−1, 1) is below clip(p, −1, 1) with probability ½(1 + clip(p, −1, 1)).
			up := m.Grad.Mul(m.LR / delta).Sub(m.Uniform(theta).Mul(2)).Add(1)
			next.Params.Flat = theta.Add(torch.Of(up.T().MustSign(false)).Mul(delta))
		},
		Inflation: func(_ *SGLRWState, m *method.Move, lambda float64) float64 { return latticeVariance(m.LR * lambda) },
	})
}

// latticeVariance is λ/τ times the variance of an element of precision λ, for r = ελ: a walk at the points x + k of a
// lattice goes up with probability p(x) = ½(1 − clip(rx, −1, 1)). Its law has detailed balance, w(x) p(x) =
// w(x + 1) (1 − p(x + 1)). A chain stays on its lattice, so the variance is the mean over the lattices.
func latticeVariance(r float64) float64 {
	const lattices = 32
	if r < 0.01 {
		return 1 // clipped are only moves from beyond 14 standard deviations
	}
	down := func(x float64) float64 { return 0.5 * (1 + min(max(r*x, -1), 1)) }
	sum := 0.0
	for i := range lattices {
		offset := (float64(i) + 0.5) / lattices
		x := offset + math.Floor(-1/r-1-offset) + 1 // the lowest point to which a walk comes back
		all, square := 0.0, 0.0
		for w := 1.0; w > 0; x++ {
			all, square = all+w, square+w*x*x
			w *= (1 - down(x)) / down(x+1)
		}
		sum += 2 * r * square / all
	}
	return sum / lattices
}
