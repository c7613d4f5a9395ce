package nn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// doubled is 2x with dropout, so that there is a parameter.
func doubled(t *testing.T, keep float64, width int) (*nn.Network, infer.Params) {
	n := build(
		t,
		nn.Sequential{
			nn.Dropout{Keep: keep},
			nn.Func{F: func(x torch.Tensor) torch.Tensor { return x.Reshape(-1, width, 1) },
				Out: func(in []int) ([]int, error) { return append(in, 1), nil }},
			nn.Linear{Out: 1, NoBias: true},
		},
		width,
	)
	return n, must(infer.NewParams(n.Layout(), []float64{2}))
}

// The elements are 0 with probability 1 − keep and x/keep otherwise: the mean is x and the variance x²(1 − keep)/keep.
func TestDropoutKeepsTheMean(t *testing.T) {
	const size = 40000
	for _, dtype := range []gotch.DType{gotch.Double, gotch.Float} {
		for _, keep := range []float64{0.1, 0.5, 0.9} {
			n, p := doubled(t, keep, size/4)
			do(t, func() {
				p = must(p.To(gotch.CPU, dtype))
				x := ts.MustOnes([]int64{4, size / 4}, dtype, gotch.CPU)
				y := n.ForwardWith(p, torch.Of(x), nn.Run{Source: torch.NewSource(7, 0)})
				require.Equal(t, dtype, y.T().DType())
				var sum float64
				for _, v := range values(y) {
					require.True(t, v == 0 || math.Abs(v-2/keep) < 1e-5, v)
					sum += v
				}
				assert.InDelta(t, 2, sum/size, 4*2*math.Sqrt((1-keep)/keep/size))
				assert.Equal(t, values(torch.Of(x).Mul(2)), values(n.Forward(p, torch.Of(x))),
					"without random numbers")
			})
		}
	}
}

func TestDropoutReadsItsStream(t *testing.T) {
	n, p := doubled(t, 0.5, 50)
	do(t, func() {
		x := tensor(normals(1, 150), 3, 50)
		run := func(seed, chain uint64) []float64 {
			return values(n.ForwardWith(p, x, nn.Run{Source: torch.NewSource(seed, chain)}))
		}
		assert.Equal(t, run(3, 1), run(3, 1))
		assert.NotEqual(t, run(3, 1), run(3, 2))
		assert.NotEqual(t, run(3, 1), run(4, 1))
		source := torch.NewSource(3, 1)
		first := n.ForwardWith(p, x, nn.Run{Source: source})
		second := n.ForwardWith(p, x, nn.Run{Source: source})
		assert.Equal(t, run(3, 1), values(first))
		assert.NotEqual(t, values(first), values(second), "each evaluation has a mask of its own")

		all, q := doubled(t, 1, 50)
		assert.Equal(t, values(all.Forward(q, x)), values(all.ForwardWith(q, x, nn.Run{Source: source})),
			"keep 1")
	})
}

func TestDropoutMasks(t *testing.T) {
	n, p := doubled(t, 0.25, 3)
	do(t, func() {
		x := tensor([]float64{1, 2, 3, 4, 5, 6}, 2, 3)
		with := func(mask torch.Tensor) []float64 {
			run := nn.Run{Source: torch.NewSource(1, 1), Masks: map[string]torch.Tensor{"0": mask}}
			return values(n.ForwardWith(p, x, run))
		}
		assert.Equal(t, []float64{8, 0, 24, 0, 40, 0}, with(tensor([]float64{1, 0, 1, 0, 1, 0}, 2, 3)))
		assert.Equal(t, []float64{8, 0, 24, 32, 0, 48}, with(tensor([]float64{1, 0, 1}, 3)), "one for all data")
		assert.Equal(t, []float64{8, 16, 24, 0, 0, 0}, with(torch.New([]bool{true, false}, 2, 1)))

		// A mask for each point of a map.
		masks := tensor([]float64{1, 0, 1, 0, 1, 0}, 2, 3)
		y := must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			run := nn.Run{Masks: map[string]torch.Tensor{"0": in[0]}}
			return []torch.Tensor{n.ForwardWith(p, x, run)}, nil
		}, []torch.Tensor{masks}, nil))[0]
		assert.Equal(t, []float64{8, 0, 24, 32, 0, 48, 0, 16, 0, 0, 40, 0}, values(y))
	})
}

