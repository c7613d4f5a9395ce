package kernel

import (
	"fmt"
)

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

// mass is the estimate of a metric in one window, as plain numbers. Its zero value estimates nothing; see [newMass].
type mass struct {
	Kind   MetricKind
	Fisher bool      // of draws and gradients
	X      moments   // of the draws
	Grad   moments   // of the gradients, with Fisher
	Draws  []float64 `json:",omitempty"` // [n, d], with LowRank
	Grads  []float64 `json:",omitempty"` // [n, d], with LowRank
}

// newMass is an empty estimate. Unit estimates nothing; LowRank is always of draws and gradients.
func newMass(kind MetricKind, fisher bool, d int) (mass, error) {
	m := mass{Kind: kind, Fisher: fisher || kind == LowRank}
	switch {
	case kind == Unit:
	case kind == Dense && fisher:
		return m, &FieldError{"kernel.Options", "Fisher", true, `the metrics "diagonal" and "low-rank" have it`}
	case kind == Diagonal || kind == Dense:
		m.X = newMoments(d, kind == Dense)
	case kind != LowRank:
		return m, &FieldError{"kernel.Options", "Metric", fmt.Sprintf("%q", kind),
			"it must be Unit, Diagonal, Dense or LowRank"}
	}
	if m.Fisher && kind != Unit {
		m.X, m.Grad = newMoments(d, false), newMoments(d, false)
	}
	return m, nil
}

// like reports whether two estimates are of one kind and dimension.
func (m *mass) like(o mass) bool {
	return m.Kind == o.Kind && len(m.X.M2) == len(o.X.M2) && len(m.X.Mean) == len(o.X.Mean) &&
		len(m.Grad.M2) == len(o.Grad.M2)
}

// Add takes a draw and its gradient, ∇logp/T.
func (m *mass) Add(x, grad []float64) {
	if m.Kind == Unit {
		return
	}
	m.X.Add(x)
	if m.Fisher {
		m.Grad.Add(grad)
	}
	if m.Kind == LowRank {
		m.Draws = append(m.Draws, x...)
		m.Grads = append(m.Grads, grad...)
	}
}

// Merge takes all draws of o, after those it has.
func (m *mass) Merge(o mass) {
	if m.Kind == Unit {
		return
	}
	m.X.Merge(o.X)
	if m.Fisher {
		m.Grad.Merge(o.Grad)
	}
	m.Draws = append(m.Draws, o.Draws...)
	m.Grads = append(m.Grads, o.Grads...)
}

// Reset empties the estimate and keeps its kind.
func (m *mass) Reset() {
	for _, s := range []*moments{&m.X, &m.Grad} {
		s.N = 0
		clear(s.Mean)
		clear(s.M2)
	}
	m.Draws, m.Grads = m.Draws[:0], m.Grads[:0]
}

// Estimate is the metric of the draws so far:
//
//	Diagonal, Variance   regularised variance: n/(n+5) var(x) + 1e-3 · 5/(n+5), as in Stan
//	Dense, Variance      the same with the covariance; its diagonal, of fewer than 2d draws
//	Diagonal, Fisher     see [fisherDiagonal]
//	LowRank, Fisher      see [lowRankFisher]
//
// A covariance of n draws has eigenvalues from (1 - √(d/n))² to (1 + √(d/n))² times the true ones (Marchenko and Pastur
// 1967), and zeros for n <= d: a window's trajectories would then be as deep as is allowed. From n = 2d on they are
// within a factor of 12.
//
// With fewer than two draws, or an estimate that is not a metric (draws beyond the range of numbers), it is false, and
// whoever asked keeps the metric that he has.
func (m *mass) Estimate(low lowRankFisher) (Metric, bool) {
	d := len(m.X.Mean)
	if m.Kind == Unit || m.X.N < 2 {
		return Metric{}, false
	}
	s := Metric{Kind: m.Kind, Dim: d}
	switch {
	case m.Kind == Dense:
		s.Dense = regularise(m.X.Variance(), m.X.N, d)
		if m.X.N < 2*d {
			for i := range s.Dense {
				if i/d != i%d {
					s.Dense[i] = 0
				}
			}
		}
	case !m.Fisher:
		s.Diag = regularise(m.X.Variance(), m.X.N, d)
	case m.Kind == Diagonal:
		s.Diag = make([]float64, d)
		fisherDiagonal(s.Diag, m.X, m.Grad)
	default:
		var err error
		diag := make([]float64, d)
		fisherDiagonal(diag, m.X, m.Grad)
		if s, err = low.Estimate(diag, m.Draws, m.Grads); err != nil {
			return Metric{}, false
		}
	}
	if _, err := s.build(); err != nil {
		return Metric{}, false
	}
	return s, true
}

// pool joins the estimates of several chains, so that one window's metric is made of all their draws. Chains add
// theirs in the order of their numbers, whatever the order in which their goroutines came: sums in another order would
// differ in the last bits. [Run] does so while all chains wait at a window's end; see Options.Pooled.
type pool struct{ mass mass }

// Add takes a chain's draws, which are copied.
func (p *pool) Add(m mass) {
	if p.mass.Kind == "" {
		p.mass = mass{Kind: m.Kind, Fisher: m.Fisher}
		if m.Kind != Unit {
			d := len(m.X.Mean)
			p.mass.X = newMoments(d, len(m.X.M2) != d)
			if m.Fisher {
				p.mass.Grad = newMoments(d, false)
			}
		}
	}
	p.mass.Merge(m)
}

// Estimate is the metric of all draws, as [mass.Estimate].
func (p *pool) Estimate(low lowRankFisher) (Metric, bool) { return p.mass.Estimate(low) }
