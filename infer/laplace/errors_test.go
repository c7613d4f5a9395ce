package laplace_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Each bad field is an error of Build that names it.
func TestBuildErrors(t *testing.T) {
	outer := gaussianOuter(1)
	each := curvature.Likelihood(linear, outer)
	network, layers, _ := perceptron(tanh)
	log := meanPosterior(each, normalPrior(1), 3)
	for _, c := range []struct {
		m    infer.Method
		f    infer.LogPosterior
		want string
	}{
		{laplace.DiagFisher{}, log, "laplace.DiagFisher: LogLikelihood is nil: it is needed for a target that cannot " +
			"tell its likelihood apart: the log " +
			"likelihood of each datum, of shape [n], which curvature.PerSample makes of a log likelihood of one datum; " +
			"laplace.DenseHessian takes any target"},
		{laplace.DenseFisher{}, log, "laplace.DenseFisher: LogLikelihood is nil: it is needed for a target that " +
			"cannot tell its likelihood apart: the log " +
			"likelihood of each datum, of shape [n], which curvature.PerSample makes of a log likelihood of one datum; " +
			"laplace.DenseHessian takes any target"},
		{laplace.DiagFisher{LogLikelihood: each, Scale: -1}, nil, "laplace.DiagFisher: Scale is -1: it must be " +
			"finite and greater than 0"},
		{laplace.DenseFisher{LogLikelihood: each, Damping: -1}, nil,
			"laplace.DenseFisher: Damping is -1: it must be finite and at least 0"},
		{laplace.DiagGGN{Outer: outer}, nil, "laplace.DiagGGN: Forward is nil: it is needed: the outputs z = f(θ, " +
			"x), of shape [n, ...]; laplace.DenseHessian takes any target without it"},
		{laplace.DenseGGN{Forward: linear}, nil, "laplace.DenseGGN: Outer is nil: it is needed: the log likelihoods " +
			"log p(y_i|z_i), of shape [n]; laplace.DenseHessian takes any target without it"},
		{laplace.DenseGGN{Forward: linear, Outer: outer, Temperature: infer.Constant(-1)}, nil,
			"laplace.DenseGGN: Temperature is -1: it must be finite and at least 0"},
		{laplace.DenseGGN{Forward: linear, Outer: outer, Memory: -1}, nil,
			"laplace.DenseGGN: Memory is -1: it must be finite and at least 0"},
		{laplace.DiagGGN{Forward: linear, Outer: outer, PriorPrecision: laplace.Isotropic(math.NaN())}, nil,
			"laplace.DiagGGN: PriorPrecision is NaN: it must be finite and at least 0"},
		{laplace.DiagGGN{Forward: linear, Outer: outer, PriorPrecision: laplace.PerSite(map[string]float64{"w": -2})},
			nil,
			`laplace.DiagGGN: PriorPrecision of site "w" is -2: it must be finite and at least 0`},
		{laplace.DiagGGN{Forward: linear, Outer: outer, PriorPrecision: laplace.PerElement(torch.Tensor{})}, nil,
			"laplace.DiagGGN: PriorPrecision: laplace.PerElement: the tensor is nil: invalid configuration"},
		{laplace.DenseHessian{}, nil, "laplace.DenseHessian: the log posterior is nil: invalid configuration"},
		{laplace.KFAC{Layers: layers, Outer: outer}, nil, "laplace.KFAC: Network is nil: it is needed: the forward " +
			"function, with its linear layers; laplace.DenseHessian takes any target without it"},
		{laplace.DenseHessian{Optimizer: hmc.NUTS{}}, log, "laplace.DenseHessian: Optimizer is a hmc.NUTS: it must climb " +
			"to the mode, as optim.LBFGS, optim.Adam, optim.AdamW and optim.SGD do"},
		{laplace.DenseGGN{Forward: linear, Outer: outer, Optimizer: laplace.DenseHessian{}}, log, "laplace.DenseGGN: " +
			"Optimizer is a laplace.DenseHessian: it must climb to the mode, as optim.LBFGS, optim.Adam, optim.AdamW and " +
			"optim.SGD do"},
		{laplace.DenseHessian{Optimizer: optim.LBFGS{Curvature: 2}}, log, "laplace.DenseHessian: Optimizer: optim.LBFGS: " +
			"Curvature is 2: it must be at least 0 and less than 1"},
		{laplace.KFAC{Network: network, Layers: layers}, nil, "laplace.KFAC: Outer is nil: it is needed: the log " +
			"likelihoods log p(y_i|z_i), of shape [n]; laplace.DenseHessian takes any target without it"},
		{laplace.KFAC{Network: network, Outer: outer}, nil, "laplace.KFAC: Layers is empty: at least one layer is needed"},
		{laplace.KFAC{Network: network, Layers: layers, Outer: outer,
			PriorPrecision: laplace.Matrix(torch.Of(vector([]float64{1}, 1, 1)))}, nil,
			"laplace.KFAC: PriorPrecision is a tensor: Isotropic and PerSite keep the Kronecker form; " +
				"the dense methods take any"},
	} {
		_, err := c.m.Build(infer.Sum(c.f, 1))
		assert.EqualError(t, err, c.want)
		assert.ErrorIs(t, err, infer.ErrConfig)
	}
}

