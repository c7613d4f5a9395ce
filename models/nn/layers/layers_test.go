package layers_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/internal/nntest"
	"github.com/kelvin-ppl/kelvin/models/nn/layers"
	"github.com/kelvin-ppl/kelvin/torch"
)

type array = nntest.Array

func cases() []nntest.Case {
	conv := func(p map[string]array, name string, x array, stride, padding int) array {
		return nntest.Conv2d(p[name+".weight"], p[name+".bias"].Data, x, stride, padding, 1, false)
	}
	average := func(x array, kernel, stride int) array {
		y := nntest.Zeros(x.Shape[0], (x.Shape[1]-kernel)/stride+1, (x.Shape[2]-kernel)/stride+1)
		for c := range y.Shape[0] {
			for i := range y.Shape[1] {
				for j := range y.Shape[2] {
					for k := range kernel * kernel {
						*y.At(c, i, j) += *x.At(c, i*stride+k/kernel, j*stride+k%kernel) / float64(kernel*kernel)
					}
				}
			}
		}
		return y
	}
	return []nntest.Case{
		{Name: "gelu", Layers: nn.Sequential{nn.Linear{Out: 4}, layers.GELU{}}, In: []int{3},
			Want: func(p map[string]array, x array) array { return nntest.Linear(p, "0", x).Each(gelu) }},
		{Name: "layer norm", Layers: nn.Sequential{nn.Linear{Out: 5}, layers.LayerNorm{}}, In: []int{2, 3},
			Want: func(p map[string]array, x array) array {
				return layerNorm(p, "1", nntest.Linear(p, "0",
					x))
			}},
		{
			Name:   "filter response norm",
			Layers: nn.Sequential{nn.Conv2d{Out: 3, Kernel: 2}, layers.FRN{}},
			In:     []int{2, 4, 3},
			Kinked: true,
			Want:   func(p map[string]array, x array) array { return frn(p, "1", conv(p, "0", x, 1, 0)) },
		},
		{
			Name: "batch norm with moments of its own",
			Layers: nn.Sequential{nn.Conv2d{Out: 3, Kernel: 2}, nn.Named("norm", layers.BatchNorm{Epsilon: 8}),
				nn.Tanh{}},
			In: []int{2, 4, 3},
			Want: func(p map[string]array, x array) array {
				return batchNorm(p, "norm", 8, conv(p, "0", x, 1, 0)).Each(math.Tanh)
			},
		},
		{
			Name: "batch norm of the batch",
			Layers: nn.Sequential{nn.Conv2d{Out: 3, Kernel: 2},
				nn.Named("norm", layers.BatchNorm{Batch: true, Epsilon: 0.1}), nn.Tanh{}},
			In: []int{2, 4, 3},
			WantBatch: func(p map[string]array, x []array) []array {
				y := eachOf(x, func(x array) array { return conv(p, "0", x, 1, 0) })
				return eachOf(batchNormOf(p, "norm", 0.1, y),
					func(y array) array { return y.Each(math.Tanh) })
			},
		},
		{
			Name:   "batch norm of a batch of vectors",
			Layers: nn.Sequential{nn.Linear{Out: 4}, layers.BatchNorm{Batch: true, Epsilon: 0.1}, nn.Linear{Out: 2}},
			In:     []int{3},
			WantBatch: func(p map[string]array, x []array) []array {
				y := eachOf(x, func(x array) array { return nntest.Linear(p, "0", x) })
				return eachOf(batchNormOf(p, "1", 0.1, y),
					func(y array) array { return nntest.Linear(p, "2", y) })
			},
		},
		{
			Name: "residual with and without a shortcut, nested",
			Layers: nn.Sequential{
				layers.Residual{Body: nn.Sequential{nn.Linear{Out: 3}, nn.Tanh{},
					layers.Residual{Body: nn.Sequential{nn.Named("inner", nn.Linear{Out: 3})}}}},
				nn.Named("wider", layers.Residual{
					Body:     nn.Sequential{nn.Linear{Out: 4}, nn.Tanh{}},
					Shortcut: nn.Sequential{nn.Linear{Out: 4, NoBias: true}},
				}),
			},
			In: []int{3},
			Want: func(p map[string]array, x array) array {
				h := nntest.Linear(p, "0.body.0", x).Each(math.Tanh)
				x = plus(x, plus(h, nntest.Linear(p, "0.body.2.body.inner", h)))
				return plus(nntest.Linear(p, "wider.body.0", x).Each(math.Tanh), nntest.Linear(p,
					"wider.shortcut.0", x))
			},
		},
		{
			Name:   "weight norm of linear",
			Layers: nn.Sequential{layers.WeightNorm{Layer: nn.Linear{Out: 4}}, nn.Tanh{}},
			In:     []int{3},
			Want: func(p map[string]array, x array) array {
				w := map[string]array{"0.weight": weightNorm(p, "0"), "0.bias": p["0.bias"]}
				return nntest.Linear(w, "0", x).Each(math.Tanh)
			},
		},
		{
			Name: "weight norm of conv2d",
			Layers: nn.Sequential{layers.WeightNorm{Layer: nn.Conv2d{Out: 3, Kernel: 3, Padding: 1, Stride: 2,
				NoBias: true}}},
			In: []int{2, 5, 4},
			Want: func(p map[string]array, x array) array {
				return nntest.Conv2d(weightNorm(p, "0"), nil, x, 2, 1, 1, false)
			},
		},
		{
			Name: "weight norm of conv1d",
			Layers: nn.Sequential{layers.WeightNorm{Layer: nn.Conv1d{Out: 4, Kernel: 3, Padding: 1, Stride: 2,
				Groups: 2}}, nn.Tanh{}},
			In: []int{4, 7},
			Want: func(p map[string]array, x array) array {
				return nntest.Conv1d(weightNorm(p, "0"), p["0.bias"].Data, x, 2, 1, 2).Each(math.Tanh)
			},
		},
		{
			Name:   "average pool",
			Layers: nn.Sequential{nn.Conv2d{Out: 2, Kernel: 1}, layers.AvgPool2d{Kernel: 2}, nn.Tanh{}},
			In:     []int{1, 5, 4},
			Want: func(p map[string]array, x array) array {
				return average(conv(p, "0", x, 1, 0), 2, 2).Each(math.Tanh)
			},
		},
		{
			Name:   "average pool with overlap",
			Layers: nn.Sequential{nn.Conv2d{Out: 2, Kernel: 1}, layers.AvgPool2d{Kernel: 3, Stride: 1}},
			In:     []int{1, 5, 4},
			Want:   func(p map[string]array, x array) array { return average(conv(p, "0", x, 1, 0), 3, 1) },
		},
		{
			Name:   "global average",
			Layers: nn.Sequential{nn.Conv2d{Out: 3, Kernel: 2}, nn.Tanh{}, layers.GlobalAvgPool{}},
			In:     []int{1, 4, 3},
			Want: func(p map[string]array, x array) array {
				y := nntest.Zeros(3)
				for i, row := range rows(conv(p, "0", x, 1, 0).Each(math.Tanh), 3) {
					y.Data[i] = meanOf(row)
				}
				return y
			},
		},
		{
			Name:   "attention",
			Layers: nn.Sequential{layers.Attention{Heads: 2}},
			In:     []int{5, 4},
			Want:   func(p map[string]array, x array) array { return attention(p, "0", x, 2, false) },
		},
		{
			Name:   "causal attention with positions",
			Layers: nn.Sequential{layers.Position{}, layers.Attention{Causal: true, NoBias: true}},
			In:     []int{4, 3},
			Want: func(p map[string]array, x array) array {
				return attention(p, "1", plus(x, p["0.weight"]), 1, true)
			},
		},
		{
			Name: "pre-norm block over tokens",
			Layers: nn.Sequential{
				nn.Embedding{Num: 7, Dim: 4},
				layers.Residual{Body: nn.Sequential{layers.LayerNorm{}, layers.Attention{Heads: 2, Causal: true}}},
				layers.Residual{Body: nn.Sequential{layers.LayerNorm{}, nn.Linear{Out: 6}, layers.GELU{},
					nn.Linear{Out: 4}}},
			},
			In:     []int{5},
			Tokens: 7,
			Want: func(p map[string]array, x array) array {
				h := nntest.Zeros(5, 4)
				for i, v := range x.Data {
					copy(h.Data[4*i:4*i+4], p["0.weight"].Data[4*int(v):])
				}
				h = plus(h, attention(p, "1.body.1", layerNorm(p, "1.body.0", h), 2, true))
				inner := nntest.Linear(p, "2.body.1", layerNorm(p, "2.body.0", h)).Each(gelu)
				return plus(h, nntest.Linear(p, "2.body.3", inner))
			},
		},
	}
}

