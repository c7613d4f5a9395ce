package ekf_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Outputs [n, 1] against labels [n] have densities of shape [n], each a sum over all labels: an error, not a result
// that depends on the size of the batch. The Fisher filters take each datum by itself, where the shapes make no
// difference.
func TestOutputsThatDoNotMatchTheLabels(t *testing.T) {
	const n, d = 6, 2
	x, y := normals(1, n*d), normals(2, n)
	batch := rows(x, y, []int{0, 1, 2, 3, 4, 5})
	column := func(p infer.Params, b infer.Batch) torch.Tensor { return linear(p, b).Unsqueeze(1) }
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return gaussianOuter(1)(z, b).Sum(-1)
	}
	start := params(layout(infer.Shapes{"w": {d}}), normals(3, d), 0)
	transform := build(t, ekf.GaussNewton{Forward: column, Outer: outer}, nil)
	_, _, err := transform.Update(begin(t, transform, start), batch)
	assert.ErrorContains(t, err, "the density of datum 0 changes with the other data")
	assert.ErrorContains(t, err, "z has shape [6 1], the batch has x [6 2], y [6]")
	_, _, err = transform.Update(begin(t, transform, start), infer.Batch{"x": batch["x"], "y": torch.Of(vector(y, n, 1))})
	assert.NoError(t, err)

	for _, f := range []curvature.PerDatum{curvature.Likelihood(column, outer),
		curvature.Likelihood(linear, gaussianOuter(1))} {
		dense := build(t, ekf.Dense{LR: one, PerDatum: f}, nil)
		s, _ := update(t, dense, begin(t, dense, start), batch)
		want := build(t, ekf.Dense{LR: one, PerDatum: curvature.Likelihood(linear, gaussianOuter(1))}, nil)
		expected, _ := update(t, want, begin(t, want, start), batch)
		within(t, values(expected.Position().Flat.T()), values(s.Position().Flat.T()), 1e-14, "mean")
	}
}

// Diag makes gradients in blocks, whatever the size of the batch: here four of a million parameters, in the memory of
// one. The log likelihood of datum i is −(w_i − 2)²/2.
func TestDiagOfManyParameters(t *testing.T) {
	const d, n = 1_000_000, 4
	p := infer.Params{Layout: layout(infer.Shapes{"w": {d}}),
		Flat: torch.Of(must(ts.Zeros([]int64{d}, gotch.Float, torch.CPU)))}
	index := must(torch.FromSliceOn(torch.CPU, gotch.Int64, []float64{0, 1, 2, 3}))
	each := func(p infer.Params, b infer.Batch) torch.Tensor {
		at := p.Get("w").T().MustIndexSelect(0, b.Get("i").T(), false)
		return torch.Of(at).Sub(2).Square().Mul(-0.5)
	}
	transform := build(t, ekf.Diag{LR: infer.Constant(n), PerDatum: each, Memory: 4 * d}, nil)
	s, _ := update(t, transform, begin(t, transform, p), infer.Batch{"i": index})
	// Gradient 2, Fisher information 4: v' = 1/5, μ' = 2/5 for the n parameters that have data, and 1 and 0 for the
	// others.
	within(t, []float64{0.4, 0.4, 0.4, 0.4, 0}, values(s.Position().Flat.T().MustNarrow(0, 0, 5, false)), 1e-6, "mean")
	within(t, []float64{0.2, 0.2, 0.2, 0.2, 1}, values(s.(ekf.DiagState).Variance.T().MustNarrow(0, 0, 5, false)), 1e-6,
		"variance")
}

// TransitionSDs are copied: freeing or changing the tensor later changes nothing.
func TestTransitionSDsAreCopied(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	_, _, batch := logisticData(1, 4, 2)
	for _, give := range []func(sds torch.Tensor) infer.Method{
		func(sds torch.Tensor) infer.Method { return ekf.Diag{LR: one, TransitionSDs: sds} },
		func(sds torch.Tensor) infer.Method { return ekf.Dense{LR: one, TransitionSDs: sds} },
		func(sds torch.Tensor) infer.Method {
			return ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(1), TransitionSDs: sds}
		},
	} {
		sds := vector([]float64{1, 2})
		transform := build(t, give(torch.Of(sds)), logistic)
		start := begin(t, transform, params(l, []float64{0, 0}, 0))
		want, _ := update(t, transform, start, batch)
		sds.MustZero_()
		got, _ := update(t, transform, start, batch)
		assert.Equal(t, saved(want), saved(got))
		torch.Free(torch.Of(sds))
		got, _ = update(t, transform, start, batch)
		assert.Equal(t, saved(want), saved(got))
	}
}

// A limit of memory is named after the field of the method.
func TestMemoryErrorsNameTheField(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	_, _, batch := logisticData(1, 40, 2)
	transform := build(t, ekf.Dense{LR: one, Memory: 100}, logistic)
	_, _, err := transform.Update(begin(t, transform, params(l, []float64{0, 0}, 0)), batch)
	assert.ErrorContains(t, err, "gradients of shape [40, 2] takes 640 bytes, and ekf.Dense.Memory allows 100 bytes")
	transform = build(t, ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(1), Memory: 40}, logistic)
	_, _, err = transform.Update(begin(t, transform, params(l, []float64{0, 0}, 0)), batch)
	assert.ErrorContains(t, err, "a factor of shape [4, 2] takes 64 bytes, and ekf.GaussNewton.Memory allows 40 bytes")
}

// A state without a root, made by hand, starts from the Cholesky factor of its covariance.
func TestStateWithoutARoot(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	_, _, batch := logisticData(1, 4, 2)
	for name, m := range methods() {
		if name == "Diag" {
			continue
		}
		transform := build(t, m, logistic)
		s, _ := update(t, transform, begin(t, transform, params(l, []float64{0, 0}, 0)), batch)
		bare := s.(ekf.DenseState)
		bare.Root = torch.Tensor{}
		want, _ := update(t, transform, s, batch)
		got, _ := update(t, transform, bare, batch)
		within(t, values(want.Position().Flat.T()), values(got.Position().Flat.T()), 1e-13, name)
		within(t, values(want.(ekf.DenseState).Covariance.T()), values(got.(ekf.DenseState).Covariance.T()), 1e-13, name)
		restored, err := transform.(infer.Restorer).Restore(l, bare.Save())
		require.NoError(t, err)
		assert.Equal(t, torch.Tensor{}, restored.(ekf.DenseState).Root)
		streams := torch.NewStreams(1, 1)
		_, err = transform.(infer.Sampler).Sample(restored, 3, &streams)
		assert.NoError(t, err)
		bare.Covariance = torch.Of(vector([]float64{1, 2, 2, 1}, 2, 2))
		_, _, err = transform.Update(bare, batch)
		assert.ErrorIs(t, err, curvature.ErrIndefinite)
		assert.ErrorContains(t, err, "the covariance is not positive definite, its smallest eigenvalue is -1")
	}
}
