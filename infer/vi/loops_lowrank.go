package vi

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// lowRankLoops is W, s and e^s of a [LowRank], V = W/e^s, and the Cholesky factor of M = I + VᵀV. Matrices are row by
// row, of r columns.
type lowRankLoops struct {
	d, r                    int
	w, logSD, sd, v, chol   []float64
	constant                float64   // −Σs − ½ log|M| − (d/2) log 2π
	inverse                 []float64 // VM⁻¹, once the score needs it
	columns, rest, products []float64 // scratch: of r, d and r numbers
}

func (lowRank) loops(phi []float64, d int) loops {
	r := len(phi)/d - 2
	q := &lowRankLoops{d: d, r: r, w: phi[:d*r], logSD: phi[d*r:][:d], v: make([]float64, d*r),
		chol: make([]float64, r*r), columns: make([]float64, r), rest: make([]float64, d), products: make([]float64, r)}
	q.sd = exps(q.logSD)
	for j := range r {
		q.chol[j*r+j] = 1
	}
	for i := range d {
		row := q.v[i*r:][:r]
		copy(row, q.w[i*r:])
		floats.Scale(1/q.sd[i], row)
		for j, v := range row {
			floats.AddScaled(q.chol[j*r:][:r], v, row)
		}
	}
	q.constant = -floats.Sum(q.logSD) - 0.5*float64(d)*math.Log(2*math.Pi)
	for j := range r {
		row := q.chol[j*r:][:r]
		for l := range j {
			other := q.chol[l*r:][:r]
			row[l] = (row[l] - floats.Dot(row[:l], other[:l])) / other[l]
		}
		// A matrix that has overflowed gives numbers that are not finite, and no error.
		row[j] = math.Sqrt(row[j] - floats.Dot(row[:j], row[:j]))
		q.constant -= math.Log(row[j])
	}
	return q
}

// solve replaces y by M⁻¹y.
func (q *lowRankLoops) solve(y []float64) {
	for j := range y {
		row := q.chol[j*q.r:][:q.r]
		y[j] = (y[j] - floats.Dot(row[:j], y[:j])) / row[j]
	}
	for j := q.r - 1; j >= 0; j-- {
		row := q.chol[j*q.r:][:q.r]
		y[j] /= row[j]
		floats.AddScaled(y[:j], -y[j], row[:j])
	}
}

func (q *lowRankLoops) apply(eps, delta []float64) {
	for i := range delta {
		delta[i] = floats.Dot(q.w[i*q.r:][:q.r], eps[:q.r]) + q.sd[i]*eps[q.r+i]
	}
}

// density is −½xᵀ(x − VM⁻¹Vᵀx) and the constant, with x = δ/e^s.
func (q *lowRankLoops) density(_, delta, u []float64) float64 {
	floats.DivTo(q.rest, delta, q.sd)
	clear(q.columns)
	for i, x := range q.rest {
		floats.AddScaled(q.columns, x, q.v[i*q.r:][:q.r])
	}
	q.solve(q.columns)
	value := q.constant
	for i, x := range q.rest {
		rest := x - floats.Dot(q.v[i*q.r:][:q.r], q.columns)
		value -= 0.5 * x * rest
		u[i] = rest / q.sd[i]
	}
	return value
}

func (q *lowRankLoops) path(c float64, a, eps, grad []float64) {
	one, two := eps[:q.r], eps[q.r:]
	w, logSD, mean := grad[:q.d*q.r], grad[q.d*q.r:][:q.d], grad[q.d*q.r+q.d:]
	for i, v := range a {
		floats.AddScaled(w[i*q.r:][:q.r], c*v, one)
		logSD[i] += c * v * two[i] * q.sd[i]
		mean[i] += c * v
	}
}

// score is uuᵀW − Σ⁻¹W, with Σ⁻¹W = VM⁻¹/e^s; e^{2s}u² − 1 + diag VM⁻¹Vᵀ; and u.
func (q *lowRankLoops) score(c float64, u, _, grad []float64) {
	if q.inverse == nil {
		q.inverse = append(q.inverse, q.v...)
		for i := range q.d {
			q.solve(q.inverse[i*q.r:][:q.r])
		}
	}
	clear(q.products)
	for i, v := range u {
		floats.AddScaled(q.products, v, q.w[i*q.r:][:q.r])
	}
	w, logSD, mean := grad[:q.d*q.r], grad[q.d*q.r:][:q.d], grad[q.d*q.r+q.d:]
	for i, v := range u {
		own, inverse, at := w[i*q.r:][:q.r], q.inverse[i*q.r:][:q.r], v*q.sd[i]
		floats.AddScaled(own, c*v, q.products)
		floats.AddScaled(own, -c/q.sd[i], inverse)
		logSD[i] += c * (at*at + floats.Dot(inverse, q.v[i*q.r:][:q.r]) - 1)
		mean[i] += c * v
	}
}
