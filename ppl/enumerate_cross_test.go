package ppl_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// crossing has discrete variables in two rows and in three columns. Where they are together, the cells depend on both
// at once, else some on the one and some on the other.
func crossing(together bool) ppl.Model {
	return func(c *ppl.Ctx) {
		a, b := c.Sample("a", dist.Normal(0, 1)), c.Sample("b", dist.Normal(0, 1))
		var u, v torch.Tensor
		c.Plate("rows", 2, func(c *ppl.Ctx) {
			u = c.Sample("u", dist.BernoulliLogits(a))
			s := c.Sample("s", dist.BernoulliLogits(u.Mul(b).Sub(0.3)))
			c.Observe("r", dist.Normal(s, 1), c.Data("r"))
		}, ppl.Dim(-1))
		c.Plate("columns", 3, func(c *ppl.Ctx) {
			v = c.Sample("v", dist.Bernoulli(0.4))
			c.Plate("rows", 2, func(c *ppl.Ctx) {
				level := u
				if together {
					level = u.Add(v.Mul(0.7))
				}
				w := c.Sample("w", dist.BernoulliLogits(level.Mul(b).Sub(0.2)))
				c.Observe("x", dist.Normal(w.Add(a.Mul(u)), 0.8), c.Data("x"))
				c.Observe("y", dist.Normal(v.Mul(a), 0.9), c.Data("y"))
			}, ppl.Dim(-1))
		}, ppl.Dim(-2))
	}
}

// cells is the log density of one value of the variables of crossing: u and s of the rows, v of the columns, and w of
// the cells, column after column, without the priors of a and b.
func cells(together bool, r, x, y []float64, a, b float64, z []int) float64 {
	lp := 0.0
	for row := range 2 {
		u, s := z[row], z[2+row]
		lp += bit(u, logistic(a)) + bit(s, logistic(b*float64(u)-0.3)) + normal(r[row], float64(s), 1)
	}
	for column := range 3 {
		v := z[4+column]
		lp += bit(v, 0.4)
		for row := range 2 {
			cell := 2*column + row
			u, w := float64(z[row]), z[7+cell]
			level := u
			if together {
				level += 0.7 * float64(v)
			}
			lp += bit(w, logistic(b*level-0.2)) + normal(x[cell], float64(w)+a*u, 0.8) + normal(y[cell], a*float64(v), 0.9)
		}
	}
	return lp
}

// Models with discrete variables in plates that cross have the density of the sum over all 2¹³ values, and their
// variables the marginals and the mode.
func TestEnumerateCrossingPlates(t *testing.T) {
	r, x, y := uneven(2, 1), uneven(6, 2), uneven(6, 3)
	batch := infer.Batch{"r": vec(r...), "x": matrix(3, 2, x...), "y": matrix(3, 2, y...)}
	sizes := make([]int, 13)
	for i := range sizes {
		sizes[i] = 2
	}
	for name, together := range map[string]bool{"apart": false, "together": true} {
		t.Run(name, func(t *testing.T) {
			requireBrute(t, crossing(together), batch, func(a, b float64) float64 {
				var all []float64
				assignments(sizes, func(z []int) { all = append(all, cells(together, r, x, y, a, b, z)) })
				return logSumExp(all) + normal(a, 0, 1) + normal(b, 0, 1)
			})

			const a, b = 0.7, -1.2
			var logs []float64
			best, top := []int{}, math.Inf(-1)
			assignments(sizes, func(z []int) {
				logs = append(logs, cells(together, r, x, y, a, b, z))
				if last := logs[len(logs)-1]; last > top {
					best, top = append(best[:0], z...), last
				}
			})
			total, one, i := logSumExp(logs), make([]float64, len(sizes)), 0
			assignments(sizes, func(z []int) {
				for k := range z {
					one[k] += float64(z[k]) * math.Exp(logs[i]-total)
				}
				i++
			})
			p, err := ppl.Compile(crossing(together), batch)
			require.NoError(t, err)
			t.Log(p)
			q := ppl.InferDiscrete{Program: p}
			marginals, err := q.Marginals(twice(t, 1, a, b))
			require.NoError(t, err)
			mode, err := q.Mode(twice(t, 1, a, b))
			require.NoError(t, err)
			at := 0
			for _, site := range []string{"u", "s", "v", "w"} {
				m, z := first(t, marginals, site), first(t, mode, site)
				require.Len(t, m, 2*len(z))
				for k := range z {
					assert.InDelta(t, one[at], m[2*k+1], 1e-12, "%s %d", site, k)
					assert.Equal(t, float64(best[at]), z[k], "%s %d", site, k)
					at++
				}
			}
		})
	}
}
