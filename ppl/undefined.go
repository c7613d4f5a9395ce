package ppl

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// mostBlamed is how many sites are looked at for a gradient that is NaN.
const mostBlamed = 64

// Undefined names the sites whose log densities are finite at a point of shape [d] and have a gradient that is NaN,
// each differentiated by itself. It looks at the first 64; those of a loop have one name.
func (p *Program) Undefined(point infer.Params, b infer.Batch) (sites []string) {
	var seen []string
	for _, c := range p.counted {
		if slices.Contains(seen, c.class) || len(seen) == mostBlamed {
			continue
		}
		seen = append(seen, c.class)
		alone, err := p.WithLikelihood(c.class)
		if err != nil {
			continue // it is summed with others, one of which is named
		}
		_ = torch.Do(func(*torch.Scope) error {
			gradient, err := infer.NewGradient(alone.Target().Weighted(infer.Weights{Likelihood: 1}))
			if err != nil {
				return err
			}
			e, err := gradient.ValueAndGrad(point, b, 0)
			if err == nil && math.IsNaN(e.Norms[0]) && !math.IsNaN(e.Values[0]) && !math.IsInf(e.Values[0], 0) {
				sites = append(sites, c.class)
			}
			return err
		})
	}
	return sites
}
