package nn

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Network is a function of a point and an input. It holds no tensors and never changes; any number of goroutines may
// use it.
type Network struct {
	in, out []int
	layers  []layer
	layout  *infer.Layout
	sites   []Site // in the order of the layout
	params  []int  // the place in the layout of each layer's parameters, in the order of the layers
	sizes   []int
}

// Site is a site of a network, with what initialisers and priors need to know of it.
type Site struct {
	infer.Site
	Layer, Kind   string // the name and type of its layer: "hidden", "Linear"
	FanIn, FanOut int    // these and the next are those of [Param]
	Bias, Table   bool
	Gain          bool
	Branch        struct{ Place, Of int }
	Default       Law
}

// rows is the size of the first axis.
func (s Site) rows() int {
	if len(s.Shape) == 0 {
		return 1
	}
	return s.Shape[0]
}

// Build checks that the layers fit one another, from the shape of one input, without the axis of the data: Build(28,
// 28) for images, Build(5) for five features, Build(100) for a hundred tokens. An error names the layer.
func (s Sequential) Build(in ...int) (*Network, error) {
	n := &Network{in: slices.Clone(in)}
	if slices.ContainsFunc(in, func(size int) bool { return size < 1 }) {
		return nil, fmt.Errorf("nn: the input shape is %v: its sizes must be at least 1: %w", in, infer.ErrConfig)
	}
	var err error
	if n.layers, n.out, err = s.layers(in); err != nil {
		return nil, err
	}
	shapes, sites, order := infer.Shapes{}, map[string]Site{}, []string{}
	for _, at := range n.layers {
		for _, p := range at.Params {
			p = p.in(at.name, at.kind)
			shapes[p.Name] = p.Shape
			sites[p.Name] = Site{Layer: p.Layer, Kind: p.Kind, FanIn: p.FanIn, FanOut: p.FanOut, Bias: p.Bias,
				Table: p.Table,
				Gain:  p.Gain, Branch: p.Branch, Default: p.Default}
			order = append(order, p.Name)
		}
	}
	if len(order) == 0 {
		return nil, fmt.Errorf("nn: the network has no parameters: expected a layer such as nn.Linear: %w", infer.ErrConfig)
	}
	if len(shapes) < len(order) {
		return nil, fmt.Errorf("nn: two of the parameters %q have the same name: %w", order, infer.ErrConfig)
	}
	if n.layout, err = infer.NewLayout(shapes); err != nil {
		return nil, fmt.Errorf("nn: %w", err)
	}
	for _, at := range n.layout.Sites {
		site := sites[at.Name]
		site.Site = at
		n.sites, n.sizes = append(n.sites, site), append(n.sizes, at.Size)
	}
	for _, name := range order {
		n.params = append(n.params, slices.Index(n.layout.Names(), name))
	}
	return n, nil
}

// Layout names the parameters.
func (n *Network) Layout() *infer.Layout { return n.layout }

// Shapes are the parameters by name, for a layout that has other sites too: Forward finds the network's among them.
func (n *Network) Shapes() infer.Shapes {
	shapes := infer.Shapes{}
	for _, s := range n.sites {
		shapes[s.Name] = slices.Clone(s.Shape)
	}
	return shapes
}

// Sites are the sites in the order of the layout.
func (n *Network) Sites() []Site { return slices.Clone(n.sites) }

// NumParams is the number of parameters.
func (n *Network) NumParams() int { return n.layout.Dim() }

// In is the shape of one input.
func (n *Network) In() []int { return slices.Clone(n.in) }

// Out is the shape of one output.
func (n *Network) Out() []int { return slices.Clone(n.out) }

// String is a table of the layers, with the shapes of their outputs and their numbers of parameters.
func (n *Network) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "layer\tkind\toutput\tparameters\n\tinput\t%v\t\n", n.in)
	for _, l := range n.layers {
		count := 0
		for _, p := range l.Params {
			size := 1
			for _, n := range p.Shape {
				size *= n
			}
			count += size
		}
		fmt.Fprintf(w, "%s\t%s\t%v\t%d\n", l.name, l.kind, l.Out, count)
	}
	fmt.Fprintf(w, "\t\ttotal\t%d\n", n.NumParams())
	w.Flush()
	return regexp.MustCompile(` +\n`).ReplaceAllString(text.String(), "\n")
}

