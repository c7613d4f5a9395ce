package ppl_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// counted counts how often a density is computed.
type counted struct {
	dist.Distribution
	calls *int
}

func (d counted) LogProb(x torch.Tensor) torch.Tensor {
	*d.calls++
	return d.Distribution.LogProb(x)
}

func (d counted) Expand(batch ...int) dist.Distribution {
	return counted{d.Distribution.Expand(batch...), d.calls}
}

// The densities of all steps of a chain are computed at once, those of even steps and those of odd ones, since their
// states have dimensions of their own.
func TestEnumerateLoopAtOnce(t *testing.T) {
	calls := new(int)
	y := infer.Batch{"y": vec(uneven(40, 2)...)}
	_, at := compiled(t, chainOf(40, func(c *ppl.Ctx, t int, loc, z torch.Tensor) {
		c.Observe("y", counted{dist.Normal(loc.Take(z), 0.8), calls}, c.Data("y").At(t))
	}), y)
	*calls = 0
	at(y, uneven(6+3, 1)...)
	require.Equal(t, 2, *calls)
}

// chainOf is a chain of three states, of which some transitions are impossible, seen through what see declares.
func chainOf(n int, see func(c *ppl.Ctx, t int, loc, z torch.Tensor)) ppl.Model {
	return func(c *ppl.Ctx) {
		rows := c.Sample("rows", dist.Dirichlet(torch.Zeros(3, 3).Add(1.5)))
		rows = rows.Mul(matrix(3, 3, 1, 1, 0, 1, 1, 1, 0, 1, 1))
		loc := c.Sample("loc", dist.Normal(0, 2).Expand(3))
		z := torch.Of(0)
		c.Markov(n, func(c *ppl.Ctx, t int) {
			z = c.Sample("z", dist.Categorical(rows.Take(z)))
			see(c, t, loc, z)
		})
	}
}

// What is observed in the steps of a loop counts as factors of the same densities do, which are computed one by one.
func TestEnumerateLoopTogether(t *testing.T) {
	const n = 12
	batch := infer.Batch{"y": vec(uneven(n, 2)...), "several": matrix(n, 2, uneven(2*n, 3)...),
		"whole": vec(0, 1, 2, 2, 1, 0, 0, 2, 1, 1, 0, 2)}
	for name, see := range map[string]func(t int, loc, z, y, several, whole torch.Tensor) (dist.Distribution,
		torch.Tensor){
		"numbers": func(t int, loc, z, y, _, _ torch.Tensor) (dist.Distribution, torch.Tensor) {
			return dist.Normal(loc.Take(z), 0.8), y.At(t)
		},
		"vectors": func(t int, loc, z, _, several, _ torch.Tensor) (dist.Distribution, torch.Tensor) {
			means := torch.Stack(-1, loc, loc.Neg()).Take(z)
			return dist.MultivariateNormalCholesky(means, matrix(2, 2, 1, 0, 0.5, 0.7)), several.At(t)
		},
		"vectors of one distribution": func(t int, loc, z, _, several, _ torch.Tensor) (dist.Distribution, torch.Tensor) {
			return dist.Independent(dist.Normal(loc.Take(z).Unsqueeze(-1).Add(vec(0, 1)), 1), 1), several.At(t)
		},
		"categories": func(t int, loc, z, _, _, whole torch.Tensor) (dist.Distribution, torch.Tensor) {
			return dist.CategoricalLogits(loc.Unsqueeze(-1).Mul(vec(-1, 0, 1)).Take(z)), whole.At(t)
		},
		"impossible ones": func(t int, loc, z, y, _, _ torch.Tensor) (dist.Distribution, torch.Tensor) {
			return dist.Uniform(vec(-5, -1, -1).Take(z), vec(5, 1, 0).Take(z)), y.At(t)
		},
		"two distributions": func(t int, loc, z, y, _, _ torch.Tensor) (dist.Distribution, torch.Tensor) {
			if t == 5 {
				return dist.StudentT(3, loc.Take(z), 1), y.At(t)
			}
			return dist.Normal(loc.Take(z), 1+float64(t/6)), y.At(t)
		},
		"one that changes": func(t int, loc, z, y, _, _ torch.Tensor) (dist.Distribution, torch.Tensor) {
			return dist.Normal(loc.Take(z).Add(float64(t)), 0.8), y.At(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			model := func(observe bool) ppl.Model {
				return chainOf(n, func(c *ppl.Ctx, t int, loc, z torch.Tensor) {
					if t == 3 { // not seen
						return
					}
					d, y := see(t, loc, z, c.Data("y"), c.Data("several"), c.Data("whole"))
					if observe {
						c.Observe("y", d, y)
					} else {
						c.Factor("y", d.LogProb(y))
					}
				})
			}
			requireEqualDensities(t, model(true), model(false), batch)
			requireEqualMarginals(t, model(true), model(false), batch)
		})
	}
	t.Run("plates, masks and scales", func(t *testing.T) {
		model := func(observe bool) ppl.Model {
			return chainOf(n, func(c *ppl.Ctx, t int, loc, z torch.Tensor) {
				d, y := dist.Normal(loc.Take(z), 0.8), c.Data("several").At(t)
				site := func(c *ppl.Ctx) {
					if observe {
						c.Observe("y", d, y)
					} else {
						c.Factor("y", d.LogProb(y))
					}
				}
				if t%3 == 0 {
					site = ppl.Mask(site, vec(1, 0).Gt(0.5))
				}
				c.Plate("sensors", 2, site)
			})
		}
		requireEqualDensities(t, model(true), model(false), batch)
		requireEqualMarginals(t, model(true), model(false), batch)
	})
}

// requireEqualMarginals compares the marginals of the discrete variables of two models, of one draw and of several.
func requireEqualMarginals(t *testing.T, one, other ppl.Model, batch infer.Batch) {
	t.Helper()
	var all [2]*draws.Draws
	for i, m := range []ppl.Model{one, other} {
		p, err := ppl.Compile(m, batch)
		require.NoError(t, err)
		points, err := draws.New(p.Layout().Sites, nil, 1)
		require.NoError(t, err)
		x, d := uneven(3*p.Layout().Dim(), 5), p.Layout().Dim()
		for k := range 3 {
			require.NoError(t, points.Append(x[k*d:(k+1)*d], nil))
		}
		posterior, err := p.Draws(points, batch)
		require.NoError(t, err)
		all[i], err = ppl.InferDiscrete{Program: p}.Marginals(posterior)
		require.NoError(t, err)
	}
	for step := range 12 {
		name := fmt.Sprintf("z[%d]", step)
		have, err := all[0].Values(name)
		require.NoError(t, err)
		want, err := all[1].Values(name)
		require.NoError(t, err)
		for k, row := range want[0] {
			sum := 0.0
			for i, p := range row {
				require.InDelta(t, p, have[0][k][i], 1e-12)
				sum += have[0][k][i]
			}
			require.InDelta(t, 1, sum, 1e-12)
			require.False(t, math.IsNaN(sum))
		}
	}
}
