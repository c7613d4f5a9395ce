package kernel

import "fmt"

// Estimator says what a metric is estimated from.
type Estimator string

// The estimators.
const (
	Variance Estimator = "variance" // of the draws; with the metrics Diagonal and Dense
	Fisher   Estimator = "fisher"   // draws and gradients; with the metrics Diagonal and LowRank
)

// Moments are running means and centred sums of squares (Welford 1962), of vectors of d numbers. Cross makes them sums of
// products.
type Moments struct {
	N    int       // vectors
	Mean []float64 // [d]
	M2   []float64 // [d], or [d, d] with Cross: Σ (x - mean)(x - mean)ᵀ
}

// NewMoments starts empty.
func NewMoments(d int, cross bool) Moments {
	n := d
	if cross {
		n = d * d
	}
	return Moments{Mean: make([]float64, d), M2: make([]float64, n)}
}

// Add takes one vector.
func (m *Moments) Add(x []float64) {
	m.N++
	d, n := len(m.Mean), float64(m.N)
	if len(m.M2) == d {
		for i, e := range x {
			delta := e - m.Mean[i]
			m.Mean[i] += delta / n
			m.M2[i] += delta * (e - m.Mean[i])
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
func (m *Moments) Merge(o Moments) {
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
func (m *Moments) Variance() []float64 {
	if m.N < 2 {
		return nil
	}
	v := make([]float64, len(m.M2))
	for i, e := range m.M2 {
		v[i] = e / float64(m.N-1)
	}
	return v
}

// regularise shrinks a variance or covariance of n draws to 1e-3 I, as Stan does: n/(n+5) V + 1e-3 · 5/(n+5) I.
func regularise(v []float64, n, d int) []float64 {
	w := float64(n) / float64(n+5)
	for i := range v {
		v[i] *= w
		if len(v) == d || i/d == i%d {
			v[i] += 1e-3 * 5 / float64(n+5)
		}
	}
	return v
}

// Mass is the estimate of a metric in one window, as plain numbers. Its zero value estimates nothing; see [NewMass].
type Mass struct {
	Kind  MetricKind
	From  Estimator
	X     Moments   // of the draws
	Grad  Moments   // of the gradients, with Fisher
	Draws []float64 `json:",omitempty"` // [n, d], with LowRank
	Grads []float64 `json:",omitempty"` // [n, d], with LowRank
}

// NewMass is an empty estimate. Unit estimates nothing; an empty estimator is Variance, or Fisher for LowRank.
func NewMass(kind MetricKind, from Estimator, d int) (Mass, error) {
	if from == "" {
		from = Variance
		if kind == LowRank {
			from = Fisher
		}
	}
	m := Mass{Kind: kind, From: from}
	switch {
	case kind == Unit:
	case kind == Diagonal && from == Variance, kind == Dense && from == Variance:
		m.X = NewMoments(d, kind == Dense)
	case kind == Diagonal && from == Fisher, kind == LowRank && from == Fisher:
		m.X, m.Grad = NewMoments(d, false), NewMoments(d, false)
	default:
		return m, &FieldError{"kernel.Mass", "Estimator", fmt.Sprintf("%q for metric %q", from, kind),
			"it must be Variance for Diagonal and Dense, or Fisher for Diagonal and LowRank"}
	}
	return m, nil
}

// Add takes a draw and its gradient, ∇logp/T.
func (m *Mass) Add(x, grad []float64) {
	if m.Kind == Unit {
		return
	}
	m.X.Add(x)
	if m.From == Fisher {
		m.Grad.Add(grad)
	}
	if m.Kind == LowRank {
		m.Draws = append(m.Draws, x...)
		m.Grads = append(m.Grads, grad...)
	}
}

// Merge takes all draws of o, after those it has.
func (m *Mass) Merge(o Mass) {
	if m.Kind == Unit {
		return
	}
	m.X.Merge(o.X)
	if m.From == Fisher {
		m.Grad.Merge(o.Grad)
	}
	m.Draws = append(m.Draws, o.Draws...)
	m.Grads = append(m.Grads, o.Grads...)
}

// Reset empties the estimate and keeps its kind.
func (m *Mass) Reset() {
	for _, s := range []*Moments{&m.X, &m.Grad} {
		s.N = 0
		clear(s.Mean)
		clear(s.M2)
	}
	m.Draws, m.Grads = nil, nil
}

// Estimate is the metric of the draws so far:
//
//	Diagonal, Variance   regularised variance: n/(n+5) var(x) + 1e-3 · 5/(n+5), as in Stan
//	Dense, Variance      the same with the covariance
//	Diagonal, Fisher     see [FisherDiagonal]
//	LowRank, Fisher      see [LowRankFisher]
//
// With fewer than two draws, or an estimate that is not a metric (draws beyond the range of numbers), it is false, and
// whoever asked keeps the metric that he has.
func (m *Mass) Estimate(low LowRankFisher) (MetricState, bool) {
	d := len(m.X.Mean)
	if m.Kind == Unit || m.X.N < 2 {
		return MetricState{}, false
	}
	s := MetricState{Kind: m.Kind, Dim: d}
	switch {
	case m.Kind == Dense:
		s.Dense = regularise(m.X.Variance(), m.X.N, d)
	case m.From == Variance:
		s.Diag = regularise(m.X.Variance(), m.X.N, d)
	case m.Kind == Diagonal:
		s.Diag = FisherDiagonal(m.X, m.Grad)
	default:
		var err error
		if s, err = low.Estimate(FisherDiagonal(m.X, m.Grad), m.Draws, m.Grads); err != nil {
			return MetricState{}, false
		}
	}
	if _, err := s.Metric(); err != nil {
		return MetricState{}, false
	}
	return s, true
}
