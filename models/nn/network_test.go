package nn_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/internal/nntest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The numbers of parameters of published networks.
func TestNumbersOfParameters(t *testing.T) {
	for want, sizes := range map[int][]int{2241: {2, 32, 32, 32, 1}, 203: {5, 10, 10, 3}, 13970: {256, 40, 40, 40, 10},
		10690: {256, 40, 10}} {
		n, err := nn.MLP{Sizes: sizes}.Build()
		require.NoError(t, err)
		assert.Equal(t, want, n.NumParams(), sizes)
	}
	// One bias or two are 4·128 parameters.
	for want, c := range map[int]nn.CNNLSTM{2700098: {}, 2638966: {Hidden: 70}, 2700098 + 512: {TwoBiases: true}} {
		n, err := c.Build()
		require.NoError(t, err)
		assert.Equal(t, want, n.NumParams())
		assert.Equal(t, []int{2}, n.Out())
	}
}

func TestCNNLSTMRuns(t *testing.T) {
	n, err := nn.CNNLSTM{
		Vocab:     11,
		Length:    30,
		Embedding: 6,
		Filters:   5,
		Kernel:    4,
		Pool:      3,
		Hidden:    7,
		Classes:   3,
	}.Build()
	require.NoError(t, err)
	do(t, func() {
		tokens := make([]int, 60)
		for i := range tokens {
			tokens[i] = (i * i) % 11
		}
		y, err := n.Predict(point(n, 1, 0.3, 4), torch.New(tokens, 2, 30), nil)
		require.NoError(t, err)
		assert.Equal(t, []int{4, 2, 3}, shape(y))
	})
	assert.Equal(
		t,
		[]string{
			"1_embedding.weight",
			"2_conv.bias",
			"2_conv.weight",
			"3_lstm.bias_ih",
			"3_lstm.weight_hh",
			"3_lstm.weight_ih",
			"4_output.bias",
			"4_output.weight",
		},
		n.Layout().Names(),
	)
}

func TestMLPHasItsParts(t *testing.T) {
	n, err := nn.MLP{Sizes: []int{2, 3, 4, 1}, Activation: nn.Tanh{}, Keep: 0.5, Output: nn.Sigmoid{}}.Build()
	require.NoError(t, err)
	assert.Equal(t, "layer  kind     output  parameters\n       input    [2]\n0      Linear   [3]     9\n"+
		"1      Tanh     [3]     0\n2      Dropout  [3]     0\n3      Linear   [4]     16\n4      Tanh     [4]     0\n"+
		"5      Dropout  [4]     0\n6      Linear   [1]     5\n7      Sigmoid  [1]     0\n                total   30\n",
		n.String())
	assert.Equal(t, []int{2}, n.In())
}

func TestNames(t *testing.T) {
	s := nn.Sequential{nn.Named("in", nn.Linear{Out: 2})}
	for range 10 {
		s = append(s, nn.Linear{Out: 2, NoBias: true})
	}
	n := build(t, append(s, nn.Func{Kind: "Double", F: func(x torch.Tensor) torch.Tensor { return x }}), 3)
	assert.Equal(
		t,
		[]string{
			"01.weight",
			"02.weight",
			"03.weight",
			"04.weight",
			"05.weight",
			"06.weight",
			"07.weight",
			"08.weight",
			"09.weight",
			"10.weight",
			"in.bias",
			"in.weight",
		},
		n.Layout().Names(),
	)
	assert.Contains(t, n.String(), "Double")
	last := n.Sites()[11]
	assert.Equal(
		t,
		nn.Site{
			Site:    n.Layout().Sites[11],
			Layer:   "in",
			Kind:    "Linear",
			FanIn:   3,
			FanOut:  2,
			Default: nn.Uniform(1 / math.Sqrt(3)),
		},
		last,
	)
	assert.True(t, n.Sites()[10].Bias)
}

