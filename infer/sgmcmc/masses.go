package sgmcmc

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

const massName = "mass" // of the masses in a checkpoint

// masses are M for every element, of shape [d] or [K, d]. They outlive every scope, because later states share them.
type masses struct {
	root, inverse, mass *ts.Tensor // √M, 1/M, M
	lightest            float64    // the least of them
}

// least is the least mass of all elements.
func (m *masses) least() float64 {
	if m == nil {
		return 1
	}
	return m.lightest
}

// sd is √M; nil when all are 1.
func (m *masses) sd() *ts.Tensor {
	if m == nil {
		return nil
	}
	return m.root
}

// checkMasses copies the masses of sites and checks them, and tells the lightest of those that are named.
func checkMasses(c *method.Checks, mass *map[string]float64) float64 {
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

// massesOf are the masses of the elements of a point; nil when all are 1.
func massesOf(m *method.Move, mass map[string]float64, p infer.Params) *masses {
	if len(mass) == 0 {
		return nil
	}
	names := p.Layout.Names()
	for _, name := range slices.Sorted(maps.Keys(mass)) {
		m.Require(slices.Contains(names, name), "Mass", fmt.Sprintf("given for site %q", name), fmt.Sprintf("the sites are %q", names))
	}
	values := make([]float64, 0, p.Layout.Dim())
	for _, site := range p.Layout.Sites {
		v, ok := mass[site.Name]
		if !ok {
			v = 1
		}
		values = append(values, slices.Repeat([]float64{v}, site.Size)...)
	}
	return newMasses(p, values)
}

// newMasses are the masses of every element, in the shape of p or [d] for all chains alike.
func newMasses(p infer.Params, values []float64) *masses {
	shape := []int64{int64(len(values))}
	if d := p.Layout.Dim(); p.Batched() && len(values) == p.Chains()*d {
		shape = []int64{int64(p.Chains()), int64(d)}
	}
	mass := must(torch.FromSliceOn(must(torch.DeviceOf(p.Flat)), must(torch.DTypeOfTensor(p.Flat)), values, shape...))
	m := &masses{mass: mass, root: mass.MustSqrt(false), inverse: mass.MustReciprocal(false)}
	m.lightest = slices.Min(must(torch.ToSlice[float64](mass)))
	torch.Detach(m.mass, m.root, m.inverse)
	return m
}

// noisy appends noise of variance wanted·M − lost. Nothing is drawn where no element gets any.
func (m *masses) noisy(move *method.Move, wanted, lost float64, like *ts.Tensor, terms ...torch.Term) []torch.Term {
	if wanted == 0 {
		return terms
	}
	z, scale, sd := move.Normal(like), math.Sqrt(wanted), m.root
	if lost > 0 {
		variance := combine(term(scale*scale, m.mass))
		variance = variance.MustAddScalar(ts.FloatScalar(-lost), false)
		// The least variance may be zero and come out a rounding below.
		sd, scale = variance.MustClampMin(ts.FloatScalar(0), false).MustSqrt(false), 1
	}
	z.MustMul_(sd)
	return append(terms, term(scale, z))
}

// transported are the momenta after a change of masses: m' = √(M'/M) m, so that √M⁻¹ m stays.
func transported(m *ts.Tensor, from, to *masses) *ts.Tensor {
	out := m.MustMul(to.root, false)
	if from != nil {
		out = out.MustDiv(from.root, false)
	}
	return out
}

// estimateMasses gives each site of each chain the mass of algorithm 4 of Wenzel et al. (2020), from the gradients g of K
// minibatches at p:
//
//	σ_s = √(ε + Σ_k |g_s|²/(K d_s)),  M_s = σ_s/min σ
//
// with d_s the size of the site and ε = 1e-7: sites with larger gradients move more slowly, and the site with the smallest
// has mass 1. A chain that meets something not finite keeps its old masses, or 1.
func estimateMasses(g infer.Gradient, p infer.Params, old *masses, next func() (infer.Batch, error), n int64) *masses {
	const epsilon = 1e-7
	mean, square, diverged, err := method.GradientMoments(g, p, next, n)
	if err != nil {
		must(0, fmt.Errorf("estimating masses: %w", err))
	}
	second := combine(term(1, mean.MustSquare(false)), term(1/float64(n), square))
	raw := must(torch.ToSlice[float64](second))
	d, values := p.Layout.Dim(), slices.Repeat([]float64{1}, len(raw))
	if old != nil {
		copy(values, must(torch.ToSlice[float64](old.mass)))
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
	return newMasses(p, values)
}
