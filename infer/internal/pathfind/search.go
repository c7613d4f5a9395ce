package pathfind

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// search looks for the point whose normal distribution has the greatest ELBO.
type search struct {
	density     Density
	normal      func(z []float64) error
	best        *Fit
	draws, d    int
	z, x        []float64
	logp, grad  []float64
	ratio       []float64 // log p - log q of the draws
	evaluations int
}

func newSearch(density Density, normal func(z []float64) error, n, d int) *search {
	return &search{density: density, normal: normal, best: &Fit{ELBO: math.Inf(-1)}, draws: n, d: d,
		z: make([]float64, n*d), x: make([]float64, n*d), grad: make([]float64, n*d), logp: make([]float64, n),
		ratio: make([]float64, n)}
}

// judge estimates the ELBO of the normal distribution of a step with the numbers z, and notes the best.
func (s *search) judge(q *Normal, step int) error {
	for i := range s.draws {
		s.ratio[i] = -q.Draw(s.x[i*s.d:(i+1)*s.d], s.z[i*s.d:(i+1)*s.d])
	}
	if err := s.density(s.x, s.logp, s.grad); err != nil {
		return err
	}
	s.evaluations += s.draws
	floats.Add(s.ratio, s.logp)
	elbo, spread := stat.MeanStdDev(s.ratio, nil)
	if elbo > s.best.ELBO && !math.IsInf(elbo, 1) {
		s.best.Normal, s.best.ELBO, s.best.Spread, s.best.Best = q, elbo, spread, step
	}
	return nil
}