func TestLayersAreWhatTheySay(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.Name, c.Values)
	}
}

func TestGradientsAreFiniteDifferences(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.Name, c.Gradients)
	}
}

// A new layer belongs into the table, so that it is compared with loops, differences and maps too.
func TestEveryLayerIsInTheTable(t *testing.T) { nntest.AllLayers(t, cases()) }

func TestSecondDerivativesAreFiniteDifferences(t *testing.T) {
	for _, c := range cases() {
		if !c.Kinked {
			t.Run(c.Name, c.SecondDerivatives)
		}
	}
}

// Mapped over points they are a loop, and mapped over data the gradients are those of each datum.
func TestMappedIsALoop(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.Name, c.Mapped)
	}
}

// With the moments of the batch the outputs are normalised over data and pixels; frozen, the moments are the same, and
// a datum alone gives what it gave in the batch.
func TestBatchNormOfTheBatch(t *testing.T) {
	nntest.Do(t, func() {
		network := func(batch bool) *nn.Network {
			return nntest.Build(t, nn.Sequential{
				nn.Conv2d{Out: 3, Kernel: 2},
				layers.Residual{Body: nn.Sequential{layers.BatchNorm{Batch: batch}, nn.Tanh{}}},
				nn.Named("last", layers.BatchNorm{Batch: batch, Epsilon: 0.5}),
			}, 2, 4, 3)
		}
		batch, frozen := network(true), network(false)
		const n = 5
		p := nntest.Point(batch, 3, 0.7, 0)
		x := nntest.Tensor(nntest.Normals(4, n*2*4*3), n, 2, 4, 3)
		y := batch.Forward(p, x)

		// The last layer's outputs have mean bias and variance scale² v/(v + 0.5) in each channel.
		at, err := layers.FreezeMoments(batch, frozen, p, x)
		if err != nil {
			t.Fatal(err)
		}
		moments := nntest.Sites(at)
		values := nntest.Values(y)
		for c := range 3 {
			var channel []float64
			for i, v := range values {
				if i/6%3 == c {
					channel = append(channel, v)
				}
			}
			m := meanOf(channel)
			scale, v := moments["last.scale"].Data[c], moments["last.variance"].Data[c]
			nntest.CloseTo(t, []float64{moments["last.bias"].Data[c], scale * scale * v / (v + 0.5)},
				[]float64{m, meanSquare(channel) - m*m}, 1e-12, "moments of the outputs")
		}
		nntest.CloseTo(t, values, nntest.Values(frozen.Forward(at, x)), 1e-12, "frozen")
		one := frozen.Forward(at, x.At(2))
		nntest.CloseTo(t, values[2*18:3*18], nntest.Values(one), 1e-12, "a datum alone")
	})
}

