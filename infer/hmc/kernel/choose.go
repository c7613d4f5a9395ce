package kernel

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// form is a way to make a metric of draws and gradients.
type form int

const (
	fisher     form = iota // diagonal, √(variance of the draws / variance of the gradients)
	plain                  // diagonal, the variance of the draws
	correlated             // with correlations: the forms LowRank and Dense
	forms
)

const (
	autoDim    = 1000 // dimensions above which the default metric is diagonal
	gramSize   = 2e6  // multiplications that compare draws with each other
	leastRows  = 8    // draws that judge a metric with correlations
	plainRows  = 50   // the same for plain variances
	leastShare = 5    // dimensions for each draw: with more no form with correlations is tried
	cheaper    = 0.9  // of the cost of the form in use is what another may cost to be taken
)

// form is the metric that the draws make where the user names its kind: with correlations, if they make one.
func (m *mass) form(low lowRankFisher) (form, Metric) {
	if s, ok := m.Correlated(low); ok {
		return correlated, s
	}
	return fisher, m.Diagonal(fisher)
}

// choose is the metric that a chain takes at the end of a window. By default its form is the one that costs least, as
// the window's draws predict it for metrics of the draws before it. A chain that climbs has the first form.
func (r *runner) choose(c *chain, climbs bool) (form, Metric) {
	before := c.Candidates
	c.Candidates = nil
	switch {
	case climbs:
		return fisher, c.Mass.Diagonal(fisher)
	case r.Metric != auto:
		return c.Mass.form(r.low())
	}
	x, g := c.Next.rows(max(leastRows, int(math.Sqrt(gramSize/float64(r.d)))))
	n := len(x) / r.d
	if n < leastRows {
		return fisher, c.Mass.Diagonal(fisher)
	}
	// Other forms are tried where the cost is well above that of white noise, whose √λ is 1 + √(d/n) (Marchenko and Pastur
	// 1967): the more so the more dimensions, in which a try takes longer.
	white := math.Pow(1+math.Sqrt(float64(r.d)/float64(n)), 3)
	excess := 1.25 + float64(r.d)/800
	now := []Metric{c.Mass.Diagonal(fisher), c.Mass.Diagonal(plain), {}}
	if c.Form == fisher && now[fisher].Dim > 0 && predictedCost(now[fisher], x, g) < excess*white {
		return fisher, now[fisher]
	}
	if c.Mass.X.N*leastShare >= r.d {
		if m, ok := c.Mass.Correlated(r.low()); ok {
			now[correlated] = m
		}
	}
	c.Candidates = now
	best := c.Form
	if before != nil {
		best = cheapest(before, c.Form, x, g)
	}
	if now[best].Dim == 0 {
		best = fisher
	}
	return best, now[best]
}

// cheapest is the form whose metric costs least by draws that had no part in it. The form in use stays unless another
// costs clearly less.
func cheapest(candidates []Metric, use form, x, g []float64) form {
	costs := make([]float64, forms)
	for f, m := range candidates {
		costs[f] = math.Inf(1)
		if m.Dim > 0 && (form(f) != plain || len(x)/m.Dim >= plainRows) {
			costs[f] = predictedCost(m, x, g)
		}
	}
	best := use
	for f := range forms {
		if costs[f] < costs[best] && costs[f] < cheaper*costs[use] {
			best = f
		}
	}
	return best
}

// predictedCost is how many gradients independent draws take with a metric M⁻¹, up to a factor, by draws and gradients
// in rows:
//
//	λ(M^½ Σ̂ M^½) √λ(M^-½ Ĝ M^-½)
//
// λ the largest eigenvalue, Σ̂ and Ĝ the covariances of draws and gradients. The narrowest direction of the target sets
// the step, 1/√λ of the second. A trajectory turns back when most directions have, so that a few wide ones are a random
// walk: the variance of the widest one counts, not its square root.
func predictedCost(m Metric, x, g []float64) float64 {
	d := m.Dim
	x, g = centred(x, d), centred(g, d)
	wide, narrow := make([]float64, len(m.Values)), make([]float64, len(m.Values))
	for i, v := range m.Values {
		wide[i], narrow[i] = 1/math.Sqrt(v), math.Sqrt(v)
	}
	low := lowRankMass{vectors: m.Vectors}
	for i := 0; i < len(x); i += d {
		for j, v := range m.Diag {
			sd := math.Sqrt(v)
			x[i+j] /= sd
			g[i+j] *= sd
		}
		low.stretch(x[i:i+d], wide)
		low.stretch(g[i:i+d], narrow)
	}
	return largest(x, d) * math.Sqrt(largest(g, d))
}

// largest is the largest eigenvalue of the covariance of centred rows.
func largest(rows []float64, d int) float64 {
	n := len(rows) / d
	gram := mat.NewSymDense(min(n, d), nil)
	m := mat.NewDense(n, d, rows)
	if n <= d {
		gram.SymOuterK(1/float64(max(1, n-1)), m)
	} else {
		gram.SymOuterK(1/float64(n-1), m.T())
	}
	var eig mat.EigenSym
	if !allFinite(gram.RawSymmetric().Data) || !eig.Factorize(gram, false) {
		return math.Inf(1)
	}
	values := eig.Values(nil)
	return values[len(values)-1]
}
