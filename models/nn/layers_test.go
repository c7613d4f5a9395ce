package nn_test

import (
	"math"
	"testing"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/internal/nntest"
	"github.com/kelvin-ppl/kelvin/torch"
)

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func relu(x float64) float64 { return math.Max(x, 0) }

func selu(x float64) float64 {
	if x > 0 {
		return 1.0507009873554805 * x
	}
	return 1.0507009873554805 * 1.6732632423543772 * math.Expm1(x)
}

func transposed(x nntest.Array) nntest.Array {
	y := nntest.Zeros(x.Shape[1], x.Shape[0])
	for i := range x.Shape[0] {
		for j := range x.Shape[1] {
			*y.At(j, i) = *x.At(i, j)
		}
	}
	return y
}

func maxPool(x nntest.Array, kh, kw, sh, sw, ph, pw int) nntest.Array {
	y := nntest.Zeros(x.Shape[0], (x.Shape[1]+2*ph-kh)/sh+1, (x.Shape[2]+2*pw-kw)/sw+1)
	for c := range y.Shape[0] {
		for r := range y.Shape[1] {
			for s := range y.Shape[2] {
				best := math.Inf(-1)
				for i := range kh {
					for j := range kw {
						if u, v := r*sh-ph+i, s*sw-pw+j; u >= 0 && u < x.Shape[1] && v >= 0 && v < x.Shape[2] {
							best = math.Max(best, *x.At(c, u, v))
						}
					}
				}
				*y.At(c, r, s) = best
			}
		}
	}
	return y
}

func maxPool1d(x nntest.Array, kernel, stride, padding int) nntest.Array {
	y := maxPool(nntest.New([]int{x.Shape[0], 1, x.Shape[1]}, x.Data), 1, kernel, 1, stride, 0, padding)
	return nntest.New([]int{y.Shape[0], y.Shape[2]}, y.Data)
}

// lstm is the hidden states of all steps.
func lstm(p map[string]nntest.Array, name string, x nntest.Array) nntest.Array {
	wi, wh, bi := p[name+".weight_ih"], p[name+".weight_hh"], p[name+".bias_ih"]
	bh, two := p[name+".bias_hh"]
	hidden := wh.Shape[1]
	h, c := make([]float64, hidden), make([]float64, hidden)
	all := nntest.Zeros(x.Shape[0], hidden)
	for t := range x.Shape[0] {
		gates := make([]float64, 4*hidden)
		for g := range gates {
			sum := bi.Data[g]
			if two {
				sum += bh.Data[g]
			}
			for i := range x.Shape[1] {
				sum += *wi.At(g, i) * *x.At(t, i)
			}
			for i := range hidden {
				sum += *wh.At(g, i) * h[i]
			}
			gates[g] = sum
		}
		for j := range hidden {
			i, f, g, o := logistic(
				gates[j],
			), logistic(
				gates[hidden+j],
			), math.Tanh(
				gates[2*hidden+j],
			), logistic(
				gates[3*hidden+j],
			)
			c[j] = f*c[j] + i*g
			h[j] = o * math.Tanh(c[j])
			*all.At(t, j) = h[j]
		}
	}
	return all
}

func last(x nntest.Array) nntest.Array {
	return nntest.New(x.Shape[1:], x.Data[len(x.Data)-x.Shape[1]:])
}

func softmax(x nntest.Array) nntest.Array {
	y := x.Each(math.Exp)
	width := x.Shape[len(x.Shape)-1]
	for r := 0; r < len(x.Data); r += width {
		var sum float64
		for _, v := range y.Data[r : r+width] {
			sum += v
		}
		for i := range width {
			y.Data[r+i] /= sum
		}
	}
	return y
}

func embedding(w, x nntest.Array) nntest.Array {
	y := nntest.Zeros(append(append([]int{}, x.Shape...), w.Shape[1])...)
	for i, v := range x.Data {
		for j := range w.Shape[1] {
			y.Data[i*w.Shape[1]+j] = *w.At(int(v), j)
		}
	}
	return y
}

