package mcmc

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
)

// DifferentialEvolution is the Markov chain of ter Braak (2006): the chains are its population. Chain k moves along the
// difference of two others, a and b,
//
//	x_k' = x_k + γ (x_a − x_b) + e, γ = 2.38/√(2d), e ~ N(0, Jitter²)
//
// accepted with probability min(1, p(x_k')/p(x_k)); one time in ten γ = 1, which leads from mode to mode. One time in
// ten it is a snooker update (ter Braak and Vrugt 2008) along the line to a third chain c,
//
//	x_k' = x_k + γ P(x_a − x_b), P the projection on x_k − x_c, γ ~ U(1.2, 2.2)
//
// accepted with min(1, p(x_k')/p(x_k) · (|x_k' − x_c|/|x_k − x_c|)^(d−1)). The others are of the half that stands
// still: the halves move in turn. It needs 6 chains or more, better 2d, that start at points apart.
type DifferentialEvolution struct {
	Jitter      float64        // standard deviation of e; default 1e-4
	Temperature infer.Schedule // T at each update; default 1. It must be positive
}

// Build checks the configuration and binds it to a target.
func (c DifferentialEvolution) Build(target infer.Target) (infer.Transform, error) {
	a := newAlgorithm("mcmc.DifferentialEvolution", c.Temperature)
	a.value("Jitter", &c.Jitter, 1e-4)
	a.step = c.step
	a.fewest = func(int) (int, string) { return 6, "6, better 2d" }
	return a.build(target)
}

// Defaults are 1000 draws of each chain, after 1000 warm-up updates, each draw the last of ten updates.
func (DifferentialEvolution) Defaults() infer.Options { return thinned }

func (c DifferentialEvolution) step(m *move) {
	n := len(m.others)
	order := m.Perm(n)
	a, b, third := m.others[order[0]], m.others[order[1]], m.others[order[2]]
	d := float64(len(m.X))
	to := append([]float64{}, m.X...)
	ratio := 0.0
	if m.Float64() < 0.1 {
		along, length := 0.0, 0.0 // (x_a − x_b)·(x_k − x_c), |x_k − x_c|²
		for i, x := range m.X {
			along += (a[i] - b[i]) * (x - third[i])
			length += (x - third[i]) * (x - third[i])
		}
		if length == 0 { // both stand at one point
			m.accept = 0
			return
		}
		by := (1.2 + m.Float64()) * along / length
		for i, x := range m.X {
			to[i] += by * (x - third[i])
		}
		ratio = (d - 1) * math.Log(math.Abs(1+by)) // |x_k' − x_c| = |1 + by| |x_k − x_c|
	} else {
		gamma := 2.38 / math.Sqrt(2*d)
		if m.Float64() < 0.1 {
			gamma = 1
		}
		for i := range to {
			to[i] += gamma*(a[i]-b[i]) + c.Jitter*m.NormFloat64()
		}
	}
	v := m.value(to)
	if ratio += v - m.V; math.IsNaN(ratio) {
		ratio = math.Inf(-1)
	}
	m.take(to, v, ratio)
}
