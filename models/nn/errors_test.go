package nn_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// bare is a layer with any plan.
type bare struct{ plan nn.Plan }

func (b *bare) Plan([]int) (nn.Plan, error) { return b.plan, nil }

func TestBuildErrors(t *testing.T) {
	identity := func(_ nn.Call, x torch.Tensor) torch.Tensor { return x }
	twice := []nn.Param{{Name: "w", Shape: []int{1}}, {Name: "w", Shape: []int{2}}}
	for _, c := range []struct {
		want   string
		layers nn.Sequential
		in     []int
	}{
		{`the network has no parameters`, nil, []int{2}},
		{`the network has no parameters: expected a layer such as nn.Linear`, nn.Sequential{nn.Tanh{}}, []int{2}},
		{`layer "1" is nil`, nn.Sequential{nn.Tanh{}, nil}, []int{2}},
		{`layer "a" is nil`, nn.Sequential{nn.Named("a", nil)}, []int{2}},
		{`layer 0 (Tanh) has the name "": expected one that is not empty`, nn.Sequential{nn.Named("", nn.Tanh{})},
			[]int{2}},
		{`the input shape is [2 0]: its sizes must be at least 1`, nn.Sequential{nn.Tanh{}}, []int{2, 0}},
		{`two layers are called "a"; use nn.Named`, nn.Sequential{nn.Named("a", nn.Tanh{}), nn.Named("a", nn.Tanh{})}, nil},
		{`two of the parameters ["0.w" "0.w"] have the same name`,
			nn.Sequential{&bare{nn.Plan{Params: twice, Forward: identity}}}, nil},
		{`layer "0" (bare): its Plan has no Forward`, nn.Sequential{&bare{}}, nil},
		{`its outputs have shape [0]: sizes must be at least 1`, nn.Sequential{&bare{nn.Plan{Out: []int{0},
			Forward: identity}}}, nil},
		{`layer "0" (Linear): nn.Linear: Out is 0: it must be at least 1`, nn.Sequential{nn.Linear{}}, []int{2}},
		{`layer "0" (Linear): inputs have shape []: expected [..., features]`, nn.Sequential{nn.Linear{Out: 1}}, nil},
		{`layer "b" (Linear): nn.Linear: In is 4: inputs have shape [3], so it must be 3, or 0`,
			nn.Sequential{nn.Linear{Out: 3}, nn.Named("b", nn.Linear{Out: 1, In: 4})}, []int{2}},
		{`nn.Embedding: Num is -1: it must be at least 1`, nn.Sequential{nn.Embedding{Num: -1, Dim: 1}}, []int{2}},
		{`nn.Embedding: Dim is 0: it must be at least 1`, nn.Sequential{nn.Embedding{Num: 1}}, []int{2}},
		{`(Conv1d): inputs have shape [2]: expected [channels, steps]; nn.Transpose turns`,
			nn.Sequential{nn.Conv1d{Out: 1, Kernel: 1}}, []int{2}},
		{`nn.Conv1d: Kernel is 6: inputs have shape [2 3], so it must be at most 5`,
			nn.Sequential{nn.Conv1d{Out: 1, Kernel: 6, Padding: 1}}, []int{2, 3}},
		{`nn.Conv1d: Kernel is 0: it must be at least 1`, nn.Sequential{nn.Conv1d{Out: 1}}, []int{2, 3}},
		{`nn.Conv1d: Stride is -1: it must be at least 0`, nn.Sequential{nn.Conv1d{Out: 1, Kernel: 1, Stride: -1}},
			[]int{2, 3}},
		{`nn.Conv1d: Padding is -1: it must be at least 0`, nn.Sequential{nn.Conv1d{Out: 1, Kernel: 1, Padding: -1}},
			[]int{2, 3}},
		{`nn.Conv1d: In is 3: inputs have shape [2 3], so it must be 2`, nn.Sequential{nn.Conv1d{Out: 1, Kernel: 1, In: 3}},
			[]int{2, 3}},
		{`(Conv2d): inputs have shape [2 3]: expected [channels, height, width]`, nn.Sequential{nn.Conv2d{Out: 1, Kernel: 1}},
			[]int{2, 3}},
		{`nn.Conv2d: Groups is 2: it must divide the 3 channels of the inputs`,
			nn.Sequential{nn.Conv2d{Out: 2, Kernel: 1, Groups: 2}}, []int{3, 4, 4}},
		{`nn.Conv2d: Groups is 3: it must divide the 2 filters`, nn.Sequential{nn.Conv2d{Out: 2, Kernel: 1, Groups: 3}},
			[]int{3, 4, 4}},
		{`nn.Conv2d: Groups is -1: it must be at least 1`, nn.Sequential{nn.Conv2d{Out: 2, Kernel: 1, Groups: -1}},
			[]int{3, 4, 4}},
		{`nn.Conv2d: Out is 0: it must be at least 1`, nn.Sequential{nn.Conv2d{Kernel: 1}}, []int{3, 4, 4}},
		{`(MaxPool1d): inputs have shape [3]: expected [channels, steps]`, nn.Sequential{nn.MaxPool1d{Kernel: 2}},
			[]int{3}},
		{`nn.MaxPool1d: Padding is 2: it must be at most half of the kernel, 1`,
			nn.Sequential{nn.MaxPool1d{Kernel: 2, Padding: 2}}, []int{3, 4}},
		{`nn.MaxPool2d: Kernel is 5: inputs have shape [3 9 4], so it must be at most 4`,
			nn.Sequential{nn.MaxPool2d{Kernel: 5}}, []int{3, 9, 4}},
		{`(MaxPool2d): inputs have shape [3 4]: expected [channels, height, width]`, nn.Sequential{nn.MaxPool2d{Kernel: 5}},
			[]int{3, 4}},
		{`nn.MaxPool2d: Kernel is 0: it must be at least 1`, nn.Sequential{nn.MaxPool2d{}}, []int{3, 4, 4}},
		{`(LSTM): inputs have shape [3]: expected [steps, features]`, nn.Sequential{nn.LSTM{Hidden: 2}}, []int{3}},
		{`nn.LSTM: Hidden is 0: it must be at least 1`, nn.Sequential{nn.LSTM{}}, []int{3, 4}},
		{`nn.LSTM: In is 3: inputs have shape [3 4], so it must be 4`, nn.Sequential{nn.LSTM{Hidden: 2, In: 3}},
			[]int{3, 4}},
		{`nn.Dropout: Keep is 0: it must be greater than 0 and at most 1`, nn.Sequential{nn.Dropout{}}, []int{3}},
		{`nn.Dropout: Keep is 1.5: it must be greater than 0 and at most 1`, nn.Sequential{nn.Dropout{Keep: 1.5}},
			[]int{3}},
		{`(Transpose): inputs have shape [3]: expected two axes`, nn.Sequential{nn.Transpose{}}, []int{3}},
		{`(Softmax): inputs have shape []: expected [..., classes]`, nn.Sequential{nn.Softmax{}}, nil},
		{`(LogSoftmax): inputs have shape []: expected [..., classes]`, nn.Sequential{nn.LogSoftmax{}}, nil},
		{`nn.Func: F is nil: it must be a function`, nn.Sequential{nn.Func{}}, []int{3}},
		{`layer "0" (Half): inputs have shape [3]: no half`, nn.Sequential{nn.Func{Kind: "Half",
			F:   func(x torch.Tensor) torch.Tensor { return x },
			Out: func([]int) ([]int, error) { return nil, fmt.Errorf("no half: %w", infer.ErrConfig) }}}, []int{3}},
	} {
		_, err := c.layers.Build(c.in...)
		assert.ErrorContains(t, err, c.want)
		assert.ErrorIs(t, err, infer.ErrConfig, c.want)
	}
}

