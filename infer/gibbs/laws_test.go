package gibbs_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/gibbs"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// A mixture of three normals has the same means, weights and probabilities of labels where the labels are sampled and
// where they are summed out.
func TestMixtureBesideTheSum(t *testing.T) {
	y := noise(30, 3)
	for i := range y {
		y[i] = 0.7*y[i] + []float64{-2.5, 0, 3}[i%3]
	}
	data := infer.Batch{"y": vec(y)}
	mixture := func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Dirichlet(vec([]float64{2, 2, 2})))
		m := c.Sample("m", dist.Normal(vec([]float64{-2, 0, 2}), 1))
		c.Plate("n", 0, func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Categorical(w))
			c.Observe("y", dist.Normal(m.Take(z), 0.7), c.Data("y"))
		})
	}
	summed, err := ppl.Compile(mixture, data)
	require.NoError(t, err)
	o := infer.Options{Chains: 20, Warmup: 100, Draws: 150, Seed: 5}
	exact := sampled(t, summed, hmc.NUTS{}, o)
	d := sampled(t, compiled(t, mixture, data), gibbs.Blocks{
		{Sites: []string{gibbs.Rest}, Method: hmc.NUTS{}},
		{Sites: []string{"z"}, Method: gibbs.Discrete{}},
	}, o)
	for _, site := range []string{"m", "w"} {
		for j := range 3 {
			a, b := at(t, d, site).Offset+j, at(t, exact, site).Offset+j
			for name, f := range map[string]func(float64) float64{
				"mean": func(v float64) float64 { return v }, "square": func(v float64) float64 { return v * v },
			} {
				diff := means(t, d, func(row []float64) float64 { return f(row[a]) })
				for k, v := range means(t, exact, func(row []float64) float64 { return f(row[b]) }) {
					diff[k] -= v
				}
				agrees(t, fmt.Sprintf("%s of %s[%d]", name, site, j), diff, 0)
			}
		}
	}
}

// The magnetisation and the energy of an Ising field of 3 x 3 are those of its 512 states, at temperature 1 and 2.
func TestIsingAgainstEnumeration(t *testing.T) {
	const j, h = 0.4, 0.15
	var left, right []float64
	for r := range 3 {
		for c := range 3 {
			if c < 2 {
				left, right = append(left, float64(3*r+c)), append(right, float64(3*r+c+1))
			}
			if r < 2 {
				left, right = append(left, float64(3*r+c)), append(right, float64(3*r+c+3))
			}
		}
	}
	a, b := vec(left), vec(right)
	program := compiled(t, func(c *ppl.Ctx) {
		z := c.Sample("z", dist.Bernoulli(0.5).Expand(9))
		s := z.Mul(2).Sub(1)
		c.Factor("bonds", s.Take(a).Mul(s.Take(b)).Sum().Mul(j))
		c.Factor("field", s.Sum().Mul(h))
	}, nil)
	energy := func(spin func(i int) float64) (bonds, sum float64) {
		for k := range left {
			bonds += spin(int(left[k])) * spin(int(right[k]))
		}
		for i := range 9 {
			sum += spin(i)
		}
		return bonds, sum
	}
	for _, temperature := range []float64{1, 2} {
		var want, z float64
		var bondsWant float64
		for s := range 512 {
			bonds, sum := energy(func(i int) float64 { return float64(2*(s>>i&1) - 1) })
			w := math.Exp((j*bonds + h*sum) / temperature)
			z, want, bondsWant = z+w, want+w*sum, bondsWant+w*bonds
		}
		d := sampled(t, program, gibbs.Discrete{Temperature: infer.Constant(temperature)},
			infer.Options{Chains: 20, Warmup: 20, Draws: 300, Seed: 2})
		spins := func(row []float64) func(i int) float64 {
			return func(i int) float64 { return 2*row[i] - 1 }
		}
		agrees(t, "magnetisation", means(t, d, func(row []float64) float64 { _, s := energy(spins(row)); return s }), want/z)
		agrees(t, "bonds", means(t, d, func(row []float64) float64 { b, _ := energy(spins(row)); return b }), bondsWant/z)
	}
}

