package nn_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// layerCase is a network with an implementation of it in plain loops, for one input.
type layerCase struct {
	name   string
	layers nn.Sequential
	in     []int64
	tokens int64 // the inputs are whole numbers below this
	kinked bool  // has no second derivatives to compare
	want   func(p map[string]array, x array) array
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func relu(x float64) float64 { return math.Max(x, 0) }

func selu(x float64) float64 {
	if x > 0 {
		return 1.0507009873554805 * x
	}
	return 1.0507009873554805 * 1.6732632423543772 * math.Expm1(x)
}

// linear is W x + b along the last axis.
func linear(p map[string]array, name string, x array) array {
	w := p[name+".weight"]
	b, biased := p[name+".bias"]
	features, out := w.shape[1], w.shape[0]
	rows := int64(len(x.data)) / features
	y := zeros(append(append([]int64{}, x.shape[:len(x.shape)-1]...), out)...)
	for r := range rows {
		for o := range out {
			var sum float64
			for i := range features {
				sum += *w.at(o, i) * x.data[r*features+i]
			}
			if biased {
				sum += *b.at(o)
			}
			y.data[r*out+o] = sum
		}
	}
	return y
}

func transposed(x array) array {
	y := zeros(x.shape[1], x.shape[0])
	for i := range x.shape[0] {
		for j := range x.shape[1] {
			*y.at(j, i) = *x.at(i, j)
		}
	}
	return y
}

// conv2d correlates [c, h, w]; sequences have height 1 and are padded along the width alone.
func conv2d(w array, b []float64, x array, stride, padding, groups int64, sequence bool) array {
	out, inGroup, kh, kw := w.shape[0], w.shape[1], w.shape[2], w.shape[3]
	ph, sh := padding, stride
	if sequence {
		ph, sh = 0, 1
	}
	y := zeros(out, (x.shape[1]+2*ph-kh)/sh+1, (x.shape[2]+2*padding-kw)/stride+1)
	for o := range out {
		group := o / (out / groups)
		for r := range y.shape[1] {
			for s := range y.shape[2] {
				var sum float64
				if b != nil {
					sum = b[o]
				}
				for c := range inGroup {
					for i := range kh {
						for j := range kw {
							u, v := r*sh-ph+i, s*stride-padding+j
							if u >= 0 && u < x.shape[1] && v >= 0 && v < x.shape[2] {
								sum += *w.at(o, c, i, j) * *x.at(group*inGroup+c, u, v)
							}
						}
					}
				}
				*y.at(o, r, s) = sum
			}
		}
	}
	return y
}

// conv1d is conv2d of height 1.
func conv1d(w array, b []float64, x array, stride, padding, groups int64) array {
	w2 := array{[]int64{w.shape[0], w.shape[1], 1, w.shape[2]}, w.data}
	y := conv2d(w2, b, array{[]int64{x.shape[0], 1, x.shape[1]}, x.data}, stride, padding, groups, true)
	return array{[]int64{y.shape[0], y.shape[2]}, y.data}
}

func maxPool(x array, kh, kw, sh, sw, ph, pw int64) array {
	y := zeros(x.shape[0], (x.shape[1]+2*ph-kh)/sh+1, (x.shape[2]+2*pw-kw)/sw+1)
	for c := range y.shape[0] {
		for r := range y.shape[1] {
			for s := range y.shape[2] {
				best := math.Inf(-1)
				for i := range kh {
					for j := range kw {
						if u, v := r*sh-ph+i, s*sw-pw+j; u >= 0 && u < x.shape[1] && v >= 0 && v < x.shape[2] {
							best = math.Max(best, *x.at(c, u, v))
						}
					}
				}
				*y.at(c, r, s) = best
			}
		}
	}
	return y
}

func maxPool1d(x array, kernel, stride, padding int64) array {
	y := maxPool(array{[]int64{x.shape[0], 1, x.shape[1]}, x.data}, 1, kernel, 1, stride, 0, padding)
	return array{[]int64{y.shape[0], y.shape[2]}, y.data}
}

// lstm is the hidden states of all steps.
func lstm(p map[string]array, name string, x array) array {
	wi, wh, bi := p[name+".weight_ih"], p[name+".weight_hh"], p[name+".bias_ih"]
	bh, two := p[name+".bias_hh"]
	hidden := wh.shape[1]
	h, c := make([]float64, hidden), make([]float64, hidden)
	all := zeros(x.shape[0], hidden)
	for t := range x.shape[0] {
		gates := make([]float64, 4*hidden)
		for g := range gates {
			sum := bi.data[g]
			if two {
				sum += bh.data[g]
			}
			for i := range x.shape[1] {
				sum += *wi.at(int64(g), i) * *x.at(t, i)
			}
			for i := range hidden {
				sum += *wh.at(int64(g), i) * h[i]
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
			*all.at(t, j) = h[j]
		}
	}
	return all
}

func last(x array) array {
	return array{x.shape[1:], x.data[int64(len(x.data))-x.shape[1]:]}
}

func softmax(x array) array {
	y := x.each(math.Exp)
	width := x.shape[len(x.shape)-1]
	for r := int64(0); r < int64(len(x.data)); r += width {
		var sum float64
		for _, v := range y.data[r : r+width] {
			sum += v
		}
		for i := range width {
			y.data[r+i] /= sum
		}
	}
	return y
}

func embedding(w, x array) array {
	y := zeros(append(append([]int64{}, x.shape...), w.shape[1])...)
	for i, v := range x.data {
		for j := range w.shape[1] {
			y.data[int64(i)*w.shape[1]+j] = *w.at(int64(v), j)
		}
	}
	return y
}

func layerCases() []layerCase {
	activation := func(name string, l nn.Layer, kinked bool, f func(float64) float64) layerCase {
		return layerCase{
			name:   name,
			layers: nn.Sequential{nn.Linear{Out: 4}, l, nn.Linear{Out: 2}},
			in:     []int64{3},
			kinked: kinked,
			want:   func(p map[string]array, x array) array { return linear(p, "2", linear(p, "0", x).each(f)) },
		}
	}
	return []layerCase{
		activation("tanh", nn.Tanh{}, false, math.Tanh),
		activation("sigmoid", nn.Sigmoid{}, false, logistic),
		activation("relu", nn.ReLU{}, true, relu),
		activation("selu", nn.SELU{}, false, selu),
		activation("func", nn.Func{F: func(x torch.Tensor) torch.Tensor { return x.Sin() }}, false, math.Sin),
		{
			name:   "linear without bias, on two axes",
			layers: nn.Sequential{nn.Linear{Out: 4, In: 3, NoBias: true}, nn.Tanh{}, nn.Linear{Out: 2}},
			in:     []int64{5, 3},
			want: func(p map[string]array, x array) array {
				return linear(p, "2", linear(p, "0", x).each(math.Tanh))
			},
		},
		{name: "softmax", layers: nn.Sequential{nn.Linear{Out: 4}, nn.Softmax{}}, in: []int64{2, 3},
			want: func(p map[string]array, x array) array { return softmax(linear(p, "0", x)) }},
		{name: "log softmax", layers: nn.Sequential{nn.Linear{Out: 4}, nn.LogSoftmax{}}, in: []int64{3},
			want: func(p map[string]array, x array) array { return softmax(linear(p, "0", x)).each(math.Log) }},
		{
			name:   "embedding",
			layers: nn.Sequential{nn.Embedding{Num: 6, Dim: 3}, nn.Tanh{}, nn.Flatten{}, nn.Linear{Out: 2}},
			in:     []int64{4},
			tokens: 6,
			want: func(p map[string]array, x array) array {
				e := embedding(p["0.weight"], x).each(math.Tanh)
				return linear(p, "3", array{[]int64{12}, e.data})
			},
		},
		{
			name:   "conv1d",
			layers: nn.Sequential{nn.Conv1d{Out: 4, Kernel: 3, Stride: 2, Padding: 1, In: 3}, nn.Tanh{}},
			in:     []int64{3, 8},
			want: func(p map[string]array, x array) array {
				return conv1d(p["0.weight"], p["0.bias"].data, x, 2, 1, 1).each(math.Tanh)
			},
		},
		{
			name:   "conv1d in groups",
			layers: nn.Sequential{nn.Conv1d{Out: 6, Kernel: 2, Groups: 2, NoBias: true}, nn.Tanh{}},
			in:     []int64{4, 5},
			want: func(p map[string]array, x array) array {
				return conv1d(p["0.weight"], nil, x, 1, 0, 2).each(math.Tanh)
			},
		},
		{
			name:   "conv2d",
			layers: nn.Sequential{nn.Conv2d{Out: 3, Kernel: 3, Padding: 1, Stride: 2}, nn.Sigmoid{}},
			in:     []int64{2, 5, 6},
			want: func(p map[string]array, x array) array {
				return conv2d(p["0.weight"], p["0.bias"].data, x, 2, 1, 1, false).each(logistic)
			},
		},
		{
			name:   "conv2d in groups",
			layers: nn.Sequential{nn.Conv2d{Out: 4, Kernel: 2, Groups: 2, NoBias: true}, nn.Tanh{}},
			in:     []int64{4, 3, 4},
			want: func(p map[string]array, x array) array {
				return conv2d(p["0.weight"], nil, x, 1, 0, 2, false).each(math.Tanh)
			},
		},
		{
			name:   "max pool 1d",
			layers: nn.Sequential{nn.Transpose{}, nn.Linear{Out: 7}, nn.MaxPool1d{Kernel: 3}, nn.Tanh{}},
			in:     []int64{5, 3},
			want: func(p map[string]array, x array) array {
				return maxPool1d(linear(p, "1", transposed(x)), 3, 3, 0).each(math.Tanh)
			},
		},
		{
			name:   "max pool 1d with overlap",
			layers: nn.Sequential{nn.Linear{Out: 7}, nn.MaxPool1d{Kernel: 3, Stride: 2, Padding: 1}},
			in:     []int64{2, 3},
			want:   func(p map[string]array, x array) array { return maxPool1d(linear(p, "0", x), 3, 2, 1) },
			kinked: true,
		},
		{
			name: "max pool 2d",
			layers: nn.Sequential{
				nn.Conv2d{Out: 2, Kernel: 2},
				nn.MaxPool2d{Kernel: 2},
				nn.Tanh{},
				nn.Flatten{},
				nn.Linear{Out: 2},
			},
			in: []int64{1, 6, 5},
			want: func(p map[string]array, x array) array {
				y := maxPool(conv2d(p["0.weight"], p["0.bias"].data, x, 1, 0, 1, false), 2, 2, 2, 2, 0, 0).each(math.Tanh)
				return linear(p, "4", array{[]int64{8}, y.data})
			},
		},
		{
			name:   "max pool 2d with overlap",
			layers: nn.Sequential{nn.Linear{Out: 5}, nn.MaxPool2d{Kernel: 3, Stride: 1, Padding: 1}},
			in:     []int64{2, 4, 3},
			want:   func(p map[string]array, x array) array { return maxPool(linear(p, "0", x), 3, 3, 1, 1, 1, 1) },
			kinked: true,
		},
		{name: "lstm", layers: nn.Sequential{nn.LSTM{Hidden: 3}}, in: []int64{4, 2},
			want: func(p map[string]array, x array) array { return last(lstm(p, "0", x)) }},
		{
			name:   "lstm with one bias, all steps",
			layers: nn.Sequential{nn.LSTM{Hidden: 3, In: 2, OneBias: true, All: true}},
			in:     []int64{4, 2},
			want:   func(p map[string]array, x array) array { return lstm(p, "0", x) },
		},
		{name: "lstm of one step", layers: nn.Sequential{nn.LSTM{Hidden: 2}}, in: []int64{1, 3},
			want: func(p map[string]array, x array) array { return last(lstm(p, "0", x)) }},
		{name: "cnn-lstm", tokens: 9, in: []int64{11}, kinked: true,
			layers: nn.Sequential{
				nn.Embedding{Num: 9, Dim: 3},
				nn.Transpose{},
				nn.Conv1d{Out: 4, Kernel: 3},
				nn.ReLU{},
				nn.MaxPool1d{Kernel: 2},
				nn.Transpose{},
				nn.LSTM{Hidden: 3},
				nn.Linear{Out: 2},
			},
			want: func(p map[string]array, x array) array {
				c := conv1d(p["2.weight"], p["2.bias"].data, transposed(embedding(p["0.weight"], x)), 1, 0, 1).each(relu)
				return linear(p, "7", last(lstm(p, "6", transposed(maxPool1d(c, 2, 2, 0)))))
			}},
	}
}

// inputs are n inputs, as a tensor and in plain Go.
func (c layerCase) inputs(n int) (*ts.Tensor, []array) {
	size := int64(1)
	for _, s := range c.in {
		size *= s
	}
	v := normals(99, n*int(size))
	whole := make([]int64, len(v))
	if c.tokens > 0 {
		for i := range v {
			whole[i] = int64(math.Abs(v[i])*1000) % c.tokens
			v[i] = float64(whole[i])
		}
	}
	var plain []array
	for i := range n {
		plain = append(plain, array{c.in, v[i*int(size) : (i+1)*int(size)]})
	}
	full := append([]int64{int64(n)}, c.in...)
	if c.tokens > 0 {
		return must(torch.FromSlice(whole, full...)), plain
	}
	return tensor(v, full...), plain
}

// score is a scalar function of the outputs in which each has its own weight.
func score(y torch.Tensor) *ts.Tensor {
	weights := tensor(normals(5, y.Numel()), shape(y)...)
	y = torch.Of(must(torch.To(y.T(), gotch.CPU, gotch.Double)))
	return y.Mul(weights).Mul(y.Add(2)).Sum().T()
}

func TestLayersAreWhatTheySay(t *testing.T) {
	for _, c := range layerCases() {
		t.Run(c.name, func(t *testing.T) {
			do(t, func() {
				n := build(t, c.layers, c.in...)
				p := point(n, 3, 0.7, 0)
				x, plain := c.inputs(3)
				y := n.Forward(p, torch.Of(x))
				var want []float64
				for i, input := range plain {
					one := c.want(sites(p), input)
					require.Equal(t, fmt.Sprint(n.Out()), fmt.Sprint(one.shape))
					want = append(want, one.data...)
					single := n.Forward(p, torch.Of(x.MustSelect(0, int64(i), false)))
					require.Equal(t, n.Out(), shape(single))
					closeTo(t, one.data, values(single), 1e-12, "a single input")
				}
				require.Equal(t, append([]int64{3}, n.Out()...), shape(y))
				closeTo(t, want, values(y), 1e-12, "outputs")

				if c.tokens == 0 {
					x = must(torch.To(x, gotch.CPU, gotch.Float))
				}
				y = n.Forward(must(p.To(gotch.CPU, gotch.Float)), torch.Of(x))
				require.Equal(t, gotch.Float, y.T().DType())
				closeTo(t, want, values(y), 2e-5, "outputs in float32")
			})
		})
	}
}

func TestGradientsAreFiniteDifferences(t *testing.T) {
	for _, c := range layerCases() {
		t.Run(c.name, func(t *testing.T) {
			do(t, func() {
				n := build(t, c.layers, c.in...)
				x, plain := c.inputs(2)
				f := func(flat *ts.Tensor) *ts.Tensor {
					return score(n.Forward(infer.Params{Layout: n.Layout(), Flat: flat}, torch.Of(x)))
				}
				p := point(n, 3, 0.7, 0)
				_, grad, err := torch.ValueAndGrad(f, p.Flat)
				require.NoError(t, err)

				// The differences are those of the plain loops.
				weights := normals(5, 2*len(c.want(sites(p), plain[0]).data))
				value := func(flat []float64) (sum float64) {
					s := sites(must(infer.NewParams(n.Layout(), flat)))
					k := 0
					for _, input := range plain {
						for _, y := range c.want(s, input).data {
							sum += weights[k] * y * (y + 2)
							k++
						}
					}
					return sum
				}
				flat, want := values(p.Flat), make([]float64, n.NumParams())
				const h = 1e-5
				for i, v := range flat {
					flat[i] = v + h
					up := value(flat)
					flat[i] = v - h
					want[i] = (up - value(flat)) / (2 * h)
					flat[i] = v
				}
				closeTo(t, want, values(grad), 2e-8, "gradient")
			})
		})
	}
}

// The product of the Hessian with a vector, from a second backward pass, at one point and at three.
func TestSecondDerivativesAreFiniteDifferences(t *testing.T) {
	for _, c := range layerCases() {
		if c.kinked {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			do(t, func() {
				const k, h = 3, 1e-5
				n := build(t, c.layers, c.in...)
				x, _ := c.inputs(2)
				f := func(flat *ts.Tensor) *ts.Tensor {
					return score(n.Forward(infer.Params{Layout: n.Layout(), Flat: flat}, torch.Of(x)))
				}
				p := point(n, 3, 0.7, k)
				v := point(n, 4, 1, k).Flat
				product := func(value, leaf, v *ts.Tensor) []float64 {
					g := must(torch.Grad([]*ts.Tensor{value}, []*ts.Tensor{leaf}, &torch.GradOptions{CreateGraph: true}))[0]
					along := g.MustMul(v, false).MustSum(gotch.Double, false)
					return values(must(torch.Grad([]*ts.Tensor{along}, []*ts.Tensor{leaf}, &torch.GradOptions{AllowUnused: true}))[0])
				}
				leaf := must(torch.Leaf(p.Flat))
				mapped := must(
					torch.Vmap(
						func(in []*ts.Tensor) ([]*ts.Tensor, error) { return []*ts.Tensor{f(in[0])}, nil },
						[]*ts.Tensor{leaf},
						nil,
					),
				)
				all := product(mapped[0].MustSum(gotch.Double, false), leaf, v)
				for i := range k {
					at, dir := row(p, i).Flat, v.MustSelect(0, int64(i), false)
					shifted := func(by float64) []float64 {
						_, g, err := torch.ValueAndGrad(
							f,
							must(torch.Combine(torch.Term{Coeff: 1, Tensor: at}, torch.Term{Coeff: by, Tensor: dir})),
						)
						require.NoError(t, err)
						return values(g)
					}
					up, down, want := shifted(h), shifted(-h), make([]float64, n.NumParams())
					for j := range want {
						want[j] = (up[j] - down[j]) / (2 * h)
					}
					one := must(torch.Leaf(at))
					closeTo(t, want, product(f(one), one, dir), 1e-7, "at one point")
					closeTo(t, want, all[i*len(want):(i+1)*len(want)], 1e-7, "mapped")
				}
			})
		})
	}
}

// Mapped over points, values and gradients are those of a loop. Mapped over data too, they are a
// gradient for each datum.
func TestMappedIsALoop(t *testing.T) {
	for _, c := range layerCases() {
		t.Run(c.name, func(t *testing.T) {
			do(t, func() {
				const k = 3
				n := build(t, c.layers, c.in...)
				x, _ := c.inputs(k)
				p := point(n, 3, 0.7, k)
				on := func(x *ts.Tensor) func(*ts.Tensor) *ts.Tensor {
					return func(flat *ts.Tensor) *ts.Tensor {
						return score(n.Forward(infer.Params{Layout: n.Layout(), Flat: flat}, torch.Of(x)))
					}
				}
				v, g, err := torch.VmapValueAndGrad(on(x), p.Flat)
				require.NoError(t, err)

				same := p.Flat.MustSelect(0, 0, false).MustUnsqueeze(0, false).MustRepeat([]int64{k, 1}, false)
				leaf := must(torch.Leaf(same))
				each := must(torch.Vmap(func(in []*ts.Tensor) ([]*ts.Tensor, error) {
					return []*ts.Tensor{on(in[1])(in[0])}, nil
				}, []*ts.Tensor{leaf, x}, nil))[0]
				perDatum := must(torch.Grad([]*ts.Tensor{each.MustSum(gotch.Double, false)}, []*ts.Tensor{leaf}, nil))[0]

				// The data alone are mapped, and the point is one for all.
				shared := must(torch.Vmap(func(in []*ts.Tensor) ([]*ts.Tensor, error) {
					return []*ts.Tensor{on(in[0])(row(p, 0).Flat)}, nil
				}, []*ts.Tensor{x}, nil))[0]
				for i := range k {
					value, grad, err := torch.ValueAndGrad(on(x), row(p, i).Flat)
					require.NoError(t, err)
					closeTo(t, values(value), values(v.MustSelect(0, int64(i), false)), 1e-12, "value of a point")
					closeTo(t, values(grad), values(g.MustSelect(0, int64(i), false)), 1e-12, "gradient of a point")

					value, grad, err = torch.ValueAndGrad(on(x.MustSelect(0, int64(i), false)), row(p, 0).Flat)
					require.NoError(t, err)
					closeTo(t, values(value), values(each.MustSelect(0, int64(i), false)), 1e-12, "value of a datum")
					closeTo(t, values(value), values(shared.MustSelect(0, int64(i), false)), 1e-12,
						"value of a datum at a shared point")
					closeTo(t, values(grad), values(perDatum.MustSelect(0, int64(i), false)), 1e-12, "gradient of a datum")
				}
			})
		})
	}
}

// The LSTM is libtorch's.
func TestLSTMIsLibtorchs(t *testing.T) {
	do(t, func() {
		n := build(t, nn.Sequential{nn.LSTM{Hidden: 5, All: true}}, 7, 4)
		p := point(n, 1, 0.5, 0)
		x := tensor(normals(2, 3*7*4), 3, 7, 4)
		zero := func() *ts.Tensor { return ts.MustZeros([]int64{1, 3, 5}, gotch.Double, gotch.CPU) }
		y, _, _ := x.MustLstm(
			[]*ts.Tensor{zero(), zero()},
			[]*ts.Tensor{
				p.Get("0.weight_ih").T(),
				p.Get("0.weight_hh").T(),
				p.Get("0.bias_ih").T(),
				p.Get("0.bias_hh").T(),
			},
			true,
			1,
			0,
			false,
			false,
			true,
		)
		closeTo(t, values(y), values(n.Forward(p, torch.Of(x))), 1e-12, "outputs")
	})
}

// The constants of SELU: λ is the slope above 0, and −λα the limit below.
func TestSELUConstants(t *testing.T) {
	do(t, func() {
		n := build(t, nn.Sequential{nn.Linear{Out: 1}, nn.SELU{}}, 1)
		p := must(infer.NewParams(n.Layout(), []float64{0, 1}))
		closeTo(t, []float64{1.0507009873554805, -1.0507009873554805 * 1.6732632423543772, 0},
			values(n.Forward(p, torch.Of(tensor([]float64{1, -1000, 0}, 3, 1)))), 1e-15, "SELU")

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
