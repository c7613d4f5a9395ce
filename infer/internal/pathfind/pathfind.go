// Package pathfind is Pathfinder in plain Go (Zhang, Carpenter, Gelman and Vehtari 2022, Pathfinder: Parallel
// quasi-Newton variational inference, JMLR 23). A quasi-Newton optimiser climbs from a start. At each point of its path
// its estimate of the inverse Hessian makes a normal distribution, and the one with the greatest evidence lower bound
// (ELBO) is the approximation of the posterior.
package pathfind

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Density sets the log density and gradient of K points, x and grad of K rows. A point at which the density is not
// finite has a value or gradient that is not finite. An error ends the search.
type Density func(x, logp, grad []float64) error

// Options configure a search. The zero value of a field is its default.
type Options struct {
	History    int     // pairs of the optimiser's memory, J; default 6
	Iterations int     // of the optimiser at most; default 1000
	Draws      int     // of the estimate of each ELBO, K; default 5
	Tolerance  float64 // relative rise of the log density at which the climb ends; default 1e-8
	// Brief is for a start of a chain, which need not be the best: the ELBOs of few points are estimated, with the same
	// draws, as if they rose to one greatest and fell after it.
	Brief bool
}

func (o *Options) fill() {
	for _, f := range []struct {
		v   *int
		def int
	}{{&o.History, 6}, {&o.Iterations, 1000}, {&o.Draws, 5}} {
		if *f.v == 0 {
			*f.v = f.def
		}
	}
	if o.Tolerance == 0 {
		o.Tolerance = 1e-8
	}
}

// Fit is what a search found.
type Fit struct {
	*Normal
	ELBO       float64
	Spread     float64 // standard deviation of log p - log q over the draws of the ELBO; 0 where q is p
	Iterations int     // of the optimiser
	Best       int     // the one whose normal distribution is the fit
	// Evaluations of the density with its gradient; only those of the climb need the gradient.
	Evaluations int64
}

// ErrNone says that no point of the path had a normal distribution with a finite ELBO.
var ErrNone = errors.New("no normal distribution along the path has a finite ELBO")

// Find climbs from a start of d numbers, at which the density must be finite. normal fills a slice with independent
// standard normal numbers. Only points after the first step have a normal distribution: before it nothing is known of
// the curvature.
func Find(density Density, start []float64, o Options, normal func(z []float64) error) (*Fit, error) {
	o.fill()
	c, err := newClimb(density, start, o)
	if err != nil {
		return nil, err
	}
	s := &search{density: density, normal: normal, best: &Fit{ELBO: math.Inf(-1)}, draws: o.Draws, d: len(start)}
	s.z, s.x = make([]float64, o.Draws*s.d), make([]float64, o.Draws*s.d)
	s.logp, s.grad, s.ratio = make([]float64, o.Draws), make([]float64, o.Draws*s.d), make([]float64, o.Draws)
	for c.iterations < o.Iterations {
		moved, err := c.step()
		if err != nil {
			return nil, err
		}
		if !moved {
			break
		}
		if q, ok := c.memory.normal(c.x, c.grad); ok && o.Brief {
			s.keep(q, c.iterations)
		} else if ok {
			if err := s.draw(); err != nil {
				return nil, err
			}
			if _, err := s.judge(q, c.iterations); err != nil {
				return nil, err
			}
		}
		if c.ended {
			break
		}
	}
	if err := s.section(); err != nil {
		return nil, err
	}
	s.best.Iterations, s.best.Evaluations = c.iterations, c.evaluations+s.evaluations
	if s.best.Normal == nil {
		return s.best, fmt.Errorf("after %d steps: %w", c.iterations, ErrNone)
	}
	return s.best, nil
}

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

// draw takes new draws.
func (s *search) draw() error { return s.normal(s.z) }

// judge estimates the ELBO of a normal distribution, and keeps the best.
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

// most is how many points are kept: of a longer path every second one, and so on, and the last.
const most = 64

func (s *search) keep(q *Normal, step int) {
	if n := len(s.steps); n > 0 && s.steps[n-1]%max(s.every, 1) != 0 { // it was the last
		s.points, s.steps = s.points[:n-1], s.steps[:n-1]
	}
	s.every = max(s.every, 1)
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

// section is golden-section search among the points that are kept.
func (s *search) section() error {
	if len(s.points) == 0 {
		return nil
	}
	if err := s.draw(); err != nil {
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
