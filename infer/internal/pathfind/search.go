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
	evaluations int64

	points []*Normal // that are kept, and the steps they come after: every step-th
	steps  []int
	every  int
}

func newSearch(density Density, normal func(z []float64) error, n, d int) *search {
	return &search{density: density, normal: normal, best: &Fit{ELBO: math.Inf(-1)}, draws: n, d: d,
		z: make([]float64, n*d), x: make([]float64, n*d), grad: make([]float64, n*d), logp: make([]float64, n),
		ratio: make([]float64, n), every: 1}
}

// judge estimates the ELBO of the normal distribution of a step with the numbers z, and notes the best.
func (s *search) judge(q *Normal, step int) (float64, error) {
	for i := range s.draws {
		s.ratio[i] = -q.Draw(s.x[i*s.d:(i+1)*s.d], s.z[i*s.d:(i+1)*s.d])
	}
	if err := s.density(s.x, s.logp, s.grad); err != nil {
		return 0, err
	}
	s.evaluations += int64(s.draws)
	floats.Add(s.ratio, s.logp)
	elbo, spread := stat.MeanStdDev(s.ratio, nil)
	if elbo > s.best.ELBO && !math.IsInf(elbo, 1) {
		s.best.Normal, s.best.ELBO, s.best.Spread, s.best.Best = q, elbo, spread, step
	}
	return elbo, nil
}

// most is how many points are kept. Of a longer path every second one is, and so on, and the last.
const most = 64

// keep is for [search.section]: q is one of its points.
func (s *search) keep(q *Normal, step int) {
	if n := len(s.steps); n > 0 && s.steps[n-1]%s.every != 0 { // it was the last
		s.points, s.steps = s.points[:n-1], s.steps[:n-1]
	}
	s.points, s.steps = append(s.points, q), append(s.steps, step)
	if len(s.points) == most {
		s.every *= 2
		n := 0
		for i, step := range s.steps {
			if step%s.every == 0 || i == most-1 {
				s.points[n], s.steps[n] = s.points[i], step
				n++
			}
		}
		s.points, s.steps = s.points[:n], s.steps[:n]
	}
}

// section is golden-section search among the points that are kept (Kiefer 1953). All have the same draws.
func (s *search) section() error {
	if len(s.points) == 0 {
		return nil
	}
	if err := s.normal(s.z); err != nil {
		return err
	}
	known := map[int]float64{}
	var failed error
	at := func(i int) float64 {
		if v, ok := known[i]; ok || failed != nil {
			return v
		}
		v, err := s.judge(s.points[i], s.steps[i])
		if failed = err; math.IsNaN(v) || math.IsInf(v, 1) {
			v = math.Inf(-1)
		}
		known[i] = v
		return v
	}
	const golden = 0.6180339887498949
	low, high := 0, len(s.points)-1
	at(high) // most often the best, or next to it
	for high-low > 2 && failed == nil {
		left, right := high-int(math.Round(golden*float64(high-low))), low+int(math.Round(golden*float64(high-low)))
		if left == right {
			right++
		}
		if at(left) > at(right) {
			high = right
		} else {
			low = left
		}
	}
	for i := low; i <= high && failed == nil; i++ {
		at(i)
	}
	return failed
}
