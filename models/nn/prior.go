package nn

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Prior is the density of a network's parameters, all independent.
type Prior struct {
	network  *Network
	laws     []Law
	scheme   Scheme
	terms    []term
	constant float64 // Σ log normalisers
	rows     bool    // a site has a law of rows
}

// term is the part of the log density of the sites of one family: a function of z = θ/scale.
type term struct {
	family  family
	scale   float64      // of all sites of the network, or 0
	inverse torch.Tensor // 1/scale of each element of θ, and 0 where the law is of another family; nil with scale
}

// NewPrior is the prior that gives each site its law. An error names a site without a density.
func NewPrior(n *Network, scheme Scheme) (*Prior, error) {
	laws, err := n.laws(scheme)
	if err != nil {
		return nil, err
	}
	p := &Prior{network: n, laws: laws, scheme: scheme}
	same := true
	for i, law := range laws {
		if law.family == constant && law.Rows == nil {
			return nil, fmt.Errorf("nn: site %q has the law %v, which has no density: %w", n.sites[i].Name, law, infer.ErrConfig)
		}
		if same = same && law == laws[0]; law.Rows != nil {
			p.rows = true
			continue
		}
		p.constant += float64(n.sizes[i]) * law.logNormaliser()
	}
	if same && !p.rows {
		p.terms = []term{{family: laws[0].family, scale: laws[0].scale}}
		return p, nil
	}
	for _, f := range []family{normal, doubleExponential, uniform} {
		inverse, found := make([]float64, 0, n.NumParams()), false
		for i, law := range laws {
			v := 0.0
			if law.family == f && law.Rows == nil {
				v, found = 1/law.scale, true
			}
			for range n.sizes[i] {
				inverse = append(inverse, v)
			}
		}
		if found {
			t, err := torch.FromSlice(inverse)
			if err != nil {
				return nil, err
			}
			torch.Detach(t)
			p.terms = append(p.terms, term{family: f, inverse: t})
		}
	}
	return p, nil
}

// To is the prior with what it keeps on a device and in a type: those of the points. It is not needed, but saves
// copying the scales in every evaluation where points are not float64 in main memory and sites have different laws.
func (p *Prior) To(device gotch.Device, dtype gotch.DType) (*Prior, error) {
	to := *p
	to.terms = nil
	for _, t := range p.terms {
		if t.inverse != (torch.Tensor{}) {
			var err error
			if t.inverse, err = torch.To(t.inverse, device, dtype); err != nil {
				return nil, err
			}
			torch.Detach(t.inverse)
		}
		to.terms = append(to.terms, t)
	}
	return &to, nil
}

// Laws are the laws of the sites by name.
func (p *Prior) Laws() map[string]Law {
	laws := map[string]Law{}
	for i, s := range p.network.sites {
		laws[s.Name] = p.laws[i]
	}
	return laws
}

// LogDensity is the log density, with its constants, at one point (Flat of shape [d]): a tensor of shape []. Sites that
// are not the network's are left out. Outside a uniform law it is −∞. It is meant for use inside a model, as
// [Network.Forward] is.
func (p *Prior) LogDensity(params infer.Params) torch.Tensor {
	flat, sum := p.network.flat(params), torch.Of(p.constant)
	for _, t := range p.terms {
		switch t.family {
		case normal:
			z, factor := flat, -0.5/(t.scale*t.scale)
			if t.inverse != (torch.Tensor{}) {
				z, factor = flat.Mul(t.like(flat)), -0.5
			}
			sum = sum.Add(z.Dot(z).Mul(factor))
		case doubleExponential:
			sum = sum.Sub(t.size(flat).Sum())
		case uniform:
			// log 1 inside, log 0 outside.
			inside := t.size(flat).Le(1).T()
			sum = sum.Add(torch.Of(inside.MustTotype(flat.T().DType(), false)).Log().Sum())
		}
	}
	if p.rows {
		parts := p.network.parts(params)
		for i, law := range p.laws {
			if law.Rows != nil {
				rows := parts[i].Reshape(p.network.sites[i].rows(), -1)
				sum = sum.Add(law.Rows.LogDensity(rows).Sum())
			}
		}
	}
	return sum
}

// Draw draws points from the prior; see [Init].
func (p *Prior) Draw(streams *torch.Streams) (infer.Params, error) {
	return Init(p.network, p.scheme, streams)
}

// size is |θ|/scale of each element.
func (t term) size(flat torch.Tensor) torch.Tensor {
	if t.inverse == (torch.Tensor{}) {
		return flat.Abs().Div(t.scale)
	}
	return flat.Mul(t.like(flat)).Abs()
}

// like is the scales in the type and on the device of θ.
func (t term) like(flat torch.Tensor) torch.Tensor {
	return torch.Must(torch.To(t.inverse, torch.Must(torch.DeviceOf(flat)), flat.T().DType()))
}

// flat is the network's part of a point, in the order of its layout.
func (n *Network) flat(p infer.Params) torch.Tensor {
	shape := p.Flat.Shape()
	if p.Layout == nil || len(shape) != 1 || shape[0] != p.Layout.Dim() {
		torch.Must(p.Flat, fmt.Errorf("nn: params of shape %v for the layout %v: expected one point, [%d]: %w",
			shape, p.Layout, p.Layout.Dim(), infer.ErrLayout))
	}
	if p.Layout.Equal(n.layout) {
		return p.Flat
	}
	return torch.Cat(0, n.parts(p))
}
