package nn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/internal/nntest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// product is x Wᵀ + b from the sites of a point.
func product(n *nn.Network, p infer.Params) laplace.Linear {
	bias := map[string]string{}
	for _, l := range n.LinearLayers() {
		bias[l.Weight] = l.Bias
	}
	return func(weight string, x torch.Tensor) torch.Tensor {
		y := x.MatMul(p.Get(weight).Transpose())
		if bias[weight] == "" {
			return y
		}
		return y.Add(p.Get(bias[weight]))
	}
}

// embeds is a layer that is more than the Linear in it: it doubles what comes out.
type embeds struct{ nn.Linear }

func (e embeds) Plan(in []int) (nn.Plan, error) {
	p, err := e.Linear.Plan(in)
	f := p.Forward
	p.Forward = func(c nn.Call, x torch.Tensor) torch.Tensor { return f(c, x).Mul(2) }
	return p, err
}

// other is a function that calls itself Linear.
var other = nn.Func{Kind: "Linear", F: func(x torch.Tensor) torch.Tensor { return x }}

func TestLinearLayers(t *testing.T) {
	n := build(
		t,
		nn.Sequential{nn.Conv2d{Out: 2, Kernel: 2}, nn.Flatten{}, nn.Named("z", nn.Linear{Out: 4}), nn.ReLU{}, other,
			nn.Named("b", &nn.Linear{Out: 3, NoBias: true}), embeds{nn.Linear{Out: 2}}},
		1,
		3,
		3,
	)
	assert.Equal(t, []laplace.Layer{{Weight: "z.weight", Bias: "z.bias"}, {Weight: "b.weight"}}, n.LinearLayers())
	assert.Empty(t, build(t, nn.Sequential{nn.Embedding{Num: 3, Dim: 2}}, 4).LinearLayers())
	words, err := nn.CNNLSTM{}.Build()
	require.NoError(t, err)
	assert.Equal(t, []laplace.Layer{{Weight: "4_output.weight", Bias: "4_output.bias"}}, words.LinearLayers())
}

// With the products written out the network is the same function: of single data, of sequences, in float32, in a larger
// layout, and mapped over points.
func TestForwardLinearIsForward(t *testing.T) {
	for name, c := range map[string]struct {
		layers nn.Sequential
		in     []int
	}{
		"perceptron": {nn.Sequential{nn.Linear{Out: 5}, nn.Tanh{}, nn.Dropout{Keep: 0.5}, nn.Linear{Out: 3, NoBias: true},
			nn.Softmax{}}, []int{4}},
		"sequences": {nn.Sequential{nn.LSTM{Hidden: 3}, nn.Linear{Out: 4}, nn.SELU{}}, []int{5, 2}},
		"each step": {nn.Sequential{nn.Linear{Out: 3}, nn.Tanh{}, nn.Linear{Out: 2}}, []int{5, 4}},
		"images": {nn.Sequential{nn.Conv2d{Out: 2, Kernel: 2}, nn.Flatten{}, embeds{nn.Linear{Out: 2}},
			nn.Linear{Out: 2}}, []int{1, 3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			n := build(t, c.layers, c.in...)
			size := 1
			for _, s := range c.in {
				size *= s
			}
			x := tensor(normals(2, 3*size), append([]int{3}, c.in...)...)
			p := point(n, 1, 0.7, 0)
			do(t, func() {
				want := n.Forward(p, x)
				closeTo(t, values(want), values(n.ForwardLinear(p, x, product(n, p))), 1e-14, "float64")
				assert.Equal(t, shape(want), shape(n.ForwardLinear(p, x, product(n, p))))
				one := x.At(1).T()
				y := n.ForwardLinear(p, torch.Of(one), product(n, p))
				closeTo(t, values(n.Forward(p, torch.Of(one))), values(y), 1e-14, "one datum")
				assert.Equal(t, n.Out(), shape(y))

				single := must(p.To(gotch.CPU, gotch.Float))
				y = n.ForwardLinear(single, must(torch.To(x, gotch.CPU, gotch.Float)), product(n, single))
				assert.Equal(t, gotch.Float, y.T().DType())
				closeTo(t, values(want), values(y), 1e-5, "float32")

				shapes := n.Shapes()
				shapes["extra"] = []int{2}
				larger := must(infer.Zeros(must(infer.NewLayout(shapes))))
				for _, s := range n.Sites() {
					larger.Get(s.Name).T().Copy_(p.Get(s.Name).T())
				}
				closeTo(t, values(want), values(n.ForwardLinear(larger, x, product(n, larger))), 1e-14, "a larger layout")

				points := point(n, 3, 0.7, 2)
				mapped := must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
					at := infer.Params{Layout: n.Layout(), Flat: in[0]}
					return []torch.Tensor{n.ForwardLinear(at, x, product(n, at))}, nil
				}, []torch.Tensor{points.Flat}, nil))
				closeTo(t, values(must(n.Predict(points, x, nil))), values(mapped[0]), 1e-14, "mapped over points")
			})
		})
	}
}

// The network goes on with what the function returns.
func TestForwardLinearTakesWhatIsReturned(t *testing.T) {
	n := build(t, nn.Sequential{nn.Linear{Out: 2}, nn.ReLU{}, nn.Linear{Out: 1}}, 3)
	p := point(n, 1, 1, 0)
	do(t, func() {
		y := n.ForwardLinear(p, tensor(make([]float64, 6), 2, 3), func(weight string, x torch.Tensor) torch.Tensor {
			if weight == "0.weight" {
				assert.Equal(t, []int{2, 3}, x.Shape())
				return tensor([]float64{-1, 2, 3, -4}, 2, 2)
			}
			assert.Equal(t, []float64{0, 2, 3, 0}, x.Values())
			return tensor([]float64{7, 8}, 2, 1)
		})
		assert.Equal(t, []float64{7, 8}, values(y))
	})
}

