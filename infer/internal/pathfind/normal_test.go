package pathfind

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// LogDensity is the log density at a point.
func (q *Normal) LogDensity(x []float64) float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v - q.Mean[i]) / q.Scale[i]
	}
	q.stretch(y, func(lambda float64) float64 { return 1/math.Sqrt(lambda) - 1 })
	return -0.5*(floats.Dot(y, y)+q.logDet) - float64(len(x))*halfLogTwoPi
}

// Variances are the diagonal of Σ.
func (q *Normal) Variances() []float64 {
	out := make([]float64, len(q.Scale))
	for i, s := range q.Scale {
		v := 1.0
		for k, lambda := range q.Values {
			u := q.Vectors[k*len(out)+i]
			v += u * u * (lambda - 1)
		}
		out[i] = s * s * v
	}
	return out
}

// Covariance is Σ, d rows of d numbers.
func (q *Normal) Covariance() []float64 {
	d := len(q.Scale)
	out := make([]float64, d*d)
	for i := range d {
		row := out[i*d : (i+1)*d]
		row[i] = 1
		for k, lambda := range q.Values {
			floats.AddScaled(row, (lambda-1)*q.Vectors[k*d+i], q.Vectors[k*d:(k+1)*d])
		}
		floats.Scale(q.Scale[i], row)
		floats.Mul(row, q.Scale)
	}
	for i := range d { // symmetric to the last bit
		for j := range i {
			out[j*d+i] = out[i*d+j]
		}
	}
	return out
}
