package laplace_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/torch"
)

// structures are a method of each structure for the perceptron, with matrix-shaped sites.
func structures(temperature infer.Schedule) (map[string]infer.Method, *infer.Layout, infer.Batch) {
	network, layers, l := perceptron(tanh)
	_, _, batch := perceptronData(9)
	forward, prior := network.Forward(layers...), laplace.Isotropic(0.7)
	return map[string]infer.Method{
		"DiagGGN": laplace.DiagGGN{Forward: forward, Outer: softmaxOuter, PriorPrecision: prior,
			Temperature: temperature},
		"DenseGGN": laplace.DenseGGN{Forward: forward, Outer: softmaxOuter, PriorPrecision: prior,
			Temperature: temperature},
		"KFAC": laplace.KFAC{Network: network, Layers: layers, Outer: softmaxOuter, PriorPrecision: prior,
			Temperature: temperature},
	}, l, batch
}

// Draws have mean θ̂ and covariance T P⁻¹, within four standard errors: of a mean √(Σ_ii/n), of a covariance √((Σ_ii
// Σ_jj + Σ_ij²)/n).
func TestSampleHasTheStatesLaw(t *testing.T) {
	const n, temperature = 20000, 0.5
	methods, l, batch := structures(infer.Constant(temperature))
	d := l.Dim()
	mu := normals(5, d)
	for name, m := range methods {
		transform := build(t, m, nil)
		s := pass(t, transform, params(l, mu, 0), batch, 4)
		want := inverse(mat.NewSymDense(d, dense(s, d)))
		streams := torch.NewStreams(3, 1)
		x := values(must(transform.(infer.Sampler).Sample(s, n, &streams)).Flat.T())
		mean := make([]float64, d)
		cov := mat.NewSymDense(d, nil)
		for r := range n {
			delta := make([]float64, d)
			for i := range d {
				delta[i] = x[r*d+i] - mu[i]
				mean[i] += delta[i] / n
			}
			cov.SymRankOne(cov, 1.0/n, mat.NewVecDense(d, delta))
		}
		for i := range d {
			vi := temperature * want.At(i, i)
			assert.InDelta(t, 0, mean[i], 4*math.Sqrt(vi/n), name)
			for j := range d {
				vj, vij := temperature*want.At(j, j), temperature*want.At(i, j)
				assert.InDelta(t, vij, cov.At(i, j), 4*math.Sqrt((vi*vj+vij*vij)/n), "%s: covariance of %s and %s",
					name, l.At(i), l.At(j))
			}
		}
	}
}

// Any number of draws works with sites of any shape; the same streams give the same draws, and at T = 0 all are θ̂.
func TestSampleShapes(t *testing.T) {
	methods, l, batch := structures(nil)
	cold, _, _ := structures(infer.Constant(0))
	for name, m := range methods {
		transform := build(t, m, nil)
		for _, k := range []int{0, 1, 3} {
			at := params(l, normals(5, l.Dim()*max(k, 1)), k)
			s := pass(t, transform, at, batch, 9)
			for _, n := range []int{1, 3, 10} {
				streams := torch.NewStreams(9, 1)
				first, err := transform.(infer.Sampler).Sample(s, n, &streams)
				require.NoError(t, err)
				assert.Equal(t, []int{n, 15}, first.Flat.Shape(), name)
				assert.Equal(t, []int{n, 3, 2}, first.Get("w1").Shape(), name)
				again := torch.NewStreams(9, 1)
				assert.Equal(t, values(first.Flat.T()), values(must(transform.(infer.Sampler).Sample(s, n, &again)).Flat.T()))
				assert.NotEqual(t, values(first.Flat.T()),
					values(must(transform.(infer.Sampler).Sample(s, n, &again)).Flat.T()))
				each := torch.NewStreams(9, n)
				assert.Equal(t, n, must(transform.(infer.Sampler).Sample(s, n, &each)).Chains())
			}
		}
		transform = build(t, cold[name], nil)
		s := pass(t, transform, params(l, normals(5, l.Dim()), 0), batch, 9)
		streams := torch.NewStreams(9, 1)
		assert.Equal(t, normals(5, l.Dim()), values(must(transform.(infer.Sampler).Sample(s, 1, &streams)).Flat.T()), name)
	}
}

// With K chains draw i is of chain i mod K: with points far apart the draws tell which one they are of.
func TestSampleTakesChainsInTurn(t *testing.T) {
	methods, l, batch := structures(infer.Constant(1e-8))
	flat := make([]float64, 45)
	for i := range flat {
		flat[i] = float64(1 + i/15)
	}
	for name, m := range methods {
		transform := build(t, m, nil)
		s := pass(t, transform, params(l, flat, 3), batch, 9)
		streams := torch.NewStreams(9, 1)
		for i, v := range values(must(transform.(infer.Sampler).Sample(s, 8, &streams)).Flat.T()) {
			assert.InDelta(t, float64(i/15%3+1), v, 0.01, name)
		}
	}
}

// Where the curvature is diagonal the two structures are the same posterior.
func TestDiagIsDenseWhereCurvatureIsDiagonal(t *testing.T) {
	// Inputs with one non-zero number each make XᵀX diagonal.
	x := make([]float64, 6*3)
	for i := range 6 {
		x[i*3+i%3] = float64(i + 1)
	}
	batch := infer.Batch{"x": torch.Of(vector(x, 6, 3)), "y": torch.Of(vector(normals(1, 6)))}
	at := params(layout(infer.Shapes{"w": {3}}), []float64{1, 2, 3}, 0)
	prior := laplace.Isotropic(0.3)
	a := build(t, laplace.DiagGGN{Forward: linear, Outer: gaussianOuter(0.7), PriorPrecision: prior}, nil)
	b := build(t, laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(0.7), PriorPrecision: prior}, nil)
	sa, sb := pass(t, a, at, batch, 4), pass(t, b, at, batch, 4)
	within(t, dense(sa, 3), dense(sb, 3), 1e-12, "precision")
	assert.InDelta(t, must(sa.(laplace.Posterior).LogEvidence(-3)), must(sb.(laplace.Posterior).LogEvidence(-3)), 1e-12)
	one, two := torch.NewStreams(4, 1), torch.NewStreams(4, 1)
	within(t, values(must(a.(infer.Sampler).Sample(sa, 5, &one)).Flat.T()),
		values(must(b.(infer.Sampler).Sample(sb, 5, &two)).Flat.T()), 1e-12, "draws")
}
