package layers_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/internal/nntest"
	"github.com/kelvin-ppl/kelvin/models/nn/layers"
	"github.com/kelvin-ppl/kelvin/torch"
)

type builder interface {
	Build() (*nn.Network, error)
}

func build(t *testing.T, b builder) *nn.Network {
	t.Helper()
	n, err := b.Build()
	require.NoError(t, err)
	return n
}

// residual counts the parameters of a residual network of 6 k + 2 weights with f filters for colour images and ten
// classes, in which a feature of a weight has so many numbers beside the weight's and a norm so many for each channel.
func residual(k, f, perFeature, perChannel int) int {
	conv := func(in, out, kernel int) int { return in*out*kernel*kernel + perFeature*out }
	n := conv(3, f, 3) + perChannel*f
	for stage := range 3 {
		in := f << stage
		if stage > 0 {
			n += conv(in/2, in, 1) + conv(in/2, in, 3) - conv(in, in, 3)
		}
		n += 2 * k * (conv(in, in, 3) + perChannel*in)
	}
	return n + conv(4*f, 10, 1)
}

func TestParameterCounts(t *testing.T) {
	for _, c := range []struct {
		name    string
		network builder
		want    int
	}{
		// Keras's table of its example of CIFAR-10: "Total params: 274,442; trainable params: 273,066".
		{"ResNet-20", layers.ResNet20{}, 274442},
		{"ResNet-20, moments of the batch", layers.ResNet20{Norm: layers.BatchNorm{Batch: true}}, 273066},
		{"ResNet-20, FRN", layers.ResNet20{Norm: layers.FRN{}}, residual(3, 16, 1, 3)},
		{"ResNet-20, no norm", layers.ResNet20{Norm: nn.Sequential{}}, residual(3, 16, 1, 0)},
		// A weight-normed feature has a bias and a length.
		{"ResNet++", layers.ResNetPlusPlus{}, residual(9, 32, 2, 0)},
		{"ResNet++ of 14", layers.ResNetPlusPlus{Depth: 14, Filters: 8}, residual(2, 8, 2, 0)},
		{"transformer", layers.Transformer{}, 96*128 + 128*128 + 4*(4*128+4*(128*128+128)+2*128*512+512+128) +
			2*128 + 128*96 + 96},
		// The figures of the papers' other networks.
		{"CNN-LSTM of 128", nn.CNNLSTM{}, 2700098},
		{"CNN-LSTM of 70", nn.CNNLSTM{Hidden: 70}, 2638966},
		{"M3", nn.MLP{Sizes: []int{256, 40, 40, 40, 10}}, 13970},
		{"M1", nn.MLP{Sizes: []int{256, 40, 10}}, 10690},
		{"two moons", nn.MLP{Sizes: []int{2, 32, 32, 32, 1}}, 2241},
		{"synthetic", nn.MLP{Sizes: []int{5, 10, 10, 3}}, 203},
	} {
		assert.Equal(t, c.want, build(t, c.network).NumParams(), c.name)
	}
	assert.Equal(t, 834400, build(t, layers.Transformer{}).NumParams(), "as the document says")
}

func relu(x float64) float64 { return math.Max(x, 0) }

func selu(x float64) float64 {
	if x > 0 {
		return 1.0507009873554805 * x
	}
	return 1.0507009873554805 * 1.6732632423543772 * math.Expm1(x)
}

// averages are the means of the channels.
func averages(x array) array {
	pooled := nntest.Zeros(x.Shape[0])
	for i, row := range rows(x, x.Shape[0]) {
		pooled.Data[i] = meanOf(row)
	}
	return pooled
}

