package sgmcmc

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
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
	rows := p.Layout.SiteMeans(raw)
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
