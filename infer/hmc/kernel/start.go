package kernel

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/internal/pathfind"
)

const (
	startTries    = 100 // starts
	mostRestarts  = 3
	clearlyHigher = 10 // and as many more as there are dimensions
)

// begin finds the first point: finite, and in the kernel's box if it has one.
func (r *runner) begin(c *chain) error {
	tries := startTries
	if r.Init != nil {
		tries = 1
	}
	stream := c.Stream
	x := make([]float64, r.d)
	for range tries {
		if r.Init != nil {
			copy(x, r.start(c))
		} else {
			for i := range x {
				x[i] = 4*stream.Float64() - 2
			}
		}
		if err := r.boxed(c, x); err != nil {
			if r.Init != nil {
				return err
			}
			continue
		}
		s := position{X: x, Grad: make([]float64, r.d)}
		var err error
		if s.LogP, err = point(c.gradient, s.X, s.Grad); err != nil {
			return err
		}
		if !math.IsNaN(s.LogP) && allFinite(x) {
			if err := r.descend(c, &s); err != nil {
				return err
			}
			c.Point, c.Stream = s, stream
			return nil
		}
	}
	if r.Init != nil {
		return fmt.Errorf("log density or gradient at the given start: %w", ErrNonFinite)
	}
	return fmt.Errorf("log density or gradient at each of %d starts in (-2, 2)^%d, or outside the kernel's box: %w",
		tries, r.d, ErrNonFinite)
}

// start is the given start of a chain.
func (r *runner) start(c *chain) []float64 {
	if len(r.Init) == len(r.chains) {
		return r.Init[c.Number]
	}
	return r.Init[c.Number/r.replicas()]
}

// boxed is an error outside the kernel's box, if it has one.
func (r *runner) boxed(c *chain, x []float64) error {
	if box, ok := c.transition.(interface{ inside(x []float64) bool }); ok && !box.inside(x) {
		return &FieldError{"kernel.Options", fmt.Sprintf("Init[%d]", c.Number/r.replicas()), x,
			"it must be inside the kernel's box"}
	}
	return nil
}

// findStep finds a step size to start from, and starts its adaptation.
func (r *runner) findStep(c *chain) error {
	guess := c.StepSize
	if guess == 0 {
		guess = 1
	}
	if r.follows && !c.Estimated && !r.given && c.Metric.Kind == Unit {
		r.startMetric(c)
	}
	stream := c.Stream
	eps, err := initialStepSize(&c.Point, guess, c.Temperature, c.metric, c.gradient, &stream)
	if _, _, boxed := c.box(); boxed && errors.Is(err, errFlat) { // it is the box that keeps it
		eps, err = 1, nil
	}
	if c.Done > 0 && errors.Is(err, errStepSize) { // as where a density is flat that has no end: the run will say so
		c.NeedStep = false
		return nil
	}
	if err != nil {
		return err
	}
	if _, ok := c.transition.(*microcanonical); ok {
		eps *= math.Sqrt(float64(r.d)) // the mean velocity that the size was found for
	}
	c.Stream, c.StepSize, c.NeedStep = stream, eps, false
	c.Averaging = r.averages.Init(eps)
	return nil
}

// climb is the point that a chain reaches from another one, by climbing until it is as high as draws are.
func (r *runner) climb(c *chain, from position) (position, error) {
	x, err := pathfind.Approach(r.scaledDensity(c), from.X)
	if err != nil {
		return from, err
	}
	at := position{X: slices.Clone(x), Grad: make([]float64, r.d)}
	if at.LogP, err = point(c.gradient, at.X, at.Grad); err != nil || !finite(at.LogP) {
		return from, err
	}
	return at, nil
}

// climbsFirst reports whether chains climb from their starts: not where they descended, nor in a box.
func (r *runner) climbsFirst(c *chain) bool {
	_, _, boxed := c.box()
	return !boxed && r.Minimise == 0 && r.Warmup > 0
}

// scaledDensity is the density of a chain at its temperature.
func (r *runner) scaledDensity(c *chain) pathfind.Density {
	return func(x, logp, grad []float64) error {
		for k := range logp {
			row := grad[k*r.d : (k+1)*r.d]
			value, err := point(c.gradient, x[k*r.d:(k+1)*r.d], row)
			if err != nil {
				return err
			}
			logp[k] = value / c.Temperature
			for i := range row {
				row[i] /= c.Temperature
			}
		}
		return nil
	}
}

// restart gives a chain that is lost another start: a point between 0 and its start or beyond, each number by itself,
// from which it climbs. A chain that still moves begins anew there if that is higher, by more than the log density of
// draws varies; one that stands still anyway. Without a finite density at any start it stays where it is.
func (r *runner) restart(c *chain) error {
	stream := c.Stream
	s := position{X: make([]float64, r.d), Grad: make([]float64, r.d), LogP: math.NaN()}
	var err error
	for try := 0; try < startTries && !finite(s.LogP); try++ {
		for i := range s.X {
			s.X[i] = 4*stream.Float64() - 2
			if r.Init != nil {
				s.X[i] *= 0.5 * r.start(c)[i]
			}
		}
		if s.LogP, err = point(c.gradient, s.X, s.Grad); err != nil {
			return err
		}
	}
	still := c.stuck(c.Before)
	if finite(s.LogP) {
		if s, err = r.climb(c, s); err != nil {
			return err
		}
	}
	c.Stream, c.Restart = stream, false
	c.Restarts++
	if !finite(s.LogP) || !still && !(s.LogP-c.Point.LogP > c.Temperature*(clearlyHigher+float64(r.d))) {
		return nil
	}
	c.Point, c.NeedStep = s, !r.KeepStep
	c.Before, c.Candidates, c.Form, c.Estimated = height{}, nil, fisher, false
	if !r.follows {
		return nil
	}
	c.Mass.Reset()
	c.Next.Reset()
	return c.setMetric(*r.InitialMetric)
}
