package laplace_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// everyMethod is a configuration of each method for the perceptron, and the log posterior to build it with.
func everyMethod() (map[string]infer.Method, infer.LogPosterior, *infer.Layout, infer.Batch) {
	methods, l, batch := structures(func(step int) float64 { return 1 + float64(step) })
	network, layers, _ := perceptron(tanh)
	each := curvature.Likelihood(network.Forward(layers...), softmaxOuter)
	prior := laplace.PerSite(map[string]float64{"w1": 1, "b1": 2, "w2": 3})
	methods["DiagFisher"] = laplace.DiagFisher{LogLikelihood: each, PriorPrecision: prior}
	methods["DenseFisher"] = laplace.DenseFisher{LogLikelihood: each, PriorPrecision: prior, Scale: 2}
	methods["DenseHessian"] = laplace.DenseHessian{}
	return methods, meanPosterior(each, normalPrior(40), 9), l, batch
}

func TestContract(t *testing.T) {
	methods, posterior, l, batch := everyMethod()
	infertest.Contract(t, methods, infertest.Ground{Posterior: infertest.Walled(posterior), Layout: l, Batch: batch,
		Run: infer.Options{Warmup: infer.None, Draws: infer.None}, Minibatch: 3, Stops: []int{1, 2}})
}

// saved are the numbers of a state.
func saved(s infer.State) map[string][]float64 {
	out := map[string][]float64{}
	for _, tensors := range []infer.Tensors{s.Save().Tensors, s.Save().Shared} {
		for name, x := range tensors {
			out[name] = values(x.T())
		}
	}
	return out
}

// Chain picks one of K approximations.
func TestChain(t *testing.T) {
	methods, posterior, l, batch := everyMethod()
	d, k := l.Dim(), 3
	for name, m := range methods {
		transform := build(t, m, posterior)
		flat := normals(5, d*k)
		together := pass(t, transform, params(l, flat, k), batch, 4)
		assert.Equal(t, flat, values(together.Position().Flat.T()), "the mode stays")
		for i := range k {
			one := must(together.(laplace.Posterior).Chain(i))
			within(t, precision(pass(t, transform, params(l, flat[i*d:i*d+d], 0), batch, 4)), precision(one), 1e-12, name)
			assert.False(t, one.Position().Batched())
			assert.Equal(t, together.Steps(), one.Steps())
		}
	}
}

// Info is the log posterior given to Build with its gradient, which is small at an optimum, or the log likelihood of
// the batch.
func TestInfo(t *testing.T) {
	const lambda = 0.8
	r := newRegression(1, 23, 4, 0.7, lambda)
	each := curvature.Likelihood(linear, gaussianOuter(r.s))
	at := params(r.layout, r.mean, 0)
	joint := sumPosterior(each, normalPrior(lambda), 23)
	dense := build(t, laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(r.s)}, joint)
	_, info := update(t, dense, begin(t, dense, at), r.batch)
	within(t, []float64{values(first(joint(at, r.batch)).T())[0]}, info.LogPosterior, 1e-12, "log posterior")
	assert.Less(t, info.GradNorm[0], 1e-10)
	for _, m := range []infer.Method{laplace.DiagGGN{Forward: linear, Outer: gaussianOuter(r.s)},
		laplace.DiagFisher{LogLikelihood: each}} {
		transform := build(t, m, nil)
		_, info := update(t, transform, begin(t, transform, at), r.batch)
		sum := 0.0
		for _, v := range each(at, r.batch).Values() {
			sum += v
		}
		within(t, []float64{sum}, info.LogPosterior, 1e-11, "log likelihood")
		assert.Equal(t, 1.0, info.Temperature)
	}
}

// float32 states agree with float64 to its precision.
func TestFloat32(t *testing.T) {
	methods, posterior, l, batch := everyMethod()
	single := infer.Batch{}
	for name, x := range batch {
		single[name] = must(torch.To(x, torch.CPU, gotch.Float))
	}
	p := params(l, normals(5, l.Dim()), 0)
	for name, m := range methods {
		transform := build(t, m, posterior)
		wide := pass(t, transform, p, batch, 4)
		narrow := pass(t, transform, must(p.To(torch.CPU, gotch.Float)), single, 4)
		within(t, precision(wide), precision(narrow), 1e-5, name)
		assert.InDelta(t, must(wide.(laplace.Posterior).LogEvidence(0)),
			must(narrow.(laplace.Posterior).LogEvidence(0)), 1e-3, name)
		log, err := narrow.(laplace.Posterior).LogPrior(1)
		require.NoError(t, err)
		assert.Equal(t, gotch.Float, log(narrow.Position()).T().DType(), name)
	}
}

