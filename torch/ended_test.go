package torch_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

func int64s(shape []int, x ...int) torch.Tensor { return torch.New(x, shape...) }

func zeros(shape ...int) torch.Tensor {
	return torch.Of(ts.MustZeros(torch.Int64s(shape), torch.DTypeOf[float64](), torch.CPU))
}

func ones(shape ...int) torch.Tensor {
	return torch.Of(ts.MustOnes(torch.Int64s(shape), torch.DTypeOf[float64](), torch.CPU))
}

// sizes are a list of sizes.
func sizes(n ...int) []int { return n }

// What ends the process in libtorch 1.13, or does not end, is an error.
func TestOperationsThatEndedTheProcess(t *testing.T) {
	for name, call := range map[string]struct {
		f   func() error
		why string
	}{
		"AlignTensors": {func() error { return drop2(ts.AlignTensors(nil)) }, "at least one tensor"},
		"NativeChannelShuffle, no group": {func() error { return drop2(zeros(2, 4, 3).T().NativeChannelShuffle(0, false)) },
			"one or more groups"},
		"NativeChannelShuffle, more groups than channels": {func() error {
			return drop2(zeros(2, 4, 3).T().NativeChannelShuffle(5, false))
		}, "one or more groups"},
		"NativeChannelShuffle, no channels": {func() error { return drop2(zeros(3, 0).T().NativeChannelShuffle(2, false)) },
			"one or more groups"},
		"NativeBatchNorm": {func() error {
			_, _, _, err := ts.NativeBatchNorm(zeros(0, 3).T(), zeros(3).T(), zeros(3).T(), zeros(3).T(), zeros(3).T(), true,
				0.1, 1e-5)
			return err
		}, "the batch is empty"},
		"BatchNormUpdateStats": {func() error {
			_, _, err := ts.BatchNormUpdateStats(zeros(0, 3).T(), zeros(3).T(), zeros(3).T(), 0.1)
			return err
		}, "the batch is empty"},
		"LuUnpack": {func() error {
			_, _, _, err := ts.LuUnpack(zeros(3, 3).T(), torch.New([]int32{}).T(), true, true)
			return err
		}, "no pivots"},
		"MatrixPower": {func() error { return drop2(ones(1, 1).T().MatrixPower(math.MinInt64, false)) }, "out of range"},
		"MatrixExpBackward": {func() error { return drop2(zeros(2).T().MatrixExpBackward(zeros(2).T(), false)) },
			"another shape"},
		"RandomFrom_": {func() error { return zeros(1).T().RandomFrom_(math.MaxInt64, nil) }, "less than the largest"},
		"Lcm": {func() error { return drop2(int64s(sizes(1), math.MinInt64).T().Lcm(int64s(sizes(1), 5).T(), false)) },
			"a multiple of the smallest integer"},
		"EmbeddingBackward": {func() error {
			return drop2(ts.EmbeddingBackward(ones(1, 2).T(), int64s(sizes(1), -1).T(), 2, -1, true, false))
		}, "an index is out of range"},
		"EmbeddingBag, index": {func() error { return bag(int64s(sizes(1), 3), int64s(sizes(1), 0), 0) },
			"an index is out of range"},
		"EmbeddingBag, offset": {func() error { return bag(int64s(sizes(1), 0), int64s(sizes(2), 0, 2), 0) }, "offsets"},
		"EmbeddingBag, mode":   {func() error { return bag(int64s(sizes(1), 0), int64s(sizes(1), 0), 3) }, "the mode"},
		"FractionalMaxPool2dBackward, index": {func() error {
			return drop2(ones(1, 2, 2).T().FractionalMaxPool2dBackward(ones(1, 1, 1).T(), torch.Int64s(sizes(2,
				2)), torch.Int64s(sizes(1, 1)),
				int64s(sizes(1, 1, 1), 4).T(), false))
		}, "an index is out of range"},
		"FractionalMaxPool3dBackward, no sizes": {func() error {
			return drop2(ones(1, 2, 2, 2).T().FractionalMaxPool3dBackward(ones(1, 1, 1, 1).T(), nil, nil,
				int64s(sizes(1, 1, 1, 1), 0).T(), false))
		}, "an output size"},
		"MaxUnpool2d": {func() error {
			return drop2(ones(1, 1, 1).T().MaxUnpool2d(int64s(sizes(1, 1, 1), 0).T(), nil,
				false))
		},
			"two output sizes"},
		"MaxUnpool3d": {func() error {
			return drop2(ones(1, 1, 1, 1).T().MaxUnpool3d(int64s(sizes(1, 1, 1, 1), 0).T(), nil, nil, nil, false))
		}, "three output sizes"},
		"SlowConv3d": {func() error {
			return drop2(ones(1, 1, 1, 1, 1).T().SlowConv3d(ones(1, 1, 1, 1, 1).T(), nil, zeros(1).T(), nil, nil, false))
		}, "three kernel sizes"},
		"ReflectionPad1d": {func() error { return drop2(ones(1, 3).T().ReflectionPad1d(nil, false)) }, "two paddings"},
		"ReflectionPad2d, huge": {func() error {
			return drop2(ones(1, 2,
				2).T().ReflectionPad2d(torch.Int64s(sizes(2, 0, 0, 0)), false))
		},
			"smaller"},
		"ReflectionPad2dBackward": {func() error {
			return drop2(ones(1, 2, 2).T().ReflectionPad2dBackward(ones(1, 2, 2).T(), torch.Int64s(sizes(1, 0, 0, 0)), false))
		}, "another shape"},
		"UnfoldBackward": {func() error { return drop2(ts.UnfoldBackward(ones(3, 2).T(), torch.Int64s(sizes(4)), 0, 2, 0)) },
			"do not fit"},
		"ChooseQparamsOptimized": {func() error {
			_, _, err := ts.ChooseQparamsOptimized(torch.New([]float32{1, 2}).T(), 3, 200, 0.2, 8)
			return err
		}, "are missing"},
		"QuantizedLstmCell": {func() error {
			x, s := zeros(1, 1), ts.FloatScalar(1)
			_, _, err := ts.QuantizedLstmCell(x.T(), nil, x.T(), x.T(), x.T(), x.T(), x.T(), x.T(), x.T(), x.T(), s, s, s, s)
			return err
		}, "two tensors of state"},
		"Pinverse": {func() error {
			return drop2(square(math.Inf(1), -0.7, 1.3, -0.01, -0.7, 1.4, 0.3, 0.2, 0.1).T().Pinverse(1e-15, false))
		},
			"not finite"},
		"Svd": {func() error {
			_, _, _, err := square(1, 2, 3, math.NaN()).T().Svd(true, true, false)
			return err
		}, "not finite"},
		"CMalloc, negative": {func() error { ts.CMalloc(-100); return nil }, "no memory of -100 bytes"},
		"CMalloc, huge":     {func() error { ts.CMalloc(1 << 60); return nil }, "no memory of"},
	} {
		var e *torch.Error
		err := torch.Do(func(*torch.Scope) error { return call.f() })
		if assert.ErrorAs(t, err, &e, name) {
			assert.Contains(t, e.Error(), call.why, name)
		}
	}
	_, bytes := ts.CMalloc(100)
	assert.Equal(t, 100, bytes.Cap(), "room for what was asked")
}

