package ekf_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/torch"
)

var one = infer.Constant(1)

// Each bad field is an error of Build that names it.
func TestBuildErrors(t *testing.T) {
	nan := infer.Constant(math.NaN())
	for _, c := range []struct {
		m    infer.Method
		f    infer.LogPosterior
		want string
	}{
		{ekf.Diag{LR: infer.Constant(-1)}, logistic, "ekf.Diag: LR is -1: it must be finite and at least 0"},
		{ekf.Diag{LR: one, TransitionSD: nan}, logistic, "ekf.Diag: TransitionSD is NaN: it must be finite and at least 0"},
		{ekf.Diag{LR: one, InitSD: -2}, logistic, "ekf.Diag: InitSD is -2: it must be finite and greater than 0"},
		{ekf.Diag{LR: one, Memory: -1}, logistic, "ekf.Diag: Memory is -1: it must be finite and at least 0"},
		{ekf.Diag{LR: one}, nil,
			"ekf.Diag: the target is empty, and PerDatum is nil: one of them is needed: invalid configuration"},
		{ekf.Dense{LR: one}, nil,
			"ekf.Dense: the target is empty, and PerDatum is nil: one of them is needed: invalid configuration"},
		{ekf.Dense{LR: one, InitSD: math.Inf(1)}, logistic,
			"ekf.Dense: InitSD is +Inf: it must be finite and greater than 0"},
		{ekf.Dense{LR: one, TransitionSD: infer.Constant(-1)}, logistic,
			"ekf.Dense: TransitionSD is -1: it must be finite and at least 0"},
		{ekf.Dense{LR: one, Memory: -1}, logistic, "ekf.Dense: Memory is -1: it must be finite and at least 0"},
		{ekf.GaussNewton{Outer: gaussianOuter(1)}, nil,
			"ekf.GaussNewton: Forward is nil: it is needed: the outputs z = f(θ, x), of shape [n, ...]"},
		{ekf.GaussNewton{Forward: linear}, nil,
			"ekf.GaussNewton: Outer is nil: it is needed: the log likelihoods log p(y_i|z_i), of shape [n]"},
		{ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(1), Iterations: -1}, nil,
			"ekf.GaussNewton: Iterations is -1: it must be at least 0, where 0 means 1"},
		{ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(1), LR: nan}, nil,
			"ekf.GaussNewton: LR is NaN: it must be finite and at least 0"},
		{ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(1), InitSD: -1}, nil,
			"ekf.GaussNewton: InitSD is -1: it must be finite and greater than 0"},
	} {
		_, err := c.m.Build(infer.Sum(c.f, 1))
		assert.EqualError(t, err, c.want)
		assert.ErrorIs(t, err, infer.ErrConfig)
	}
}

// Tensors of the configuration are checked against the point that the filter starts at.
func TestInitErrors(t *testing.T) {
	l := layout(infer.Shapes{"a": {}, "w": {2}})
	start := params(l, []float64{0, 0, 0}, 0)
	pair := params(l, make([]float64, 6), 2)
	for _, c := range []struct {
		m    infer.Method
		p    infer.Params
		want string
	}{
		{ekf.Diag{LR: one, InitSDs: torch.Of(vector([]float64{1, 2}))}, start,
			"ekf.Diag: InitSDs is of shape [2]: it must be of shape [3], one number for each parameter"},
		{ekf.Diag{LR: one, InitSDs: torch.Of(vector([]float64{1, 2}))}, pair,
			"ekf.Diag: InitSDs is of shape [2]: it must be of shape [3], one number for each parameter, or [2 3]"},
		{ekf.Diag{LR: one, InitSDs: torch.Of(vector([]float64{1, 0, 1}))}, start,
			"ekf.Diag: InitSDs of w[0] is 0: it must be finite and greater than 0"},
		{ekf.Diag{LR: one, TransitionSDs: torch.Of(vector([]float64{-1, 0, 1}))}, start,
			"ekf.Diag: TransitionSDs of a is -1: it must be finite and at least 0"},
		{ekf.Dense{LR: one, TransitionSDs: torch.Of(vector([]float64{1}))}, start,
			"ekf.Dense: TransitionSDs is of shape [1]: it must be of shape [3], one number for each parameter"},
		{ekf.Dense{LR: one, InitSDs: torch.Of(vector([]float64{1, 1, math.NaN()}))}, start,
			"ekf.Dense: InitSDs of w[1] is NaN: it must be finite and greater than 0"},
		{ekf.Dense{LR: one, InitCov: torch.Of(vector([]float64{1}))}, start,
			"ekf.Dense: InitCov is of shape [1]: it must be of shape [3, 3]"},
		{ekf.Dense{LR: one, InitCov: torch.Of(vector([]float64{1, 2, 0, 0, 1, 0, 0, 0, 1}, 3, 3))}, start,
			"ekf.Dense: InitCov is not symmetric: elements differ from their mirror images by up to 2: it must be symmetric"},
		{ekf.Dense{LR: one, InitCov: torch.Of(vector([]float64{1, 2, 0, 2, 1, 0, 0, 0, 1}, 3, 3))}, start,
			"ekf.Dense: InitCov is not positive definite, its smallest eigenvalue is -1: a covariance must be, and a " +
				"parameter that is known belongs outside the params"},
		{ekf.Dense{LR: one, InitCov: torch.Of(vector([]float64{1, 0, 0, 0, math.NaN(), 0, 0, 0, 1}, 3, 3))}, start,
			"ekf.Dense: InitCov has elements that are not finite: not finite"},
		{ekf.Diag{LR: one}, params(l, []float64{0, math.NaN(), 0}, 0),
			"ekf.Diag: w[0] of chain 0 is NaN at the start: not finite"},
		{ekf.Dense{LR: one}, infer.Params{Layout: l, Flat: torch.Of(vector([]float64{1}))},
			"ekf.Dense: params of shape [1] for the layout a[] w[2]: expected [3], or [K, 3] for K chains: layout does not fit"},
	} {
		_, err := build(t, c.m, logistic).Init(c.p)
		assert.EqualError(t, err, c.want)
	}
}

