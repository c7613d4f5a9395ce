package infer

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// How ridges are followed.
const (
	ridgeDim   = 10 // of points at most: it costs a few hundred evaluations of all pairs of neighbours
	ridgeStep  = 5  // units by which a coordinate moves, or half of its size: more than from far off to a mode
	ridgeSteps = 3
	ridgeRise  = 1. // nats that the density rises by at each
	newtons    = 20 // steps to the top of the others
	gain       = 1e-3
)

// ridge looks for a coordinate whose own density, the integral over the others by Laplace's method, rises and does not
// end: that of the scale of data that are all equal, whose mean must be ever nearer to them as it falls. The joint
// density rises along no line there, and in a hierarchy, which is no such density, it rises without an end.
func (e *ender) ridge(x []float64) ([][]float64, error) {
	d := len(x)
	if d < 2 || d > ridgeDim {
		return nil, nil
	}
	for i := range x {
		for _, sign := range []float64{1, -1} {
			at := append([]float64(nil), x...)
			last, ok, err := e.integrated(at, i)
			first := 0. // rise
			for step := 0; step < ridgeSteps && ok && err == nil; step++ {
				before := last
				at[i] += sign * max(ridgeStep, math.Abs(x[i])/2)
				last, ok, err = e.integrated(at, i)
				if step == 0 {
					first = last - before
				}
				ok = ok && last-before > max(ridgeRise, first/2) // which a mode would make less
			}
			if err != nil {
				return nil, err
			}
			if ok {
				v := make([]float64, d)
				v[i] = sign
				return [][]float64{v}, nil
			}
		}
	}
	return nil, nil
}

// integrated is the log density of coordinate i at that of at, whose others go to their top; not ok where they have
// none that Newton steps find.
func (e *ender) integrated(at []float64, i int) (log float64, ok bool, err error) {
	for range newtons {
		values, grads, err := e.evaluate([][]float64{at})
		if err != nil || !finite(values[0]) {
			return 0, false, err
		}
		h, err := e.hessian(at)
		if err != nil || h == nil {
			return 0, false, err
		}
		d := len(at)
		a, g := mat.NewSymDense(d-1, nil), mat.NewVecDense(d-1, nil)
		other := func(j int) int { // coordinate j without i
			if j >= i {
				return j + 1
			}
			return j
		}
		for j := range d - 1 {
			g.SetVec(j, grads[0][other(j)])
			for k := range j + 1 {
				a.SetSym(j, k, -h.At(other(j), other(k)))
			}
		}
		var root mat.Cholesky
		var step mat.VecDense
		if !root.Factorize(a) || root.SolveVecTo(&step, g) != nil && math.IsNaN(step.At(0, 0)) {
			return 0, false, nil
		}
		if mat.Dot(&step, g) < gain {
			return values[0] - root.LogDet()/2, true, nil
		}
		var steps [][]float64
		for half := range 20 {
			p := append([]float64(nil), at...)
			for j := range d - 1 {
				p[other(j)] += math.Ldexp(step.AtVec(j), -half)
			}
			steps = append(steps, p)
		}
		if values, _, err = e.evaluate(steps); err != nil {
			return 0, false, err
		}
		for k, v := range values {
			if !finite(v) {
				values[k] = math.Inf(-1)
			}
		}
		copy(at, steps[floats.MaxIdx(values)])
	}
	return 0, false, nil
}
