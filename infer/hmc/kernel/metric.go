package kernel

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gonum.org/v1/gonum/mat"
)

// MetricKind names the form of a mass matrix.
type MetricKind string

// The forms of the inverse mass matrix M⁻¹, which is best near the covariance of the target.
const (
	Unit     MetricKind = "unit"     // M⁻¹ = I
	Diagonal MetricKind = "diagonal" // M⁻¹ = diag(v)
	Dense    MetricKind = "dense"    // M⁻¹ = Σ
	LowRank  MetricKind = "low-rank" // M⁻¹ = D^½ (I + Uᵀ(Λ - I)U) D^½, the rows of U orthonormal

	auto MetricKind = "diagonal or low-rank" // whichever the draws of the warm-up predict to cost less
)

// massMatrix is a mass matrix M. One metric serves one chain at a time: it has scratch memory.
type massMatrix interface {
	Dim() int
	// Sample draws p ~ N(0, M).
	Sample(p []float64, s *stream)
	// Velocity sets v = M⁻¹p; the kinetic energy is p·v/2.
	Velocity(v, p []float64)
	// State is the metric as plain numbers.
	State() Metric
}

// Metric is a metric as plain numbers, for configuration and for saving. Which fields are used depends on Kind.
type Metric struct {
	Kind    MetricKind
	Dim     int       // the number of dimensions
	Diag    []float64 `json:",omitempty"` // [Dim]: the diagonal of M⁻¹, or D of a low-rank metric; positive
	Dense   []float64 `json:",omitempty"` // [Dim, Dim]: M⁻¹, symmetric and positive definite
	Vectors []float64 `json:",omitempty"` // [rank, Dim]: U, whose rows are orthonormal
	Values  []float64 `json:",omitempty"` // [rank]: Λ, positive
}

// unitMetric is the identity in d dimensions.
func unitMetric(d int) Metric { return Metric{Kind: Unit, Dim: d} }

// diagonalMetric has the given variances as the diagonal of M⁻¹.
func diagonalMetric(variance []float64) Metric {
	return Metric{Kind: Diagonal, Dim: len(variance), Diag: variance}
}

// denseMetric has the given covariance, d rows of d numbers, as M⁻¹.
func denseMetric(d int, covariance []float64) Metric {
	return Metric{Kind: Dense, Dim: d, Dense: covariance}
}

// lowRankMetric is M⁻¹ = D^½ (I + Uᵀ(Λ - I)U) D^½ with D = diag(diag), the rows of U in vectors and Λ in values
// (nutpie; Seyboldt, Carlson and Carpenter 2026). Without vectors it is diagonal.
func lowRankMetric(diag, vectors, values []float64) Metric {
	return Metric{Kind: LowRank, Dim: len(diag), Diag: diag, Vectors: vectors, Values: values}
}

// build checks the numbers and builds the metric; it shares no memory with the state.
func (m Metric) build() (massMatrix, error) {
	const typ = "kernel.Metric"
	if m.Dim < 1 {
		return nil, &FieldError{typ, "Dim", m.Dim, "it must be at least 1"}
	}
	want := func(field string, v []float64, n int) error {
		if len(v) != n {
			return &FieldError{typ, field, fmt.Sprintf("of length %d", len(v)), fmt.Sprintf("it must have %d numbers", n)}
		}
		return nil
	}
	allPositive := func(field string, v []float64) error {
		for i, e := range v {
			if !(e > 0) || !finite(e) {
				return &FieldError{typ, fmt.Sprintf("%s[%d]", field, i), e, "it must be a positive number"}
			}
		}
		return nil
	}
	d := m.Dim
	switch m.Kind {
	case Unit:
		return newUnit(d), nil
	case Diagonal, LowRank:
		if err := want("Diag", m.Diag, d); err != nil {
			return nil, err
		}
		if err := allPositive("Diag", m.Diag); err != nil {
			return nil, err
		}
		g := newDiagonal(m.Diag)
		if m.Kind == Diagonal {
			return g, nil
		}
		r := len(m.Values)
		if err := want("Vectors", m.Vectors, r*d); err != nil {
			return nil, err
		}
		if err := allPositive("Values", m.Values); err != nil {
			return nil, err
		}
		for i := range r {
			for j := range i + 1 {
				e := dot(m.Vectors[i*d:(i+1)*d], m.Vectors[j*d:(j+1)*d])
				if i == j {
					e--
				}
				if !(math.Abs(e) < 1e-8) {
					return nil, &FieldError{typ, "Vectors", fmt.Sprintf("off by %g in rows %d and %d", e, i, j),
						"its rows must be orthonormal"}
				}
			}
		}
		return newLowRank(g, m.Vectors, m.Values), nil
	case Dense:
		if err := want("Dense", m.Dense, d*d); err != nil {
			return nil, err
		}
		return newDense(d, m.Dense)
	}
	return nil, &FieldError{typ, "Kind", fmt.Sprintf("%q", m.Kind), "it must be Unit, Diagonal, Dense or LowRank"}
}

func dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64 // since each sum waits for its last addition
	i := 0
	for ; i < len(a)-3; i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// diagonalMass is the identity too, with ones.
type diagonalMass struct {
	variance, invSD []float64
	unit            bool
}

