package guide_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/infer/svi/guide"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

func must[T any](v T, err error) T { return infertest.Must(v, err) }

type builder interface {
	Build(ppl.Model, infer.Batch) (ppl.Model, error)
}

// samples is S of the fits.
var samples = 16

// fitted runs a guide on a model, and gives the result with the mean NELBO of the last tenth of the updates and its
// standard error, as if updates were independent.
func fitted(t testing.TB, model ppl.Model, g builder, lr float64, updates int, o infer.Options) (r *infer.Result, nelbo,
	se float64) {
	t.Helper()
	q, err := g.Build(model, nil)
	require.NoError(t, err)
	var last []float64
	o.Warmup, o.Chains = updates, 1
	o.Observer = infer.ObserverFunc(func(p infer.Progress) {
		if p.Step > updates*9/10 {
			last = append(last, p.Info.Stats["nelbo"][0])
		}
	})
	adam := optim.Adam{Beta2: 0.99, LR: func(step int) float64 {
		return lr * math.Pow(1e-2, float64(step)/float64(updates))
	}}
	r, err = infer.Run(context.Background(), must(ppl.Compile(model, nil)), svi.SVI{Guide: q, Optimizer: adam,
		Samples: samples}, o)
	require.NoError(t, err)
	require.Zero(t, r.Held)
	for _, v := range last {
		nelbo += v / float64(len(last))
	}
	for _, v := range last {
		se += (v - nelbo) * (v - nelbo)
	}
	return r, nelbo, math.Sqrt(se) / float64(len(last))
}

// supports has a variable on each of the common supports whose law is normal on unconstrained space: the real line, the
// positive numbers, an interval, vectors.
func supports(c *ppl.Ctx) {
	c.Sample("a", dist.Normal(1, 2))
	c.Sample("b", dist.LogNormal(0.3, 0.5))
	c.Sample("c", dist.Transformed(dist.Normal(-0.4, 0.7), bijector.Sigmoid()))
	c.Plate("three", 3, func(c *ppl.Ctx) {
		c.Sample("d", dist.Normal(0.2, 1))
		c.Sample("e", dist.LogNormal(0, 1))
	})
}

// The density is normalised and in each family, so that the bound goes to 0: −log 1 nats.
func TestExactFits(t *testing.T) {
	low := func(c *ppl.Ctx) {
		c.Sample("x", dist.LowRankMultivariateNormal(0.5, infertest.Vector([]float64{1, -0.5, 0.8, 0.3}, 4, 1), 0.3))
	}
	pair := func(c *ppl.Ctx) { // of correlation 0.8
		x := c.Sample("x", dist.Normal(0, 1))
		c.Sample("y", dist.LogNormal(x.Mul(0.8), 0.6))
	}
	for _, c := range []struct {
		name  string
		model ppl.Model
		guide builder
		want  float64
	}{
		{"Normal", supports, guide.Normal{}, 0},
		{"Dense, independent", supports, guide.Dense{InitScale: 0.5}, 0},
		{"Dense", pair, guide.Dense{}, 0},
		{"LowRank", low, guide.LowRank{Rank: 1}, 0},
		// Independent normals of a correlation ρ: the divergence is −½ log(1 − ρ²).
		{"Normal of a correlation", pair, guide.Normal{}, -0.5 * math.Log(1-0.64)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, nelbo, se := fitted(t, c.model, c.guide, 0.1, 1500, infer.Options{Draws: infer.None})
			require.InDelta(t, c.want, nelbo, 5e-3+4*se)
		})
	}
}

// Draws have the names and shapes that other methods give them, on the supports, with the moments of the posterior.
func TestDraws(t *testing.T) {
	r, _, _ := fitted(t, supports, guide.Normal{}, 0.1, 1500, infer.Options{Draws: 8000})
	require.Equal(t, []string{"a", "b", "c", "d[0]", "d[1]", "d[2]", "e[0]", "e[1]", "e[2]"}, r.Draws.Names())
	want := map[string]float64{"a": 1, "b": math.Exp(0.3 + 0.125), "d": 0.2, "e": math.Exp(0.5)}
	sd := map[string]float64{"a": 2, "b": want["b"] * math.Sqrt(math.Exp(0.25)-1), "d": 1,
		"e": want["e"] * math.Sqrt(math.E-1)}
	for name, w := range want {
		for _, m := range must(r.Draws.Mean(name)) {
			// Four standard errors of independent draws, and three hundredths of a deviation for the end of the fit.
			require.InDelta(t, w, m, sd[name]*(4/math.Sqrt(8000)+0.03), name)
		}
	}
}

