package pathfind

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Normal is the normal distribution of d dimensions with covariance
//
//	Σ = S (I + Uᵀ(Λ − I)U) S,  S = diag(Scale)
//
// which is the form of low-rank mass matrices too, with S² as their diagonal.
type Normal struct {
	Mean, Scale []float64 // [d]
	Vectors     []float64 // [k, d]: U, whose rows are orthonormal
	Values      []float64 // [k]: Λ, positive

	logDet float64 // log det Σ
}

// settle computes what draws need, and reports whether Σ is a covariance.
func (q *Normal) settle() bool {
	for i, v := range q.Scale {
		q.logDet += 2 * math.Log(v)
		if s := q.Mean[i]; math.IsNaN(s) || math.IsInf(s, 0) {
			return false
		}
	}
	for _, v := range q.Values {
		if !(v > 0) {
			return false
		}
		q.logDet += math.Log(v)
	}
	return !math.IsNaN(q.logDet) && !math.IsInf(q.logDet, 0)
}

// stretch adds Uᵀ f(Λ) U y to y.
func (q *Normal) stretch(y []float64, f func(lambda float64) float64) {
	d := len(y)
	parts := make([]float64, len(q.Values))
	for k := range q.Values {
		parts[k] = floats.Dot(q.Vectors[k*d:(k+1)*d], y)
	}
	for k, v := range q.Values {
		floats.AddScaled(y, f(v)*parts[k], q.Vectors[k*d:(k+1)*d])
	}
}

// Draw sets x to the draw of d standard normal numbers z, and returns the log density there.
func (q *Normal) Draw(x, z []float64) float64 {
	copy(x, z)
	q.stretch(x, func(lambda float64) float64 { return math.Sqrt(lambda) - 1 })
	for i, v := range x {
		x[i] = q.Mean[i] + q.Scale[i]*v
	}
	return -0.5*(floats.Dot(z, z)+q.logDet) - float64(len(z))*halfLogTwoPi
}

// LogDensity is the log density at a point.
func (q *Normal) LogDensity(x []float64) float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v - q.Mean[i]) / q.Scale[i]
	}
	q.stretch(y, func(lambda float64) float64 { return 1/math.Sqrt(lambda) - 1 })
	return -0.5*(floats.Dot(y, y)+q.logDet) - float64(len(x))*halfLogTwoPi
}

const halfLogTwoPi = 0.91893853320467274178

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
