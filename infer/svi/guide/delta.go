package guide

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// Delta is all mass at one point: with it svi.SVI finds the mode of log p(y, z), a density of the values on their
// supports. The Params are "guide.x" for each variable x, on its support.
type Delta struct {
	Start ppl.Values // where variables start; those not named start at 0 of unconstrained space
}

// Build finds the variables of a model on a batch.
func (g Delta) Build(model ppl.Model, batch infer.Batch) (ppl.Model, error) {
	l, err := find("guide.Delta", model, batch, g.Start)
	if err != nil {
		return nil, err
	}
	return func(c *ppl.Ctx) {
		for i, s := range l.sites {
			c.Deterministic(s.name, c.Param("guide."+s.name, s.start, l.supports[i]))
		}
	}, nil
}
