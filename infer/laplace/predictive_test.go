package laplace_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The predictive of linear regression is known: mean Xμ, covariance x Σ xᵀ + s² for each datum, the first part times T.
func TestLinearizedRegressionIsExact(t *testing.T) {
	const lambda, temperature, m = 0.8, 0.3, 5
	r := newRegression(1, 23, 4, 0.7, lambda)
	x := normals(9, m*r.d)
	test := infer.Batch{"x": torch.Of(vector(x, m, r.d)), "y": torch.Of(vector(make([]float64, m)))}
	diag := identity(r.d, 0)
	for i, v := range diagonal(r.precision) {
		diag.SetSym(i, i, 1/v)
	}
	for name, c := range map[string]struct {
		m   infer.Method
		cov *mat.SymDense
	}{
		"DenseGGN": {laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(r.s),
			PriorPrecision: laplace.Isotropic(lambda),
			Temperature:    infer.Constant(temperature)}, inverse(r.precision)},
		"DiagGGN": {laplace.DiagGGN{Forward: linear, Outer: gaussianOuter(r.s),
			PriorPrecision: laplace.Isotropic(lambda),
			Temperature:    infer.Constant(temperature)}, diag},
	} {
		s := pass(t, build(t, c.m, nil), params(r.layout, r.mean, 0), r.batch, 7)
		mean, cov, err := s.(laplace.Posterior).Linearized(linear, test, curvature.LinearizedOptions{NoiseSD: r.s})
		require.NoError(t, err)
		assert.Equal(t, []int{m, 1, 1}, cov.Shape())
		for i := range m {
			row := mat.NewVecDense(r.d, x[i*r.d:(i+1)*r.d])
			assert.InDelta(t, mat.Dot(row, mat.NewVecDense(r.d, r.mean)), values(mean.T())[i], 1e-11, name)
			assert.InDelta(t, temperature*mat.Inner(row, c.cov, row)+r.s*r.s, values(cov.T())[i], 1e-11, name)
		}
	}
}

// logisticIntegral is ∫ σ(x) N(x; m, v) dx by the trapezium rule, whose error is far below 1e-10 for
// a function this smooth.
func logisticIntegral(m, v float64) float64 {
	const n = 4000
	sum, sd := 0.0, math.Sqrt(v)
	for i := range n + 1 {
		z := -12 + 24*float64(i)/n
		sum += math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) / (1 + math.Exp(-(m + sd*z))) * 24 / n
	}
	return sum
}

// The probit approximation is its formula, and within 0.02 of the integral that it approximates.
func TestProbit(t *testing.T) {
	m, v := []float64{0, 1, -2, 3}, []float64{1, 4, 0.5, 10}
	p := values(must(laplace.Probit(torch.Of(vector(m, 4, 1)), torch.Of(vector(v, 4, 1, 1)))).T())
	for i := range m {
		assert.InDelta(t, 1/(1+math.Exp(-m[i]/math.Sqrt(1+math.Pi*v[i]/8))), p[i], 1e-15)
		assert.InDelta(t, logisticIntegral(m[i], v[i]), p[i], 0.02)
	}
	cov := []float64{1, 0.3, 0.1, 0.3, 2, 0.2, 0.1, 0.2, 4}
	p = values(must(laplace.Probit(torch.Of(vector([]float64{1, 0, -1}, 1, 3)), torch.Of(vector(cov, 1, 3, 3)))).T())
	want, sum := make([]float64, 3), 0.0
	for i, m := range []float64{1, 0, -1} {
		want[i] = math.Exp(m / math.Sqrt(1+math.Pi*cov[4*i]/8))
		sum += want[i]
	}
	for i := range want {
		assert.InDelta(t, want[i]/sum, p[i], 1e-15)
	}
	// No uncertainty, no change.
	p = values(must(laplace.Probit(torch.Of(vector([]float64{0.7}, 1, 1)), torch.Of(vector([]float64{0}, 1, 1, 1)))).T())
	assert.InDelta(t, 1/(1+math.Exp(-0.7)), p[0], 1e-15)
}