func layerCases() []nntest.Case {
	activation := func(name string, l nn.Layer, kinked bool, f func(float64) float64) nntest.Case {
		return nntest.Case{
			Name:   name,
			Layers: nn.Sequential{nn.Linear{Out: 4}, l, nn.Linear{Out: 2}},
			In:     []int{3},
			Kinked: kinked,
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				return nntest.Linear(p, "2", nntest.Linear(p, "0", x).Each(f))
			},
		}
	}
	return []nntest.Case{
		activation("tanh", nn.Tanh{}, false, math.Tanh),
		activation("sigmoid", nn.Sigmoid{}, false, logistic),
		activation("relu", nn.ReLU{}, true, relu),
		activation("selu", nn.SELU{}, false, selu),
		activation("func", nn.Func{F: func(x torch.Tensor) torch.Tensor { return x.Sin() }}, false, math.Sin),
		{
			Name:   "linear without bias, on two axes",
			Layers: nn.Sequential{nn.Linear{Out: 4, In: 3, NoBias: true}, nn.Tanh{}, nn.Linear{Out: 2}},
			In:     []int{5, 3},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				return nntest.Linear(p, "2", nntest.Linear(p, "0", x).Each(math.Tanh))
			},
		},
		{Name: "softmax", Layers: nn.Sequential{nn.Linear{Out: 4}, nn.Softmax{}}, In: []int{2, 3},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				return softmax(nntest.Linear(p, "0",
					x))
			}},
		{Name: "log softmax", Layers: nn.Sequential{nn.Linear{Out: 4}, nn.LogSoftmax{}}, In: []int{3},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				return softmax(nntest.Linear(p, "0", x)).Each(math.Log)
			}},
		{
			Name:   "embedding",
			Layers: nn.Sequential{nn.Embedding{Num: 6, Dim: 3}, nn.Tanh{}, nn.Flatten{}, nn.Linear{Out: 2}},
			In:     []int{4},
			Tokens: 6,
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				e := embedding(p["0.weight"], x).Each(math.Tanh)
				return nntest.Linear(p, "3", nntest.New([]int{12}, e.Data))
			},
		},
		{
			Name:   "conv1d",
			Layers: nn.Sequential{nn.Conv1d{Out: 4, Kernel: 3, Stride: 2, Padding: 1, In: 3}, nn.Tanh{}},
			In:     []int{3, 8},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				return nntest.Conv1d(p["0.weight"], p["0.bias"].Data, x, 2, 1, 1).Each(math.Tanh)
			},
		},
		{
			Name:   "conv1d in groups",
			Layers: nn.Sequential{nn.Conv1d{Out: 6, Kernel: 2, Groups: 2, NoBias: true}, nn.Tanh{}},
			In:     []int{4, 5},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				return nntest.Conv1d(p["0.weight"], nil, x, 1, 0, 2).Each(math.Tanh)
			},
		},
		{
			Name:   "conv2d",
			Layers: nn.Sequential{nn.Conv2d{Out: 3, Kernel: 3, Padding: 1, Stride: 2}, nn.Sigmoid{}},
			In:     []int{2, 5, 6},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				return nntest.Conv2d(p["0.weight"], p["0.bias"].Data, x, 2, 1, 1, false).Each(logistic)
			},
		},
		{
			Name:   "conv2d in groups",
			Layers: nn.Sequential{nn.Conv2d{Out: 4, Kernel: 2, Groups: 2, NoBias: true}, nn.Tanh{}},
			In:     []int{4, 3, 4},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				return nntest.Conv2d(p["0.weight"], nil, x, 1, 0, 2, false).Each(math.Tanh)
			},
		},
		{
			Name:   "max pool 1d",
			Layers: nn.Sequential{nn.Transpose{}, nn.Linear{Out: 7}, nn.MaxPool1d{Kernel: 3}, nn.Tanh{}},
			In:     []int{5, 3},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				return maxPool1d(nntest.Linear(p, "1", transposed(x)), 3, 3, 0).Each(math.Tanh)
			},
		},
		{
			Name:   "max pool 1d with overlap",
			Layers: nn.Sequential{nn.Linear{Out: 7}, nn.MaxPool1d{Kernel: 3, Stride: 2, Padding: 1}},
			In:     []int{2, 3},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				return maxPool1d(nntest.Linear(p, "0", x), 3, 2, 1)
			},
			Kinked: true,
		},
		{
			Name: "max pool 2d",
			Layers: nn.Sequential{
				nn.Conv2d{Out: 2, Kernel: 2},
				nn.MaxPool2d{Kernel: 2},
				nn.Tanh{},
				nn.Flatten{},
				nn.Linear{Out: 2},
			},
			In: []int{1, 6, 5},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				y := maxPool(nntest.Conv2d(p["0.weight"], p["0.bias"].Data, x, 1, 0, 1, false), 2, 2, 2, 2, 0,
					0).Each(math.Tanh)
				return nntest.Linear(p, "4", nntest.New([]int{8}, y.Data))
			},
		},
		{
			Name:   "max pool 2d with overlap",
			Layers: nn.Sequential{nn.Linear{Out: 5}, nn.MaxPool2d{Kernel: 3, Stride: 1, Padding: 1}},
			In:     []int{2, 4, 3},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				return maxPool(nntest.Linear(p, "0", x), 3, 3, 1, 1, 1, 1)
			},
			Kinked: true,
		},
		{Name: "dropout without random numbers", In: []int{3},
			Layers: nn.Sequential{nn.Linear{Out: 4}, nn.Dropout{Keep: 0.5}, nn.Tanh{}},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				return nntest.Linear(p, "0", x).Each(math.Tanh)
			}},
		{Name: "a name", In: []int{3}, Layers: nn.Sequential{nn.Named("hidden", nn.Linear{Out: 4}), nn.Tanh{}},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				return nntest.Linear(p, "hidden", x).Each(math.Tanh)
			}},
		{Name: "lstm", Layers: nn.Sequential{nn.LSTM{Hidden: 3}}, In: []int{4, 2},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array { return last(lstm(p, "0", x)) }},
		{
			Name:   "lstm with one bias, all steps",
			Layers: nn.Sequential{nn.LSTM{Hidden: 3, In: 2, OneBias: true, All: true}},
			In:     []int{4, 2},
			Want:   func(p map[string]nntest.Array, x nntest.Array) nntest.Array { return lstm(p, "0", x) },
		},
		{Name: "lstm of one step", Layers: nn.Sequential{nn.LSTM{Hidden: 2}}, In: []int{1, 3},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array { return last(lstm(p, "0", x)) }},
		{Name: "cnn-lstm", Tokens: 9, In: []int{11}, Kinked: true,
			Layers: nn.Sequential{
				nn.Embedding{Num: 9, Dim: 3},
				nn.Transpose{},
				nn.Conv1d{Out: 4, Kernel: 3},
				nn.ReLU{},
				nn.MaxPool1d{Kernel: 2},
				nn.Transpose{},
				nn.LSTM{Hidden: 3},
				nn.Linear{Out: 2},
			},
			Want: func(p map[string]nntest.Array, x nntest.Array) nntest.Array {
				c := nntest.Conv1d(p["2.weight"], p["2.bias"].Data, transposed(embedding(p["0.weight"], x)), 1, 0,
					1).Each(relu)
				return nntest.Linear(p, "7", last(lstm(p, "6", transposed(maxPool1d(c, 2, 2, 0)))))
			}},
	}
}

