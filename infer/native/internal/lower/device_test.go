package lower_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/layers"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
)

// strays are tensors of more than one number that an evaluation neither was given nor made of what it was given. They
// are in main memory whatever the device of the point is, and libtorch takes only single numbers from there.
func strays(r *lower.Recording) (found []string) {
	tensors := func(args []lower.Arg) (list []*lower.Tensor) {
		for _, a := range args {
			if a.Tensor != nil {
				list = append(list, a.Tensor)
			}
			for _, b := range a.List {
				if b.Tensor != nil {
					list = append(list, b.Tensor)
				}
			}
		}
		return list
	}
	known := map[int]bool{}
	for _, t := range r.Known {
		known[t.Storage] = true
	}
	several := func(t *lower.Tensor) bool { return !slices.Contains(t.Sizes, 0) && slices.Max(append(t.Sizes, 1)) > 1 }
	for _, c := range r.Calls {
		args, results := tensors(c.Args), tensors(c.Results)
		for _, t := range args {
			if several(t) && !known[t.Storage] {
				found = append(found, fmt.Sprintf("%s takes a tensor of sizes %v from outside", c.Name, t.Sizes))
			}
		}
		for _, t := range results {
			if known[t.Storage] = true; len(args) == 0 && several(t) {
				found = append(found, fmt.Sprintf("%s makes a tensor of sizes %v of nothing", c.Name, t.Sizes))
			}
		}
	}
	return found
}

// In an evaluation of a posterior with its gradient the residual networks make all tensors from the point and the
// batch, so that they run where these are, on a GPU too. The mask of attention, which is made in main memory and then
// moved, shows that the test sees what is made elsewhere; so does a prior of several scales, which Prior.To moves.
func TestResidualNetworksRunWhereThePointIs(t *testing.T) {
	one := nn.Same(nn.Normal(1))
	residual := func(norm nn.Layer) interface{ Build() (*nn.Network, error) } {
		return layers.ResNet20{Size: 8, Depth: 8, Filters: 2, Norm: norm}
	}
	rows := nn.Func{F: func(x torch.Tensor) torch.Tensor { return x.Reshape(-1, 24, 8) },
		Out: func([]int) ([]int, error) { return []int{24, 8}, nil }}
	masked, err := nn.Sequential{rows, layers.Attention{Heads: 2, Causal: true}, nn.Flatten{}, nn.Linear{Out: 10}}.
		Build(3, 8, 8)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		network interface{ Build() (*nn.Network, error) }
		prior   nn.Scheme
		strays  bool
	}{
		"FRN":              {residual(layers.FRN{}), one, false},
		"moments of batch": {residual(layers.BatchNorm{Batch: true}), one, false},
		"moments held":     {residual(layers.BatchNorm{}), one, false},
		"no norm":          {residual(nn.Sequential{}), one, false},
		"ResNet++":         {layers.ResNetPlusPlus{Size: 8, Depth: 8, Filters: 2}, one, false},
		"attention":        {built{masked}, one, true},
		"prior of scales":  {residual(nn.Sequential{}), nn.HePrior(1), true},
	} {
		net, err := c.network.Build()
		require.NoError(t, err)
		prior, err := nn.NewPrior(net, c.prior)
		require.NoError(t, err)
		const n = 4
		x, y := points(1, n*3*8*8, 1, 5)[0], []int{1, 9, 0, 3}
		batch := infer.Batch{"x": torch.New(x, n, 3, 8, 8), "y": torch.New(y)}
		s := lower.Source{Dim: net.Layout().Dim(),
			Batch: []lower.Named{{Name: "x", Tensor: batch["x"].T()}, {Name: "y", Tensor: batch["y"].T()}},
			Evaluate: func(theta *ts.Tensor, b []*ts.Tensor) (values, grads []*ts.Tensor, _ []lower.Named, err error) {
				v, g, err := torch.ValueAndGrad(func(theta torch.Tensor) torch.Tensor {
					p := infer.Params{Layout: net.Layout(), Flat: theta}
					fit := dist.CategoricalLogits(net.Forward(p, torch.Of(b[0]))).LogProb(torch.Of(b[1])).Mean()
					return fit.Add(prior.LogDensity(p).Div(n))
				}, torch.Of(theta))
				return []*ts.Tensor{v.T()}, []*ts.Tensor{g.T()}, nil, err
			}}
		r, err := lower.Record(s, points(1, s.Dim, 0.1, 6)[0])
		require.NoError(t, err, name)
		require.NotEmpty(t, r.Calls)
		if found := strays(r); c.strays {
			assert.NotEmpty(t, found, name)
		} else {
			assert.Empty(t, found, name)
		}
	}
}

// built is a network that was built already.
type built struct{ net *nn.Network }

func (b built) Build() (*nn.Network, error) { return b.net, nil }
