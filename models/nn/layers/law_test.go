package layers_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/integrate/quad"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/internal/nntest"
	"github.com/kelvin-ppl/kelvin/models/nn/layers"
	"github.com/kelvin-ppl/kelvin/torch"
)

// ofRows is the network with one site "0.weight" [rows, d].
func ofRows(t *testing.T, rows, d int) *nn.Network {
	return nntest.Build(t, nn.Sequential{nn.Linear{Out: rows, NoBias: true}}, d)
}

func groupLaplace(t *testing.T, scale float64) nn.Law {
	law, err := layers.GroupLaplace(scale)
	require.NoError(t, err)
	return law
}

// In one dimension the integral of the density is over a line; in two and three it is over the radius, with the
// circumference 2πr and the surface 4πr².
func TestRowLawsHaveMassOne(t *testing.T) {
	surface := map[int]func(r float64) float64{
		1: func(float64) float64 { return 2 },
		2: func(r float64) float64 { return 2 * math.Pi * r },
		3: func(r float64) float64 { return 4 * math.Pi * r * r },
	}
	for name, law := range map[string]nn.Law{"group Laplace": groupLaplace(t, 0.3), "direction": layers.Direction()} {
		for d, s := range surface {
			net := ofRows(t, 1, d)
			prior, err := nn.NewPrior(net, nn.Same(law))
			require.NoError(t, err)
			nntest.Do(t, func() {
				mass := quad.Fixed(func(r float64) float64 {
					at := make([]float64, d)
					at[d-1] = r
					p := nntest.Must(infer.NewParams(net.Layout(), at))
					return s(r) * math.Exp(prior.LogDensity(p).Item())
				}, 0, 12, 400, nil, 0)
				// Beyond 12 there is exp(−40) (1 + 40 + 40²/2) = 4e-15 of the group Laplace law in three dimensions.
				assert.InDelta(t, 1, mass, 1e-9, "%s in %d dimensions", name, d)
			})
		}
	}
}

// The log density of a row is what the formula says, up to a constant that is the same for all rows, in a prior that
// has laws of elements too; the gradient is that of the formula, mapped as well.
func TestRowLawsInAPrior(t *testing.T) {
	net := nntest.Build(t, nn.Sequential{nn.Linear{Out: 2}}, 3)
	const scale, d = 0.7, 3.0
	for name, c := range map[string]struct {
		law    nn.Law
		f, dif func(r float64) float64 // of the length, and its derivative
	}{
		"group Laplace": {groupLaplace(t, scale), func(r float64) float64 { return -r / scale },
			func(float64) float64 { return -1 / scale }},
		"direction": {layers.Direction(), func(r float64) float64 { return -d / 2 * (r*r - 1) * (r*r - 1) },
			func(r float64) float64 { return -2 * d * r * (r*r - 1) }},
	} {
		prior, err := nn.NewPrior(net, nn.PerSite(map[string]nn.Law{"0.weight": c.law}, nn.Same(nn.Normal(2))))
		require.NoError(t, err)
		nntest.Do(t, func() {
			const k = 3
			p := nntest.Point(net, 5, 0.8, k)
			f := func(flat torch.Tensor) torch.Tensor {
				return prior.LogDensity(infer.Params{Layout: net.Layout(), Flat: flat})
			}
			values, grads, err := torch.VmapValueAndGrad(f, p.Flat)
			require.NoError(t, err)
			var want []float64
			var gradient []float64
			for i := range k {
				s := nntest.Sites(nntest.Row(p, i))
				sum := 0.0
				for _, b := range s["0.bias"].Data {
					sum -= b * b / 8
					gradient = append(gradient, -b/4)
				}
				for _, row := range rows(s["0.weight"], 2) {
					r := math.Sqrt(meanSquare(row) * d)
					sum += c.f(r)
					for _, v := range row {
						gradient = append(gradient, c.dif(r)*v/r)
					}
				}
				want = append(want, sum)
			}
			have := nntest.Values(values)
			for i := range want[1:] {
				assert.InDelta(t, want[i+1]-want[0], have[i+1]-have[0], 1e-12, name)
			}
			nntest.CloseTo(t, gradient, nntest.Values(grads), 1e-12, name)

			// At 0, where Fixup starts, it is 0.
			_, g, err := torch.ValueAndGrad(f, nntest.Must(infer.Zeros(net.Layout())).Flat)
			require.NoError(t, err)
			nntest.CloseTo(t, make([]float64, net.NumParams()), nntest.Values(g), 0, name)
		})
	}
}