func square(x ...float64) torch.Tensor {
	n := int(math.Sqrt(float64(len(x))))
	return torch.New(x, n, n)
}

func bag(indices, offsets torch.Tensor, mode int) error {
	_, _, _, _, err := ts.EmbeddingBag(ones(3, 1).T(), indices.T(), offsets.T(), false, int64(mode), false,
		ts.NewTensor(), false)
	return err
}

// With arguments that fit they give what they should, which is easy to say in these cases: a derivative counts how
// often an element was used.
func TestOperationsThatEndedTheProcessWork(t *testing.T) {
	for name, call := range map[string]struct {
		f    func() (torch.Tensor, error)
		want []float64
	}{
		"NativeChannelShuffle": {func() (torch.Tensor, error) {
			return raw.Of(vec([]float64{0, 1, 2, 3}, 1, 4, 1).T().NativeChannelShuffle(2, false))
		}, []float64{0, 2, 1, 3}},
		"MatrixPower": {func() (torch.Tensor, error) { return raw.Of(vec([]float64{2}, 1, 1).T().MatrixPower(-3, false)) },
			[]float64{0.125}},
		"MatrixExpBackward": {func() (torch.Tensor, error) { // exp(A) = 1 + A + ... near 0
			return raw.Of(zeros(2, 2).T().MatrixExpBackward(vec([]float64{1, 2, 3, 4}, 2, 2).T(), false))
		}, []float64{1, 2, 3, 4}},
		"RandomFrom": {func() (torch.Tensor, error) {
			return raw.Of(zeros(2).T().RandomFrom(5,
				torch.Int64s(sizes(6)), false))
		},
			[]float64{5, 5}},
		"Lcm": {func() (torch.Tensor, error) {
			return raw.Of(int64s(sizes(2), 4, math.MinInt32).T().Lcm(int64s(sizes(2), 6, 1).T(), false))
		}, []float64{12, 1 << 31}},
		"EmbeddingBackward": {func() (torch.Tensor, error) {
			return raw.Of(ts.EmbeddingBackward(ones(3, 2).T(), int64s(sizes(3), 0, 2, 2).T(), 3, -1, false, false))
		}, []float64{1, 1, 0, 0, 2, 2}},
		"EmbeddingBag": {func() (torch.Tensor, error) {
			y, _, _, _, err := ts.EmbeddingBag(vec([]float64{1, 2, 4}, 3, 1).T(), int64s(sizes(3), 0, 1, 2).T(),
				int64s(sizes(2), 0, 2).T(), false, 0, false, ts.NewTensor(), false)
			return torch.Of(y), err
		}, []float64{3, 4}},
		"FractionalMaxPool2dBackward": {func() (torch.Tensor, error) {
			return raw.Of(ones(1, 2, 2).T().FractionalMaxPool2dBackward(ones(1, 1, 1).T(), torch.Int64s(sizes(2,
				2)), torch.Int64s(sizes(1, 1)),
				int64s(sizes(1, 1, 1), 3).T(), false))
		}, []float64{0, 0, 0, 1}},
		"FractionalMaxPool3dBackward": {func() (torch.Tensor, error) {
			return raw.Of(ones(1, 2, 1, 2).T().FractionalMaxPool3dBackward(ones(1, 1, 1, 1).T(),
				torch.Int64s(sizes(2, 1, 2)), torch.Int64s(sizes(1, 1, 1)),
				int64s(sizes(1, 1, 1, 1), 2).T(), false))
		}, []float64{0, 0, 1, 0}},
		"MaxUnpool2d": {func() (torch.Tensor, error) {
			return raw.Of(ones(1, 1, 1).T().MaxUnpool2d(int64s(sizes(1, 1, 1), 2).T(), torch.Int64s(sizes(2, 2)), false))
		}, []float64{0, 0, 1, 0}},
		"MaxUnpool3d": {func() (torch.Tensor, error) {
			return raw.Of(ones(1, 1, 1, 1).T().MaxUnpool3d(int64s(sizes(1, 1, 1, 1), 2).T(),
				torch.Int64s(sizes(1, 2, 2)), torch.Int64s(sizes(1, 2, 2)),
				torch.Int64s(sizes(0, 0, 0)), false))
		}, []float64{0, 0, 1, 0}},
		"SlowConv3d": {func() (torch.Tensor, error) {
			return raw.Of(vec([]float64{3}, 1, 1, 1, 1, 1).T().SlowConv3d(vec([]float64{2}, 1, 1, 1, 1, 1).T(),
				torch.Int64s(sizes(1, 1, 1)),
				zeros(1).T(), torch.Int64s(sizes(1, 1, 1)), torch.Int64s(sizes(0, 0, 0)), false))
		}, []float64{6}},
		"ReflectionPad1d": {func() (torch.Tensor, error) {
			return raw.Of(vec([]float64{1, 2, 3}, 1, 3).T().ReflectionPad1d(torch.Int64s(sizes(2, -1)), false))
		}, []float64{3, 2, 1, 2}},
		"ReflectionPad1dBackward": {func() (torch.Tensor, error) { // 1 0 1 2 1
			return raw.Of(ones(1, 3).T().ReflectionPad1dBackward(ones(1, 5).T(), torch.Int64s(sizes(1, 1)), false))
		}, []float64{1, 3, 1}},
		"ReflectionPad2dBackward": {func() (torch.Tensor, error) { // columns 1 0 1, rows 0 1 0
			return raw.Of(ones(1, 2, 2).T().ReflectionPad2dBackward(ones(1, 3, 3).T(), torch.Int64s(sizes(1, 0, 0, 1)), false))
		}, []float64{2, 4, 1, 2}},
		"UnfoldBackward": {func() (torch.Tensor, error) {
			return raw.Of(ts.UnfoldBackward(ones(3, 2).T(), torch.Int64s(sizes(4)), 0, 2,
				1))
		},
			[]float64{1, 2, 2, 1}},
		"Svd": {func() (torch.Tensor, error) {
			_, s, _, err := square(0, 2, 3, 0).T().Svd(true, true, false)
			return torch.Of(s), err
		}, []float64{3, 2}},
		"Pinverse": {func() (torch.Tensor, error) { return raw.Of(square(2, 0, 0, 0).T().Pinverse(1e-15, false)) },
			[]float64{0.5, 0, 0, 0}},
		"LinalgLstsq": {func() (torch.Tensor, error) {
			x, _, _, _, err := vec([]float64{2}, 1, 1).T().LinalgLstsq(vec([]float64{6}, 1, 1).T(), nil, "gelsd", false)
			return torch.Of(x), err
		}, []float64{3}},
		"ChooseQparamsOptimized": {func() (torch.Tensor, error) { // one number has no range
			q, _, err := ts.ChooseQparamsOptimized(torch.New([]float32{1}).T(), 1, 200, 0.2, 8)
			return torch.Of(q), err
		}, []float64{1}},
	} {
		inScope(t, func(*torch.Scope) {
			y, err := call.f()
			require.NoError(t, err, name)
			assert.InDeltaSlice(t, call.want, torch.Must(torch.ToSlice[float64](y)), 1e-12, name)
		})
	}
}