func TestForwardLinearErrors(t *testing.T) {
	n := build(t, nn.Sequential{nn.Named("a", nn.Linear{Out: 2})}, 3)
	p, x := point(n, 1, 1, 0), tensor(make([]float64, 12), 4, 3)
	for want, f := range map[string]laplace.Linear{
		"nn: the function for the linear layers is nil": nil,
		`nn: layer "a": the function for the linear layers returned shape []: expected [4 2]`: func(string,
			torch.Tensor) torch.Tensor {
			return torch.Tensor{}
		},
		`nn: layer "a": the function for the linear layers returned shape [4 3]: expected [4 2]`: func(_ string,
			x torch.Tensor) torch.Tensor {
			return x
		},
	} {
		err := failing(t, func() { n.ForwardLinear(p, x, f) })
		assert.ErrorContains(t, err, want)
		assert.ErrorIs(t, err, infer.ErrConfig)
	}
	err := failing(t, func() { n.ForwardLinear(p, p.Flat, product(n, p)) })
	assert.ErrorContains(t, err, "the input has shape [8]: expected [n 3]")
}

// Kronecker factors of a network, with what theory says of them in plain loops: for the outputs z = W₂ tanh(W₁x + b)
// and noise of variance s²
//
//	P_a = (1/N) (Σ S_iᵀ S_i/s²) ⊗ (Σ [x_i; 1][x_i; 1]ᵀ) + λI,  S_i = W₂ diag(1 − h_i²)
//	P_b = (1/N) (N I/s²) ⊗ (Σ h_i h_iᵀ) + λI
func TestKroneckerFactorsOfANetwork(t *testing.T) {
	const n, variance, lambda = 5, 0.49, 0.3
	net := build(
		t,
		nn.Sequential{nn.Named("a", nn.Linear{Out: 3}), nn.Tanh{}, nn.Named("b", nn.Linear{Out: 2, NoBias: true})},
		2,
	)
	p := point(net, 4, 0.8, 0)
	x, y := normals(5, 2*n), normals(6, 2*n)
	batch := infer.Batch{"x": tensor(x, n, 2), "y": tensor(y, n, 2)}
	layers := net.LinearLayers()
	kfac := laplace.KFAC{
		Network: func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
			return net.ForwardLinear(p, b.Get("x"), linear)
		},
		Layers: layers,
		Outer: func(z torch.Tensor, b infer.Batch) torch.Tensor {
			return b.Get("y").Sub(z).Square().Mul(-0.5 / variance).Sum(-1)
		},
		PriorPrecision: laplace.Isotropic(lambda),
	}
	transform, err := kfac.Build(infer.Target{})
	require.NoError(t, err)
	state, err := transform.Init(p)
	require.NoError(t, err)
	state, info, err := transform.Update(state, batch)
	require.NoError(t, err)
	have := values(must(state.(laplace.KFACState).Precision()))

	at := sites(p)
	in, out, hidden := nntest.Zeros(3, 3), nntest.Zeros(3, 3), nntest.Zeros(3, 3)
	logLik := 0.0
	for i := range n {
		a := []float64{x[2*i], x[2*i+1], 1}
		h := make([]float64, 3)
		for j := range h {
			h[j] = math.Tanh(
				*at["a.weight"].At(j, 0)*a[0] + *at["a.weight"].At(j,
					1)*a[1] + *at["a.bias"].At(j),
			)
		}
		for c := range 2 {
			z := 0.0
			for j := range h {
				z += *at["b.weight"].At(c, j) * h[j]
			}
			logLik -= (y[2*i+c] - z) * (y[2*i+c] - z) / (2 * variance)
		}
		for j := range 3 {
			for k := range 3 {
				*in.At(j, k) += a[j] * a[k]
				*hidden.At(j, k) += h[j] * h[k]
				for c := range 2 {
					*out.At(j, k) += *at["b.weight"].At(c, j) * (1 - h[j]*h[j]) * *at["b.weight"].At(c,
						k) * (1 - h[k]*h[k]) / variance
				}
			}
		}
	}
	assert.InDelta(t, logLik, info.LogPosterior[0], 1e-12)
	// Where each parameter is in the flat vector: a.bias [3], a.weight [3, 2], b.weight [2, 3].
	require.Equal(t, []string{"a.bias", "a.weight", "b.weight"}, net.Layout().Names())
	first := func(j, m int) int { // W₁'s row j and column m, of which the last is b
		if m == 2 {
			return j
		}
		return 3 + 2*j + m
	}
	want := nntest.Zeros(15, 15)
	for j := range 3 {
		for m := range 3 {
			for k := range 3 {
				for l := range 3 {
					*want.At(first(j, m), first(k, l)) = *out.At(j, k) * *in.At(m, l) / n
				}
				for c := range 2 {
					*want.At(9+3*c+m, 9+3*c+k) = *hidden.At(m, k) / variance
				}
			}
		}
	}
	for i := range 15 {
		*want.At(i, i) += lambda
	}
	closeTo(t, want.Data, have, 1e-12, "the precision")
}
