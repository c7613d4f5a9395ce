package sgmcmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// estimateMasses gives each site of each chain the mass of algorithm 4 of Wenzel et al. (2020), from the gradients g of K
// minibatches at p:
//
//	σ_s = √(ε + Σ_k |g_s|²/(K d_s)),  M_s = σ_s/min σ
//
// with d_s the size of the site and ε = 1e-7: sites with larger gradients move more slowly, and the site with the smallest has
// mass 1. A chain that meets something not finite keeps its old masses, or 1.
func estimateMasses(g infer.Gradient, p infer.Params, old *masses, next func() (infer.Batch, error), n int64) (*masses, error) {
	const epsilon = 1e-7
	var raw []float64
	var diverged []bool
	err := torch.Do(func(*torch.Scope) error {
		mean, square, bad, err := gradientMoments(g, p, next, n)
		if err != nil {
			return err
		}
		diverged = bad
		if mean, err = mean.Square(false); err != nil {
			return err
		}
		second, err := torch.Combine(torch.Term{Coeff: 1, Tensor: mean}, torch.Term{Coeff: 1 / float64(n), Tensor: square})
		if err != nil {
			return err
		}
		raw, err = torch.ToSlice[float64](second)
		return err
	})
	if err != nil {
		return nil, err
	}
	rows := infer.SiteMeans(p.Layout, raw)
	d := p.Layout.Dim()
	values := make([]float64, 0, len(raw))
	var kept []float64
	if old != nil {
		if kept, err = torch.ToSlice[float64](old.mass); err != nil {
			return nil, err
		}
	}
	for k, row := range rows {
		if k < len(diverged) && diverged[k] {
			for i := range d {
				values = append(values, at(kept, k*d+i))
			}
			continue
		}
		least := math.Inf(1)
		for s := range row {
			row[s] = math.Sqrt(epsilon + row[s])
			least = min(least, row[s])
		}
		for s, site := range p.Layout.Sites {
			for range site.Size {
				values = append(values, row[s]/least)
			}
		}
	}
	return newMasses(p, values)
}

// at is element i, or 1 where there is none.
func at(values []float64, i int) float64 {
	if i < len(values) {
		return values[i]
	}
	return 1
}

// newMasses are the masses of every element, in the shape of p or [d] for all chains alike. They outlive every scope, because
// later states share them.
func newMasses(p infer.Params, values []float64) (*masses, error) {
	shape := []int64{int64(len(values))}
	if d := p.Layout.Dim(); p.Batched() && len(values) == p.Chains()*d {
		shape = []int64{int64(p.Chains()), int64(d)}
	}
	device, err := torch.DeviceOf(p.Flat)
	if err != nil {
		return nil, err
	}
	dtype, err := torch.DTypeOfTensor(p.Flat)
	if err != nil {
		return nil, err
	}
	m := &masses{lightest: math.Inf(1)}
	if m.mass, err = torch.FromSliceOn(device, dtype, values, shape...); err != nil {
		return nil, err
	}
	// What a checkpoint holds is the mass in its type: the rest is made of that, so that it is the same after one.
	if values, err = torch.ToSlice[float64](m.mass); err != nil {
		return nil, err
	}
	root, inverse := make([]float64, len(values)), make([]float64, len(values))
	for i, v := range values {
		root[i], inverse[i] = math.Sqrt(v), 1/v
		m.lightest = min(m.lightest, v)
	}
	if m.root, err = torch.FromSliceOn(device, dtype, root, shape...); err != nil {
		return nil, err
	}
	if m.inverse, err = torch.FromSliceOn(device, dtype, inverse, shape...); err != nil {
		return nil, err
	}
	torch.Detach(m.mass, m.root, m.inverse)
	return m, nil
}

// transported are the momenta after a change of masses: m' = √(M'/M) m, so that √M⁻¹ m stays.
func transported(m *ts.Tensor, from, to *masses) (out *ts.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		if out, err = m.Mul(to.root, false); err != nil {
			return err
		}
		if from != nil {
			if out, err = out.Div(from.root, false); err != nil {
				return err
			}
		}
		scope.Keep(out)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("momenta: %w", err)
	}
	return out, nil
}