// Counts n ~ Poisson(λ) of which y are seen, each with probability p, have n − y ~ Poisson(λ(1 − p)): in a plate, where
// they move all at once, and one by one; near the wall at y and far from it.
func TestPoissonCountsAgainstTheClosedForm(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		y     []float64
		plate bool
	}{{3, []float64{0, 1, 4}, true}, {3, []float64{0, 1, 4}, false}, {400, []float64{100, 130, 90}, true}} {
		program := compiled(t, func(m *ppl.Ctx) {
			if c.plate {
				m.Plate("sites", 0, func(m *ppl.Ctx) {
					n := m.Sample("n", dist.Poisson(c.rate))
					m.Observe("y", dist.Binomial(n, 0.3), m.Data("y"))
				})
				return
			}
			n := m.Sample("n", dist.Poisson(c.rate).Expand(len(c.y)))
			m.Observe("y", dist.Binomial(n, 0.3), m.Data("y"))
		}, infer.Batch{"y": vec(c.y)})
		start := make([]float64, len(c.y))
		for i := range start {
			start[i] = c.y[i] + 1
		}
		from, err := program.Init(program.Batch(), ppl.FromValues(ppl.Values{"n": vec(start)}), 1, 1)
		require.NoError(t, err)
		d := sampled(t, program, gibbs.Discrete{}, infer.Options{Chains: 20, Warmup: 400, Draws: 400, Seed: 3, Start: from})
		left := 0.7 * c.rate
		for i := range c.y {
			agrees(t, fmt.Sprintf("mean of n[%d] at %v", i, c.rate), means(t, d, func(row []float64) float64 {
				return row[i] - c.y[i]
			}), left)
			agrees(t, fmt.Sprintf("square of n[%d] at %v", i, c.rate), means(t, d, func(row []float64) float64 {
				return (row[i] - c.y[i]) * (row[i] - c.y[i])
			}), left+left*left)
		}
		accept, err := d.Stat("walk_accept", 0)
		require.NoError(t, err)
		mean := 0.0
		for _, a := range accept {
			mean += a / float64(len(accept))
		}
		require.Greater(t, mean, 0.3)
		require.Less(t, mean, 0.85)
	}
}

// Blocks inside of Blocks, a site of one element and one with a plate each, and a stochastic-gradient-free kernel with
// one leapfrog step have the law of the whole: with x ~ N(0, 1), u ~ N(x, 1), k ~ Binomial(3, σ(u)) the means of k and
// of k·x are those of quadrature.
func TestNestedBlocks(t *testing.T) {
	program := compiled(t, func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		u := c.Sample("u", dist.Normal(x, 1))
		c.Sample("k", dist.BinomialLogits(3, u))
	}, nil)
	d := sampled(t, program, gibbs.Blocks{
		{Sites: []string{"x"}, Method: hmc.HMC{Steps: 1}},
		{Sites: []string{gibbs.Rest}, Method: gibbs.Blocks{
			{Sites: []string{"k"}, Method: gibbs.Discrete{}},
			{Sites: []string{"u"}, Method: hmc.NUTS{}},
		}},
	}, infer.Options{Chains: 20, Warmup: 150, Draws: 250, Seed: 4})
	k, x := at(t, d, "k").Offset, at(t, d, "x").Offset
	var product float64
	for i := range 2001 { // u ~ N(0, 2), E[x | u] = u/2
		u := -10 + 0.01*float64(i)
		product += 0.01 * math.Exp(-u*u/4) / math.Sqrt(4*math.Pi) * 3 / (1 + math.Exp(-u)) * u / 2
	}
	agrees(t, "k", means(t, d, func(row []float64) float64 { return row[k] }), 1.5)
	agrees(t, "kx", means(t, d, func(row []float64) float64 { return row[k] * row[x] }), product)
	agrees(t, "x²", means(t, d, func(row []float64) float64 { return row[x] * row[x] }), 1)
}

// At temperature 2 of all blocks p(z, x) = Bernoulli(z; 0.3) N(x; 2z, 1) has the law of its square root: z is 1 with
// probability √0.3 / (√0.3 + √0.7), and x ~ N(2z, 2).
func TestBlocksAtTemperature(t *testing.T) {
	program := compiled(t, func(c *ppl.Ctx) {
		z := c.Sample("z", dist.Bernoulli(0.3))
		c.Sample("x", dist.Normal(z.Mul(2), 1))
	}, nil)
	d := sampled(t, program, gibbs.Blocks{
		{Sites: []string{"z"}, Method: gibbs.Discrete{Temperature: infer.Constant(2)}},
		{Sites: []string{"x"}, Method: hmc.NUTS{Temperature: infer.Constant(2)}},
	}, infer.Options{Chains: 20, Warmup: 150, Draws: 400, Seed: 6})
	p := math.Sqrt(0.3) / (math.Sqrt(0.3) + math.Sqrt(0.7))
	x, z := at(t, d, "x").Offset, at(t, d, "z").Offset
	agrees(t, "z", means(t, d, func(row []float64) float64 { return row[z] }), p)
	agrees(t, "x²", means(t, d, func(row []float64) float64 { return row[x] * row[x] }), 2+4*p)
}
