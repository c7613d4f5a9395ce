// Package pathfind is Pathfinder in plain Go (Zhang, Carpenter, Gelman and Vehtari 2022, Pathfinder: Parallel
// quasi-Newton variational inference, JMLR 23). A quasi-Newton optimiser climbs from a start. At each point of its path
// its estimate of the inverse Hessian makes a normal distribution, and the one with the greatest evidence lower bound
// (ELBO) is the approximation of the posterior.
package pathfind

import (
	"errors"
	"fmt"
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
	Evaluations int
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
	s := newSearch(density, normal, o.Draws, len(start))
	for c.iterations < o.Iterations {
		moved, err := c.step()
		if err != nil {
			return nil, err
		}
		if !moved {
			break
		}
		if q, ok := c.memory.normal(c.x, c.grad); ok {
			if err := normal(s.z); err != nil {
				return nil, err
			}
			if err := s.judge(q, c.iterations); err != nil {
				return nil, err
			}
		}
		if c.ended {
			break
		}
	}
	s.best.Iterations, s.best.Evaluations = c.iterations, c.evaluations+s.evaluations
	if s.best.Normal == nil {
		return s.best, fmt.Errorf("after %d steps: %w", c.iterations, ErrNone)
	}
	return s.best, nil
}