func networks(t *testing.T) []nntest.Case {
	conv := func(p map[string]array, name string, x array, stride, padding int) array {
		return nntest.Conv2d(p[name+".weight"], p[name+".bias"].Data, x, stride, padding, 1, false)
	}
	// normed is ResNet20 of depth 8 on a batch, with a norm; FRN has its activation within.
	normed := func(norm func(p map[string]array, name string, x []array) []array, activation func(float64) float64,
		second int) func(p map[string]array, x []array) []array {
		return func(p map[string]array, x []array) []array {
			convs := func(name string, x []array, stride, padding int) []array {
				return eachOf(x, func(x array) array { return conv(p, name, x, stride, padding) })
			}
			activate := func(x []array) []array {
				return eachOf(x, func(x array) array { return x.Each(activation) })
			}
			x = activate(norm(p, "stem.1", convs("stem.0", x, 1, 1)))
			for stage := 1; stage <= 3; stage++ {
				name, stride, shortcut := fmt.Sprintf("stage_%d_block_1.0.", stage), 1, x
				if stage > 1 {
					stride, shortcut = 2, convs(name+"shortcut.0", x, 2, 0)
				}
				h := activate(norm(p, name+"body.1", convs(name+"body.0", x, stride, 1)))
				h = norm(p, fmt.Sprint(name, "body.", second+1), convs(fmt.Sprint(name, "body.", second), h, 1, 1))
				for i := range h {
					h[i] = plus(shortcut[i], h[i]).Each(relu)
				}
				x = h
			}
			return eachOf(x, func(x array) array { return nntest.Linear(p, "output", averages(x)) })
		}
	}
	each := func(norm func(p map[string]array, name string, x array) array) func(p map[string]array, name string,
		x []array) []array {
		return func(p map[string]array, name string, x []array) []array {
			return eachOf(x, func(x array) array { return norm(p, name, x) })
		}
	}
	const epsilon = 2.0 // variances are weights of size 0.3 of either sign
	own := each(func(p map[string]array, name string, x array) array { return batchNorm(p, name, epsilon, x) })
	ofBatch := func(p map[string]array, name string, x []array) []array {
		return batchNormOf(p, name, epsilon, x)
	}
	none := each(func(_ map[string]array, _ string, x array) array { return x })
	weightNormed := func(p map[string]array, x array) array {
		conv := func(name string, x array, stride, padding int) array {
			return nntest.Conv2d(weightNorm(p, name), p[name+".bias"].Data, x, stride, padding, 1, false)
		}
		x = conv("stem", x, 1, 1)
		for stage := 1; stage <= 3; stage++ {
			name, stride, shortcut := fmt.Sprintf("stage_%d_block_1.", stage), 1, x
			if stage > 1 {
				stride, shortcut = 2, conv(name+"shortcut.0", x, 2, 0)
			}
			h := conv(name+"body.1", x.Each(selu), stride, 1)
			x = plus(shortcut, conv(name+"body.3", h.Each(selu), 1, 1))
		}
		return nntest.Linear(map[string]array{"o.weight": weightNorm(p, "output"), "o.bias": p["output.bias"]},
			"o", averages(x.Each(selu)))
	}
	language := func(p map[string]array, x array) array {
		h := nntest.Zeros(5, 4)
		for i, v := range x.Data {
			copy(h.Data[4*i:4*i+4], p["tokens.weight"].Data[4*int(v):])
		}
		h = plus(h, p["positions.weight"])
		for _, block := range []string{"block_1", "block_2"} {
			normed := layerNorm(p, block+".0.body.0", h)
			h = plus(h, attention(p, block+".0.body.1", normed, 2, true))
			normed = layerNorm(p, block+".1.body.0", h)
			h = plus(h, nntest.Linear(p, block+".1.body.3",
				nntest.Linear(p, block+".1.body.1", normed).Each(gelu)))
		}
		return nntest.Linear(p, "output", layerNorm(p, "norm", h))
	}
	images := []int{2, 6, 6}
	resnet20 := func(norm nn.Layer) *nn.Network {
		return build(t, layers.ResNet20{Channels: 2, Size: 6, Filters: 2, Depth: 8, Classes: 3, Norm: norm})
	}
	// With weights of size 0.3 the outputs are of size 1, and differences of them keep their digits.
	return []nntest.Case{
		{Name: "ResNet of 8, no norm", In: images, Scale: 0.3, Kinked: true, WantBatch: normed(none, relu, 3),
			Network: resnet20(nn.Sequential{})},
		{Name: "ResNet of 8, batch norm with moments of its own", In: images, Scale: 0.3, Kinked: true,
			WantBatch: normed(own, relu, 3), Network: resnet20(layers.BatchNorm{Epsilon: epsilon})},
		{Name: "ResNet of 8, batch norm of the batch", In: images, Scale: 0.3, Kinked: true,
			WantBatch: normed(ofBatch, relu, 3), Network: resnet20(layers.BatchNorm{Batch: true, Epsilon: epsilon})},
		{Name: "ResNet of 8, FRN", In: images, Scale: 0.3, Kinked: true,
			WantBatch: normed(each(frn), func(v float64) float64 { return v }, 2),
			Network:   resnet20(layers.FRN{})},
		{Name: "ResNet++ of 8", In: images, Want: weightNormed,
			Network: build(t, layers.ResNetPlusPlus{Channels: 2, Size: 6, Filters: 2, Depth: 8, Classes: 3})},
		{Name: "transformer", In: []int{5}, Tokens: 7, Want: language,
			Network: build(t, layers.Transformer{Vocab: 7, Length: 5, Width: 4, Heads: 2, Blocks: 2, Hidden: 6})},
	}
}

