package ppl

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Missing are the rows of a tensor of shape [N] that are NaN, for [Ctx.Impute].
func Missing(t torch.Tensor) ([]int, error) {
	shape, err := torch.Shape(t)
	if err != nil {
		return nil, fmt.Errorf("ppl.Missing: %w", err)
	}
	if len(shape) != 1 {
		return nil, fmt.Errorf("ppl.Missing: the tensor has shape %v: numbers of shape [N] can be imputed", shape)
	}
	values, err := torch.ToSlice[float64](t)
	if err != nil {
		return nil, fmt.Errorf("ppl.Missing: %w", err)
	}
	var rows []int
	for i, v := range values {
		if math.IsNaN(v) {
			rows = append(rows, i)
		}
	}
	return rows, nil
}

// Impute observes data of shape [N] of which some rows are missing, and returns them with the missing ones filled in.
// These are latent variables, name_missing, of shape [len(missing)], in the order of missing, with the law that d gives
// their rows: a covariate with missing values gets a model so, and what depends on it takes the returned values.
// missing are the rows that [Missing] finds.
//
//	age := c.Impute("age", dist.Normal(mu, sigma), c.Data("age"), missing)
//
// Rows that are missing are no observations of name: their density is a factor, name_imputed. A discrete variable
// cannot be imputed: declare its missing values with Sample, which Compile sums out. All of the data are needed in each
// update.
func (c *Ctx) Impute(name string, d dist.Distribution, value any, missing []int) torch.Tensor {
	s := &Site{Kind: KindSample, Name: name, Dist: d, Scale: 1, ctx: c}
	x := s.argument(value)
	shape := x.Shape()
	switch {
	case len(missing) == 0:
		c.Observe(name, d, value)
		return x
	case len(shape) != 1 || len(d.EventShape()) > 0:
		s.fail("data of shape %v cannot be imputed: Impute takes numbers of shape [N]", shape)
	case d.Support().Discrete():
		s.fail("it is discrete and cannot be imputed: declare the missing values with Sample, which Compile sums out, and " +
			"observe the others")
	}
	n := shape[0]
	place, known := make([]int, n), make([]bool, n)
	for i := range known {
		known[i] = true
	}
	for k, row := range missing {
		if row < 0 || row >= n || !known[row] {
			s.fail("row %d is missing, of %d rows: give what ppl.Missing finds, each once", row, n)
		}
		place[row], known[row] = k, false
	}
	mask := torch.New(known)
	outside := *c
	outside.plates, outside.inside = nil, new(string)
	z := outside.Sample(name+"_missing", dist.ImproperUniform(d.Support(), []int{len(missing)}, nil))
	filled := torch.Where(mask, x, z.IndexSelect(0, torch.New(place)))
	c.With(process(func(of *Site) {
		if of.Name == name && of.Mask == (torch.Tensor{}) {
			of.Mask = mask
		}
	})).Observe(name, d, filled)
	for _, p := range c.plates {
		if p.Used != p.Size {
			s.fail("plate %q has %d of %d data: Impute needs all of them in every update (no Batches)", p.Name, p.Used, p.Size)
		}
	}
	c.Factor(name+"_imputed", torch.Where(mask, 0, d.LogProb(filled)))
	return filled
}
