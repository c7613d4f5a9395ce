package pathfind

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// memory is what the last J steps say of the curvature: steps s and changes z of the gradient of -log p.
type memory struct {
	most  int
	s, z  [][]float64
	alpha []float64 // diagonal of the inverse Hessian before the steps
}

func newMemory(d, most int) *memory {
	m := &memory{most: most, alpha: make([]float64, d)}
	for i := range m.alpha {
		m.alpha[i] = 1
	}
	return m
}

func (m *memory) len() int { return len(m.s) }

// add takes a step, unless the density is not concave enough along it. The diagonal α is updated by
//
//	1/α_i ← a/(b α_i) + z_i²/b − a s_i²/(b c α_i²),  a = Σ α z²,  b = s·z,  c = Σ s²/α
//
// (Gilbert and Lemaréchal 1989; algorithm 3 of Zhang et al. 2022).
func (m *memory) add(s, z []float64) {
	b := floats.Dot(s, z)
	if !(b > 1e-12*floats.Norm(s, 2)*floats.Norm(z, 2)) {
		return
	}
	a, c := 0.0, 0.0
	for i, v := range m.alpha {
		a += v * z[i] * z[i]
		c += s[i] * s[i] / v
	}
	for i, v := range m.alpha {
		if next := 1 / (a/(b*v) + z[i]*z[i]/b - a*s[i]*s[i]/(b*c*v*v)); next > 0 && !math.IsInf(next, 1) {
			m.alpha[i] = next
		}
	}
	if len(m.s) == m.most {
		m.s, m.z = append(m.s[1:], m.s[0]), append(m.z[1:], m.z[0])
		copy(m.s[m.most-1], s)
		copy(m.z[m.most-1], z)
		return
	}
	m.s, m.z = append(m.s, append([]float64(nil), s...)), append(m.z, append([]float64(nil), z...))
}

// ascend sets the direction H g, with H the inverse Hessian that starts from diag(α) (Nocedal and Wright 2006,
// algorithm 7.4).
func (m *memory) ascend(direction, g []float64) {
	copy(direction, g)
	weights := make([]float64, len(m.s))
	for i := len(m.s) - 1; i >= 0; i-- {
		weights[i] = floats.Dot(m.s[i], direction) / floats.Dot(m.s[i], m.z[i])
		floats.AddScaled(direction, -weights[i], m.z[i])
	}
	floats.Mul(direction, m.alpha)
	for i := range m.s {
		back := floats.Dot(m.z[i], direction) / floats.Dot(m.s[i], m.z[i])
		floats.AddScaled(direction, weights[i]-back, m.s[i])
	}
}

// normal is the normal distribution of a point x with gradient g: its covariance is the inverse Hessian, and its mean
// x + Σg. It is false where the estimate is no covariance.
//
// The inverse Hessian is diag(α) + β γ βᵀ (Byrd, Nocedal and Schnabel 1994), with S and Z the steps and changes as
// columns, R the upper triangle of SᵀZ, E its diagonal, and
//
//	β = (diag(α) Z, S),  γ = (0, −R⁻¹; −R⁻ᵀ, R⁻ᵀ (E + Zᵀ diag(α) Z) R⁻¹)
//
// With diag(α)^-½ β = Q W, Q of orthonormal columns, and I + WγWᵀ = VΛVᵀ it is
//
//	Σ = diag(α)^½ (I + U (Λ − I) Uᵀ) diag(α)^½,  U = QV
func (m *memory) normal(x, g []float64) (*Normal, bool) {
	d, n := len(x), len(m.s)
	q := &Normal{Scale: make([]float64, d), Mean: append([]float64(nil), x...)}
	for i, v := range m.alpha {
		q.Scale[i] = math.Sqrt(v)
	}
	if n > 0 && !q.curve(m) {
		return nil, false
	}
	shift := append([]float64(nil), g...)
	floats.Mul(shift, q.Scale)
	q.stretch(shift, func(lambda float64) float64 { return lambda - 1 })
	for i, v := range shift {
		q.Mean[i] += q.Scale[i] * v
	}
	return q, q.settle()
}

// curve sets vectors and eigenvalues.
func (q *Normal) curve(m *memory) bool {
	d, n := len(q.Scale), len(m.s)
	root := mat.NewDense(d, 2*n, nil) // diag(α)^-½ β
	r := mat.NewTriDense(n, mat.Upper, nil)
	inner := mat.NewDense(n, n, nil) // E + Zᵀ diag(α) Z
	for j := range n {
		for i, a := range q.Scale {
			root.Set(i, j, a*m.z[j][i])
			root.Set(i, n+j, m.s[j][i]/a)
		}
		for i := range j + 1 {
			r.SetTri(i, j, floats.Dot(m.s[i], m.z[j]))
		}
	}
	zs := root.Slice(0, d, 0, n)
	inner.Mul(zs.T(), zs)
	for i := range n {
		inner.Set(i, i, inner.At(i, i)+r.At(i, i))
	}
	var inverse mat.TriDense
	var bad mat.Condition
	if err := inverse.InverseTri(r); err != nil && (!errors.As(err, &bad) || math.IsInf(float64(bad), 1)) {
		return false
	}
	var corner mat.Dense
	corner.Mul(inner, &inverse)
	corner.Mul(inverse.T(), &corner)
	gamma := mat.NewDense(2*n, 2*n, nil)
	for i := range n {
		for j := range n {
			gamma.Set(i, n+j, -inverse.At(i, j))
			gamma.Set(n+i, j, -inverse.At(j, i))
			gamma.Set(n+i, n+j, corner.At(i, j))
		}
	}
	basis, w := orthonormal(root)
	k := len(basis)
	if k == 0 {
		return false
	}
	var half, whole mat.Dense
	half.Mul(w, gamma)
	whole.Mul(&half, w.T())
	sym := mat.NewSymDense(k, nil)
	for i := range k {
		for j := range i + 1 {
			v := 0.5 * (whole.At(i, j) + whole.At(j, i))
			if i == j {
				v++
			}
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return false
			}
			sym.SetSym(i, j, v)
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(sym, true) {
		return false
	}
	q.Values = eigen.Values(nil)
	var v mat.Dense
	eigen.VectorsTo(&v)
	q.Vectors = make([]float64, k*d)
	for i := range k {
		for j, b := range basis {
			floats.AddScaled(q.Vectors[i*d:(i+1)*d], v.At(j, i), b)
		}
	}
	return true
}

// orthonormal writes the columns of a matrix [d, n] as combinations of orthonormal ones: a = basis · w. Columns that
// are combinations of those before add none (Gram-Schmidt, twice, which is enough; Giraud et al. 2005).
func orthonormal(a *mat.Dense) (basis [][]float64, w *mat.Dense) {
	const dependent = 1e-10
	d, n := a.Dims()
	parts := make([][]float64, n)
	for j := range n {
		v := mat.Col(nil, j, a)
		before := floats.Norm(v, 2)
		parts[j] = make([]float64, n)
		for range 2 {
			for k, b := range basis {
				part := floats.Dot(b, v)
				parts[j][k] += part
				floats.AddScaled(v, -part, b)
			}
		}
		if left := floats.Norm(v, 2); len(basis) < d && left > dependent*before {
			parts[j][len(basis)] = left
			floats.Scale(1/left, v)
			basis = append(basis, v)
		}
	}
	w = mat.NewDense(len(basis), n, nil)
	for j, part := range parts {
		w.SetCol(j, part[:len(basis)])
	}
	return basis, w
}