// Run is what an evaluation of a network may have besides a point and an input. The zero value is the network as it is,
// without dropout.
type Run struct {
	// Source gives dropout its random numbers.
	Source *torch.Source
	// Masks are for layers with dropout, by the layer's name: tensors of 0 and 1 (or bool) that broadcast to the layer's
	// input [n, ...]. They go before Source.
	Masks map[string]torch.Tensor
	// Hook is called after each layer with its name, input and output. The network goes on with what it returns; a number,
	// as in torch.Tensor{}, is the output itself. [Network.ForwardLinear] is for linear layers, and does not compute them
	// before.
	Hook func(name string, input, output torch.Tensor) torch.Tensor
	// Observe is called by layers with what they take from the data at hand, by the name of a site that would hold
	// it: the moments of batch normalisation.
	Observe func(site string, value torch.Tensor)
	// Values take the place of sites of the point, by name and in their shapes: adapted weights.
	Values map[string]torch.Tensor
}

// Forward evaluates the network, without dropout, at one point (p.Flat of shape [d]) on inputs [n, in...]: the outputs
// are [n, out...]. A single input, [in...], gives a single output, [out...].
//
// It is meant for use inside a model: what does not fit panics with an error that the caller of the model returns.
func (n *Network) Forward(p infer.Params, x torch.Tensor) torch.Tensor {
	return n.ForwardWith(p, x, Run{})
}

// ForwardWith is Forward with dropout or a hook. A single input gets an axis of one datum on its way.
func (n *Network) ForwardWith(p infer.Params, x torch.Tensor, run Run) torch.Tensor {
	return n.forward(p, x, run, nil)
}

// forward is ForwardWith; linear computes the linear layers where it is not nil.
func (n *Network) forward(p infer.Params, x torch.Tensor, run Run, linear laplace.Linear) torch.Tensor {
	single := torch.Must(n.check(p, x))
	if len(run.Values) > 0 {
		torch.Must(x, n.checkValues(run.Values))
	}
	if len(run.Masks) > 0 {
		torch.Must(x, n.checkMasks(run.Masks))
	}
	if single {
		x = x.Unsqueeze(0)
	}
	params := n.parts(p)
	for i, site := range n.sites {
		value, other := run.Values[site.Name]
		switch {
		case other:
			params[i] = value
		case site.Table: // of any number of rows
			params[i] = torch.Of(params[i].T().MustView(torch.Int64s(append([]int{-1}, site.Shape[1:]...)), false))
		case len(site.Shape) != 1:
			params[i] = torch.Of(params[i].T().MustView(torch.Int64s(site.Shape), false))
		}
	}
	places := n.params
	for _, l := range n.layers {
		var own []torch.Tensor
		for range l.Params {
			own, places = append(own, params[places[0]]), places[1:]
		}
		c := Call{Source: run.Source, Observe: run.Observe}.in(l.name, own)
		c.Mask = run.Masks[l.name]
		var y torch.Tensor
		if l.linear && linear != nil {
			y = l.product(x, linear)
		} else {
			y = l.Forward(c, x)
		}
		if run.Hook != nil {
			other := run.Hook(l.name, x, y)
			if _, none := other.Number(); !none {
				y = other
			}
		}
		x = y
	}
	if single {
		x = x.Squeeze(0)
	}
	return x
}

// Predict evaluates the network without gradients: outputs [n, out...] at one point, and [K, n, out...] at K.
//
// With streams it is Monte-Carlo dropout (Gal & Ghahramani 2016): chain k's stream makes the masks of point k, so that
// there must be K of them; at one point, S streams make S outputs, [S, n, out...]. The streams move on. Without
// streams, nil, there is no dropout. All outputs are made at once; for many, call it for some at a time.
func (n *Network) Predict(p infer.Params, x torch.Tensor, streams *torch.Streams) (torch.Tensor, error) {
	var y torch.Tensor
	err := torch.Do(func(s *torch.Scope) error {
		return torch.NoGrad(func() error {
			f := func(in []torch.Tensor, source *torch.Source) ([]torch.Tensor, error) {
				at := infer.Params{Layout: p.Layout, Flat: in[0]}
				return []torch.Tensor{n.ForwardWith(at, x, Run{Source: source})}, nil
			}
			out := make([]torch.Tensor, 1)
			var err error
			switch batched := p.Batched(); {
			case streams == nil && !batched:
				out[0] = n.Forward(p, x)
			case streams == nil:
				out, err = torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) { return f(in, nil) },
					[]torch.Tensor{p.Flat}, nil)
			case batched:
				out, err = torch.VmapSources(f, []torch.Tensor{p.Flat}, streams, nil)
			default:
				each := torch.New(make([]float64, len(streams.Chains)))
				out, err = torch.VmapSources(
					f,
					[]torch.Tensor{p.Flat, each},
					streams,
					&torch.VmapOptions{InDims: []int{torch.NotMapped, 0}},
				)
			}
			if err != nil {
				return err
			}
			y = out[0]
			s.Keep(out[0])
			return nil
		})
	})
	if err != nil {
		return torch.Tensor{}, fmt.Errorf("nn: %w", err)
	}
	return y, nil
}