// Draws have the law's lengths, within four standard errors, and no direction of their own.
func TestRowLawsDraw(t *testing.T) {
	const rows, d = 4000, 3
	net := ofRows(t, rows, d)
	moment := func(power float64) float64 { // of the length under Direction, by quadrature
		f := func(k float64) float64 {
			return quad.Fixed(func(r float64) float64 {
				return math.Pow(r, d-1+k) * math.Exp(-d/2.0*(r*r-1)*(r*r-1))
			}, 0, 4, 400, nil, 0)
		}
		return f(power) / f(0)
	}
	const scale = 0.3
	for name, c := range map[string]struct {
		law         nn.Law
		mean, power float64 // the first two moments of the length
	}{
		"group Laplace": {groupLaplace(t, scale), d * scale, d * (d + 1) * scale * scale}, // of Gamma(d, scale)
		"direction":     {layers.Direction(), moment(1), moment(2)},
	} {
		streams := torch.NewStreams(8, 2)
		p, err := nn.Init(net, nn.Same(c.law), &streams)
		require.NoError(t, err)
		one := torch.NewStreams(8, 1)
		alone, err := nn.Init(net, nn.Same(c.law), &one)
		require.NoError(t, err)
		v := nntest.Values(p.Flat)
		require.Equal(t, nntest.Values(alone.Flat), v[:rows*d], "chain 0 does not depend on chain 1")
		sd := math.Sqrt(c.power - c.mean*c.mean)
		var lengths, squares, first float64
		n := float64(len(v) / d)
		for i := 0; i < len(v); i += d {
			r := math.Sqrt(v[i]*v[i] + v[i+1]*v[i+1] + v[i+2]*v[i+2])
			lengths, squares, first = lengths+r/n, squares+(r-c.mean)*(r-c.mean)/n, first+v[i]/r/n
		}
		assert.InDelta(t, c.mean, lengths, 4*sd/math.Sqrt(n), name)
		// The variance of a squared deviation is at most (kurtosis − 1) sd⁴, and the kurtosis of Gamma(3) is 5.
		assert.InDelta(t, sd*sd, squares, 4*sd*sd*2/math.Sqrt(n), name)
		assert.InDelta(t, 0, first, 4*math.Sqrt(1.0/d/n), name)
	}
}

// Fixup's standard deviations, for two branches of two and three weights: L = 2, and L^(−1/(2m−2)) is 1/√2 and
// 2^(−1/4).
func TestFixup(t *testing.T) {
	net := nntest.Build(t, nn.Sequential{
		nn.Named("stem", nn.Linear{Out: 8}),
		layers.Residual{Body: nn.Sequential{nn.Linear{Out: 8}, nn.ReLU{}, nn.Linear{Out: 8}}},
		layers.Residual{Body: nn.Sequential{
			layers.WeightNorm{Layer: nn.Linear{Out: 8}}, layers.WeightNorm{Layer: nn.Linear{Out: 8}},
			layers.LayerNorm{},
			layers.WeightNorm{Layer: nn.Linear{Out: 8}},
		}},
		nn.Named("output", nn.Linear{Out: 2}),
	}, 32)
	for _, c := range []struct {
		fixup layers.Fixup
		want  map[string]nn.Law
	}{
		{layers.Fixup{Output: "output"}, map[string]nn.Law{
			"stem.weight": nn.Normal(0.25), "stem.bias": nn.Constant(0), "output.weight": nn.Constant(0),
			"1.body.0.weight": nn.Normal(math.Sqrt2 / math.Sqrt(8) / math.Sqrt2), "1.body.2.weight": nn.Constant(0),
			"2.body.0.direction": nn.Normal(1 / math.Sqrt(8)), "2.body.0.scale": nn.Constant(math.Sqrt2 * math.Pow(2,
				-0.25)),
			"2.body.2.scale": nn.Constant(1), "2.body.3.scale": nn.Constant(0),
		}},
		{layers.Fixup{Gain: 1, Last: 0.1}, map[string]nn.Law{
			"stem.weight": nn.Normal(1 / math.Sqrt(32)), "output.weight": nn.Normal(1 / math.Sqrt(8)),
			"1.body.2.weight": nn.Normal(0.1 / math.Sqrt(8)), "2.body.3.scale": nn.Constant(0.1),
		}},
	} {
		laws, err := c.fixup.Scheme(net.Sites())
		require.NoError(t, err)
		for i, s := range net.Sites() {
			if want, ok := c.want[s.Name]; ok {
				kind, value, _ := strings.Cut(want.String(), "(")
				haveKind, haveValue, _ := strings.Cut(laws[i].String(), "(")
				number := func(s string) float64 {
					return nntest.Must(strconv.ParseFloat(strings.TrimSuffix(s, ")"),
						64))
				}
				assert.Equal(t, kind, haveKind, s.Name)
				assert.InDelta(t, number(value), number(haveValue), 1e-15, s.Name)
			}
		}
	}
	// A branch that ends in zeros is the identity: the network is the stem and the output.
	nntest.Do(t, func() {
		streams := torch.NewStreams(1, 1)
		p := nntest.Must(nn.Init(net, layers.Fixup{}.Scheme, &streams))
		x := nntest.New([]int{32}, nntest.Normals(2, 32))
		s := nntest.Sites(p)
		want := nntest.Linear(s, "output", nntest.Linear(s, "stem", x))
		nntest.CloseTo(t, want.Data, nntest.Values(net.Forward(p, nntest.Tensor(x.Data, 32))), 1e-12,
			"identity")
	})
}