// A state can be freed without harm to those made from it, and lives on after the scope that it was made in.
func TestStatesAreFreedApart(t *testing.T) {
	methods, posterior, l, batch := everyMethod()
	for name, m := range methods {
		transform := build(t, m, posterior)
		want := precision(pass(t, transform, params(l, normals(5, 2*l.Dim()), 2), batch, 5))
		var s, first, fitted infer.State
		require.NoError(t, torch.Do(func(scope *torch.Scope) (err error) {
			s = pass(t, transform, params(l, normals(5, 2*l.Dim()), 2), batch, 5)
			method.Keep(scope, s)
			first = must(s.(laplace.Posterior).Chain(0))
			fitted = first
			if name != "DenseHessian" { // which is not positive without its prior
				fitted, _, err = laplace.OptimizePriorPrecision(first, laplace.PriorOptions{})
				method.Keep(scope, fitted)
			}
			method.Keep(scope, first)
			return err
		}))
		assert.Equal(t, want, precision(s), name)
		next, _ := update(t, transform, s, batch)
		streams := torch.NewStreams(1, 1)
		before, mean := precision(next), normals(5, l.Dim())
		infer.Free(s)
		assert.Equal(t, before, precision(next), name)
		must(transform.(infer.Sampler).Sample(next, 3, &streams))
		assert.Equal(t, want[:len(want)/2], precision(first), name)
		if name != "DenseHessian" {
			infer.Free(first)
		}
		precision(fitted)
		assert.Equal(t, mean, values(fitted.Position().Flat.T()), name)
	}
}

// The methods run under infer.Run like every other: one pass over minibatches is the full batch.
func TestRun(t *testing.T) {
	methods, posterior, l, batch := everyMethod()
	for name, m := range methods {
		transform := build(t, m, posterior)
		at := params(l, normals(5, l.Dim()), 0)
		batches := must(infer.Minibatches(batch, infer.MinibatchOptions{Size: 3, Seed: 1}))
		result, err := infertest.Run(context.Background(), transform, at, batches,
			infer.Options{Warmup: infer.None, Draws: infer.None})
		require.NoError(t, err, name)
		within(t, precision(pass(t, transform, at, batch, 9)), precision(result.State), 1e-12, name)
	}
}

// The checkpoint of another method is refused.
func TestCheckpointsTellMethodsApart(t *testing.T) {
	methods, posterior, l, batch := everyMethod()
	run := func(m infer.Method, dir string) error {
		_, err := infertest.Run(context.Background(), build(t, m, posterior), params(l, normals(5, l.Dim()), 0),
			infer.Full(batch), infer.Options{Warmup: infer.None, Draws: infer.None,
				Checkpoint: &infer.Checkpoint{Dir: dir, Resume: true}})
		return err
	}
	for name, other := range map[string]string{"DiagGGN": "DiagFisher", "DiagFisher": "DiagGGN", "DenseGGN": "DenseFisher",
		"DenseFisher": "DenseHessian", "DenseHessian": "DenseGGN", "KFAC": "DenseGGN"} {
		dir := t.TempDir()
		require.NoError(t, run(methods[name], dir), name)
		assert.ErrorIs(t, run(methods[other], dir), infer.ErrCheckpoint, name)
	}
}

// The state is a copy: changing the params or the tensors of the configuration afterwards does not change it.
func TestInitCopies(t *testing.T) {
	r := newRegression(1, 5, 2, 1, 1)
	prior, matrix := vector([]float64{1, 2}), vector([]float64{1, 0, 0, 2}, 2, 2)
	for _, m := range []infer.Method{
		laplace.DiagGGN{Forward: linear, Outer: gaussianOuter(1), PriorPrecision: laplace.PerElement(torch.Of(prior))},
		laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(1), PriorPrecision: laplace.Matrix(torch.Of(matrix))},
	} {
		p := params(r.layout, []float64{1, 2}, 0)
		s := begin(t, build(t, m, nil), p)
		before := saved(s)
		p.Flat.T().MustZero_()
		prior.MustZero_()
		matrix.MustZero_()
		assert.Equal(t, before, saved(s))
		prior, matrix = vector([]float64{1, 2}), vector([]float64{1, 0, 0, 2}, 2, 2)
	}
}
