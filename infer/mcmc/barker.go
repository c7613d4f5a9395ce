package mcmc

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
)

// Barker is the Metropolis-adjusted Barker proposal (Livingstone and Zanella 2022), with one gradient an update. With
// z_i ~ N(0, (sσ_i)²) and g the gradient of log p, each coordinate moves by
//
//	δ_i = z_i with probability 1/(1 + exp(−g_i z_i)), else −z_i
//
// and the move to x' = x + δ is accepted with probability
//
//	min(1, p(x')/p(x) · Π (1 + exp(−g_i δ_i))/(1 + exp(g_i' δ_i)))
//
// A gradient that is far too large decides the sign of a move only, never its length. In the warm-up σ become the
// standard deviations of the draws, and s, from 2.38/d^(1/6), moves so that the acceptance is TargetAccept.
type Barker struct {
	TargetAccept float64        // default 0.57
	Temperature  infer.Schedule // T at each update; default 1. It must be positive
}

// Build checks the configuration and binds it to a target.
func (c Barker) Build(target infer.Target) (infer.Transform, error) {
	a := newAlgorithm("mcmc.Barker", c.Temperature)
	if a.fraction("TargetAccept", c.TargetAccept); c.TargetAccept == 0 {
		c.TargetAccept = 0.57
	}
	a.graded, a.step, a.learn = true, c.step, c.learn
	return a.build(target)
}

// Defaults are 4 chains of 1000 draws after 1000 warm-up updates, each draw the last of ten updates.
func (Barker) Defaults() infer.Options { return thinned }

func (c Barker) step(m *move) {
	d := len(m.X)
	if m.Width == nil {
		m.Scale, m.Width = 2.38/math.Pow(float64(d), 1.0/6), make([]float64, d)
		for i := range m.Width {
			m.Width[i] = 1
		}
	}
	to, moved, g := make([]float64, d), m.normals(d), make([]float64, d)
	for i := range to {
		moved[i] *= m.Scale * m.Width[i]
		if !(math.Log(m.Float64()) < -softplus(-m.G[i]*moved[i])) {
			moved[i] = -moved[i]
		}
		to[i] = m.X[i] + moved[i]
	}
	v := m.graded(to, g)
	ratio := v - m.V
	for i, z := range moved {
		ratio += softplus(-m.G[i]*z) - softplus(g[i]*z)
	}
	if math.IsNaN(ratio) {
		ratio = math.Inf(-1) // of a gradient that is not finite
	}
	if m.take(to, v, ratio) {
		m.G = g
	}
	if m.adapting {
		m.Scale *= math.Exp((m.accept - c.TargetAccept) * math.Pow(float64(m.N+1), -0.6))
	}
}

// learn reads the standard deviations of a window.
func (c Barker) learn(m *chain, read, forget bool) {
	d := len(m.X)
	if m.Mean == nil {
		m.Mean, m.Sum = make([]float64, d), make([]float64, d)
	}
	m.N++
	for i, x := range m.X {
		before := x - m.Mean[i]
		m.Mean[i] += before / float64(m.N)
		m.Sum[i] += before * (x - m.Mean[i])
		if read && m.N >= 10 && m.Sum[i] > 0 {
			m.Width[i] = math.Sqrt(m.Sum[i] / float64(m.N-1))
		}
	}
	if forget {
		m.forget()
	}
}

// softplus is log(1 + exp(x)).
func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