// Prior precisions are checked against the point.
func TestPriorPrecisionErrors(t *testing.T) {
	l, forward := twoSites()
	at := params(l, []float64{0, 1, 2, 3}, 0)
	nan := identity(4, 1)
	nan.SetSym(1, 2, math.NaN())
	for _, c := range []struct {
		prior laplace.Precision
		dense bool
		want  string
	}{
		{laplace.PerSite(map[string]float64{"w": 1}), false,
			`PriorPrecision is missing for site "a": PerSite needs a number for each site, 0 for a flat prior`},
		{laplace.PerSite(map[string]float64{"a": 1, "v": 1, "w": 1}), true,
			`PriorPrecision is given for site "v": there are the sites ["a" "w"]`},
		{laplace.PerElement(torch.Of(vector([]float64{1, 2}))), false,
			"PriorPrecision is of shape [2]: it must be of shape [4]"},
		{laplace.PerElement(torch.Of(vector([]float64{1, -2, 0, 0}))), true,
			"PriorPrecision is -2 for w[0]: it must be finite and at least 0"},
		{laplace.Matrix(torch.Of(vector([]float64{1, 2, 3, 4}, 2, 2))), true,
			"PriorPrecision is of shape [2 2]: it must be of shape [4 4]"},
		{laplace.Matrix(torch.Of(vector(entries(nan), 4, 4))), true,
			"PriorPrecision is NaN for w[0] and w[1]: it must be finite"},
		{laplace.Matrix(torch.Of(vector([]float64{1, 2, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, 4, 4))), true,
			"PriorPrecision is not symmetric: elements differ from their mirror images by up to 2: it must be symmetric"},
	} {
		var m infer.Method = laplace.DiagGGN{Forward: forward, Outer: gaussianOuter(1), PriorPrecision: c.prior}
		name := "laplace.DiagGGN: "
		if c.dense {
			m, name = laplace.DenseGGN{Forward: forward, Outer: gaussianOuter(1),
				PriorPrecision: c.prior}, "laplace.DenseGGN: "
		}
		_, err := build(t, m, nil).Init(at)
		assert.EqualError(t, err, name+c.want)
	}
	_, err := build(t, laplace.DiagGGN{Forward: forward, Outer: gaussianOuter(1),
		PriorPrecision: laplace.PerElement(torch.Of(vector(make([]float64, 12), 3, 4)))}, nil).
		Init(params(l, make([]float64, 8), 2))
	assert.EqualError(t, err,
		"laplace.DiagGGN: PriorPrecision is of shape [3 4]: it must be of shape [4], or [2 4] for the chains")
}

// A matrix that does not fit is refused before it is made.
func TestDenseIsRefusedForManyParameters(t *testing.T) {
	l := layout(infer.Shapes{"w": {1000000}})
	each := curvature.Likelihood(linear, gaussianOuter(1))
	for _, m := range []infer.Method{
		laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(1)},
		laplace.DenseFisher{LogLikelihood: each},
		laplace.DenseHessian{},
	} {
		_, err := build(t, m, meanPosterior(each, normalPrior(1), 1)).Init(must(infer.Zeros(l)))
		assert.ErrorContains(t, err, "a precision of shape [1000000, 1000000] for each of 1 chains takes 8 TB")
		assert.ErrorContains(t, err, "use a diagonal method or KFAC, or the last layer alone by infer.Subspace")
		var memory *infer.MemoryError
		require.ErrorAs(t, err, &memory)
		assert.Equal(t, int(8e12), memory.Bytes)
	}
	network, layers, small := perceptron(tanh)
	_, err := build(t, laplace.KFAC{Network: network, Layers: layers, Outer: softmaxOuter, Memory: 100},
		nil).Init(must(infer.Zeros(small)))
	assert.ErrorContains(t, err, "laplace.KFAC: Kronecker factors with 31 numbers for each of 1 chains takes 248 bytes")
}

