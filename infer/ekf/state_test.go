package ekf_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// methods are one configuration of each method, for two parameters at "w".
func methods() map[string]infer.Method {
	return map[string]infer.Method{
		"Diag":  ekf.Diag{LR: lrOf, TransitionSD: sdOf, InitSDs: vector([]float64{0.5, 2})},
		"Dense": ekf.Dense{LR: lrOf, TransitionSD: sdOf, InitCov: vector([]float64{1, 0.3, 0.3, 2}, 2, 2)},
		"GaussNewton": ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(0.5), TransitionSD: sdOf,
			InitSDs: vector([]float64{0.5, 2}), Iterations: 2},
	}
}

// saved are the numbers of a state.
func saved(s infer.State) map[string][]float64 {
	out := map[string][]float64{}
	for name, x := range s.Save().Tensors {
		out[name] = values(x)
	}
	return out
}

// K chains are K filters, also when K is 1.
func TestChainsAreSeparateFilters(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	for name, m := range methods() {
		transform := build(t, m, logistic)
		for _, k := range []int{1, 3} {
			flat := normals(5, 2*k)
			together := begin(t, transform, params(l, flat, k))
			alone := make([]infer.State, k)
			for i := range alone {
				alone[i] = begin(t, transform, params(l, flat[2*i:2*i+2], 0))
			}
			for step := range int64(3) {
				_, _, batch := logisticData(step, 4, 2)
				var info infer.Info
				together, info = update(t, transform, together, batch)
				want := map[string][]float64{}
				for i := range alone {
					var one infer.Info
					alone[i], one = update(t, transform, alone[i], batch)
					for part, v := range saved(alone[i]) {
						want[part] = append(want[part], v...)
					}
					assert.InDelta(t, one.LogPosterior[0], info.LogPosterior[i], 1e-12, name)
					assert.InDelta(t, one.GradNorm[0], info.GradNorm[i], 1e-12, name)
				}
				for part, v := range saved(together) {
					within(t, want[part], v, 1e-12, fmt.Sprintf("%s, %d chains: %s", name, k, part))
				}
			}
			assert.Equal(t, k, together.Position().Chains())
			assert.True(t, together.Position().Batched())
		}
	}
}

// An update leaves the old state as it was, and gives the same twice; a saved state goes on as if it had not stopped.
func TestUpdateIsPure(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	_, _, batch := logisticData(1, 4, 2)
	for name, m := range methods() {
		for _, k := range []int{0, 2} {
			transform := build(t, m, logistic)
			s, _ := update(t, transform, begin(t, transform, params(l, normals(2, 2*max(k, 1)), k)), batch)
			before := saved(s)
			first, info := update(t, transform, s, batch)
			again, infoAgain := update(t, transform, s, batch)
			assert.Equal(t, before, saved(s), name)
			assert.Equal(t, saved(first), saved(again), name)
			assert.Equal(t, info, infoAgain, name)
			assert.NotEqual(t, before, saved(first), name)
			assert.Equal(t, int64(2), first.Steps())

			restored, err := transform.(infer.Restorer).Restore(l, s.Save())
			require.NoError(t, err)
			onward, _ := update(t, transform, restored, batch)
			assert.Equal(t, saved(first), saved(onward), name)
			assert.Equal(t, first.Steps(), onward.Steps())
			_, err = transform.(infer.Restorer).Restore(l,
				infer.Saved{Tensors: infer.Tensors{"params": s.Save().Tensors["params"]}})
			assert.ErrorIs(t, err, infer.ErrCheckpoint, name)
			_, err = transform.(infer.Restorer).Restore(l, infer.Saved{})
			assert.ErrorIs(t, err, infer.ErrCheckpoint, name)
		}
	}
}

// The state is a copy: changing the params or the tensors of the configuration afterwards does not change it.
func TestInitCopies(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	for name, m := range methods() {
		p := params(l, []float64{1, 2}, 0)
		s := begin(t, build(t, m, logistic), p)
		before := saved(s)
		p.Flat.MustZero_()
		assert.Equal(t, before, saved(s), name)
	}
}

// A chain whose density is not finite stays where it is, covariance and all, and the others move on.
func TestDivergedChainsAreHeld(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	_, _, batch := logisticData(1, 4, 2)
	// The square root makes the log likelihood NaN for w₀ < −5.
	limited := func(p infer.Params, b infer.Batch) torch.Tensor {
		return linear(p, b).Mul(p.Get("w").At(0).Add(5).Sqrt())
	}
	log := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return gaussianOuter(1)(limited(p, b), b).Mean(), nil
	}
	for name, m := range map[string]infer.Method{
		"Diag":        ekf.Diag{LR: infer.Constant(1), TransitionSD: infer.Constant(1)},
		"Dense":       ekf.Dense{LR: infer.Constant(1), TransitionSD: infer.Constant(1)},
		"GaussNewton": ekf.GaussNewton{Forward: limited, Outer: gaussianOuter(1), TransitionSD: infer.Constant(1)},
	} {
		transform := build(t, m, log)
		s := begin(t, transform, params(l, []float64{1, 1, -7, 1}, 2))
		next, info := update(t, transform, s, batch)
		assert.Equal(t, []bool{false, true}, info.Diverged, name)
		old, new := saved(s), saved(next)
		for part := range old {
			half := len(old[part]) / 2
			assert.NotEqual(t, old[part][:half], new[part][:half], name+" "+part)
			assert.Equal(t, old[part][half:], new[part][half:], name+" "+part)
			for _, v := range new[part] {
				assert.False(t, math.IsNaN(v), name)
			}
		}
		single := begin(t, transform, params(l, []float64{-7, 1}, 0))
		next, info = update(t, transform, single, batch)
		assert.Equal(t, []bool{true}, info.Diverged, name)
		want := saved(single)
		infer.Free(single)
		assert.Equal(t, want, saved(next), name)
	}
}

// float32 states stay float32 and follow the float64 filter to its precision.
func TestFloat32(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	_, _, batch := logisticData(1, 4, 2)
	single := infer.Batch{}
	for name, x := range batch {
		single[name] = must(torch.To(x, torch.CPU, gotch.Float))
	}
	for name, m := range methods() {
		transform := build(t, m, logistic)
		p := params(l, []float64{0.5, -1}, 0)
		wide, _ := update(t, transform, begin(t, transform, p), batch)
		narrow, _ := update(t, transform, begin(t, transform, must(p.To(torch.CPU, gotch.Float))), single)
		for part, x := range narrow.Save().Tensors {
			assert.Equal(t, gotch.Float, x.DType(), name)
			within(t, saved(wide)[part], values(x), 2e-6, name+" "+part)
		}
		streams := torch.NewStreams(1, 1)
		assert.Equal(t, gotch.Float, must(transform.(infer.Sampler).Sample(narrow, 2, &streams)).Flat.DType())
	}
}

// The filters run under infer.Run like every other method, for one pass over the data.
func TestRun(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	_, _, batch := logisticData(1, 12, 2)
	for name, m := range methods() {
		transform := build(t, m, logistic)
		result, err := infertest.Run(context.Background(), transform, params(l, []float64{0, 0}, 0), infer.Full(batch),
			infer.Options{Warmup: infer.None, Draws: infer.None, Chains: 2})
		require.NoError(t, err, name)
		assert.Equal(t, int64(1), result.State.Steps(), name)
	}
}