func TestFans(t *testing.T) {
	n := build(t, nn.Sequential{nn.Conv2d{Out: 6, Kernel: 3, Groups: 2}, nn.Flatten{}, nn.Linear{Out: 5}}, 4, 5, 5)
	for _, s := range n.Sites() {
		want := [2]int{9 * 2, 9 * 6}
		if s.Layer == "2" {
			want = [2]int{54, 5}
		}
		assert.Equal(t, want, [2]int{s.FanIn, s.FanOut}, s.Name)
	}
	n = build(t, nn.Sequential{nn.Embedding{Num: 50, Dim: 8}, nn.LSTM{Hidden: 3}}, 7)
	fans := map[string][2]int{}
	for _, s := range n.Sites() {
		fans[s.Name] = [2]int{s.FanIn, s.FanOut}
	}
	assert.Equal(t, map[string][2]int{"0.weight": {1, 8},
		"1.weight_ih": {8, 12}, "1.weight_hh": {3, 12}, "1.bias_ih": {8, 12}, "1.bias_hh": {3, 12}}, fans)
}

// A layout with other sites before, between and after those of the network.
func TestNetworkInALargerLayout(t *testing.T) {
	n := build(t, nn.Sequential{nn.Linear{Out: 3}, nn.Tanh{}, nn.Linear{Out: 2}}, 2)
	shapes := n.Shapes()
	shapes["sigma"], shapes["%"], shapes["1.extra"] = []int{}, []int{2}, []int{3}
	l, err := infer.NewLayout(shapes)
	require.NoError(t, err)
	do(t, func() {
		p := infer.Params{Layout: l, Flat: tensor(normals(1, l.Dim()), l.Dim())}
		var own []float64
		for _, s := range n.Layout().Sites {
			own = append(own, must(p.Site(s.Name))...)
		}
		inner := must(infer.NewParams(n.Layout(), own))
		x := tensor(normals(2, 8), 4, 2)
		closeTo(t, values(n.Forward(inner, x)), values(n.Forward(p, x)), 1e-15, "outputs")
		prior := must(nn.NewPrior(n, nn.HePrior(0.3)))
		closeTo(t, values(prior.LogDensity(inner)), values(prior.LogDensity(p)), 1e-14, "prior")
	})
	other, err := infer.NewLayout(infer.Shapes{"0.weight": {3, 2}})
	require.NoError(t, err)
	err = failing(t, func() { n.Forward(must(infer.Zeros(other)), tensor([]float64{1, 2}, 2)) })
	var missing *infer.ModelError
	require.True(t, errors.As(err, &missing))
	assert.Equal(t, "0.bias", missing.Name)
	shapes["0.weight"] = []int{2, 3}
	l, err = infer.NewLayout(shapes)
	require.NoError(t, err)
	err = failing(t, func() { n.Forward(must(infer.Zeros(l)), tensor([]float64{1, 2}, 2)) })
	require.ErrorIs(t, err, infer.ErrLayout)
	require.ErrorContains(t, err, `site "0.weight" has shape [2 3]: expected [3 2]`)
}

// The hook sees what goes in and out of each layer, and may change it.
func TestHook(t *testing.T) {
	n := build(t, nn.Sequential{nn.Named("hidden", nn.Linear{Out: 3}), nn.Tanh{}, nn.Linear{Out: 2}}, 2)
	do(t, func() {
		p, x := point(n, 1, 1, 0), tensor(normals(2, 8), 4, 2)
		var names []string
		y := n.ForwardWith(p, x, nn.Run{Hook: func(name string, input, output torch.Tensor) torch.Tensor {
			names = append(names, name)
			switch name {
			case "hidden":
				closeTo(t, values(x), values(input), 0, "input of the first layer")
				closeTo(
					t,
					values(ts.MustLinear(x.T(), p.Get("hidden.weight").T(), p.Get("hidden.bias").T())),
					values(output),
					1e-15,
					"pre-activation",
				)
				return torch.Tensor{}
			case "2":
				return output.Mul(2)
			}
			return output
		}})
		assert.Equal(t, []string{"hidden", "1", "2"}, names)
		closeTo(t, values(n.Forward(p, x).Mul(2)), values(y), 1e-15, "outputs")
	})
}

