package laplace_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/torch"
)

// softmaxOuter is log p(y|z) of a softmax, for one-hot labels y of shape [n, C].
func softmaxOuter(z torch.Tensor, b infer.Batch) torch.Tensor {
	return z.LogSoftmax(-1).Mul(b.Get("y")).Sum(-1)
}

// vectorOuter is log N(y; z, s²I) for outputs of shape [n, C].
func vectorOuter(s float64) curvature.Outer {
	return func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return b.Get("y").Sub(z).Square().Mul(-0.5 / (s * s)).Sub(0.5 * math.Log(2*math.Pi*s*s)).Sum(-1)
	}
}

// perceptron is a network of two layers with an activation between them; the first has a bias. Its flat vector is b1
// [3], w1 [3, 2], w2 [2, 3].
func perceptron(activation func(torch.Tensor) torch.Tensor) (laplace.Network, []laplace.Layer, *infer.Layout) {
	f := func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
		return linear("w2", activation(linear("w1", b.Get("x"))))
	}
	return f, []laplace.Layer{{Weight: "w1", Bias: "b1"},
		{Weight: "w2"}}, layout(infer.Shapes{"w1": {3, 2}, "b1": {3}, "w2": {2, 3}})
}

func tanh(x torch.Tensor) torch.Tensor  { return x.Tanh() }
func plain(x torch.Tensor) torch.Tensor { return x }

// perceptronData are n data for it with one-hot labels.
func perceptronData(n int) (x, y []float64, b infer.Batch) {
	x, y = normals(21, 2*n), make([]float64, 2*n)
	for i := range n {
		y[2*i+(i*i+i/2)%2] = 1
	}
	return x, y, infer.Batch{"x": torch.Of(vector(x, n, 2)), "y": torch.Of(vector(y, n, 2))}
}

// blocks keeps the elements of a matrix [15, 15] that belong to one layer of the perceptron.
func blocks(m []float64) []float64 {
	out := make([]float64, len(m))
	for i, v := range m {
		if first := func(j int) bool { return j < 9 }; first(i/15) == first(i%15) {
			out[i] = v
		}
	}
	return out
}

// Where theory says that Kronecker factors are exact, they are the blocks of the dense matrices.
func TestKFACIsExact(t *testing.T) {
	one := laplace.Network(func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
		return linear("w", b.Get("x"))
	})
	oneLayer := []laplace.Layer{{Weight: "w", Bias: "b"}}
	oneLayout := layout(infer.Shapes{"w": {2, 2}, "b": {2}})
	nonlinear, layers, twoLayout := perceptron(tanh)
	deep, _, _ := perceptron(plain)
	_, _, many := perceptronData(9)
	_, _, single := perceptronData(1)
	gauss := vectorOuter(0.6)
	flat := func(p *infer.Layout) infer.Params { return params(p, normals(5, p.Dim()), 0) }
	for name, c := range map[string]struct {
		network   laplace.Network
		layers    []laplace.Layer
		layout    *infer.Layout
		outer     curvature.Outer
		batch     infer.Batch
		empirical bool
	}{
		"one layer, one datum, softmax":      {one, oneLayer, oneLayout, softmaxOuter, single, false},
		"one layer, constant output Hessian": {one, oneLayer, oneLayout, gauss, many, false},
		"two layers, one datum, softmax": {nonlinear, layers, twoLayout, softmaxOuter, single,
			false},
		"deep linear network with Gaussian noise":           {deep, layers, twoLayout, gauss, many, false},
		"two layers, one datum, empirical Fisher matrix":    {nonlinear, layers, twoLayout, softmaxOuter, single, true},
		"one layer, one datum, the empirical Fisher matrix": {one, oneLayer, oneLayout, gauss, single, true},
	} {
		at := flat(c.layout)
		prior := laplace.Isotropic(0.3)
		n := must(c.batch.Size())
		kfac := build(t, laplace.KFAC{Network: c.network, Layers: c.layers, Outer: c.outer, Empirical: c.empirical,
			PriorPrecision: prior, Damping: 0.1, Scale: 2}, nil)
		f := c.network.Forward(c.layers...)
		var dense infer.Method = laplace.DenseGGN{Forward: f, Outer: c.outer, PriorPrecision: prior, Damping: 0.1,
			Scale: 2}
		if c.empirical {
			dense = laplace.DenseFisher{LogLikelihood: curvature.Likelihood(f, c.outer), PriorPrecision: prior,
				Damping: 0.1, Scale: 2}
		}
		want := precision(pass(t, build(t, dense, nil), at, c.batch, n))
		if c.layout == twoLayout {
			want = blocks(want)
		}
		for _, size := range []int{1, 4, n} {
			within(t, want, precision(pass(t, kfac, at, c.batch, size)), 1e-11,
				fmt.Sprintf("%s, batches of %d", name, size))
		}
	}
}

