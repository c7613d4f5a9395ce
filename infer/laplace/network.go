package laplace

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Layer names the sites of a linear layer s = x Wᵀ + b: the weights W, of shape [out, in], and the bias b, of shape
// [out], or "" for none.
type Layer struct {
	Weight, Bias string // names of sites
}

// Linear computes the linear layer whose weights are the site weight, for inputs x of shape [n, in]: x Wᵀ + b, of shape
// [n, out].
type Linear func(weight string, x torch.Tensor) torch.Tensor

// Network is a forward function that computes its linear layers by linear, so that their inputs and
// outputs can be seen:
//
//	func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
//		return linear("w2", linear("w1", b.Get("x")).Tanh())
//	}
//
// It is called with a whole batch. Each layer is used once, and datum i of the result depends on datum i
// of the batch alone.
type Network func(p infer.Params, b infer.Batch, linear Linear) torch.Tensor

// Forward is the network as an ordinary forward function.
func (f Network) Forward(layers ...Layer) curvature.Forward {
	return func(p infer.Params, b infer.Batch) torch.Tensor {
		if f == nil {
			torch.Must(p.Flat, fmt.Errorf("laplace.Network: it is nil: %w", infer.ErrConfig))
		}
		return f(p, b, func(weight string, x torch.Tensor) torch.Tensor { return layerOf(layers, weight).output(p, x) })
	}
}

// Restrict makes a network of a subspace, for KFAC of its last layers: embed is the third result of [infer.Subspace],
// and held are the layers outside the subspace, which are computed at their values in the whole.
func (f Network) Restrict(embed func(infer.Params) (infer.Params, error), held ...Layer) Network {
	return func(p infer.Params, b infer.Batch, linear Linear) torch.Tensor {
		if f == nil || embed == nil {
			torch.Must(p.Flat, fmt.Errorf("laplace.Network: the network or the embedding is nil: %w", infer.ErrConfig))
		}
		whole := torch.Must(embed(p))
		return f(whole, b, func(weight string, x torch.Tensor) torch.Tensor {
			for _, l := range held {
				if l.Weight == weight {
					return l.output(whole, x)
				}
			}
			return linear(weight, x)
		})
	}
}

// layerOf finds a layer by its weights, inside a network.
func layerOf(layers []Layer, weight string) Layer {
	for _, l := range layers {
		if l.Weight == weight {
			return l
		}
	}
	var names []string
	for _, l := range layers {
		names = append(names, l.Weight)
	}
	approx.Fail("the network uses a layer %q, and Layers has %q", weight, names)
	return Layer{}
}

// output is x Wᵀ + b.
func (l Layer) output(p infer.Params, x torch.Tensor) torch.Tensor {
	out := x.MatMul(p.Get(l.Weight).Transpose())
	if l.Bias == "" {
		return out
	}
	return out.Add(p.Get(l.Bias))
}

// recorded is a network's output for a batch, with what went in and out of each of its layers.
type recorded struct {
	z       torch.Tensor   // [n, C], with a graph
	shape   []int          // of the network's own output, [n, ...]
	n, c    int            // data and outputs
	inputs  []torch.Tensor // [n, in], or [n, in + 1] with a column of ones where there is a bias
	outputs []torch.Tensor // [n, out], with a graph
}