func TestErrors(t *testing.T) {
	linear := nn.Sequential{nn.Linear{Out: 3}}
	for _, c := range []struct {
		want  string
		layer nn.Layer
		in    []int
	}{
		{"layers.Residual: Body is []: it must have a layer at least", layers.Residual{}, []int{2}},
		{"the body makes [3] and the shortcut [2]: expected one shape", layers.Residual{Body: linear}, []int{2}},
		{`body: nn: layer "0" (Linear): nn.Linear: Out is 0`, layers.Residual{Body: nn.Sequential{nn.Linear{}}},
			[]int{2}},
		{"layers.WeightNorm: Layer is nil", layers.WeightNorm{}, []int{2}},
		{"the layer nn.Tanh has no weight of rows", layers.WeightNorm{Layer: nn.Tanh{}}, []int{2}},
		{"the layer nn.Embedding has no weight of rows", layers.WeightNorm{Layer: nn.Embedding{Num: 2, Dim: 3}},
			[]int{2}},
		{"inputs have shape []: expected [..., features]", layers.LayerNorm{}, nil},
		{"layers.LayerNorm: Epsilon is -1: it must be greater than 0", layers.LayerNorm{Epsilon: -1}, []int{2}},
		{"layers.FRN: Epsilon is NaN", layers.FRN{Epsilon: math.NaN()}, []int{2, 3}},
		{"inputs have shape [2]: expected [channels, ...]", layers.FRN{}, []int{2}},
		{"inputs have shape []: expected [channels, ...]", layers.BatchNorm{}, nil},
		{"layers.BatchNorm: Epsilon is +Inf", layers.BatchNorm{Epsilon: math.Inf(1)}, []int{2}},
		{"layers.AvgPool2d: Kernel is 5: inputs have shape [1 4 6], so it must be from 1 to 4",
			layers.AvgPool2d{Kernel: 5}, []int{1, 4, 6}},
		{"layers.AvgPool2d: Kernel is 0", layers.AvgPool2d{}, []int{1, 4, 6}},
		{"layers.AvgPool2d: Stride is -1", layers.AvgPool2d{Kernel: 1, Stride: -1}, []int{1, 4, 6}},
		{"inputs have shape [4 6]: expected [channels, height, width]", layers.AvgPool2d{Kernel: 1}, []int{4, 6}},
		{"inputs have shape [3]: expected [channels, ...]", layers.GlobalAvgPool{}, []int{3}},
		{"layers.Attention: Heads is 2: it must divide the 3 features", layers.Attention{Heads: 2}, []int{5, 3}},
		{"layers.Attention: Heads is -1", layers.Attention{Heads: -1}, []int{5, 3}},
		{"inputs have shape [3]: expected [steps, features]", layers.Attention{}, []int{3}},
		{"inputs have shape [3]: expected [steps, features]", layers.Position{}, []int{3}},
	} {
		_, err := c.layer.Plan(c.in)
		require.ErrorContains(t, err, c.want)
		assert.ErrorIs(t, err, infer.ErrConfig, c.want)
	}
	_, err := layers.GroupLaplace(0)
	require.ErrorContains(t, err, "layers.GroupLaplace: the scale is 0: it must be greater than 0 and finite")
	net := nntest.Build(t, linear, 2)
	_, err = layers.Fixup{Output: "head"}.Scheme(net.Sites())
	require.ErrorContains(t, err, `"head"`)
	_, err = layers.Fixup{Last: -1}.Scheme(net.Sites())
	require.ErrorContains(t, err, "layers.Fixup: Last is -1")
	_, err = layers.FreezeMoments(nil, net, infer.Params{}, torch.Tensor{})
	require.ErrorContains(t, err, "two networks are needed")
	frozen := nntest.Build(t, nn.Sequential{nn.Linear{Out: 3}, layers.BatchNorm{}}, 2)
	nntest.Do(t, func() {
		p := nntest.Must(infer.Zeros(net.Layout()))
		_, err = layers.FreezeMoments(net, frozen, p, torch.Zeros(4, 2))
		require.ErrorContains(t, err, `"1.bias"`)
	})
}
