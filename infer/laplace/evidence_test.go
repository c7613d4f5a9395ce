package laplace_test

import (
	"fmt"
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

// gain is what the prior precision changes in the evidence: ½ Σ (log λ_i − λ_i δ_i²) − ½ log |C + Λ|.
func gain(c mat.Symmetric, lambda, delta []float64) float64 {
	n := c.SymmetricDim()
	p, sum := plus(c, 0, c), 0.0
	for i := range n {
		p.SetSym(i, i, p.At(i, i)+lambda[i])
		sum += math.Log(lambda[i]) - lambda[i]*delta[i]*delta[i]
	}
	return 0.5*sum - 0.5*logDet(p)
}

// argmax is the maximum of a function of one peak on an interval, by ternary search. A maximum is flat, so only about
// half of the digits of its place can be had from values.
func argmax(low, high float64, f func(float64) float64) float64 {
	for range 200 {
		a, b := low+(high-low)/3, high-(high-low)/3
		if f(a) < f(b) {
			low = a
		} else {
			high = b
		}
	}
	return (low + high) / 2
}

// twoSites is a linear model with two sites, a scalar and a vector of three.
func twoSites() (l *infer.Layout, forward curvature.Forward) {
	return layout(infer.Shapes{"a": {}, "w": {3}}), func(p infer.Params, b infer.Batch) torch.Tensor {
		return linear(p, b).Add(p.Get("a"))
	}
}

// The best precision against a grid of the evidence, for each structure, for one precision and one for each site. The
// grid is of plain evaluations with gonum; no point of it is above what was found, and the points beside it are below.
func TestOptimizePriorPrecisionMaximises(t *testing.T) {
	l, forward := twoSites()
	r := newRegression(1, 15, 3, 0.7, 1)
	theta := []float64{0.4, 2, 0.1, -1}
	at := params(l, theta, 0)
	network, layers, deep := perceptron(tanh)
	_, _, labels := perceptronData(9)
	deepTheta := normals(5, deep.Dim())
	for name, c := range map[string]struct {
		m      infer.Method
		at     infer.Params
		theta  []float64
		batch  infer.Batch
		groups [][]string // sites that share a precision
	}{
		"DiagGGN": {laplace.DiagGGN{Forward: forward, Outer: gaussianOuter(0.7), Damping: 0.2}, at, theta, r.batch,
			[][]string{{"a"}, {"w"}}},
		"DenseGGN": {laplace.DenseGGN{Forward: forward, Outer: gaussianOuter(0.7), Damping: 0.2}, at, theta, r.batch,
			[][]string{{"a"}, {"w"}}},
		"KFAC": {laplace.KFAC{Network: network, Layers: layers, Outer: softmaxOuter, Damping: 0.01},
			params(deep, deepTheta, 0), deepTheta, labels,
			[][]string{{"w1", "b1"}, {"w2"}}},
	} {
		s := pass(t, build(t, c.m, nil), c.at, c.batch, 5)
		p := precision(s)
		d := len(c.theta)
		if len(p) == d {
			p = entries(mat.NewDiagDense(d, p))
		}
		curve := mat.NewSymDense(d, p) // with the damping, without a prior
		mean := make([]float64, d)
		for i := range mean {
			mean[i] = 0.1 * float64(i)
		}
		for _, m := range []*infer.Params{nil, {Layout: c.at.Layout, Flat: torch.Of(vector(mean))}} {
			delta := append([]float64{}, c.theta...)
			if m != nil {
				for i := range delta {
					delta[i] -= mean[i]
				}
			}
			next, found, err := laplace.OptimizePriorPrecision(s, laplace.PriorOptions{Mean: m})
			require.NoError(t, err, name)
			lambda, ok := found.Site(c.groups[0][0])
			require.True(t, ok)
			f := func(log float64) float64 {
				v := make([]float64, d)
				for i := range v {
					v[i] = math.Exp(log)
				}
				return gain(curve, v, delta)
			}
			best := f(math.Log(lambda))
			for log := -12.0; log < 12; log += 0.25 {
				assert.LessOrEqual(t, f(log), best+1e-12, name)
			}
			assert.InDelta(t, argmax(math.Log(lambda)-3, math.Log(lambda)+3, f), math.Log(lambda), 1e-6, name)
			within(t, entries(plus(curve, lambda, identity(d, 1))), dense(next, d), 1e-10,
				name+": the state has the new precision")

			_, each, err := laplace.OptimizePriorPrecision(s, laplace.PriorOptions{PerSite: true, Mean: m})
			require.NoError(t, err, name)
			full := func(change map[string]float64) float64 {
				v := make([]float64, d)
				for _, site := range c.at.Layout.Sites {
					x, ok := each.Site(site.Name)
					require.True(t, ok)
					for j := range site.Size {
						v[site.Offset+j] = x * math.Exp(change[site.Name])
					}
				}
				return gain(curve, v, delta)
			}
			best = full(nil)
			for _, group := range c.groups {
				along := argmax(-3, 3, func(log float64) float64 {
					change := map[string]float64{}
					for _, site := range group {
						change[site] = log
					}
					return full(change)
				})
				assert.InDelta(t, 0, along, 1e-6, "%s: %v", name, group)
			}
			assert.Greater(t, best, f(math.Log(lambda)), name+": one for each site does better than one for all")
			for i := -8.0; i <= 8; i++ {
				for j := -8.0; j <= 8; j++ {
					change := map[string]float64{}
					for _, site := range c.groups[0] {
						change[site] = i / 4
					}
					for _, site := range c.groups[1] {
						change[site] = j / 4
					}
					if i != 0 || j != 0 {
						assert.Less(t, full(change), best, "%s: %v", name, change)
					}
				}
			}
		}
	}
}

// dense is a state's precision as a matrix.
func dense(s infer.State, d int) []float64 {
	p := precision(s)
	if len(p) == d {
		return entries(mat.NewDiagDense(d, p))
	}
	return p
}

// Mode and precision in turn end at the maximum of the exact evidence of linear regression, N(y; 0, XXᵀ/λ + s²I).
func TestOptimizePriorPrecisionFindsTheExactEvidence(t *testing.T) {
	r := newRegression(3, 20, 4, 0.7, 1)
	exact := func(log float64) float64 {
		_, _, _, evidence := r.posterior(math.Exp(log))
		return evidence
	}
	want := argmax(-6, 6, exact)
	require.Less(t, math.Abs(want), 5.0)
	for _, m := range []infer.Method{
		laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(r.s)},
	} {
		transform := build(t, m, nil)
		lambda := 1.0
		for range 60 {
			_, _, mean, _ := r.posterior(lambda)
			s := pass(t, transform, params(r.layout, mean, 0), r.batch, 20)
			_, found, err := laplace.OptimizePriorPrecision(s, laplace.PriorOptions{})
			require.NoError(t, err)
			lambda, _ = found.Site("w")
		}
		assert.InDelta(t, want, math.Log(lambda), 1e-6, fmt.Sprintf("%T", m))
	}
}

