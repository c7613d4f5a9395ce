package ekf_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The schedules of the golden tests: both change with the update.
func lrOf(step int) float64 { return 0.5 + float64(step) }
func sdOf(step int) float64 { return 0.2 / float64(step+1) }

// spreadOf is the covariance of a state, as a matrix.
func spreadOf(s infer.State, d int) *mat.SymDense {
	if dense, ok := s.(ekf.DenseState); ok {
		return mat.NewSymDense(d, values(dense.Covariance.T()))
	}
	return diagonal(values(s.(ekf.DiagState).Variance.T())...)
}

// diagonal is a diagonal matrix.
func diagonal(x ...float64) *mat.SymDense {
	m := mat.NewSymDense(len(x), nil)
	for i, v := range x {
		m.SetSym(i, i, v)
	}
	return m
}

// fisherOf is the mean of g gᵀ, or its diagonal.
func fisherOf(grads [][]float64, isDiagonal bool) *mat.SymDense {
	d := len(grads[0])
	fisher, squares := mat.NewSymDense(d, nil), make([]float64, d)
	for _, g := range grads {
		fisher.SymRankOne(fisher, 1/float64(len(grads)), mat.NewVecDense(d, g))
	}
	if !isDiagonal {
		return fisher
	}
	for i := range squares {
		squares[i] = fisher.At(i, i)
	}
	return diagonal(squares...)
}

// The update equations of the Fisher filters, written out in plain Go, for several updates with everything that can be
// set.
func TestFisherFiltersFollowTheirEquations(t *testing.T) {
	const d, n = 3, 5
	l := layout(infer.Shapes{"w": {d}})
	factors, sds := []float64{1, 0, 3}, []float64{0.5, 1, 2}
	diag := ekf.Diag{LR: lrOf, TransitionSD: sdOf, TransitionSDs: torch.Of(vector(factors)),
		InitSDs: torch.Of(vector(sds))}
	whole := diag
	whole.PerDatum = logisticEach
	full := spd(7, d)
	for name, c := range map[string]struct {
		transform infer.Transform
		start     *mat.SymDense
		diagonal  bool
	}{
		"Diag, one datum at a time": {build(t, diag, logistic), diagonal(0.25, 1, 4), true},
		"Diag, all at once":         {build(t, whole, nil), diagonal(0.25, 1, 4), true},
		"Dense": {build(t, ekf.Dense{LR: lrOf, TransitionSD: sdOf, TransitionSDs: torch.Of(vector(factors)),
			InitCov: torch.Of(vector(entries(full), d, d))}, logistic), full, false},
	} {
		mu, p := []float64{0.1, -0.2, 0.3}, plus(c.start, 0, c.start)
		s := begin(t, c.transform, params(l, mu, 0))
		for step := range 4 {
			x, y, batch := logisticData(step, n, d)
			grads, mean, value := logisticScores(mu, x, y)
			fisher := fisherOf(grads, c.diagonal)
			norm := 0.0
			for j := range d {
				q := sdOf(step) * factors[j]
				p.SetSym(j, j, p.At(j, j)+q*q)
				norm += mean[j] * mean[j]
			}
			before := inverse(p)
			p = inverse(plus(before, lrOf(step), fisher))
			for j, jump := range times(p, mean) {
				mu[j] += lrOf(step) * jump
			}
			var info infer.Info
			s, info = update(t, c.transform, s, batch)
			after := spreadOf(s, d)
			within(t, mu, values(s.Position().Flat.T()), 1e-13, name+": mean")
			within(t, entries(p), entries(after), 1e-13, name+": covariance")
			within(t, []float64{value, math.Sqrt(norm), lrOf(step)}, []float64{info.LogPosterior[0], info.GradNorm[0], info.LR},
				1e-14, name+": info")
			assert.Nil(t, info.Diverged)
			assert.Equal(t, step+1, s.Steps())

			// Data narrow the Gaussian: P'⁻¹ − P_pred⁻¹ = εF, which is positive semi-definite and here of full rank.
			var eigen mat.EigenSym
			more := plus(inverse(after), -1, before)
			require.True(t, eigen.Factorize(more, false))
			for _, e := range eigen.Values(nil) {
				assert.Greater(t, e, 1e-4, name)
			}
			within(t, entries(plus(identity(d, 0), lrOf(step), fisher)), entries(more), 1e-11,
				name+": what the data add to the precision")
		}
	}
}

// With one parameter the two are the same filter.
func TestDenseIsDiagInOneDimension(t *testing.T) {
	l := layout(infer.Shapes{"w": {1}})
	start := params(l, []float64{0.3}, 0)
	diag := build(t, ekf.Diag{LR: lrOf, TransitionSD: sdOf, InitSD: 1.7}, logistic)
	dense := build(t, ekf.Dense{LR: lrOf, TransitionSD: sdOf, InitSD: 1.7}, logistic)
	a, b := begin(t, diag, start), begin(t, dense, start)
	for step := range 20 {
		_, _, batch := logisticData(step, 6, 1)
		a, _ = update(t, diag, a, batch)
		b, _ = update(t, dense, b, batch)
		within(t, values(a.Position().Flat.T()), values(b.Position().Flat.T()), 1e-12, "mean")
		within(t, values(a.(ekf.DiagState).Variance.T()), values(b.(ekf.DenseState).Covariance.T()), 1e-12, "variance")
	}
}

// A scalar TransitionSD widens each parameter on its own: at ε = 0 the covariance grows by q² I and nothing else.
func TestTransitionIsAScaledIdentity(t *testing.T) {
	const d = 3
	l := layout(infer.Shapes{"w": {d}})
	_, _, batch := logisticData(1, 4, d)
	cov, q := spd(3, d), infer.Constant(0.3)
	for name, c := range map[string]struct {
		m     infer.Method
		start *mat.SymDense
	}{
		"Diag":  {ekf.Diag{LR: infer.Constant(0), TransitionSD: q, InitSD: 2}, identity(d, 4)},
		"Dense": {ekf.Dense{LR: infer.Constant(0), TransitionSD: q, InitCov: torch.Of(vector(entries(cov), d, d))}, cov},
		"GaussNewton": {ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(1), LR: infer.Constant(0), TransitionSD: q,
			InitCov: torch.Of(vector(entries(cov), d, d))}, cov},
	} {
		transform := build(t, c.m, logistic)
		s, _ := update(t, transform, begin(t, transform, params(l, []float64{1, 2, 3}, 0)), batch)
		within(t, entries(plus(c.start, 0.09, identity(d, 1))), entries(spreadOf(s, d)), 1e-14, name)
		assert.Equal(t, []float64{1, 2, 3}, values(s.Position().Flat.T()))
	}
}