// Mapped over points, each has the mask of its own stream, values and gradients, whatever the other points.
func TestDropoutUnderVmap(t *testing.T) {
	n, err := nn.MLP{Sizes: []int{3, 8, 8, 2}, Activation: nn.Tanh{}, Keep: 0.6}.Build()
	require.NoError(t, err)
	do(t, func() {
		const k = 4
		p, x := point(n, 1, 1, k), tensor(normals(2, 15), 5, 3)
		f := func(flat torch.Tensor, source *torch.Source) torch.Tensor {
			return score(n.ForwardWith(infer.Params{Layout: n.Layout(), Flat: flat}, x, nn.Run{Source: source}))
		}
		leaf, streams := must(torch.Leaf(p.Flat)), torch.NewStreams(9, k)
		v := must(torch.VmapSources(func(in []torch.Tensor, source *torch.Source) ([]torch.Tensor, error) {
			return []torch.Tensor{f(in[0], source)}, nil
		}, []torch.Tensor{leaf}, &streams, nil))[0]
		g := must(torch.Grad([]torch.Tensor{torch.Of(v.T().MustSum(gotch.Double, false))}, []torch.Tensor{leaf}, nil))[0]
		for i := range k {
			value, grad, err := torch.ValueAndGrad(
				func(flat torch.Tensor) torch.Tensor { return f(flat, torch.NewSource(9, uint64(i))) },
				row(p, i).Flat,
			)
			require.NoError(t, err)
			closeTo(t, values(value), values(v.At(i).T()), 1e-12, "value")
			closeTo(t, values(grad), values(g.At(i).T()), 1e-12, "gradient")
		}
	})
}

// Monte-Carlo dropout: Predict's outputs are those of a loop over streams; their mean and variance at a linear network
// are known.
func TestMonteCarloDropout(t *testing.T) {
	n, err := nn.MLP{Sizes: []int{3, 6, 2}, Keep: 0.7}.Build()
	require.NoError(t, err)
	do(t, func() {
		x := tensor(normals(2, 6), 2, 3)
		one, streams := point(n, 1, 1, 0), torch.NewStreams(5, 3)
		y, err := n.Predict(one, x, &streams)
		require.NoError(t, err)
		require.Equal(t, []int{3, 2, 2}, shape(y))
		many, again := must(one.Repeat(3)), torch.NewStreams(5, 3)
		z, err := n.Predict(many, x, &again)
		require.NoError(t, err)
		closeTo(t, values(y), values(z), 1e-12, "three times the same point")
		for i := range 3 {
			want := n.ForwardWith(one, x, nn.Run{Source: torch.NewSource(5, uint64(i))})
			closeTo(t, values(want), values(y.At(i)), 1e-12, "output of a stream")
		}
		require.Positive(t, streams.Offset, "the streams move on")
		y, err = n.Predict(one, x, nil)
		require.NoError(t, err)
		closeTo(t, values(n.Forward(one, x)), values(y), 0, "without dropout")
		require.False(t, must(y.T().KelvinDescribe()).RequiresGrad)
	})
	// f = Σ_j w_j x_j b_j/ρ has mean Σ w_j x_j and variance (1 − ρ)/ρ Σ (w_j x_j)².
	const passes, keep = 4000, 0.7
	n = build(t, nn.Sequential{nn.Dropout{Keep: keep}, nn.Linear{Out: 1, NoBias: true}}, 3)
	streams := torch.NewStreams(6, passes)
	w := must(infer.NewParams(n.Layout(), []float64{1, -2, 3}))
	y, err := n.Predict(w, tensor([]float64{1, 1, 1}, 3), &streams)
	require.NoError(t, err)
	require.Equal(t, []int{passes, 1}, shape(y))
	centred := values(y)
	for i := range centred {
		centred[i] -= 2
	}
	// The fourth central moment of b/ρ − 1 is (1 − ρ)(1 − 3ρ(1 − ρ))/ρ³; cumulants of a sum add.
	variance := (1 - keep) / keep * 14
	m4 := (1 - keep) * (1 - 3*keep*(1-keep)) / math.Pow(keep, 3)
	cumulant := (m4 - 3*math.Pow((1-keep)/keep, 2)) * (1 + 16 + 81)
	assertMoments(t, centred, math.Sqrt(variance), 3+cumulant/variance/variance, "Monte-Carlo dropout")
}