// Adding a zero that gradients can be taken in to a pre-activation gives the gradient in it for each datum: its product
// with the input is the gradient of the weight.
func TestHookGivesGradientsOfPreActivations(t *testing.T) {
	n := build(t, nn.Sequential{nn.Linear{Out: 3}, nn.Tanh{}, nn.Linear{Out: 2}}, 2)
	do(t, func() {
		p, x := point(n, 1, 1, 0), tensor(normals(2, 8), 4, 2)
		probe := must(torch.Leaf(torch.Of(ts.MustZeros([]int64{4, 3}, gotch.Double, gotch.CPU))))
		y := n.ForwardWith(p, x, nn.Run{Hook: func(name string, _, output torch.Tensor) torch.Tensor {
			if name == "0" {
				return output.Add(probe)
			}
			return torch.Tensor{}
		}})
		g := must(torch.Grad([]torch.Tensor{score(y)}, []torch.Tensor{probe}, nil))[0]
		_, grad, err := torch.ValueAndGrad(func(flat torch.Tensor) torch.Tensor {
			return score(n.Forward(infer.Params{Layout: n.Layout(), Flat: flat}, x))
		}, p.Flat)
		require.NoError(t, err)
		at := infer.Params{Layout: n.Layout(), Flat: grad}
		closeTo(
			t,
			must(at.Site("0.weight")),
			values(g.T().MustTranspose(0, 1, false).MustMatmul(x.T(), false)),
			1e-13,
			"gradient of the weight",
		)
		closeTo(
			t,
			must(at.Site("0.bias")),
			values(g.T().MustSumDimIntlist([]int64{0}, false, gotch.Double, false)),
			1e-13,
			"gradient of the bias",
		)
	})
}

// Swapping hidden units with their weights in and out is another point with the same function; so is, for ReLU, c times
// the weights in and 1/c times those out.
func TestSymmetries(t *testing.T) {
	n, err := nn.MLP{Sizes: []int{3, 4, 2}}.Build()
	require.NoError(t, err)
	do(t, func() {
		p, x := point(n, 1, 1, 0), tensor(normals(2, 30), 10, 3)
		want := values(n.Forward(p, x))
		with := func(change func(s map[string]nntest.Array)) []float64 {
			s := sites(p)
			change(s)
			var flat []float64
			for _, site := range n.Layout().Sites {
				flat = append(flat, s[site.Name].Data...)
			}
			return values(n.Forward(must(infer.NewParams(n.Layout(), flat)), x))
		}
		swapped := with(func(s map[string]nntest.Array) {
			order := []int{2, 0, 3, 1}
			w, b, v := s["0.weight"].Each(id), s["0.bias"].Each(id), s["2.weight"].Each(id)
			for i, j := range order {
				*s["0.bias"].At(i) = *b.At(j)
				for k := range 3 {
					*s["0.weight"].At(i, k) = *w.At(j, k)
				}
				for k := range 2 {
					*s["2.weight"].At(k, i) = *v.At(k, j)
				}
			}
		})
		closeTo(t, want, swapped, 1e-13, "permuted")
		scaled := with(func(s map[string]nntest.Array) {
			for i, c := range []float64{0.2, 1, 3, 10} {
				*s["0.bias"].At(i) *= c
				for k := range 3 {
					*s["0.weight"].At(i, k) *= c
				}
				for k := range 2 {
					*s["2.weight"].At(k, i) /= c
				}
			}
		})
		closeTo(t, want, scaled, 1e-13, "rescaled")
		wrong := with(func(s map[string]nntest.Array) { *s["0.bias"].At(0) *= 3 })
		assert.NotEqual(t, want, wrong)
	})
}

func id(x float64) float64 { return x }

// Points mapped over data mapped over points again: nested maps.
func TestNestedMaps(t *testing.T) {
	for _, c := range layerCases() {
		t.Run(c.Name, func(t *testing.T) {
			do(t, func() {
				n := build(t, c.Layers, c.In...)
				x, _ := c.Inputs(3)
				p := point(n, 3, 0.7, 2)
				y := must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
					return torch.Vmap(func(datum []torch.Tensor) ([]torch.Tensor, error) {
						return []torch.Tensor{n.Forward(infer.Params{Layout: n.Layout(), Flat: in[0]}, datum[0])}, nil
					}, []torch.Tensor{x}, nil)
				}, []torch.Tensor{p.Flat}, nil))[0]
				want, err := n.Predict(p, x, nil)
				require.NoError(t, err)
				require.Equal(t, append([]int{2, 3}, n.Out()...), shape(y))
				closeTo(t, values(want), values(y), 1e-12, "outputs")
				for k := range 2 {
					one, err := n.Predict(row(p, k), x, nil)
					require.NoError(t, err)
					closeTo(t, values(one), values(want.At(k)), 1e-12, "outputs of a point")
				}
			})
		})
	}
}