// A precision that cannot be a Gaussian's is an error that says why and what to do, wherever the Gaussian is used.
func TestIndefinite(t *testing.T) {
	l, forward := twoSites()
	at := params(l, []float64{0, 1, 2, 3}, 0)
	batch := infer.Batch{"x": torch.Of(vector([]float64{1, 0, 2, 2, 0, 1}, 2, 3)), "y": torch.Of(vector([]float64{1, 2}))}
	streams := torch.NewStreams(1, 1)
	use := func(transform infer.Transform, s infer.State, want string) {
		t.Helper()
		_, err := transform.(infer.Sampler).Sample(s, 3, &streams)
		assert.EqualError(t, err, want)
		assert.ErrorIs(t, err, curvature.ErrIndefinite)
		_, err = s.(laplace.Posterior).LogEvidence(0)
		assert.EqualError(t, err, want)
		_, err = s.(laplace.Posterior).LogPrior(1)
		assert.EqualError(t, err, "laplace.LogPrior: "+want)
	}
	transform := build(t, laplace.DiagGGN{Forward: forward, Outer: gaussianOuter(1)}, nil)
	s := pass(t, transform, at, batch, 2)
	use(transform, s, "laplace.DiagState: the precision of w[1] is 0: the data say nothing about it, "+
		"and there is no prior: give a PriorPrecision above 0, or Damping: not positive definite")
	convex := func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return z.Square().Mul(2)
	}
	transform = build(t, laplace.DiagGGN{Forward: forward, Outer: convex}, nil)
	use(transform, pass(t, transform, at, batch, 2), "laplace.DiagState: the precision of a is -8: the log "+
		"likelihood is not concave in the outputs, "+
		"use a Fisher method: give a PriorPrecision above 0, or Damping: not positive definite")

	saddle := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return torch.Of(p.Flat.Square().Mul(vector([]float64{-1, -1, 0.75, -1})).T().MustSum(p.Flat.T().DType(), false)), nil
	}
	transform = buildOn(t, laplace.DenseHessian{}, infer.Mean(saddle, 2))
	use(transform, pass(t, transform, at, batch, 2), "laplace.DenseState: the precision is not positive definite, "+
		"its smallest eigenvalue is -3: give a larger "+
		"PriorPrecision or Damping, use a Gauss-Newton method in place of the Hessian, or find a better optimum with more "+
		"updates (infer.Options.Warmup)")
	// What the message proposes helps.
	transform = buildOn(t, laplace.DenseHessian{Damping: 3.5}, infer.Mean(saddle, 2))
	_, err := transform.(infer.Sampler).Sample(pass(t, transform, at, batch, 2), 3, &streams)
	assert.NoError(t, err)

	network, layers, small := perceptron(tanh)
	_, _, labels := perceptronData(1)
	transform = build(t, laplace.KFAC{Network: network, Layers: layers, Outer: softmaxOuter}, nil)
	_, err = transform.(infer.Sampler).Sample(pass(t, transform, params(small, normals(5, 15), 0), labels, 1), 1,
		&streams)
	assert.ErrorIs(t, err, curvature.ErrIndefinite)
	assert.ErrorContains(t, err,
		`laplace.KFACState: the precision of layer "w1" is not positive definite, its smallest eigenvalue is`)
	assert.ErrorContains(t, err, "give a PriorPrecision above 0, or Damping")
}

