package ekf_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
)

// The schedules of the golden tests: both change with the update.
func lrOf(step int64) float64 { return 0.5 + float64(step) }
func sdOf(step int64) float64 { return 0.2 / float64(step+1) }

// The update equations, written out in plain Go, for several updates with everything that can be set.
func TestDiagFollowsItsEquations(t *testing.T) {
	const d, n = 3, 5
	l := layout(infer.Shapes{"w": {d}})
	factors, sds := []float64{1, 0, 3}, []float64{0.5, 1, 2}
	mu := []float64{0.1, -0.2, 0.3}
	v := []float64{0.25, 1, 4}
	each := ekf.Diag{LR: lrOf, TransitionSD: sdOf, TransitionSDs: vector(factors), InitSDs: vector(sds)}
	whole := each
	whole.PerDatum = logisticEach
	for name, transform := range map[string]infer.Transform{"one datum at a time": build(t, each, logistic),
		"all at once": build(t, whole, nil)} {
		s := begin(t, transform, params(l, []float64{0.1, -0.2, 0.3}, 0))
		mu, v := append([]float64(nil), mu...), append([]float64(nil), v...)
		for step := range int64(4) {
			x, y, batch := logisticData(step, n, d)
			grads, mean, value := logisticScores(mu, x, y)
			norm := 0.0
			for j := range mu {
				f := 0.0
				for _, g := range grads {
					f += g[j] * g[j] / n
				}
				q := sdOf(step) * factors[j]
				v[j] = 1 / (1/(v[j]+q*q) + lrOf(step)*f)
				mu[j] += lrOf(step) * v[j] * mean[j]
				norm += mean[j] * mean[j]
			}
			var info infer.Info
			s, info = update(t, transform, s, batch)
			state := s.(ekf.DiagState)
			within(t, mu, values(state.Position().Flat), 1e-14, name+": mean")
			within(t, v, values(state.Variance), 1e-14, name+": variance")
			within(t, []float64{value, math.Sqrt(norm), lrOf(step)}, []float64{info.LogPosterior[0], info.GradNorm[0], info.LR},
				1e-14, name+": info")
			assert.Nil(t, info.Diverged)
			assert.Equal(t, step+1, s.Steps())
		}
	}
}

func TestDenseFollowsItsEquations(t *testing.T) {
	const d, n = 3, 5
	l := layout(infer.Shapes{"w": {d}})
	factors := []float64{1, 0, 3}
	mu, p := []float64{0.1, -0.2, 0.3}, spd(7, d)
	transform := build(t, ekf.Dense{LR: lrOf, TransitionSD: sdOf, TransitionSDs: vector(factors),
		InitCov: vector(entries(p), d, d)}, logistic)
	s := begin(t, transform, params(l, mu, 0))
	for step := range int64(4) {
		x, y, batch := logisticData(step, n, d)
		grads, mean, value := logisticScores(mu, x, y)
		fisher := mat.NewSymDense(d, nil)
		for _, g := range grads {
			fisher.SymRankOne(fisher, 1.0/n, mat.NewVecDense(d, g))
		}
		for j := range d {
			q := sdOf(step) * factors[j]
			p.SetSym(j, j, p.At(j, j)+q*q)
		}
		before := inverse(p)
		p = inverse(plus(before, lrOf(step), fisher))
		for j, jump := range times(p, mean) {
			mu[j] += lrOf(step) * jump
		}
		var info infer.Info
		s, info = update(t, transform, s, batch)
		state := s.(ekf.DenseState)
		within(t, mu, values(state.Position().Flat), 1e-13, "mean")
		within(t, entries(p), values(state.Covariance), 1e-13, "covariance")
		within(t, []float64{value, lrOf(step)}, []float64{info.LogPosterior[0], info.LR}, 1e-14, "info")

		// Data narrow the Gaussian: P'⁻¹ − P_pred⁻¹ = εF, which is positive semi-definite and here of full rank.
		var eigen mat.EigenSym
		after := inverse(mat.NewSymDense(d, values(state.Covariance)))
		require.True(t, eigen.Factorize(plus(after, -1, before), false))
		for _, e := range eigen.Values(nil) {
			assert.Greater(t, e, 1e-4)
		}
		within(t, entries(plus(identity(d, 0), lrOf(step), fisher)), entries(plus(after, -1, before)), 1e-11,
			"what the data add to the precision")
	}
}

// With one parameter the two are the same filter.
func TestDenseIsDiagInOneDimension(t *testing.T) {
	l := layout(infer.Shapes{"w": {1}})
	start := params(l, []float64{0.3}, 0)
	diag := build(t, ekf.Diag{LR: lrOf, TransitionSD: sdOf, InitSD: 1.7}, logistic)
	dense := build(t, ekf.Dense{LR: lrOf, TransitionSD: sdOf, InitSD: 1.7}, logistic)
	a, b := begin(t, diag, start), begin(t, dense, start)
	for step := range int64(20) {
		_, _, batch := logisticData(step, 6, 1)
		a, _ = update(t, diag, a, batch)
		b, _ = update(t, dense, b, batch)
		within(t, values(a.Position().Flat), values(b.Position().Flat), 1e-12, "mean")
		within(t, values(a.(ekf.DiagState).Variance), values(b.(ekf.DenseState).Covariance), 1e-12, "variance")
	}
}

// A scalar TransitionSD widens each parameter on its own: at ε = 0 the covariance grows by q² I and nothing else.
func TestTransitionIsAScaledIdentity(t *testing.T) {
	const d = 3
	l := layout(infer.Shapes{"w": {d}})
	_, _, batch := logisticData(1, 4, d)
	cov := spd(3, d)
	want := entries(plus(cov, 0.09, identity(d, 1)))
	for _, m := range []infer.Method{
		ekf.Dense{LR: infer.Constant(0), TransitionSD: infer.Constant(0.3), InitCov: vector(entries(cov), d, d)},
		ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(1), LR: infer.Constant(0), TransitionSD: infer.Constant(0.3),
			InitCov: vector(entries(cov), d, d)},
	} {
		transform := build(t, m, logistic)
		s, _ := update(t, transform, begin(t, transform, params(l, []float64{1, 2, 3}, 0)), batch)
		within(t, want, values(s.(ekf.DenseState).Covariance), 1e-14, fmt.Sprintf("%T", m))
		assert.Equal(t, []float64{1, 2, 3}, values(s.Position().Flat))
	}
	transform := build(t, ekf.Diag{LR: infer.Constant(0), TransitionSD: infer.Constant(0.3), InitSD: 2}, logistic)
	s, _ := update(t, transform, begin(t, transform, params(l, []float64{1, 2, 3}, 0)), batch)
	within(t, []float64{4.09, 4.09, 4.09}, values(s.(ekf.DiagState).Variance), 1e-14, "variance")
}