// record evaluates the network at a single point. It is called inside torch.Do.
func record(f Network, layers []Layer, p infer.Params, b infer.Batch) *recorded {
	n := torch.Must(b.Size())
	r := &recorded{n: n, inputs: make([]torch.Tensor, len(layers)), outputs: make([]torch.Tensor, len(layers))}
	at := infer.Params{Layout: p.Layout, Flat: torch.Must(torch.Leaf(p.Flat))}
	z := f(at, b, func(weight string, x torch.Tensor) torch.Tensor {
		layer := layerOf(layers, weight)
		i := slices.Index(layers, layer)
		if r.outputs[i] != (torch.Tensor{}) {
			approx.Fail("the network uses the layer %q twice: Kronecker factors are of layers without shared weights", weight)
		}
		if shape := x.Shape(); len(shape) != 2 || shape[0] != n {
			approx.Fail("layer %q has inputs of shape %v for %d data: expected [%d, in]", weight, shape, n, n)
		}
		r.inputs[i], r.outputs[i] = torch.Of(x.T().MustDetach(false)), layer.output(at, x)
		if layer.Bias != "" {
			r.inputs[i] = torch.Of(ts.MustCat([]*ts.Tensor{r.inputs[i].T(),
				r.inputs[i].T().MustNarrow(1, 0, 1, false).MustOnesLike(false)}, 1))
		}
		return r.outputs[i]
	})
	for i, out := range r.outputs {
		if out == (torch.Tensor{}) {
			approx.Fail("the network does not use the layer %q", layers[i].Weight)
		}
	}
	if r.shape = z.Shape(); len(r.shape) == 0 || r.shape[0] != n {
		approx.Fail("the network returned shape %v for %d data, expected [%d, ...]", r.shape, n, n)
	}
	r.z = z.Reshape(n, -1)
	r.c = r.z.Shape()[1]
	return r
}

// jacobians are the derivatives of the outputs in what each layer puts out: [n, C, out] for each layer, one backward
// pass for each of C.
func (r *recorded) jacobians() []torch.Tensor {
	rows := make([][]torch.Tensor, len(r.outputs))
	for c := range r.c {
		unit := r.z.T().MustZerosLike(false)
		unit.MustNarrow(1, int64(c), 1, false).MustFill_(ts.FloatScalar(1))
		grads := torch.Must(torch.Grad([]torch.Tensor{r.z}, r.outputs,
			&torch.GradOptions{Weights: []torch.Tensor{torch.Of(unit)}, KeepGraph: true, AllowUnused: true}))
		for i, g := range grads {
			rows[i] = append(rows[i], g)
		}
	}
	out := make([]torch.Tensor, len(rows))
	for i := range rows {
		out[i] = torch.Stack(1, rows[i])
	}
	return out
}

// checkLayers checks layers against a layout: every site belongs to one layer.
func checkLayers(method string, layers []Layer, l *infer.Layout) {
	bad := func(allowed, value string, args ...any) {
		approx.Try(&infer.FieldError{Type: method, Field: "Layers", Value: fmt.Sprintf(value, args...), Allowed: allowed})
	}
	seen := map[string]bool{}
	find := func(kind, name string) infer.Site {
		site, ok := l.Site(name)
		if !ok {
			bad(fmt.Sprintf("there are the sites %q", l.Names()), "with %s %q", kind, name)
		}
		return site
	}
	for _, layer := range layers {
		weight, names := find("weights", layer.Weight), []string{layer.Weight}
		if len(weight.Shape) != 2 {
			bad("weights have shape [out, in]", "with weights %q of shape %v", layer.Weight, weight.Shape)
		}
		if layer.Bias != "" {
			bias := find("bias", layer.Bias)
			if !slices.Equal(bias.Shape, weight.Shape[:1]) {
				bad(fmt.Sprintf("the bias of weights of shape %v has shape %v", weight.Shape, weight.Shape[:1]),
					"with bias %q of shape %v", layer.Bias, bias.Shape)
			}
			names = append(names, layer.Bias)
		}
		for _, name := range names {
			if seen[name] {
				bad("a site belongs to one layer", "with the site %q twice", name)
			}
			seen[name] = true
		}
	}
	for _, name := range l.Names() {
		if !seen[name] {
			bad("each site belongs to a linear layer; hold others fixed by infer.Subspace", "without the site %q", name)
		}
	}
}

// gradients records gradients while f runs, whatever the caller's mode.
func gradients(f func()) {
	defer ts.KelvinSetGradMode(ts.KelvinSetGradMode(true))
	f()
}