func TestKFACErrors(t *testing.T) {
	network, layers, l := perceptron(tanh)
	at := params(l, normals(5, 15), 0)
	_, _, batch := perceptronData(4)
	type list = []laplace.Layer
	for _, c := range []struct {
		layers list
		want   string
	}{
		{list{{Weight: "w"}}, `Layers is with weights "w": there are the sites ["b1" "w1" "w2"]`},
		{list{{Weight: "b1"}}, `Layers is with weights "b1" of shape [3]: weights have shape [out, in]`},
		{list{{Weight: "w1", Bias: "b"}}, `Layers is with bias "b": there are the sites ["b1" "w1" "w2"]`},
		{list{{Weight: "w2", Bias: "b1"}},
			`Layers is with bias "b1" of shape [3]: the bias of weights of shape [2 3] has shape [2]`},
		{list{{Weight: "w1"}, {Weight: "w1"}}, `Layers is with the site "w1" twice: a site belongs to one layer`},
		{list{{Weight: "w1"}, {Weight: "w2"}},
			`Layers is without the site "b1": each site belongs to a linear layer; hold others fixed by infer.Subspace`},
	} {
		_, err := build(t, laplace.KFAC{Network: network, Layers: c.layers, Outer: softmaxOuter}, nil).Init(at)
		assert.EqualError(t, err, "laplace.KFAC: "+c.want)
	}
	_, err := build(t, laplace.KFAC{Network: network, Layers: layers, Outer: softmaxOuter,
		PriorPrecision: laplace.PerSite(map[string]float64{"w1": 1, "b1": 2, "w2": 3})}, nil).Init(at)
	assert.EqualError(t, err,
		`laplace.KFAC: PriorPrecision is 1 for "w1" and 2 for "b1": the weights and the bias of a layer share their `+
			`Kronecker factors, and must share their precision`)

	one := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return torch.Of(p.Flat.T().MustSum(p.Flat.T().DType(), false)), nil
	}
	for name, c := range map[string]struct {
		network laplace.Network
		outer   curvature.Outer
		want    string
	}{
		"unknown layer": {func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
			return linear("w3", b.Get("x"))
		}, softmaxOuter, `the network uses a layer "w3", and Layers has ["w1" "w2"]`},
		"twice": {func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
			linear("w1", b.Get("x"))
			return linear("w1", b.Get("x"))
		}, softmaxOuter, `the network uses the layer "w1" twice: Kronecker factors are of layers without shared weights`},
		"unused": {func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
			return linear("w1", b.Get("x"))
		}, softmaxOuter, `the network does not use the layer "w2"`},
		"three dimensions": {func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
			return linear("w1", b.Get("x").Unsqueeze(0))
		}, softmaxOuter, `layer "w1" has inputs of shape [1 4 2] for 4 data: expected [4, in]`},
		"number": {func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
			network(p, b, linear)
			return torch.Of(0)
		}, softmaxOuter, "the network returned shape [] for 4 data, expected [4, ...]"},
		"shape": {func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
			return network(p, b, linear).Transpose()
		}, softmaxOuter, "the network returned shape [2 4] for 4 data, expected [4, ...]"},
		"outer number": {network, func(torch.Tensor, infer.Batch) torch.Tensor { return torch.Of(0) },
			"the outer density returned shape [] for a batch of 4 data, expected [4]"},
		"outer shape": {network, func(z torch.Tensor, _ infer.Batch) torch.Tensor { return z },
			"the outer density returned shape [4 2] for a batch of 4 data, expected [4]"},
	} {
		for _, empirical := range []bool{false, true} {
			transform := build(t, laplace.KFAC{Network: c.network, Layers: layers, Outer: c.outer,
				Empirical: empirical}, one)
			_, _, err := transform.Update(begin(t, transform, at), batch)
			assert.EqualError(t, err, "laplace.KFAC: "+c.want, name)
		}
	}
}

