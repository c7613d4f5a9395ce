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

const halfLogTwoPi = 0.91893853320467274178