// Two logits make a softmax a logistic function of their difference d ~ N(m₀ − m₁, v₀₀ + v₁₁ − 2v₀₁), which can be
// integrated. The standard error of the average is at most √(p(1 − p)/samples).
func TestSoftmaxAveragesDraws(t *testing.T) {
	const samples = 20000
	mean, cov := []float64{1, 0, -2, 1}, []float64{2, 0.5, 0.5, 1, 3, -1, -1, 2}
	streams := torch.NewStreams(1, 1)
	p := must(laplace.Softmax(torch.Of(vector(mean, 2, 2)), torch.Of(vector(cov, 2, 2, 2)), samples, &streams))
	assert.Equal(t, []int{2, 2}, p.Shape())
	for i := range 2 {
		v := cov[4*i:]
		want := logisticIntegral(mean[2*i]-mean[2*i+1], v[0]+v[3]-2*v[1])
		assert.InDelta(t, want, values(p.T())[2*i], 4*math.Sqrt(want*(1-want)/samples))
		assert.InDelta(t, 1, values(p.T())[2*i]+values(p.T())[2*i+1], 1e-12)
	}
}

// Draws of outputs have their mean and covariance, within four standard errors; a singular covariance is fine.
func TestSampleOutputs(t *testing.T) {
	const n = 20000
	mean, cov := []float64{1, -1, 0, 5, 5, 5}, []float64{2, 0.5, 0.1, 0.5, 1, -0.2, 0.1, -0.2, 1, 1, 1, 0, 1, 1, 0, 0,
		0, 0}
	streams := torch.NewStreams(2, 1)
	z := must(laplace.SampleOutputs(torch.Of(vector(mean, 2, 3)), torch.Of(vector(cov, 2, 3, 3)), n, &streams))
	assert.Equal(t, []int{n, 2, 3}, z.Shape())
	x := values(z.T())
	for i := range 2 {
		for a := range 3 {
			sum := 0.0
			for r := range n {
				sum += x[r*6+i*3+a] / n
			}
			va := cov[i*9+a*4]
			assert.InDelta(t, mean[i*3+a], sum, 4*math.Sqrt(va/n)+1e-12)
			for b := range 3 {
				sum, vb, vab := 0.0, cov[i*9+b*4], cov[i*9+a*3+b]
				for r := range n {
					sum += (x[r*6+i*3+a] - mean[i*3+a]) * (x[r*6+i*3+b] - mean[i*3+b]) / n
				}
				assert.InDelta(t, vab, sum, 4*math.Sqrt((va*vb+vab*vab)/n)+1e-12)
			}
		}
	}
}

func TestPredictiveErrors(t *testing.T) {
	r := newRegression(1, 10, 2, 1, 1)
	s := begin(t, build(t, laplace.DiagGGN{Forward: linear, Outer: gaussianOuter(1)}, nil), params(r.layout, r.mean, 0))
	_, _, err := s.(laplace.Posterior).Linearized(linear, r.batch, curvature.LinearizedOptions{})
	assert.ErrorIs(t, err, curvature.ErrIndefinite)
	s = pass(t, build(t, laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(1)}, nil), params(r.layout, r.mean, 0),
		r.batch, 10)
	_, _, err = s.(laplace.Posterior).Linearized(linear, r.batch, curvature.LinearizedOptions{NoiseSD: -1})
	assert.EqualError(t, err, "laplace.Linearized: NoiseSD is -1: it must be finite and at least 0")
	_, _, err = s.(laplace.Posterior).Linearized(nil, r.batch, curvature.LinearizedOptions{})
	assert.ErrorContains(t, err, "laplace.Linearized: curvature.LinearizedFactor: the forward function is nil")
	streams := torch.NewStreams(1, 1)
	_, err = laplace.Softmax(torch.Of(vector([]float64{1})), torch.Of(vector([]float64{1})), 1, &streams)
	assert.EqualError(t, err,
		"laplace.Softmax: a mean of shape [1] and a covariance of shape [1]: expected [n, C] and [n, C, C]")
	_, err = laplace.Softmax(torch.Of(vector([]float64{1}, 1, 1)), torch.Of(vector([]float64{1}, 1, 1, 1)), 0, &streams)
	assert.ErrorContains(t, err, "a number of samples of at least 1, which is 0")
	_, err = laplace.Softmax(torch.Of(vector([]float64{1}, 1, 1)), torch.Of(vector([]float64{1}, 1, 1, 1)), 1, nil)
	assert.ErrorContains(t, err, "torch.NewStreams(seed, 1)")
	_, err = laplace.Probit(torch.Tensor{}, torch.Tensor{})
	assert.EqualError(t, err, "laplace.Probit: the mean or the covariance is nil: Posterior.Linearized gives both")
}

