package mcmc

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
)

// RandomWalk is Metropolis' algorithm with a normal proposal of adapted covariance (Haario, Saksman and Tamminen 2001):
//
//	x' = x + s·L z, z ~ N(0, I), accepted with probability min(1, p(x')/p(x))
//
// In the warm-up L becomes the Cholesky factor of the covariance of the draws, and s, from 2.38/√d (Roberts and
// Rosenthal 2001), moves so that the acceptance is TargetAccept: log s increases by (accept − target)/n^0.6.
type RandomWalk struct {
	TargetAccept float64        // default 0.234 + 0.206/d, which is 0.44 in one dimension
	Temperature  infer.Schedule // T at each update; default 1. It must be positive
}

// Build checks the configuration and binds it to a target.
func (c RandomWalk) Build(target infer.Target) (infer.Transform, error) {
	a := newAlgorithm("mcmc.RandomWalk", c.Temperature)
	a.fraction("TargetAccept", c.TargetAccept)
	a.step, a.learn = c.step, c.learn
	return a.build(target)
}

// Defaults are 4 chains of 1000 draws after 1000 warm-up updates, each draw the last of ten updates.
func (RandomWalk) Defaults() infer.Options { return thinned }

func (c RandomWalk) step(m *move) {
	d := float64(len(m.X))
	if m.Scale == 0 {
		m.Scale = 2.38 / math.Sqrt(d)
	}
	to := times(m.Root, m.normals(len(m.X)))
	for i := range to {
		to[i] = m.X[i] + m.Scale*to[i]
	}
	v := m.value(to)
	m.take(to, v, v-m.V)
	if m.adapting {
		target := c.TargetAccept
		if target == 0 {
			target = 0.234 + 0.206/d
		}
		m.Scale *= math.Exp((m.accept - target) * math.Pow(float64(m.N+1), -0.6))
	}
}

// learn reads the covariance of a window.
func (c RandomWalk) learn(m *chain, read, forget bool) {
	m.learn()
	had := m.Root != nil
	if read {
		m.covariance()
	}
	if !had && m.Root != nil {
		m.Scale = 2.38 / math.Sqrt(float64(len(m.X)))
	}
	if forget {
		m.forget()
	}
}
