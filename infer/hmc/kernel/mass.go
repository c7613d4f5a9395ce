package kernel

import "math"

// moments are running means and centred sums of squares (Welford 1962), of vectors of d numbers. Cross makes them sums
// of products.
type moments struct {
	N    int       // vectors
	Mean []float64 // [d]
	M2   []float64 // [d], or [d, d] with Cross: Σ (x - mean)(x - mean)ᵀ
}

// newMoments starts empty.
func newMoments(d int, cross bool) moments {
	n := d
	if cross {
		n = d * d
	}
	return moments{Mean: make([]float64, d), M2: make([]float64, n)}
}

// Add takes one vector.
func (m *moments) Add(x []float64) {
	m.N++
	d, n := len(m.Mean), float64(m.N)
	if len(m.M2) == d {
		share, mean, m2 := 1/n, m.Mean[:len(x)], m.M2[:len(x)]
		for i, e := range x {
			delta := e - mean[i]
			at := mean[i] + delta*share
			mean[i] = at
			m2[i] += delta * (e - at)
		}
		return
	}
	// With δ = x - old mean the sum of products grows by δδᵀ(n-1)/n, which is symmetric to the last bit.
	f := (n - 1) / n
	for i, e := range x {
		di := f * (e - m.Mean[i])
		row := m.M2[i*d : (i+1)*d]
		for j := range i + 1 {
			row[j] += di * (x[j] - m.Mean[j])
		}
	}
	for i := range d {
		for j := range i {
			m.M2[j*d+i] = m.M2[i*d+j]
		}
		m.Mean[i] += (x[i] - m.Mean[i]) / n
	}
}

// Merge takes all vectors of o (Chan, Golub and LeVeque 1983).
func (m *moments) Merge(o moments) {
	if o.N == 0 {
		return
	}
	d := len(m.Mean)
	n := float64(m.N + o.N)
	f := float64(m.N) * float64(o.N) / n
	for k := range m.M2 {
		i, j := k, k
		if len(m.M2) != d {
			i, j = k/d, k%d
		}
		m.M2[k] += o.M2[k] + f*(o.Mean[i]-m.Mean[i])*(o.Mean[j]-m.Mean[j])
	}
	for i := range m.Mean {
		m.Mean[i] += (o.Mean[i] - m.Mean[i]) * float64(o.N) / n
	}
	m.N += o.N
}

// Variance is the sample variance (or covariance, with Cross), with n - 1; nil for fewer than two vectors.
func (m *moments) Variance() []float64 {
	if m.N < 2 {
		return nil
	}
	v := make([]float64, len(m.M2))
	for i, e := range m.M2 {
		v[i] = e / float64(m.N-1)
	}
	return v
}

// mass are the draws of which a metric is made, with their gradients, as plain numbers. Its zero value has none.
type mass struct {
	Kind  MetricKind
	X     moments   // of the draws; with their products for Dense
	Grad  moments   // of the gradients
	Draws []float64 `json:",omitempty"` // [n, d], for LowRank
	Grads []float64 `json:",omitempty"` // [n, d], for LowRank
}

// newMass is empty.
func newMass(kind MetricKind, d int) mass {
	return mass{Kind: kind, X: newMoments(d, kind == Dense), Grad: newMoments(d, false)}
}

// like reports whether two are of one kind and dimension.
func (m *mass) like(o mass) bool {
	return m.Kind == o.Kind && len(m.X.M2) == len(o.X.M2) && len(m.X.Mean) == len(o.X.Mean) &&
		len(m.Grad.M2) == len(o.Grad.M2)
}

// Add takes a draw and its gradient, ∇logp/T.
func (m *mass) Add(x, grad []float64) {
	m.X.Add(x)
	m.Grad.Add(grad)
	if m.Kind == LowRank || m.Kind == auto {
		m.Draws = append(m.Draws, x...)
		m.Grads = append(m.Grads, grad...)
	}
}

// Merge takes all draws of o, after those it has.
func (m *mass) Merge(o mass) {
	m.X.Merge(o.X)
	m.Grad.Merge(o.Grad)
	m.Draws = append(m.Draws, o.Draws...)
	m.Grads = append(m.Grads, o.Grads...)
}

// Reset empties it and keeps its kind.
func (m *mass) Reset() {
	for _, s := range []*moments{&m.X, &m.Grad} {
		s.N = 0
		clear(s.Mean)
		clear(s.M2)
	}
	m.Draws, m.Grads = m.Draws[:0], m.Grads[:0]
}

// Diagonal is the diagonal metric of a form; none of fewer than three draws.
func (m *mass) Diagonal(f form) Metric {
	if m.X.N < leastDraws {
		return Metric{}
	}
	diag := make([]float64, len(m.X.Mean))
	m.variances(diag, f)
	return diagonalMetric(diag)
}

// variances sets v to the diagonal of M⁻¹: [fisherDiagonal], or as plain the variance of the draws, which counts five
// draws of the former beside its own.
func (m *mass) variances(v []float64, f form) {
	fisherDiagonal(v, m.X, m.Grad)
	if f != plain {
		return
	}
	n := float64(m.X.N)
	for i, s := range m.X.M2 {
		v[i] = (s/(n-1)*n + 5*v[i]) / (n + 5)
	}
}

// Correlated is the metric with correlations: for LowRank the one of [lowRankFisher], for Dense the covariance V shrunk
// to the diagonal one, n/(n+5) V + 5/(n+5) D. It is false where the draws do not make one, or have no correlations.
//
// A covariance of n draws has eigenvalues from (1 - √(d/n))² to (1 + √(d/n))² times the true ones (Marchenko and Pastur
// 1967), and zeros for n <= d: trajectories would then be as deep as is allowed. From n = 2d on they are within a
// factor of 12.
func (m *mass) Correlated(low lowRankFisher) (Metric, bool) {
	d, n := len(m.X.Mean), m.X.N
	s := m.Diagonal(fisher)
	switch {
	case n < leastDraws:
		return Metric{}, false
	case m.Kind == Dense && n >= 2*d:
		s = denseMetric(d, m.covariance(s.Diag))
	case m.Kind == LowRank || m.Kind == auto:
		draws, grads := m.rows(lowRows(d))
		var err error
		if s, err = low.Estimate(s.Diag, draws, grads); err != nil {
			return Metric{}, false
		}
	default:
		return Metric{}, false
	}
	_, err := s.build()
	return s, err == nil && (m.Kind == Dense || len(s.Values) > 0)
}

// covariance is the regularised one.
func (m *mass) covariance(diag []float64) []float64 {
	d, n := len(diag), float64(m.X.N)
	v := m.X.Variance()
	for i := range v {
		v[i] *= n / (n + 5)
	}
	for i, e := range diag {
		v[i*d+i] += e * 5 / (n + 5)
	}
	return v
}

// lowRows is of how many draws a low-rank metric is made: in many dimensions its cost counts, and the directions that
// matter most are in few draws.
func lowRows(d int) int {
	if d <= 500 {
		return math.MaxInt
	}
	return 250
}

// rows are at most so many of the draws with their gradients, evenly spaced.
func (m *mass) rows(most int) (draws, grads []float64) {
	d := len(m.X.Mean)
	n := len(m.Draws) / d
	if n <= most {
		return m.Draws, m.Grads
	}
	for i := range most {
		at := (2*i + 1) * n / (2 * most)
		draws = append(draws, m.Draws[at*d:(at+1)*d]...)
		grads = append(grads, m.Grads[at*d:(at+1)*d]...)
	}
	return draws, grads
}