// The last layer of a network, by a subspace: its precision is the block of the whole network's Gauss-Newton matrix,
// and its draws, put back into the whole, move nothing else.
func TestLastLayer(t *testing.T) {
	network, layers, l := perceptron(tanh)
	_, _, batch := perceptronData(9)
	full := params(l, normals(5, l.Dim()), 0)
	forward := network.Forward(layers...)
	posterior := meanPosterior(curvature.Likelihood(forward, softmaxOuter), normalPrior(0.5), 9)

	restricted, at, embed, err := infer.Subspace(posterior, full, "w2")
	require.NoError(t, err)
	whole := mat.NewSymDense(15, precision(pass(t,
		build(t, laplace.DenseGGN{Forward: forward, Outer: softmaxOuter}, nil), full, batch, 9)))
	block := plus(whole.SliceSym(9, 15), 0.5, identity(6, 1))
	for name, m := range map[string]infer.Method{
		"DenseGGN": laplace.DenseGGN{Forward: laplace.Restrict(forward, embed), Outer: softmaxOuter,
			PriorPrecision: laplace.Isotropic(0.5)},
		"Hessian": laplace.DenseHessian{}, // of a network that is linear in its last layer: the same
	} {
		transform := buildOn(t, m, infer.Mean(restricted, 9))
		s := pass(t, transform, at, batch, 4)
		within(t, entries(block), precision(s), 1e-12, name)

		streams := torch.NewStreams(1, 1)
		draws := must(transform.(infer.Sampler).Sample(s, 3, &streams))
		points := must(embed(draws))
		flat := values(points.Flat.T())
		for k := range 3 {
			assert.Equal(t, values(full.Flat.T())[:9], flat[15*k:15*k+9], name)
			assert.Equal(t, values(draws.Flat.T())[6*k:6*k+6], flat[15*k+9:15*k+15], name)
		}
		mean, cov, err := s.(laplace.Posterior).Linearized(laplace.Restrict(forward, embed), batch,
			curvature.LinearizedOptions{})
		require.NoError(t, err)
		within(t, forward(full, batch).Values(), values(mean.T()), 1e-13, name)
		assert.Equal(t, []int{9, 2, 2}, cov.Shape())
	}
	each := laplace.Restrict(curvature.Likelihood(forward, softmaxOuter), embed)
	wide := mat.NewSymDense(15, precision(pass(t, build(t,
		laplace.DenseFisher{LogLikelihood: curvature.Likelihood(forward, softmaxOuter)}, nil), full, batch, 9)))
	s := pass(t, build(t, laplace.DenseFisher{LogLikelihood: each}, nil), at, batch, 4)
	within(t, entries(wide.SliceSym(9, 15)), precision(s), 1e-12, "Fisher")

	_, _, err = build(t, laplace.DenseGGN{Forward: laplace.Restrict[curvature.Forward](nil, embed),
		Outer: softmaxOuter}, restricted).Update(
		begin(t, build(t, laplace.DenseGGN{Forward: forward, Outer: softmaxOuter}, nil), at), batch)
	assert.ErrorContains(t, err, "laplace.Restrict: the function or the embedding is nil")
}

// KFAC of the last layer alone is the last layer's block of KFAC of the whole network.
func TestLastLayerKFAC(t *testing.T) {
	network, layers, l := perceptron(tanh)
	_, _, batch := perceptronData(9)
	full := params(l, normals(5, l.Dim()), 0)
	posterior := meanPosterior(curvature.Likelihood(network.Forward(layers...), softmaxOuter), normalPrior(0.5), 9)
	restricted, at, embed, err := infer.Subspace(posterior, full, "w2")
	require.NoError(t, err)
	whole := mat.NewSymDense(15, precision(pass(t,
		build(t, laplace.KFAC{Network: network, Layers: layers, Outer: softmaxOuter}, posterior), full, batch, 9)))
	for _, f := range []infer.LogPosterior{restricted, nil} {
		last := laplace.KFAC{Network: network.Restrict(embed, layers[0]), Layers: layers[1:], Outer: softmaxOuter}
		s := pass(t, build(t, last, f), at, batch, 4)
		within(t, entries(whole.SliceSym(9, 15)), precision(s), 1e-13, "precision")
	}
}