// A covariance matrix that does not fit is refused before it is made.
func TestDenseIsRefusedForManyParameters(t *testing.T) {
	l := layout(infer.Shapes{"w": {1000000}})
	for _, m := range []infer.Method{ekf.Dense{LR: one}, ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(1)}} {
		_, err := build(t, m, logistic).Init(must(infer.Zeros(l)))
		assert.ErrorContains(t, err, "a covariance of shape [1000000, 1000000] for each of 1 chains takes 8 TB")
		assert.ErrorContains(t, err, "use ekf.Diag, or the last layer alone by infer.Subspace")
		var memory *infer.MemoryError
		require.ErrorAs(t, err, &memory)
		assert.Equal(t, int(8e12), memory.Bytes)
	}
	_, err := build(t, ekf.Dense{LR: one, Memory: 100}, logistic).Init(must(infer.Zeros(layout(infer.Shapes{"w": {4}}))))
	assert.ErrorContains(t, err, "takes 128 bytes, and ekf.Dense.Memory allows 100 bytes")
}

func TestUpdateErrors(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	_, _, batch := logisticData(1, 4, 2)
	start := params(l, []float64{0, 0}, 0)
	negative := func(step int) float64 { return 1 - 2*float64(step) }
	for name, m := range map[string]infer.Method{
		"ekf.Diag":        ekf.Diag{LR: negative},
		"ekf.Dense":       ekf.Dense{LR: negative},
		"ekf.GaussNewton": ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(1), LR: negative},
	} {
		transform := build(t, m, logistic)
		s, _ := update(t, transform, begin(t, transform, start), batch)
		_, _, err := transform.Update(s, batch)
		assert.EqualError(t, err, name+": LR at update 1 is -1: it must be finite and at least 0")
		_, _, err = transform.Update(nil, batch)
		assert.ErrorContains(t, err, name+": the state is a <nil>, expected ekf.D")
		_, _, err = transform.Update(begin(t, transform, start), infer.Batch{})
		assert.ErrorContains(t, err, "the batch is empty")
		_, _, err = transform.Update(begin(t, transform, start), infer.Batch{"y": batch["y"]})
		assert.ErrorContains(t, err, `the model asked for batch tensor "x", which does not exist; there are: ["y"]`)
		_, _, err = transform.Update(begin(t, transform, start), infer.Batch{"x": batch["y"], "y": batch["y"]})
		assert.ErrorContains(t, err, name+": ")
	}
	for name, m := range map[string]infer.Method{
		"ekf.Diag":        ekf.Diag{LR: one, TransitionSD: negative},
		"ekf.Dense":       ekf.Dense{LR: one, TransitionSD: negative},
		"ekf.GaussNewton": ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(1), TransitionSD: negative},
	} {
		transform := build(t, m, logistic)
		s, _ := update(t, transform, begin(t, transform, start), batch)
		_, _, err := transform.Update(s, batch)
		assert.EqualError(t, err, name+": TransitionSD at update 1 is -1: it must be finite and at least 0")
	}

	convex := func(z torch.Tensor, b infer.Batch) torch.Tensor { return z.Square() }
	transform := build(t, ekf.GaussNewton{Forward: linear, Outer: convex}, nil)
	_, _, err := transform.Update(begin(t, transform, start), batch)
	assert.ErrorContains(t, err,
		"ekf.GaussNewton: the updated precision, in units of the predicted one, is not positive definite, its smallest "+
			"eigenvalue is -")
	assert.ErrorContains(t, err, "Outer must be log-concave in the outputs, and LR not too large")
	none := func(z torch.Tensor, b infer.Batch) torch.Tensor { return torch.Tensor{} }
	transform = build(t, ekf.GaussNewton{Forward: linear, Outer: none}, nil)
	_, _, err = transform.Update(begin(t, transform, start), batch)
	assert.ErrorContains(t, err, "the outer density returned one number, expected a tensor of shape [n]")
}

func TestSampleErrors(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	streams := torch.NewStreams(1, 1)
	for name, m := range map[string]infer.Method{"ekf.Diag": ekf.Diag{LR: one}, "ekf.Dense": ekf.Dense{LR: one}} {
		transform := build(t, m, logistic)
		s := begin(t, transform, params(l, []float64{0, 0}, 0))
		sampler := transform.(infer.Sampler)
		_, err := sampler.Sample(s, 0, &streams)
		assert.EqualError(t, err, name+": Sample of 0 draws: there must be at least 1: invalid configuration")
		_, err = sampler.Sample(s, 1, nil)
		assert.EqualError(t, err,
			name+": Sample without random streams: torch.NewStreams(seed, 1) makes them: invalid configuration")
		_, err = sampler.Sample(s, 1, &torch.Streams{})
		assert.ErrorContains(t, err, "without random streams", name)
		_, err = sampler.Sample(nil, 1, &streams)
		assert.ErrorContains(t, err, name+": the state is a <nil>")
	}
}
