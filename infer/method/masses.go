package method

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// CheckMasses copies the masses of sites and checks them, and tells the lightest of those that are named.
func CheckMasses(c *Checks, mass *map[string]float64) float64 {
	*mass = maps.Clone(*mass)
	lightest := math.Inf(1)
	for _, site := range slices.Sorted(maps.Keys(*mass)) {
		v := (*mass)[site]
		c.Value(fmt.Sprintf("Mass of site %q", site), &v, 0, true)
		lightest = min(lightest, v)
	}
	if len(*mass) == 0 {
		return 1
	}
	return lightest
}

// Masses are the masses of the elements of the point, of shape [d], from those of its sites; nil when all are 1.
func (m *Move) Masses(mass map[string]float64) torch.Tensor {
	p := m.state.Params
	if len(mass) == 0 {
		return torch.Tensor{}
	}
	names := p.Layout.Names()
	for _, name := range slices.Sorted(maps.Keys(mass)) {
		m.Require(slices.Contains(names, name), "Mass", fmt.Sprintf("given for site %q", name),
			fmt.Sprintf("the sites are %q", names))
	}
	var values []float64
	for _, site := range p.Layout.Sites {
		v, ok := mass[site.Name]
		if !ok {
			v = 1
		}
		values = append(values, slices.Repeat([]float64{v}, site.Size)...)
	}
	return newMasses(p, values, len(values))
}

// newMasses are masses in the type of θ. They outlive every scope, because later states share them.
func newMasses(p infer.Params, values []float64, shape ...int) torch.Tensor {
	mass := torch.Must(torch.FromSliceOn(torch.Must(torch.DeviceOf(p.Flat)), p.Flat.T().DType(), values, shape...))
	torch.Detach(mass)
	return mass
}

// Masses gives each site of each chain the mass of algorithm 4 of Wenzel et al. (2020), from the gradients g of K
// minibatches at p:
//
//	σ_s = √(ε + Σ_k |g_s|²/(K d_s)),  M_s = σ_s/min σ
//
// with d_s the size of the site and ε = 1e-7: sites with larger gradients move more slowly, and the site with the
// smallest has mass 1. A chain that meets something not finite keeps its old masses, or 1.
func (e *Estimate) Masses(g infer.Gradient, p infer.Params, old torch.Tensor, next func() (infer.Batch,
	error)) torch.Tensor {
	const epsilon = 1e-7
	mean, square, diverged, err := gradientMoments(g, p, next, e.Batches)
	if err != nil {
		torch.Must(0, fmt.Errorf("estimating masses: %w", err))
	}
	raw := torch.Must(torch.ToSlice[float64](Combine(Term(1, mean.Square()), Term(1/float64(e.Batches), square))))
	d, values := p.Layout.Dim(), slices.Repeat([]float64{1}, len(raw))
	if old != (torch.Tensor{}) {
		copy(values, torch.Must(torch.ToSlice[float64](old)))
	}
	for k, row := range p.Layout.SiteMeans(raw) {
		if k < len(diverged) && diverged[k] {
			continue
		}
		for s := range row {
			row[s] = math.Sqrt(epsilon + row[s])
		}
		least := slices.Min(row)
		for s, site := range p.Layout.Sites {
			for i := range site.Size {
				values[k*d+site.Offset+i] = row[s] / least
			}
		}
	}
	return newMasses(p, values, p.Flat.Shape()...)
}

// RootMasses are √M; nil when all masses are 1.
func RootMasses(mass torch.Tensor) torch.Tensor {
	if mass == (torch.Tensor{}) {
		return torch.Tensor{}
	}
	return mass.Sqrt()
}

// Inverse are 1/M; nil when all masses are 1.
func Inverse(mass torch.Tensor) torch.Tensor {
	if mass == (torch.Tensor{}) {
		return torch.Tensor{}
	}
	return mass.Reciprocal()
}

// transported are momenta after a change of masses: m' = √(M'/M) m, so that √M⁻¹ m stays.
func transported(m, from, to torch.Tensor) torch.Tensor {
	m = m.Mul(RootMasses(to))
	if from != (torch.Tensor{}) {
		m = m.Div(RootMasses(from))
	}
	return m
}

// MassPart is the part of a state with its masses, nil when all are 1. Where they are estimated anew, the momenta are
// transported.
func (e *Estimate) MassPart(mass, momenta *torch.Tensor) Part {
	return Part{Name: "mass", Tensor: mass, Shared: true, Estimate: e,
		Make: func(g infer.Gradient, p infer.Params, old torch.Tensor, next func() (infer.Batch, error)) torch.Tensor {
			made := e.Masses(g, p, old, next)
			*momenta = transported(*momenta, old, made)
			return made
		}}
}
