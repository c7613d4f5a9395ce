package guide

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Normal is independent normal distributions on unconstrained space ("mean field"). For each variable x the Params are
// "guide.x.loc" and "guide.x.scale". A variable on the real line is a random variable of the guide itself, so that
// svi.MeanField knows its divergence from a normal prior.
type Normal struct {
	InitScale float64    // standard deviation at the start; 0 means 0.1
	Start     ppl.Values // where variables start; those not named start at 0 of unconstrained space
}

// Build finds the variables of a model on a batch.
func (g Normal) Build(model ppl.Model, batch infer.Batch) (ppl.Model, error) {
	const who = "guide.Normal"
	l, scale, err := begin(who, model, batch, g.Start, g.InitScale)
	if err != nil {
		return nil, err
	}
	locs, scales := make([]torch.Tensor, len(l.sites)), make([]torch.Tensor, len(l.sites))
	for i, s := range l.sites {
		locs[i] = tensor(l.start[s.from:s.to], s.free...)
		scales[i] = tensor(full(scale, s.to-s.from), s.free...)
	}
	return func(c *ppl.Ctx) {
		for i, s := range l.sites {
			s.normal(c, c.Param("guide."+s.name+".loc", locs[i], support.Real),
				c.Param("guide."+s.name+".scale", scales[i], support.Positive))
		}
	}, nil
}

// normal declares a variable as normal on unconstrained space.
func (s *site) normal(c *ppl.Ctx, loc, scale torch.Tensor) torch.Tensor {
	q := dist.Independent(dist.Normal(loc, scale), len(s.free))
	if s.real() {
		return c.Sample(s.name, q)
	}
	x := c.Sample("_"+s.name, q)
	s.declare(c, x)
	return x
}
