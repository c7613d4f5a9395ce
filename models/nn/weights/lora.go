package weights

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// LoRA adds a product of two thin matrices to weights that stay as they are (Hu et al. 2022):
//
//	W = W₀ + (Alpha/Rank) B A
//
// for weights W₀ of shape [out, in], with A of shape [Rank, in] and B of shape [out, Rank].
type LoRA struct {
	Rank  int      // 0 adds nothing, and has no parameters
	Alpha float64  // 0 means Rank, a factor of 1
	Sites []string // the weights, by their sites
}

// Adapter is a network with a fixed point and adapters beside it. Its own parameters are those of the adapters alone;
// it can be mapped over them as a network is over points.
type Adapter struct {
	network *nn.Network
	base    infer.Params
	lora    LoRA
	factor  float64
	layout  *infer.Layout
}

// Attach puts adapters beside weights of a network at a point, which is copied. The sites of the adapters are called
// "<site>.lora_a" and "<site>.lora_b".
func (l LoRA) Attach(n *nn.Network, base infer.Params) (*Adapter, error) {
	fail := func(err error) (*Adapter, error) { return nil, fmt.Errorf("weights.LoRA: %w", err) }
	if n == nil || base.Layout == nil || base.Flat == (torch.Tensor{}) || base.Batched() ||
		!base.Layout.Equal(n.Layout()) {
		return fail(fmt.Errorf("a network and a single point of it are needed: %w", infer.ErrLayout))
	}
	field := func(name string, value any, allowed string) error {
		return &infer.FieldError{Type: "weights.LoRA", Field: name, Value: value, Allowed: allowed}
	}
	if !(l.Alpha >= 0) || math.IsInf(l.Alpha, 1) {
		return nil, field("Alpha", l.Alpha, "it must be greater than 0 and finite, or 0 for the rank")
	}
	if len(l.Sites) == 0 {
		return nil, field("Sites", l.Sites, "it must have a site at least")
	}
	a := &Adapter{network: n, lora: l, factor: 1}
	if l.Alpha > 0 && l.Rank > 0 {
		a.factor = l.Alpha / float64(l.Rank)
	}
	shapes := infer.Shapes{}
	for _, name := range l.Sites {
		site, ok := n.Layout().Site(name)
		if !ok {
			return fail(&infer.ModelError{Name: name, What: "site", Have: n.Layout().Names()})
		}
		if len(site.Shape) != 2 {
			return nil, field("Sites", name, fmt.Sprintf("it has shape %v and must have [out, in]", site.Shape))
		}
		if most := min(site.Shape[0], site.Shape[1]); l.Rank < 0 || l.Rank > most {
			return nil, field("Rank", l.Rank, fmt.Sprintf("it must be from 0 to %d, for the site %q of shape %v",
				most, name,
				site.Shape))
		}
		shapes[name+".lora_a"], shapes[name+".lora_b"] = []int{l.Rank, site.Shape[1]}, []int{site.Shape[0], l.Rank}
	}
	if l.Rank > 0 {
		var err error
		if a.layout, err = infer.NewLayout(shapes); err != nil {
			return fail(err)
		}
	}
	flat, err := torch.Copy(base.Flat)
	if err != nil {
		return fail(err)
	}
	torch.Detach(flat)
	a.base = infer.Params{Layout: base.Layout, Flat: flat}
	return a, nil
}

// Layout names the parameters of the adapters; nil where the rank is 0.
func (a *Adapter) Layout() *infer.Layout { return a.layout }

// Init starts adapters that add nothing: A is uniform on ±1/√in, as PyTorch starts a linear layer, and B is 0. The
// streams are as for nn.Init.
func (a *Adapter) Init(streams *torch.Streams) (infer.Params, error) {
	if streams == nil || len(streams.Chains) == 0 {
		return infer.Params{}, fmt.Errorf("weights: there are no random streams: use torch.NewStreams: %w",
			infer.ErrConfig)
	}
	p := infer.Params{Layout: a.layout}
	if a.lora.Rank == 0 {
		return p, nil
	}
	err := torch.Do(func(s *torch.Scope) error {
		dtype, device := a.base.Flat.T().DType(), torch.Must(torch.DeviceOf(a.base.Flat))
		var parts []torch.Tensor
		for _, site := range a.layout.Sites {
			u := torch.Must(streams.Uniform([]int{site.Size}, dtype, device))
			scale := 0.0
			if isA(site.Name) {
				scale = 1 / math.Sqrt(float64(site.Shape[1]))
			}
			parts = append(parts, u.Mul(2).Sub(1).Mul(scale))
		}
		p.Flat = torch.Cat(1, parts)
		if len(streams.Chains) == 1 {
			p.Flat = p.Flat.At(0)
		}
		s.Keep(p.Flat)
		return nil
	})
	return p, err
}

// isA says whether a site of an adapter is the factor A.
func isA(name string) bool { return name[len(name)-1] == 'a' }

// Forward evaluates the network with the adapters at a point of theirs, as nn.Network.Forward.
func (a *Adapter) Forward(p infer.Params, x torch.Tensor) torch.Tensor {
	return a.network.ForwardWith(a.base, x, nn.Run{Values: a.weights(p)})
}

// weights are the adapted weights by site.
func (a *Adapter) weights(p infer.Params) map[string]torch.Tensor {
	if a.lora.Rank == 0 {
		return nil
	}
	values := map[string]torch.Tensor{}
	for _, name := range a.lora.Sites {
		product := p.Get(name + ".lora_b").MatMul(p.Get(name + ".lora_a"))
		values[name] = a.base.Get(name).Add(product.Mul(a.factor))
	}
	return values
}

// Merge is the point of the network in which the adapters are part of the weights: nn.Network.Forward there is what
// Forward is here, and needs no adapters.
func (a *Adapter) Merge(p infer.Params) (infer.Params, error) {
	if a.lora.Rank > 0 && (!p.Layout.Equal(a.layout) || p.Flat == (torch.Tensor{}) || p.Batched()) {
		return infer.Params{}, fmt.Errorf("weights: a single point of the adapters is needed: %w", infer.ErrLayout)
	}
	out := infer.Params{Layout: a.base.Layout}
	err := torch.Do(func(s *torch.Scope) error {
		return torch.NoGrad(func() error {
			values := a.weights(p)
			var parts []torch.Tensor
			for _, site := range a.base.Layout.Sites {
				v, ok := values[site.Name]
				if !ok {
					v = a.base.Get(site.Name)
				}
				parts = append(parts, v.Reshape(-1))
			}
			out.Flat = torch.Cat(0, parts)
			s.Keep(out.Flat)
			return nil
		})
	})
	return out, err
}