func newUnit(d int) *diagonalMass {
	ones := make([]float64, d)
	for i := range ones {
		ones[i] = 1
	}
	return &diagonalMass{variance: ones, invSD: ones, unit: true}
}

func newDiagonal(variance []float64) *diagonalMass {
	m := &diagonalMass{variance: make([]float64, len(variance)), invSD: make([]float64, len(variance))}
	m.set(variance)
	return m
}

// set replaces the diagonal.
func (m *diagonalMass) set(variance []float64) {
	for i, v := range variance {
		m.variance[i], m.invSD[i] = v, 1/math.Sqrt(v)
	}
}

func (m *diagonalMass) Dim() int { return len(m.variance) }

func (m *diagonalMass) State() Metric {
	if m.unit {
		return unitMetric(len(m.variance))
	}
	return diagonalMetric(append([]float64(nil), m.variance...))
}

func (m *diagonalMass) Sample(p []float64, s *stream) {
	p = p[:len(m.invSD)]
	s.Norms(p)
	for i, e := range m.invSD {
		p[i] *= e
	}
}

func (m *diagonalMass) Velocity(v, p []float64) {
	v, p = v[:len(m.variance)], p[:len(m.variance)]
	for i, e := range m.variance {
		v[i] = e * p[i]
	}
}

// denseMass keeps Σ = RᵀR with R upper triangular: p = R⁻¹z has the covariance Σ⁻¹ = M.
type denseMass struct {
	d             int
	sigma, factor []float64
}

func newDense(d int, sigma []float64) (*denseMass, error) {
	const typ = "kernel.Metric"
	for i := range d {
		if !(sigma[i*d+i] > 0) || !finite(sigma[i*d+i]) {
			return nil, &FieldError{typ, fmt.Sprintf("Dense[%d, %d]", i, i), sigma[i*d+i], "the diagonal must be positive"}
		}
	}
	for i := range d {
		for j := range i {
			a, b := sigma[i*d+j], sigma[j*d+i]
			if !(math.Abs(a-b) <= 1e-10*math.Sqrt(sigma[i*d+i]*sigma[j*d+j])) {
				return nil, &FieldError{typ, fmt.Sprintf("Dense[%d, %d]", i, j), a,
					fmt.Sprintf("the matrix must be symmetric, and across it is %v", b)}
			}
		}
	}
	m := &denseMass{d, append([]float64(nil), sigma...), make([]float64, d*d)}
	var chol mat.Cholesky
	if !chol.Factorize(mat.NewSymDense(d, append([]float64(nil), sigma...))) {
		return nil, &FieldError{typ, "Dense", fmt.Sprintf("a matrix of %d x %d", d, d), "it must be positive definite"}
	}
	var r mat.TriDense
	chol.UTo(&r)
	for i := range d {
		for j := i; j < d; j++ {
			m.factor[i*d+j] = r.At(i, j)
		}
	}
	return m, nil
}

func (m *denseMass) Dim() int { return m.d }

func (m *denseMass) State() Metric {
	return denseMetric(m.d, append([]float64(nil), m.sigma...))
}

func (m *denseMass) Sample(p []float64, s *stream) {
	s.Norms(p)
	for i := m.d - 1; i >= 0; i-- {
		row := m.factor[i*m.d : (i+1)*m.d]
		p[i] = (p[i] - dot(row[i+1:], p[i+1:])) / row[i]
	}
}

func (m *denseMass) Velocity(v, p []float64) {
	gonum.Implementation{}.Dgemv(blas.NoTrans, m.d, m.d, 1, m.sigma, m.d, p, 1, 0, v, 1)
}

type lowRankMass struct {
	*diagonalMass
	sd, vectors, values []float64
	invRoot             []float64 // Λ^-½
	scratch             []float64
}

func newLowRank(g *diagonalMass, vectors, values []float64) *lowRankMass {
	m := &lowRankMass{diagonalMass: g, vectors: append([]float64(nil), vectors...),
		values: append([]float64(nil), values...)}
	for _, v := range g.variance {
		m.sd = append(m.sd, math.Sqrt(v))
	}
	for _, v := range values {
		m.invRoot = append(m.invRoot, 1/math.Sqrt(v))
	}
	m.scratch = make([]float64, len(g.variance))
	return m
}

func (m *lowRankMass) State() Metric {
	return lowRankMetric(append([]float64(nil), m.variance...), append([]float64(nil), m.vectors...),
		append([]float64(nil), m.values...))
}

// stretch sets y = y + Uᵀ(f - I)U y.
func (m *lowRankMass) stretch(y, f []float64) {
	d := len(y)
	for r, e := range f {
		u := m.vectors[r*d : (r+1)*d]
		c := (e - 1) * dot(u, y)
		for i, ui := range u {
			y[i] += c * ui
		}
	}
}

func (m *lowRankMass) Sample(p []float64, s *stream) {
	s.Norms(p)
	m.stretch(p, m.invRoot)
	for i, e := range m.invSD {
		p[i] *= e
	}
}

func (m *lowRankMass) Velocity(v, p []float64) {
	y := m.scratch
	for i, e := range m.sd {
		y[i] = e * p[i]
	}
	m.stretch(y, m.values)
	for i, e := range m.sd {
		v[i] = e * y[i]
	}
}