func TestLayersAreWhatTheySay(t *testing.T) {
	for _, c := range layerCases() {
		t.Run(c.Name, c.Values)
	}
}

func TestGradientsAreFiniteDifferences(t *testing.T) {
	for _, c := range layerCases() {
		t.Run(c.Name, c.Gradients)
	}
}

func TestSecondDerivativesAreFiniteDifferences(t *testing.T) {
	for _, c := range layerCases() {
		if !c.Kinked {
			t.Run(c.Name, c.SecondDerivatives)
		}
	}
}

// A new layer belongs into the table, so that it is compared with loops, differences and maps too.
func TestEveryLayerIsInTheTable(t *testing.T) { nntest.AllLayers(t, layerCases()) }

func TestMappedIsALoop(t *testing.T) {
	for _, c := range layerCases() {
		t.Run(c.Name, c.Mapped)
	}
}

// The LSTM is libtorch's.
func TestLSTMIsLibtorchs(t *testing.T) {
	do(t, func() {
		n := build(t, nn.Sequential{nn.LSTM{Hidden: 5, All: true}}, 7, 4)
		p := point(n, 1, 0.5, 0)
		x := tensor(normals(2, 3*7*4), 3, 7, 4)
		zero := func() torch.Tensor { return torch.Of(ts.MustZeros([]int64{1, 3, 5}, gotch.Double, gotch.CPU)) }
		y, _, _ := x.T().MustLstm(
			raw.Pointers([]torch.Tensor{zero(), zero()}),
			raw.Pointers([]torch.Tensor{
				p.Get("0.weight_ih"),
				p.Get("0.weight_hh"),
				p.Get("0.bias_ih"),
				p.Get("0.bias_hh"),
			}),
			true,
			1,
			0,
			false,
			false,
			true,
		)
		closeTo(t, values(y), values(n.Forward(p, x)), 1e-12, "outputs")
	})
}

// The constants of SELU: λ is the slope above 0, and −λα the limit below.
func TestSELUConstants(t *testing.T) {
	do(t, func() {
		n := build(t, nn.Sequential{nn.Linear{Out: 1}, nn.SELU{}}, 1)
		p := must(infer.NewParams(n.Layout(), []float64{0, 1}))
		closeTo(t, []float64{1.0507009873554805, -1.0507009873554805 * 1.6732632423543772, 0},
			values(n.Forward(p, tensor([]float64{1, -1000, 0}, 3, 1))), 1e-15, "SELU")

		// They keep mean 0 and variance 1 of Gaussian numbers (Klambauer et al. 2017): by quadrature.
		var mean, square float64
		const h = 1e-3
		for x := -12.0; x <= 12; x += h {
			w := h * math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
			mean += w * selu(x)
			square += w * selu(x) * selu(x)
		}
		closeTo(t, []float64{0, 1}, []float64{mean, square}, 1e-5, "moments")
	})
}