// The definition written out in plain Go for a network of two layers with tanh and softmax: A = Σ a aᵀ and G = Σ Sᵀ H
// S, block G ⊗ A / N + (λ + δ) I. Nothing is exact here; batches of any size give the same.
func TestKFACFollowsItsDefinition(t *testing.T) {
	const n, lambda, damping = 9, 0.3, 0.1
	network, layers, l := perceptron(tanh)
	x, _, batch := perceptronData(n)
	theta := normals(5, l.Dim())
	b1, w1, w2 := theta[:3], theta[3:9], theta[9:]
	a1, a2 := mat.NewSymDense(3, nil), mat.NewSymDense(3, nil)
	g1, g2 := mat.NewSymDense(3, nil), mat.NewSymDense(2, nil)
	for i := range n {
		in := []float64{x[2*i], x[2*i+1], 1}
		h, slope := make([]float64, 3), make([]float64, 3)
		for j := range h {
			h[j] = math.Tanh(w1[2*j]*in[0] + w1[2*j+1]*in[1] + b1[j])
			slope[j] = 1 - h[j]*h[j]
		}
		z := []float64{0, 0}
		for c := range z {
			for j := range h {
				z[c] += w2[3*c+j] * h[j]
			}
		}
		p := 1 / (1 + math.Exp(z[1]-z[0]))
		// H = p(1 − p) (1, −1)ᵀ(1, −1) for two classes.
		v := mat.NewVecDense(2, []float64{1, -1})
		back := mat.NewVecDense(3, nil)
		for j := range h {
			back.SetVec(j, (w2[j]-w2[3+j])*slope[j])
		}
		a1.SymRankOne(a1, 1, mat.NewVecDense(3, in))
		a2.SymRankOne(a2, 1, mat.NewVecDense(3, h))
		g1.SymRankOne(g1, p*(1-p), back)
		g2.SymRankOne(g2, p*(1-p), v)
	}
	want := identity(15, lambda+damping)
	// Where element j of the first layer's augmented matrix [W b], row-major, lies in the flat vector: b1 comes first.
	place := func(j int) int {
		if j%3 == 2 {
			return j / 3
		}
		return 3 + j/3*2 + j%3
	}
	for i := range 9 {
		for j := range 9 {
			if place(i) <= place(j) {
				want.SetSym(place(i), place(j), want.At(place(i), place(j))+g1.At(i/3, j/3)*a1.At(i%3, j%3)/n)
			}
		}
	}
	for i := range 6 {
		for j := i; j < 6; j++ {
			want.SetSym(9+i, 9+j, want.At(9+i, 9+j)+g2.At(i/3, j/3)*a2.At(i%3, j%3)/n)
		}
	}
	at := params(l, theta, 0)
	transform := build(t, laplace.KFAC{Network: network, Layers: layers, Outer: softmaxOuter,
		PriorPrecision: laplace.Isotropic(lambda), Damping: damping}, nil)
	for _, size := range []int{1, 4, n} {
		s := pass(t, transform, at, batch, size)
		within(t, entries(want), precision(s), 1e-12, fmt.Sprintf("batches of %d", size))
		assert.Equal(t, []float64{n}, values(s.(laplace.KFACState).Data.T()))

		// The factored forms agree with the matrix.
		evidence, err := s.(laplace.Posterior).LogEvidence(1.5)
		require.NoError(t, err)
		assert.InDelta(t, 1.5+7.5*math.Log(2*math.Pi)-0.5*logDet(want), evidence, 1e-11)
		checkLogPrior(t, s, plus(want, -damping, identity(15, 1)), theta)
	}
}

// A prior for each layer, and the linearised predictive from the factors, against the dense form of the same state.
func TestKFACPredictive(t *testing.T) {
	network, layers, l := perceptron(tanh)
	_, _, batch := perceptronData(9)
	prior := laplace.PerSite(map[string]float64{"w1": 2, "b1": 2, "w2": 0.5})
	transform := build(t, laplace.KFAC{Network: network, Layers: layers, Outer: softmaxOuter, PriorPrecision: prior,
		Temperature: infer.Constant(0.4)}, nil)
	s := pass(t, transform, params(l, normals(5, l.Dim()), 0), batch, 9)
	p := precision(s)
	bare := precision(pass(t, build(t, laplace.KFAC{Network: network, Layers: layers, Outer: softmaxOuter}, nil),
		s.Position(), batch, 9))
	for i := range 15 {
		lambda := 2.0
		if i >= 9 {
			lambda = 0.5
		}
		assert.InDelta(t, bare[16*i]+lambda, p[16*i], 1e-13)
	}
	cov := inverse(mat.NewSymDense(15, p))
	want, wantCov, err := curvature.Linearized(network.Forward(layers...), s.Position(), batch,
		torch.Of(vector(entries(cov), 15, 15)), curvature.LinearizedOptions{})
	require.NoError(t, err)
	wantCov = torch.Of(wantCov.T().MustMulScalar(ts.FloatScalar(0.4), false))
	wantCov.T().MustDiagonal(0, 1, 2, false).MustAddScalar_(ts.FloatScalar(0.09))
	options := curvature.LinearizedOptions{NoiseSD: 0.3}
	mean, c, err := s.(laplace.KFACState).LinearizedNetwork(network, batch, options)
	require.NoError(t, err)
	within(t, values(want.T()), values(mean.T()), 1e-13, "mean from the factors")
	within(t, values(wantCov.T()), values(c.T()), 1e-12, "covariance from the factors")
	mean, c, err = s.(laplace.Posterior).Linearized(network.Forward(layers...), batch, options)
	require.NoError(t, err)
	within(t, values(want.T()), values(mean.T()), 1e-13, "mean")
	within(t, values(wantCov.T()), values(c.T()), 1e-12, "covariance")
}
