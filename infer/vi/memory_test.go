package vi_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/vi"
)

// flat is a log density of any number of parameters.
func flat(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	return torch.Of(p.Flat.T().MustSum(p.Flat.T().DType(), false)), nil
}

// zeros is a point of d zeros, for k > 0 with that many chains.
func zeros(d, k int) infer.Params {
	return params(layout(infer.Shapes{"x": {d}}), make([]float64, max(k, 1)*d), k)
}

// What does not fit is refused before any of it is made: libtorch would fail on the first of these, and the kernel
// might end the process on the second. A matrix takes 8d² bytes, or 4d² in float32.
func TestLargeModelsAreRefused(t *testing.T) {
	for _, c := range []struct {
		method        infer.Method
		d, k          int
		bytes, limit  int
		want, instead string
	}{
		{vi.Dense{Optimizer: adam}, 1e6, 0, 8e12, 1 << 30,
			"vi.Dense: the scale factor L, of shape [1000000, 1000000], takes 8 TB, and vi.Dense.Memory allows 1.07 GB",
			"use vi.Diag, vi.LowRank, or fewer parameters by infer.Subspace"},
		{vi.Dense{Optimizer: adam}, 40_000, 0, 8 * 16e8, 1 << 30, "takes 12.8 GB", "vi.LowRank"},
		{vi.Dense{Optimizer: adam, Memory: 2e6}, 500, 2, 4e6, 2e6,
			"of shape [500, 500] for each of 2 chains, takes 4 MB, and vi.Dense.Memory allows 2 MB", "vi.LowRank"},
		{vi.LowRank{Optimizer: adam}, 1e6, 0, 8e9, 1 << 30,
			"vi.LowRank: the factor W, of shape [1000000, 1000], takes 8 GB, and vi.LowRank.Memory allows",
			"use a smaller Rank, vi.Diag, or fewer parameters by infer.Subspace"},
		{vi.LowRank{Optimizer: adam, Memory: 1e5, Rank: 20}, 1000, 0, 16e4, 1e5, "of shape [1000, 20], takes 160 kB",
			"smaller Rank"},
	} {
		transform := build(t, c.method, flat)
		_, err := transform.Init(zeros(c.d, c.k))
		var memory *infer.MemoryError
		require.ErrorAs(t, err, &memory)
		assert.ErrorIs(t, err, infer.ErrConfig)
		assert.ErrorContains(t, err, c.want)
		assert.ErrorContains(t, err, c.instead)
		assert.Equal(t, []int{c.bytes, c.limit}, []int{memory.Bytes, memory.Allowed})
	}
}

// The limit is the last that is allowed, in the type of the point, and holds for a state that was saved under another.
func TestMemoryIsALimit(t *testing.T) {
	single := must(zeros(20, 0).To(gotch.CPU, gotch.Float))
	for what, c := range map[string]struct {
		of    func(memory int) infer.Method
		bytes int
	}{
		"Dense": {func(memory int) infer.Method { return vi.Dense{Optimizer: adam, Memory: memory} }, 8 * 20 * 20},
		"LowRank": {func(memory int) infer.Method { return vi.LowRank{Optimizer: adam, Rank: 3, Memory: memory} },
			8 * 20 * 3},
	} {
		start := begin(t, build(t, c.of(c.bytes), flat), zeros(20, 0), 1)
		update(t, build(t, c.of(c.bytes), flat), start, nil)
		_, err := build(t, c.of(c.bytes-1), flat).Init(zeros(20, 0))
		assert.ErrorContains(t, err, "Memory allows", what)
		_, err = build(t, c.of(c.bytes/2), flat).Init(single)
		assert.NoError(t, err, what)
		_, err = build(t, c.of(c.bytes/2-1), flat).Init(single)
		assert.ErrorContains(t, err, "Memory allows", what)
		_, err = build(t, c.of(c.bytes), flat).(infer.Restorer).Restore(zeros(20, 0).Layout, start.Save())
		assert.NoError(t, err, what)
		_, err = build(t, c.of(c.bytes-1), flat).(infer.Restorer).Restore(zeros(20, 0).Layout, start.Save())
		assert.ErrorContains(t, err, "Memory allows", what)
	}
}

// A million independent elements are no matter, but their covariance as a matrix is; their standard deviations are not.
func TestLargeMatricesOfAStateAreRefused(t *testing.T) {
	s := begin(t, build(t, vi.Diag{Optimizer: adam, InitScale: 1}, flat), zeros(1e6, 0), 1)
	read := map[string]func() (torch.Tensor, error){"Covariance": s.Covariance, "ScaleFactor": s.ScaleFactor}
	for what, f := range read {
		_, err := f()
		var memory *infer.MemoryError
		require.ErrorAs(t, err, &memory)
		assert.EqualValues(t, 8e12, memory.Bytes)
		assert.ErrorContains(t, err, "vi.State: "+what+": a matrix, of shape [1000000, 1000000], "+
			"takes 8 TB, and vi.Diag.Memory allows 1.07 GB: use SD")
	}
	sd, err := s.SD()
	require.NoError(t, err)
	assert.Equal(t, 1.0, values(sd.Flat.T())[999_999])

	// [20, 20] is 3200 bytes, [20, 3+20] is 3680, for each of two chains: also after an update, and restored.
	for _, c := range []struct {
		memory             int
		covariance, factor bool
	}{{7360, true, true}, {7359, true, false}, {6400, true, false}, {6399, false, false}} {
		transform := build(t, vi.LowRank{Optimizer: adam, Rank: 3, Memory: c.memory}, flat)
		s := begin(t, transform, zeros(20, 2), 1)
		next, _ := update(t, transform, s, nil)
		restored, err := transform.(infer.Restorer).Restore(s.Mean.Layout, s.Save())
		require.NoError(t, err)
		for _, s := range []vi.State{s, next, restored.(vi.State)} {
			_, err := s.Covariance()
			assert.Equal(t, c.covariance, err == nil, "covariance with %d bytes: %v", c.memory, err)
			_, err = s.ScaleFactor()
			assert.Equal(t, c.factor, err == nil, "factor with %d bytes: %v", c.memory, err)
		}
	}
}