func TestUpdateErrors(t *testing.T) {
	methods, posterior, l, batch := everyMethod()
	at := params(l, normals(5, l.Dim()), 0)
	streams := torch.NewStreams(1, 1)
	for name, m := range methods {
		transform := build(t, m, posterior)
		s := begin(t, transform, at)
		_, _, err := transform.Update(nil, batch)
		assert.ErrorContains(t, err, "laplace."+name+": the state is a <nil>, expected laplace.", name)
		_, _, err = transform.Update(s, infer.Batch{"y": batch["y"]})
		assert.ErrorContains(t, err, "laplace."+name+": ", name)
		assert.ErrorContains(t, err, `the model asked for batch tensor "x", which does not exist; there are: ["y"]`,
			name)
		sampler := transform.(infer.Sampler)
		_, err = sampler.Sample(nil, 1, &streams)
		assert.ErrorContains(t, err, "laplace."+name+": the state is a <nil>")
		_, err = sampler.Sample(s, 0, &streams)
		assert.ErrorContains(t, err, "Sample of 0 draws: there must be at least 1: invalid configuration")
		_, err = sampler.Sample(s, 1, &streams)
		assert.ErrorContains(t, err, "laplace."+name+": Sample of a state that has seen no batch: make one pass of "+
			"updates over the data first: invalid configuration")
		_, err = sampler.Sample(s, 1, nil)
		assert.ErrorContains(t, err,
			"Sample without random streams: torch.NewStreams(seed, 1) makes them: invalid configuration")
		_, err = transform.Init(params(l, append(normals(5, 14), math.NaN()), 0))
		assert.EqualError(t, err, "laplace."+name+": w2[1,2] of chain 0 is NaN at the start: not finite")
	}
	falling := func(step int) float64 { return 1 - 2*float64(step) }
	cold := build(t, laplace.DenseHessian{Temperature: falling}, posterior)
	_, _, err := cold.Update(begin(t, cold, at), batch)
	assert.EqualError(t, err, "laplace.DenseHessian: Temperature at update 1 is -1: it must be finite and at least 0")
}

func TestStateErrors(t *testing.T) {
	methods, posterior, l, batch := everyMethod()
	s := pass(t, build(t, methods["DiagGGN"], posterior), params(l, normals(5, 30), 2), batch, 9)
	_, err := s.(laplace.Posterior).Chain(2)
	assert.EqualError(t, err, "laplace.Chain: chain 2 of a state with 2: they count from 0: invalid configuration")
	_, err = s.(laplace.Posterior).LogPrior(1)
	assert.EqualError(t, err,
		"laplace.LogPrior: the state has 2 chains, each a Gaussian of its own: pick one with Posterior.Chain")
	one := must(s.(laplace.Posterior).Chain(1))
	_, err = one.LogPrior(0)
	assert.EqualError(t, err, "laplace.LogPrior: weight is 0: it must be finite and greater than 0")
	log, err := one.LogPrior(1)
	require.NoError(t, err)
	err = torch.Do(func(*torch.Scope) error {
		log(params(layout(infer.Shapes{"v": {15}}), make([]float64, 15), 0))
		return nil
	})
	assert.ErrorContains(t, err, "laplace.LogPrior: the point has layout v[15], expected b1[3] w1[3 2] w2[2 3]")
}
