package gibbs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Elements of a plate are drawn at once where no term has two of them, and one after another where a term outside of
// the plate, or one that mixes its rows, has.
func TestIndependentElements(t *testing.T) {
	y := infer.Batch{"y": torch.New([]float64{1, 2, 3, 4, 5})}
	plate := func(in func(c *ppl.Ctx, z, mu torch.Tensor), out func(c *ppl.Ctx, z, mu torch.Tensor)) ppl.Model {
		return func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 1))
			var z torch.Tensor
			c.Plate("n", 5, func(c *ppl.Ctx) {
				z = c.Sample("z", dist.Bernoulli(mu.Sigmoid()))
				in(c, z, mu)
			})
			out(c, z, mu)
		}
	}
	none := func(*ppl.Ctx, torch.Tensor, torch.Tensor) {}
	observe := func(c *ppl.Ctx, z, mu torch.Tensor) {
		c.Observe("y", dist.Normal(mu.Add(z), 1), c.Data("y"))
	}
	for what, c := range map[string]struct {
		model ppl.Model
		apart bool
	}{
		"mixture": {plate(observe, none), true},
		"sum outside": {plate(observe, func(c *ppl.Ctx, z, mu torch.Tensor) {
			c.Factor("sum", z.Sum().Mul(mu))
		}), false},
		"mixed rows": {plate(func(c *ppl.Ctx, z, mu torch.Tensor) {
			c.Observe("y", dist.Normal(z.CumSum(-1), 1), c.Data("y"))
		}, none), false},
		"a term for all": {plate(func(c *ppl.Ctx, z, mu torch.Tensor) {
			observe(c, z, mu)
			c.Factor("all", z.Mean().Mul(mu))
		}, none), false},
		"counts": {func(c *ppl.Ctx) {
			c.Plate("n", 0, func(c *ppl.Ctx) {
				z := c.Sample("z", dist.Poisson(30))
				c.Observe("y", dist.Binomial(z, 0.5), c.Data("y").Mul(100))
			})
		}, true},
		"other plate": {plate(none, func(c *ppl.Ctx, z, mu torch.Tensor) {
			c.Plate("m", 5, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(z, 1), c.Data("y")) })
		}), false},
	} {
		program, err := ppl.CompileDiscrete(c.model, y)
		require.NoError(t, err, what)
		view, err := newView(program.Target(), program.Layout(), []string{"z"})
		require.NoError(t, err)
		transform, err := Discrete{}.Build(view.target(program.Target()))
		require.NoError(t, err)
		d := transform.(*discrete)
		flat, err := infer.Zeros(program.Layout())
		require.NoError(t, err)
		state, err := d.Init(infer.Params{Layout: view.layout, Flat: torch.New(make([]float64, 5))})
		require.NoError(t, err)
		_, _, err = d.Update(state, view.with(y, flat.Flat))
		require.NoError(t, err)
		assert.Equal(t, c.apart, d.sites[0].apart, what)
	}
}