// check says whether x is a single input, and refuses points and inputs that do not fit.
func (n *Network) check(p infer.Params, x torch.Tensor) (single bool, err error) {
	if _, number := x.Number(); p.Layout == nil || p.Flat == (torch.Tensor{}) || number {
		return false, fmt.Errorf("nn: a point with a layout and an input are needed: %w", infer.ErrConfig)
	}
	flat, err := p.Flat.T().KelvinDescribe()
	if err != nil {
		return false, err
	}
	if len(flat.Shape) != 1 || int(flat.Shape[0]) != p.Layout.Dim() {
		return false, fmt.Errorf("nn: params of shape %v: expected one point, [%d]; Network.Predict takes K points: %w",
			flat.Shape, p.Layout.Dim(), infer.ErrLayout)
	}
	in, err := x.T().KelvinDescribe()
	if err != nil {
		return false, err
	}
	shape := torch.Ints(in.Shape)
	single = slices.Equal(shape, n.in)
	if !single && !(len(shape) == len(n.in)+1 && slices.Equal(shape[1:], n.in)) {
		one := strings.Trim(fmt.Sprint(n.in), "[]")
		return false, fmt.Errorf(
			"nn: the input has shape %v: expected [n %s] for n data, or [%s] for one: %w",
			in.Shape,
			one,
			one,
			infer.ErrConfig,
		)
	}
	if in.DType != flat.DType && !n.layers[0].AnyType {
		return false, fmt.Errorf("nn: the input is %v and the params are %v: they must be of one type; use torch.To: %w",
			gotch.CKind2DType(int32(in.DType)), gotch.CKind2DType(int32(flat.DType)), infer.ErrConfig)
	}
	return single, nil
}

func (n *Network) checkMasks(masks map[string]torch.Tensor) error {
	var random []string
	for _, l := range n.layers {
		if l.Random {
			random = append(random, l.name)
		}
	}
	for name := range masks {
		if !slices.Contains(random, name) {
			return fmt.Errorf("nn: a mask for layer %q: the layers with dropout are %q: %w", name, random, infer.ErrConfig)
		}
	}
	return nil
}

func (n *Network) checkValues(values map[string]torch.Tensor) error {
	for name, v := range values {
		site, ok := n.layout.Site(name)
		if !ok {
			return &infer.ModelError{Name: name, What: "site", Have: n.layout.Names()}
		}
		if have := v.Shape(); !slices.Equal(have, site.Shape) {
			return fmt.Errorf("nn: the value of site %q has shape %v: expected %v: %w", name, have, site.Shape,
				infer.ErrConfig)
		}
	}
	return nil
}

// parts are the network's sites, as vectors, in the order of its layout. One split is much cheaper to differentiate
// than a view for each site.
func (n *Network) parts(p infer.Params) []torch.Tensor {
	all := torch.Must(p.Split()).Parts()
	if all == nil { // there is one
		all = []torch.Tensor{torch.Of(torch.Must(p.Flat.T().ShallowClone()))} // a layer may drop it
	}
	if p.Layout.Equal(n.layout) {
		return slices.Clone(all)
	}
	place := map[string]int{}
	for i, s := range p.Layout.Sites {
		place[s.Name] = i
	}
	parts := make([]torch.Tensor, len(n.sites))
	for i, s := range n.sites {
		at, ok := place[s.Name]
		if !ok {
			panic(&infer.ModelError{Name: s.Name, What: "site", Have: p.Layout.Names()})
		}
		have := p.Layout.Sites[at].Shape
		if s.Table && len(have) == len(s.Shape) && slices.Equal(have[1:], s.Shape[1:]) {
			have = s.Shape
		}
		if !slices.Equal(have, s.Shape) {
			torch.Must(p.Flat, fmt.Errorf("nn: site %q has shape %v: expected %v: %w", s.Name, have, s.Shape, infer.ErrLayout))
		}
		parts[i] = all[at]
	}
	return parts
}