func TestReadyMadeErrors(t *testing.T) {
	_, err := nn.MLP{Sizes: []int{3}}.Build()
	require.ErrorContains(t, err, "nn.MLP: Sizes is [3]: it must have the sizes of input and output at least")
	_, err = nn.MLP{Sizes: []int{3, 0, 1}}.Build()
	require.ErrorContains(t, err, "nn.MLP: Sizes[1] is 0: it must be at least 1")
	_, err = nn.MLP{Sizes: []int{3, 2, 1}, Keep: -1}.Build()
	require.ErrorContains(t, err, "nn.Dropout: Keep is -1")
	_, err = nn.CNNLSTM{Hidden: -1}.Build()
	require.ErrorContains(t, err, "nn.CNNLSTM: Hidden is -1: it must be at least 0")
	_, err = nn.CNNLSTM{Length: 4}.Build()
	require.ErrorContains(
		t,
		err,
		`layer "2_conv" (Conv1d): nn.Conv1d: Kernel is 5: inputs have shape [128 4], so it must be at most 4`,
	)
}

func TestForwardErrors(t *testing.T) {
	n := build(t, nn.Sequential{nn.Linear{Out: 1}, nn.Dropout{Keep: 0.5}}, 2)
	words := build(t, nn.Sequential{nn.Embedding{Num: 5, Dim: 1}}, 2)
	p, x := must(infer.Zeros(n.Layout())), tensor([]float64{1, 2}, 1, 2)
	w := must(infer.Zeros(words.Layout()))
	for _, c := range []struct {
		want string
		f    func() torch.Tensor
	}{
		{"the input has shape [2 3]: expected [n 2] for n data, or [2] for one", func() torch.Tensor {
			return n.Forward(p, tensor(make([]float64, 6), 2, 3))
		}},
		{"the input has shape [1 1 2]: expected [n 2]", func() torch.Tensor {
			return n.Forward(p, tensor(make([]float64, 2), 1,
				1, 2))
		}},
		{"params of shape [2 3]: expected one point, [3]; Network.Predict",
			func() torch.Tensor { return n.Forward(must(p.Repeat(2)), x) }},
		{"a point with a layout and an input are needed", func() torch.Tensor {
			return n.Forward(infer.Params{}, x)
		}},
		{"and an input are needed", func() torch.Tensor { return n.Forward(p, torch.Tensor{}) }},
		{"the input is Float and the params are Double", func() torch.Tensor {
			return n.Forward(p, must(torch.To(x, gotch.CPU,
				gotch.Float)))
		}},
		{"the input is Int64 and the params are Double", func() torch.Tensor {
			return n.Forward(p, must(torch.To(x, gotch.CPU,
				gotch.Int64)))
		}},
		{"the tokens are Double: expected int64", func() torch.Tensor { return words.Forward(w, x) }},
		{"index out of range", func() torch.Tensor {
			return words.Forward(w, torch.New([]int{0, 5}, 1, 2))
		}},
		{`a mask for layer "0": the layers with dropout are ["1"]`, func() torch.Tensor {
			return n.ForwardWith(p, x, nn.Run{Masks: map[string]torch.Tensor{"0": x}})
		}},
		{"the mask has shape [1 2]: expected [1 1], or one that broadcasts to it", func() torch.Tensor {
			return n.ForwardWith(p, x, nn.Run{Masks: map[string]torch.Tensor{"1": x}})
		}},
	} {
		require.ErrorContains(t, failing(t, func() { c.f() }), c.want)
	}
	_, err := n.Predict(must(p.Repeat(3)), tensor(make([]float64, 3), 3), nil)
	require.ErrorContains(t, err, "nn: ")
	require.ErrorContains(t, err, "the input has shape [3]")
	streams := torch.NewStreams(1, 2)
	_, err = n.Predict(must(p.Repeat(3)), x, &streams)
	require.ErrorContains(t, err, "2 random streams for 3 evaluations")
}