// Delta finds the mode of the density of the values: of Gamma(3, 2) it is (3 − 1)/2, of Beta(3, 2) it is 2/3.
func TestDelta(t *testing.T) {
	model := func(c *ppl.Ctx) {
		c.Sample("g", dist.Gamma(3, 2))
		c.Sample("b", dist.Beta(3, 2))
		c.Sample("n", dist.Normal(-2, 3))
	}
	r, nelbo, _ := fitted(t, model, guide.Delta{Start: ppl.Values{"n": torch.Scalar(1)}}, 0.1, 1500,
		infer.Options{Draws: 2})
	for name, want := range map[string]float64{"g": 1, "b": 2.0 / 3, "n": -2} {
		for _, chain := range must(r.Draws.Values(name)) {
			for _, row := range chain {
				require.InDelta(t, want, row[0], 1e-3, name)
			}
		}
	}
	// log p at the mode: 8/2 e⁻², 12 (2/3)² (1/3), and the top of the normal.
	want := math.Log(4*math.Exp(-2)) + math.Log(12*4.0/27) - math.Log(3*math.Sqrt(2*math.Pi))
	require.InDelta(t, -want, nelbo, 1e-5)
}

// A start is where variables begin, and everything else begins at 0 of unconstrained space.
func TestStart(t *testing.T) {
	at := ppl.Values{"b": torch.Scalar(7), "d": torch.Of(infertest.Vector([]float64{1, 2, 3}))}
	for _, g := range []builder{guide.Normal{Start: at, InitScale: 1e-6}, guide.Dense{Start: at, InitScale: 1e-6},
		guide.LowRank{Start: at, InitScale: 1e-6}, guide.Delta{Start: at}} {
		q := must(g.Build(supports, nil))
		r, err := infer.Sample(context.Background(), must(ppl.Compile(supports, nil)), svi.SVI{Guide: q},
			infer.Options{Chains: 1, Warmup: infer.None, Draws: 1, Observer: infer.Silent})
		require.NoError(t, err)
		for name, want := range map[string][]float64{"a": {0}, "b": {7}, "c": {0.5}, "d": {1, 2, 3}, "e": {1, 1, 1}} {
			infertest.Within(t, want, must(r.Mean(name)), 1e-4, name)
		}
	}
}

func TestMistakes(t *testing.T) {
	long := func(c *ppl.Ctx) { // a square matrix has 3.2 GB
		c.Sample("x", dist.Normal(0, 1).Expand(20000))
		c.Sample("y", dist.Normal(0, 1).Expand(20000))
	}
	for what, c := range map[string]struct {
		model ppl.Model
		guide builder
		words []string
	}{
		"discrete": {func(c *ppl.Ctx) { c.Sample("z", dist.Bernoulli(0.5)) }, guide.Dense{},
			[]string{`"z"`, "discrete", "ppl.Enumerate"}},
		"support": {func(c *ppl.Ctx) { c.Sample("x", dist.Uniform(0, c.Sample("top", dist.LogNormal(0, 1)))) },
			guide.Normal{}, []string{`"x"`, "support depends"}},
		"nothing": {func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, 1), 1) }, guide.Normal{},
			[]string{"no latent variable"}},
		"a name": {supports, guide.Normal{Start: ppl.Values{"x": torch.Scalar(1)}}, []string{`Start is ["x"]`}},
		"a value": {supports, guide.Normal{Start: ppl.Values{"b": torch.Scalar(-1)}},
			[]string{`"b"`, "outside its support"}},
		"a shape": {supports, guide.Delta{Start: ppl.Values{"d": torch.Scalar(1)}},
			[]string{`"d"`, "[]", "[3]"}},
		"memory":     {long, guide.Dense{}, []string{"guide.Dense: ", "[40000, 40000]", "guide.LowRank"}},
		"a Laplace":  {long, guide.Laplace{}, []string{"guide.Laplace: ", "[40000, 40000]"}},
		"a variable": {long, guide.Structured{Dense: []string{"x"}}, []string{"guide.Structured: ", "takes 3.2 GB"}},
		"dependences": {long, guide.Structured{Depends: map[string][]string{"y": {"x"}}},
			[]string{"Dense and Depends"}},
		"scale": {supports, guide.Dense{InitScale: -1}, []string{"guide.Dense: InitScale is -1"}},
		"rank":  {supports, guide.LowRank{Rank: 10}, []string{"Rank is 10", "from 1 to the 9"}},
		"a part": {func(c *ppl.Ctx) {
			c.Plate("data", 10, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(0, 1), infertest.Vector([]float64{1, 2}))
				c.Sample("z", dist.Normal(0, 1))
			}, ppl.Minibatch)
		}, guide.Normal{}, []string{`"data"`, "reads the batch"}},
		"nil": {nil, guide.Normal{}, []string{"the model is nil"}},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := c.guide.Build(c.model, nil)
			for _, word := range c.words {
				require.ErrorContains(t, err, word)
			}
		})
	}
}
