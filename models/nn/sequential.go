package nn

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Sequential is a network whose layers follow one another. It is a slice: append joins two. It is a layer too, for
// layers that are made of others: its parameters are called "0.weight", ..., and no layers make the identity.
type Sequential []Layer

// layer is a layer in its place.
type layer struct {
	name, kind string
	linear     bool // it is a Linear
	Plan
}

// Plan joins the plans of the layers.
func (s Sequential) Plan(in []int) (Plan, error) {
	layers, out, err := s.layers(in)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Out: out, AnyType: len(s) == 0 || layers[0].AnyType}
	for _, l := range layers {
		for _, q := range l.Params {
			p.Params = append(p.Params, q.in(l.name, l.kind))
		}
	}
	p.Forward = func(c Call, x torch.Tensor) torch.Tensor {
		params := c.Params
		for _, l := range layers {
			n := len(l.Params)
			x, params = l.Forward(c.in(l.name, params[:n]), x), params[n:]
		}
		return x
	}
	return p, nil
}

// layers plans the layers one after another, and gives the shape of the last one's outputs.
func (s Sequential) layers(in []int) (layers []layer, out []int, err error) {
	out = in
	width := len(fmt.Sprint(max(len(s)-1, 0)))
	for i, l := range s {
		at := layer{name: fmt.Sprintf("%0*d", width, i), kind: kind(l), linear: isLinear(l)}
		if l, ok := l.(named); ok {
			at.name = l.name
		}
		if at.kind == "" {
			return nil, nil, fmt.Errorf("nn: layer %q is nil: %w", at.name, infer.ErrConfig)
		}
		if at.name == "" {
			return nil, nil, fmt.Errorf("nn: layer %d (%s) has the name %q: expected one that is not empty: %w", i,
				at.kind,
				at.name, infer.ErrConfig)
		}
		if slices.ContainsFunc(layers, func(other layer) bool { return other.name == at.name }) {
			return nil, nil, fmt.Errorf("nn: two layers are called %q; use nn.Named to give each a name of its own: %w",
				at.name, infer.ErrConfig)
		}
		if at.Plan, err = l.Plan(out); err == nil {
			err = at.check()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("nn: layer %q (%s): %w", at.name, at.kind, err)
		}
		layers, out = append(layers, at), at.Out
	}
	return layers, out, nil
}

// check is for layers from elsewhere.
func (l layer) check() error {
	if l.Forward == nil {
		return fmt.Errorf("its Plan has no Forward: %w", infer.ErrConfig)
	}
	if slices.ContainsFunc(l.Out, func(size int) bool { return size < 1 }) {
		return fmt.Errorf("its outputs have shape %v: sizes must be at least 1: %w", l.Out, infer.ErrConfig)
	}
	return nil
}

// in is the parameter as one of the layer around its own.
func (p Param) in(name, kind string) Param {
	if p.Layer == "" {
		p.Layer, p.Kind = name, kind
	} else {
		p.Layer = name + "." + p.Layer
	}
	p.Name = name + "." + p.Name
	return p
}

// in is the call of a layer within another.
func (c Call) in(name string, params []torch.Tensor) Call {
	inner := Call{Params: params, Source: c.Source}
	if observe := c.Observe; observe != nil {
		inner.Observe = func(param string, v torch.Tensor) { observe(name+"."+param, v) }
	}
	return inner
}

// Flatten makes a vector of each input: [a, b, ...] becomes [a·b·...], in row-major order.
type Flatten struct{}

// Plan takes any shape.
func (Flatten) Plan(in []int) (Plan, error) {
	size := 1
	for _, s := range in {
		size *= s
	}
	return Plan{Out: []int{size}, AnyType: true, Forward: func(_ Call, x torch.Tensor) torch.Tensor {
		return x.Reshape(-1, size)
	}}, nil
}

// Transpose swaps the two axes of its inputs: [a, b] becomes [b, a]. It goes between layers of sequences, [steps,
// features], and convolutions, [channels, steps].
type Transpose struct{}

// Plan checks that there are two axes.
func (Transpose) Plan(in []int) (Plan, error) {
	if len(in) != 2 {
		return Plan{}, misfit(in, "two axes")
	}
	return Plan{Out: []int{in[1], in[0]}, AnyType: true, Forward: func(_ Call, x torch.Tensor) torch.Tensor {
		return x.Transpose()
	}}, nil
}
