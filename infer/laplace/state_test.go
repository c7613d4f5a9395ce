package laplace_test

import (
	"context"
	"fmt"
	"math"
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
	methods, l, batch := structures(func(step int64) float64 { return 1 + float64(step) })
	network, layers, _ := perceptron(tanh)
	each := curvature.Likelihood(network.Forward(layers...), softmaxOuter)
	prior := laplace.PerSite(map[string]float64{"w1": 1, "b1": 2, "w2": 3})
	methods["DiagFisher"] = laplace.DiagFisher{LogLikelihood: each, PriorPrecision: prior}
	methods["DenseFisher"] = laplace.DenseFisher{LogLikelihood: each, PriorPrecision: prior, Scale: 2}
	methods["DenseHessian"] = laplace.DenseHessian{}
	return methods, meanPosterior(each, normalPrior(40), 9), l, batch
}

// saved are the numbers of a state.
func saved(s infer.State) map[string][]float64 {
	out := map[string][]float64{}
	for _, tensors := range []infer.Tensors{s.Save().Tensors, s.Save().Shared} {
		for name, x := range tensors {
			out[name] = values(x)
		}
	}
	return out
}

// K chains are K approximations, also when K is 1; Chain picks one of them.
func TestChainsAreSeparate(t *testing.T) {
	methods, posterior, l, batch := everyMethod()
	d := l.Dim()
	for name, m := range methods {
		transform := build(t, m, posterior)
		for _, k := range []int{1, 3} {
			flat := normals(5, d*k)
			together := pass(t, transform, params(l, flat, k), batch, 4)
			assert.Equal(t, flat, values(together.Position().Flat))
			want := map[string][]float64{}
			var precisions []float64
			for i := range k {
				alone := pass(t, transform, params(l, flat[i*d:i*d+d], 0), batch, 4)
				for part, v := range saved(alone) {
					want[part] = append(want[part], v...)
				}
				precisions = append(precisions, precision(alone)...)
				one := must(together.(laplace.Posterior).Chain(i))
				within(t, precision(alone), precision(one), 1e-12, name)
				assert.False(t, one.Position().Batched())
				assert.Equal(t, together.Steps(), one.Steps())
			}
			for part, v := range saved(together) {
				within(t, want[part], v, 1e-12, fmt.Sprintf("%s, %d chains: %s", name, k, part))
			}
			within(t, precisions, precision(together), 1e-12, name)
		}
	}
}