// Gradients of float32 points are float32, and what a log posterior of a network costs goes through infer.Gradient.
func TestNetworkInALogPosterior(t *testing.T) {
	n, err := nn.MLP{Sizes: []int{3, 4, 2}, Activation: nn.SELU{}}.Build()
	require.NoError(t, err)
	gradient, err := infer.NewGradient(infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return n.Forward(p, b.Get("x")).Sum(), nil
	}, 1))
	require.NoError(t, err)
	do(t, func() {
		x := tensor(normals(2, 6), 2, 3)
		for _, k := range []int{0, 1, 3} {
			p := point(n, 1, 1, k)
			e, err := gradient.ValueAndGrad(p, infer.Batch{"x": x}, 0)
			require.NoError(t, err)
			p, err = p.To(gotch.CPU, gotch.Float)
			require.NoError(t, err)
			e32, err := gradient.ValueAndGrad(p, infer.Batch{"x": must(torch.To(x, gotch.CPU, gotch.Float))}, 0)
			require.NoError(t, err)
			require.Equal(t, gotch.Float, e32.Grad.T().DType())
			closeTo(t, values(e.Grad), values(e32.Grad), 1e-5, "gradients")
			_, err = gradient.ValueAndGrad(p, infer.Batch{"x": x}, 0)
			require.ErrorContains(t, err, "the input is Double and the params are Float")
		}
	})
}

// A network reads the sites of a point that has them as tensors of their own, not the flat vector, and has no more of a
// point than it reads: one whose layout was replaced is read by the new one, and a layer may drop its parameter.
func TestNetworkReadsSites(t *testing.T) {
	n, err := nn.MLP{Sizes: []int{3, 4, 2}}.Build()
	require.NoError(t, err)
	p, x := point(n, 1, 1, 0), tensor(normals(2, 6), 2, 3)
	do(t, func() {
		var leaves []torch.Tensor
		for _, s := range n.Layout().Sites {
			leaves = append(leaves, must(torch.Leaf(torch.Of(p.Flat.T().MustNarrow(0, int64(s.Offset), int64(s.Size), false)))))
		}
		flat := must(torch.Leaf(p.Flat))
		y := n.Forward(n.Layout().Join(flat, leaves), x).Sum()
		g, err := ts.KelvinGradUsed([]*ts.Tensor{y.T()}, raw.Pointers(append(leaves, flat)), nil, false)
		require.NoError(t, err)
		for i, s := range n.Layout().Sites {
			require.NotNil(t, g[i], s.Name)
		}
		require.Nil(t, g[len(leaves)], "the flat vector")
	})
	layout, err := infer.NewLayout(infer.Shapes{"a": {11}, "b": {15}})
	require.NoError(t, err)
	other := must(infer.Params{Layout: layout, Flat: p.Flat}.Split())
	other.Layout = n.Layout()
	require.Equal(t, values(must(n.Predict(p, x, nil))), values(must(n.Predict(other, x, nil))))

	n, err = nn.Sequential{&bare{nn.Plan{Out: []int{3}, Params: []nn.Param{{Name: "b", Shape: []int{3},
		Default: nn.Normal(1)}}, Forward: func(c nn.Call, x torch.Tensor) torch.Tensor {
		return torch.Of(c.Params[0].T().MustNeg(true)).Add(x)
	}}}}.Build(3)
	require.NoError(t, err)
	p = point(n, 1, 1, 0)
	first := values(must(n.Predict(p, x, nil)))
	require.Equal(t, first, values(must(n.Predict(p, x, nil))))
}