// Without anyone who observes the moments libtorch's operation normalises images: outputs, and gradients of one point
// and of several, are those of the formula, which observed layers are computed by.
func TestBatchNormOfLibtorchIsTheFormula(t *testing.T) {
	nntest.Do(t, func() {
		net := nntest.Build(t, nn.Sequential{nn.Conv2d{Out: 3, Kernel: 2}, layers.BatchNorm{Batch: true, Epsilon: 0.1},
			nn.Tanh{}}, 2, 4, 3)
		x := nntest.Tensor(nntest.Normals(4, 5*2*4*3), 5, 2, 4, 3)
		weight := nntest.Tensor(nntest.Normals(5, 5*3*3*2), 5, 3, 3, 2)
		gradient := func(observed bool) infer.Gradient {
			return nntest.Must(infer.NewGradient(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
				run := nn.Run{}
				if observed {
					run.Observe = func(string, torch.Tensor) {}
				}
				return net.ForwardWith(p, x, run).Mul(weight).Sum(), nil
			}, 1)))
		}
		for _, chains := range []int{0, 3} {
			p := nntest.Point(net, 3, 0.7, chains)
			want := nntest.Must(gradient(true).ValueAndGrad(p, nil, 0))
			have := nntest.Must(gradient(false).ValueAndGrad(p, nil, 0))
			nntest.CloseTo(t, want.Values, have.Values, 1e-12, "values")
			nntest.CloseTo(t, nntest.Values(want.Grad), nntest.Values(have.Grad), 1e-12, "gradients")
		}
	})
}