// An update leaves the old state and the point as they were, and gives the same twice; a saved state goes on as if it
// had not stopped.
func TestUpdateIsPure(t *testing.T) {
	methods, posterior, l, batch := everyMethod()
	for name, m := range methods {
		for _, k := range []int{0, 2} {
			transform := build(t, m, posterior)
			at := params(l, normals(2, l.Dim()*max(k, 1)), k)
			s, _ := update(t, transform, begin(t, transform, at), batch)
			before := saved(s)
			first, info := update(t, transform, s, batch)
			again, infoAgain := update(t, transform, s, batch)
			assert.Equal(t, before, saved(s), name)
			assert.Equal(t, saved(first), saved(again), name)
			assert.Equal(t, info, infoAgain, name)
			assert.Equal(t, values(at.Flat), values(first.Position().Flat), name)
			assert.NotEqual(t, before, saved(first), name)
			assert.Equal(t, int64(2), first.Steps())

			restored, err := transform.(infer.Restorer).Restore(l, s.Save())
			require.NoError(t, err)
			onward, _ := update(t, transform, restored, batch)
			assert.Equal(t, saved(first), saved(onward), name)
			one, two := torch.NewStreams(1, 1), torch.NewStreams(1, 1)
			assert.Equal(t, values(must(transform.(infer.Sampler).Sample(first, 2, &one)).Flat),
				values(must(transform.(infer.Sampler).Sample(onward, 2, &two)).Flat), name)
			_, err = transform.(infer.Restorer).Restore(l, infer.Saved{Tensors: infer.Tensors{"params": at.Flat}})
			assert.ErrorIs(t, err, infer.ErrCheckpoint, name)
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

// A chain whose density is not finite gets nothing from the batch, and is reported; the others do.
func TestDivergedChainsAreHeld(t *testing.T) {
	methods, _, l, batch := everyMethod()
	network, layers, _ := perceptron(tanh)
	each := curvature.Likelihood(network.Forward(layers...), softmaxOuter)
	posterior := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return each(p, b).Mean().Add(torch.Of(p.Flat).At(0).Log()), nil // NaN below 0
	}
	d := l.Dim()
	flat := normals(5, 2*d)
	flat[0], flat[d] = 1, -1
	for name, m := range methods {
		transform := build(t, m, posterior)
		s := begin(t, transform, params(l, flat, 2))
		next, info := update(t, transform, s, batch)
		assert.Equal(t, []bool{false, true}, info.Diverged, name)
		old, new := precision(s), precision(next)
		half := len(old) / 2
		assert.NotEqual(t, old[:half], new[:half], name)
		assert.Equal(t, old[half:], new[half:], name)
		for _, v := range new {
			assert.False(t, math.IsNaN(v), name)
		}
	}
}

// float32 states stay float32 and agree with float64 to its precision.
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
		for part, x := range narrow.Save().Tensors {
			assert.Equal(t, gotch.Float, x.DType(), name+" "+part)
		}
		within(t, precision(wide), precision(narrow), 1e-5, name)
		streams := torch.NewStreams(1, 1)
		assert.Equal(t, gotch.Float, must(transform.(infer.Sampler).Sample(narrow, 2, &streams)).Flat.DType())
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
		assert.Equal(t, mean, values(fitted.Position().Flat), name)
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

// A run that stopped after two batches goes on to the same state, and a checkpoint of another method is refused.
func TestResume(t *testing.T) {
	methods, posterior, l, batch := everyMethod()
	at := params(l, normals(5, l.Dim()), 0)
	run := func(m infer.Method, dir string, steps int64) (*infer.Result, error) {
		batches := must(infer.Minibatches(batch, infer.MinibatchOptions{Size: 3, Seed: 1}))
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		return infertest.Run(ctx, build(t, m, posterior), at, batches,
			infer.Options{Warmup: infer.None, Draws: infer.None, Chains: 1,
				Checkpoint: &infer.Checkpoint{Dir: dir, Resume: true}, Observer: infer.ObserverFunc(func(p infer.Progress) {
					if p.Step == steps && steps < 3 {
						stop()
					}
				})})
	}
	others := map[string]string{"DiagGGN": "DiagFisher", "DiagFisher": "DiagGGN", "DenseGGN": "DenseFisher",
		"DenseFisher":  "DenseHessian",
		"DenseHessian": "DenseGGN", "KFAC": "DenseGGN"}
	for name, m := range methods {
		dir := t.TempDir()
		_, err := run(m, dir, 2)
		require.ErrorIs(t, err, context.Canceled, name)
		_, err = run(methods[others[name]], dir, 3)
		assert.ErrorIs(t, err, infer.ErrCheckpoint, name)
		resumed, err := run(m, dir, 3)
		require.NoError(t, err, name)
		whole, err := run(m, t.TempDir(), 3)
		require.NoError(t, err, name)
		assert.Equal(t, saved(whole.State), saved(resumed.State), name)
	}
}

// The state is a copy: changing the params or the tensors of the configuration afterwards does not change it.
func TestInitCopies(t *testing.T) {
	r := newRegression(1, 5, 2, 1, 1)
	prior, matrix := vector([]float64{1, 2}), vector([]float64{1, 0, 0, 2}, 2, 2)
	for _, m := range []infer.Method{
		laplace.DiagGGN{Forward: linear, Outer: gaussianOuter(1), PriorPrecision: laplace.PerElement(prior)},
		laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(1), PriorPrecision: laplace.Matrix(matrix)},
	} {
		p := params(r.layout, []float64{1, 2}, 0)
		s := begin(t, build(t, m, nil), p)
		before := saved(s)
		p.Flat.MustZero_()
		prior.MustZero_()
		matrix.MustZero_()
		assert.Equal(t, before, saved(s))
		prior, matrix = vector([]float64{1, 2}), vector([]float64{1, 0, 0, 2}, 2, 2)
	}
}