func TestNetworksAreWhatTheySay(t *testing.T) {
	for _, c := range networks(t) {
		t.Run(c.Name, c.Values)
	}
}

func TestNetworkGradientsAreFiniteDifferences(t *testing.T) {
	for _, c := range networks(t) {
		t.Run(c.Name, c.Gradients)
	}
}

func TestMappedNetworkIsALoop(t *testing.T) {
	for _, c := range networks(t) {
		t.Run(c.Name, c.Mapped)
	}
}

// The networks of the papers in their full sizes start at logits that are neither vanishing nor large, by Fixup or by
// He's law with a norm, and a step of the causal model does not see the tokens after it.
func TestFullSizes(t *testing.T) {
	for name, c := range map[string]struct {
		network builder
		start   nn.Scheme
	}{
		"ResNet-20":      {layers.ResNet20{Norm: layers.BatchNorm{Batch: true}}, nn.KaimingNormal(nn.GainReLU)},
		"ResNet-20, FRN": {layers.ResNet20{Norm: layers.FRN{}}, nn.KaimingNormal(nn.GainReLU)},
		"ResNet++":       {layers.ResNetPlusPlus{}, layers.Fixup{Gain: 1, Last: 0.1}.Scheme},
	} {
		nntest.Do(t, func() {
			net, streams := build(t, c.network), torch.NewStreams(1, 1)
			p := nntest.Must(nntest.Must(nn.Init(net, c.start, &streams)).To(gotch.CPU, gotch.Float))
			x := nntest.Must(torch.To(nntest.Tensor(nntest.Normals(2, 2*3*32*32), 2, 3, 32, 32), gotch.CPU,
				gotch.Float))
			y := net.Forward(p, x)
			require.Equal(t, []int{2, 10}, nntest.Shape(y))
			size := math.Sqrt(meanSquare(nntest.Values(y)))
			assert.True(t, size > 1e-3 && size < 10, "%s: logits of size %v", name, size)
		})
	}
	nntest.Do(t, func() {
		net, streams := build(t, layers.Transformer{Blocks: 1, Length: 6}), torch.NewStreams(1, 1)
		p := nntest.Must(nn.Init(net, nn.PyTorch(), &streams))
		tokens := []int{3, 9, 4, 8, 60, 95}
		before := nntest.Values(net.Forward(p, nntest.Must(torch.FromSlice(tokens, 6))))
		tokens[4] = 7
		after := nntest.Values(net.Forward(p, nntest.Must(torch.FromSlice(tokens, 6))))
		nntest.CloseTo(t, before[:4*96], after[:4*96], 0, "the steps before the change")
		assert.NotEqual(t, before[4*96:5*96], after[4*96:5*96])
	})
}

func TestNetworkErrors(t *testing.T) {
	for _, c := range []struct {
		network builder
		want    string
	}{
		{layers.ResNet20{Filters: -1}, "layers.ResNet20: Filters is -1: it must be from 1 to 16777216"},
		{layers.ResNet20{Depth: 21}, "layers.ResNet20: Depth is 21: it must be 6 k + 2"},
		{layers.ResNetPlusPlus{Depth: 2}, "layers.ResNetPlusPlus: Depth is 2: it must be 6 k + 2"},
		{layers.ResNetPlusPlus{Classes: 1 << 40}, "layers.ResNetPlusPlus: Classes is 1099511627776"},
		{layers.Transformer{Blocks: -1}, "layers.Transformer: Blocks is -1"},
		{layers.Transformer{Heads: 3}, "layers.Attention: Heads is 3: it must divide the 128 features"},
	} {
		_, err := c.network.Build()
		require.ErrorContains(t, err, c.want)
		assert.ErrorIs(t, err, infer.ErrConfig, c.want)
	}
}
