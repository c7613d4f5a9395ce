package laplace_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
)

// checkLogPrior compares LogPrior with the log density of N(mean, (λP)⁻¹) at some points, alone and under vmap.
func checkLogPrior(t testing.TB, s infer.State, p *mat.SymDense, mean []float64) {
	t.Helper()
	d := len(mean)
	for _, weight := range []float64{1, 2.5} {
		prior, err := s.(laplace.Posterior).LogPrior(weight)
		require.NoError(t, err)
		var points, want []float64
		for k := range 3 {
			x := normals(50+k, d)
			delta := make([]float64, d)
			for i := range x {
				delta[i] = x[i] - mean[i]
			}
			q := mat.Dot(mat.NewVecDense(d, delta), mat.NewVecDense(d, times(p, delta)))
			want = append(want, 0.5*logDet(p)+0.5*float64(d)*math.Log(weight/(2*math.Pi))-0.5*weight*q)
			points = append(points, x...)
			at := params(s.Position().Layout, x, 0)
			assert.InDelta(t, want[k], prior(at).Item(), 1e-10)
		}
		gradient := must(infer.NewGradient(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor,
			infer.Aux) {
			return prior(p), nil
		}, 1)))
		e := must(gradient.ValueAndGrad(params(s.Position().Layout, points, 3), nil, 0))
		within(t, want, e.Values, 1e-10, "under vmap")
	}
}

// Two episodes with the first posterior as the prior of the second are one pass over all data: mean, precision, and the
// evidence, whose two parts log p(D₁) and log p(D₂|D₁) add up. The mode of the second episode is a Newton step from
// anywhere, as the density is quadratic.
func TestEpisodesAreOnePosterior(t *testing.T) {
	const lambda = 0.8
	r := newRegression(1, 23, 3, 0.7, lambda)
	each := curvature.Likelihood(linear, gaussianOuter(r.s))
	sum := func(log func(p infer.Params) torch.Tensor) infer.LogPosterior {
		return func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			return each(p, b).Sum().Add(log(p)), nil
		}
	}
	prior, precisionOf := normalPrior(lambda), laplace.Isotropic(lambda)
	evidence := 0.0
	var s infer.State
	for _, part := range [][2]int{{0, 10}, {10, 23}} {
		batch := infer.Batch{}
		for name, x := range r.batch {
			batch[name] = torch.Of(x.T().MustNarrow(0, int64(part[0]), int64(part[1]-part[0]), false))
		}
		joint := sum(prior)
		start := params(r.layout, []float64{3, -1, 2}, 0)
		g := must(must(infer.NewGradient(infer.Sum(joint, 1))).ValueAndGrad(start, batch, 0))
		h := values(must(curvature.Hessian(joint, start, batch, curvature.Options{})).T())
		mode := []float64{3, -1, 2}
		for i, jump := range times(inverse(mat.NewSymDense(3, h)), values(g.Grad.T())) {
			mode[i] += jump
		}
		at := params(r.layout, mode, 0)
		s = pass(t, build(t, laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(r.s), PriorPrecision: precisionOf},
			nil), at, batch, 4)
		value := values(first(joint(at, batch)).T())[0]
		part, err := s.(laplace.Posterior).LogEvidence(value)
		require.NoError(t, err)
		evidence += part
		prior, err = s.(laplace.Posterior).LogPrior(1)
		require.NoError(t, err)
		precisionOf, err = s.(laplace.Posterior).AsPrior()
		require.NoError(t, err)
	}
	within(t, r.mean, values(s.Position().Flat.T()), 1e-10, "mean")
	within(t, entries(r.precision), precision(s), 1e-10, "precision")
	assert.InDelta(t, r.evidence, evidence, 1e-10, "evidence")
}

// A state hands on its precision without the damping, for the structures and with chains.
func TestPriorsFromStates(t *testing.T) {
	r := newRegression(1, 10, 3, 0.7, 0.8)
	at := params(r.layout, r.mean, 0)
	one := laplace.Isotropic(0.8)
	d := mat.NewSymDense(3, nil)
	for i, v := range diagonal(r.precision) {
		d.SetSym(i, i, v)
	}
	pair := params(r.layout, append(append([]float64{}, r.mean...), 1, 2, 3), 2)
	for name, c := range map[string]struct {
		m    infer.Method
		want *mat.SymDense
	}{
		"dense": {laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(r.s), PriorPrecision: one, Damping: 7}, r.precision},
		"diagonal into dense": {laplace.DiagGGN{Forward: linear, Outer: gaussianOuter(r.s), PriorPrecision: one,
			Damping: 7}, d},
	} {
		transform := build(t, c.m, nil)
		s := pass(t, transform, at, r.batch, 10)
		checkLogPrior(t, s, c.want, r.mean)
		handed := func(s infer.State) laplace.Precision { return must(s.(laplace.Posterior).AsPrior()) }
		given := func(p laplace.Precision) infer.Transform {
			return build(t, laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(1), PriorPrecision: p}, nil)
		}
		within(t, entries(c.want), precision(begin(t, given(handed(s)), at)), 1e-12, name)

		next := begin(t, given(handed(pass(t, transform, pair, r.batch, 10))), pair)
		assert.Len(t, precision(next), 2*9)
		within(t, precision(must(next.(laplace.Posterior).Chain(0))), precision(next)[:9], 0, "chain 0")
	}
	_, err := build(t, laplace.DiagGGN{Forward: linear, Outer: gaussianOuter(1),
		PriorPrecision: laplace.Matrix(torch.Of(vector(entries(r.precision), 3, 3)))}, nil).Init(at)
	assert.EqualError(t, err,
		"laplace.DiagGGN: PriorPrecision is a matrix: matrices are for the dense methods; use PerElement")
}
