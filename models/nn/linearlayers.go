package nn

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/torch"
)

// LinearLayers are the [Linear] layers in their order. Other layers, also those that embed a Linear,
// are not among them.
func (n *Network) LinearLayers() []laplace.Layer {
	var out []laplace.Layer
	for _, l := range n.layers {
		if !l.linear {
			continue
		}
		sites := laplace.Layer{Weight: l.name + "." + l.Params[0].Name}
		if len(l.Params) > 1 {
			sites.Bias = l.name + "." + l.Params[1].Name
		}
		out = append(out, sites)
	}
	return out
}

// ForwardLinear is [Network.Forward] with the [Linear] layers computed by a function: Kronecker-factored curvature
// needs what goes into them and comes out. linear gets the name of a layer's weights and its inputs x, [n, ..., in],
// and returns x Wᵀ + b, [n, ..., out], with which the network goes on. It is called once for each of
// [Network.LinearLayers], in their order; the network does not compute them itself.
func (n *Network) ForwardLinear(p infer.Params, x torch.Tensor, linear laplace.Linear) torch.Tensor {
	if linear == nil {
		torch.Must(
			x,
			fmt.Errorf("nn: the function for the linear layers is nil: Network.Forward needs none: %w", infer.ErrConfig),
		)
	}
	return n.forward(p, x, Run{}, linear)
}

// product is a linear layer's outputs by a function, checked.
func (l layer) product(x torch.Tensor, linear laplace.Linear) torch.Tensor {
	weight := l.Params[0]
	y := linear(l.name+"."+weight.Name, x)
	want := slices.Clone(x.Shape())
	want[len(want)-1] = weight.Shape[0]
	if have := y.Shape(); !slices.Equal(have, want) {
		torch.Must(
			x,
			fmt.Errorf(
				"nn: layer %q: the function for the linear layers returned shape %v: expected %v: %w",
				l.name,
				have,
				want,
				infer.ErrConfig,
			),
		)
	}
	return y
}

// isLinear says whether a layer is a Linear as it is. One that embeds it may do something else with the weights.
func isLinear(l Layer) bool {
	switch l := l.(type) {
	case named:
		return isLinear(l.Layer)
	case Linear, *Linear:
		return true
	}
	return false
}
