package mcmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
)

// Stretch is the affine-invariant ensemble of Goodman and Weare (2010): the chains are its walkers. Walker k moves
// along the line through one walker j of the other half of the ensemble,
//
//	x_k' = x_j + z (x_k − x_j), z of density ∝ 1/√z on [1/a, a]
//
// accepted with probability min(1, z^(d−1) p(x_k')/p(x_k)). The halves move in turn, so that the other half stands
// still and the posterior stays exactly as it is. Nothing is adapted: a linear map of the density changes nothing. It
// needs 2d + 2 chains or more, that start at points apart.
type Stretch struct {
	A           float64        // a, above 1; default 2
	Temperature infer.Schedule // T at each update; default 1. It must be positive
}

// Build checks the configuration and binds it to a target.
func (c Stretch) Build(target infer.Target) (infer.Transform, error) {
	a := newAlgorithm("mcmc.Stretch", c.Temperature)
	a.value("A", &c.A, 2)
	a.check.Require(c.A > 1, "A", c.A, "it must be above 1, or 0 for the default")
	a.step, a.spans = c.step, true
	a.fewest = func(d int) (int, string) { return 2*d + 2, fmt.Sprintf("2d + 2 = %d for d = %d", 2*d+2, d) }
	return a.build(target)
}

// Defaults are 1000 draws of each chain, after 1000 warm-up updates, each draw the last of ten updates.
func (Stretch) Defaults() infer.Options { return thinned }

func (c Stretch) step(m *move) {
	other := m.others[m.IntN(len(m.others))]
	root := 1 + (c.A-1)*m.Float64()
	z := root * root / c.A
	to := make([]float64, len(m.X))
	for i, x := range m.X {
		to[i] = other[i] + z*(x-other[i])
	}
	v := m.value(to)
	m.take(to, v, float64(len(to)-1)*math.Log(z)+v-m.V)
}