func TestOptimizePriorPrecisionErrors(t *testing.T) {
	l, forward := twoSites()
	r := newRegression(1, 15, 3, 0.7, 1)
	transform := build(t, laplace.DiagGGN{Forward: forward, Outer: gaussianOuter(0.7)}, nil)
	find := func(s infer.State, o laplace.PriorOptions) error {
		_, _, err := laplace.OptimizePriorPrecision(s, o)
		return err
	}
	at := params(l, []float64{0, 1, 2, 3}, 0)
	s := pass(t, transform, at, r.batch, 15)
	assert.EqualError(t, find(s, laplace.PriorOptions{PerSite: true}),
		`laplace.OptimizePriorPrecision: all of ["a"] is at the mean of the prior: the evidence grows with `+
			`the precision without end`)
	assert.EqualError(t, find(begin(t, transform, at), laplace.PriorOptions{}),
		`laplace.OptimizePriorPrecision: the data say nothing about ["a" "w"], their curvature is 0: `+
			`there is no best precision`)
	assert.EqualError(t, find(s, laplace.PriorOptions{Mean: &infer.Params{Layout: r.layout,
		Flat: torch.Of(vector([]float64{1, 2, 3}))}}),
		`laplace.OptimizePriorPrecision: Mean has layout w[3], expected a[] w[3]: layout does not fit`)
	assert.ErrorContains(t, find(nil, laplace.PriorOptions{}), "laplace.OptimizePriorPrecision: the state is a "+
		"<nil>, expected one of this package")
	pair := pass(t, transform, params(l, make([]float64, 8), 2), r.batch, 15)
	assert.ErrorContains(t, find(pair, laplace.PriorOptions{}), "the state has 2 chains, each a Gaussian of its own: "+
		"pick one with Posterior.Chain")

	// A Hessian at a point that is no maximum.
	saddle := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		w := p.Get("w").T()
		return torch.Of(w.MustSquare(false).MustMul(vector([]float64{-1, 1, -1}), false).MustSum(w.DType(), false)), nil
	}
	s = pass(t, buildOn(t, laplace.DenseHessian{}, infer.Mean(saddle, 15)), params(r.layout, []float64{1, 2, 3}, 0),
		r.batch, 15)
	err := find(s, laplace.PriorOptions{})
	assert.ErrorIs(t, err, curvature.ErrIndefinite)
	assert.ErrorContains(t, err, `the curvature of ["w"] has the eigenvalue -30`)
}

func TestLogEvidenceErrors(t *testing.T) {
	r := newRegression(1, 15, 3, 0.7, 1)
	s := pass(t, build(t, laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(0.7)}, nil),
		params(r.layout, r.mean, 0), r.batch, 15)
	_, err := s.(laplace.Posterior).LogEvidence(math.Inf(-1))
	assert.EqualError(t, err, "laplace.LogEvidence: the log joint density is -Inf: not finite")
	_, _, err = laplace.OptimizePriorPrecision(nil, laplace.PriorOptions{})
	assert.ErrorContains(t, err, "laplace.OptimizePriorPrecision: the state is a <nil>, expected one of this package")
}
