package ppl_test

import (
	"sync"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// What Compile says of a mistake.
func TestMessages(t *testing.T) {
	batch := schoolData(t)
	for name, c := range map[string]struct {
		model ppl.Model
		want  []string
	}{
		"a duplicate name": {func(c *ppl.Ctx) {
			c.Sample("a", dist.Normal(0, 1))
			c.Sample("a", dist.Normal(0, 1))
		}, []string{`site "a"`, "two sites of that name", "Normal"}},
		"a name twice, once observed": {func(c *ppl.Ctx) {
			c.Sample("y", dist.Normal(0, 1))
			c.Observe("y", dist.Normal(0, 1), c.Data("y"))
		}, []string{`site "y"`, "two sites of that name"}},
		"a shape that does not broadcast": {func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 1).Expand(7))
			c.Plate("schools", 8, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) })
		}, []string{`site "y"`, "in plate schools", "Normal", "value of shape [8]", "batch shape [7]"}},
		"a batch shape that does not broadcast to the plate": {func(c *ppl.Ctx) {
			c.Plate("schools", 8, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(0, 1), c.Data("y"))
				c.Sample("mu", dist.Normal(vec(1, 2, 3), 1))
			})
		}, []string{`site "mu"`, "in plate schools", `plate "schools" has 8 of its 8`, "batch shape [3]"}},
		"an observed value outside the support": {func(c *ppl.Ctx) {
			c.Plate("schools", 8, func(c *ppl.Ctx) { c.Observe("y", dist.Exponential(1), c.Data("y")) })
		}, []string{`site "y"`, "in plate schools", "Exponential", "observed value is outside the support", "-3"}},
		"a count that is not whole": {func(c *ppl.Ctx) { c.Observe("y", dist.Poisson(1), vec(1, 2.5)) },
			[]string{`site "y"`, "Poisson", "outside the support", "2.5"}},
		"a negative scale": {func(c *ppl.Ctx) { c.Sample("a", dist.Normal(0, -1)) },
			[]string{`site "a"`, "dist.Normal: scale is -1", "greater than 0", "(at ppl/messages_test.go:"}},
		"a negative scale in a plate": {func(c *ppl.Ctx) {
			c.Plate("schools", 8, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, -1), c.Data("y")) })
		}, []string{`site "y" in plate schools (Normal)`, "dist.Normal: scale is -1"}},
		"a negative rate in a part": {func(c *ppl.Ctx) {
			c.Sample("a", dist.Truncated(dist.Gamma(1, -1).Expand(3), 0, 1))
		}, []string{`site "a" (Gamma)`, "dist.Gamma: rate is -1", "greater than 0"}},
		"parameters that do not broadcast": {func(c *ppl.Ctx) { c.Sample("a", dist.Normal(vec(1, 2), vec(1, 2, 3))) },
			[]string{`site "a"`, "dist.Normal: the shapes [[2] [3]]", "do not broadcast"}},
		"a word as a parameter": {func(c *ppl.Ctx) { c.Sample("a", dist.Normal("0", 1)) },
			[]string{`site "a"`, "dist.Normal: loc is a string"}},
		"a family without a CDF, truncated": {func(c *ppl.Ctx) { c.Sample("a", dist.Truncated(dist.VonMises(0, 1), 0, 1)) },
			[]string{`site "a"`, "VonMises has no CDF here"}},
		// Made outside of a model, where no panic may reach the user.
		"a prior that Lift is given": {ppl.Lift(func(c *ppl.Ctx) { c.Param("a", 1, support.Real) },
			map[string]dist.Distribution{"a": dist.Normal(0, -1)}), []string{`site "a"`, "dist.Normal: scale is -1"}},
		"a negative scale in a tensor": {func(c *ppl.Ctx) { c.Sample("a", dist.Normal(0, vec(1, -2, 3))) },
			[]string{`site "a"`, "dist.Normal: scale is -2 at element 1 of shape [3]", "greater than 0"}},
		"a plate of the wrong size": {func(c *ppl.Ctx) {
			c.Plate("schools", 5, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, 1), c.Data("y")) })
		}, []string{`site "y"`, `plate "schools" has size 5`, "value of shape [8]", "size 8 at dimension -1; " +
			"give the plate size 8, or 0, which takes the size of the data"}},
		"a plate of the wrong size with latent variables": {func(c *ppl.Ctx) {
			c.Plate("schools", 5, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(c.Sample("mu", dist.Normal(0, 1)), 1), c.Data("y"))
			})
		}, []string{`site "y"`, "value of shape [8] does not broadcast with batch shape [5]",
			"; give the plate size 8, or 0, which takes the size of the data"}},
		"a plate of the wrong size after latent variables": {func(c *ppl.Ctx) {
			c.Plate("schools", 5, func(c *ppl.Ctx) {
				c.Sample("mu", dist.Normal(0, 1))
				c.Observe("y", dist.Normal(0, 1), c.Data("y"))
			})
		}, []string{`site "y"`, "size 8 at dimension -1; give the plate size 8, or 0, which takes the size of the data"}},
		"a factor of more terms than its plate has": {func(c *ppl.Ctx) {
			c.Plate("schools", 5, func(c *ppl.Ctx) { c.Factor("f", c.Data("y")) })
		}, []string{`site "f"`, "size 8 at dimension -1; give the plate size 8, or 0"}},
		"a column without a plate": {func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Data("sigma"), 1), c.Data("y").Unsqueeze(-1))
		}, []string{`site "y"`, "value of shape [8 1] does not broadcast with batch shape [8]",
			"the value is a column: take it out with Squeeze(-1)"}},
		"parameters that are a column, without a plate": {func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Data("sigma").Unsqueeze(-1), 1), c.Data("y"))
		}, []string{`site "y"`, "value of shape [8] does not broadcast with batch shape [8 1]",
			"the distribution is of a column: take it out of what it is given with Squeeze(-1)"}},
		"a plate of negative size": {func(c *ppl.Ctx) { c.Plate("p", -1, func(*ppl.Ctx) {}) },
			[]string{"in plate p", "size is -1", "at least 1", "or 0 to take the size of the data"}},
		"a plate that is larger than the data": {func(c *ppl.Ctx) {
			c.Plate("schools", 80, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, 1), c.Data("y")) })
		}, []string{`site "y" in plate schools (Normal)`, `plate "schools" has size 80, and the batch has 8 of it`,
			"each would count 10 times", "give the plate size 8, or 0", "ppl.Minibatch"}},
		"a factor in a plate that is larger than the data": {func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 1))
			c.Plate("schools", 80, func(c *ppl.Ctx) { c.Factor("f", c.Data("y").Mul(mu)) })
		}, []string{`site "f"`, "the batch has 8 of it"}},
		"a minibatch of a plate without a size": {func(c *ppl.Ctx) {
			c.Plate("p", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, 1), c.Data("y")) }, ppl.Minibatch)
		}, []string{"in plate p", "size is 0", "give the plate its size"}},
		"a plate that nothing gives a size": {func(c *ppl.Ctx) {
			c.Plate("p", 0, func(c *ppl.Ctx) { c.Sample("z", dist.Normal(0, 1)) })
		}, []string{`site "z" in plate p (Normal)`, `plate "p" cannot be inferred`, "give the plate its size"}},
		"a plate whose size the model needs before it is known": {func(c *ppl.Ctx) {
			c.Plate("p", 0, func(c *ppl.Ctx) {
				z := c.Sample("z", dist.Normal(0, 1))
				c.Observe("y", dist.Normal(z.MatMul(c.Data("sigma")), 1), c.Data("y"))
			})
		}, []string{`site "z" in plate p (Normal)`, "does not run before it is known", "Matmul"}},
		"a plate in itself": {func(c *ppl.Ctx) {
			c.Plate("p", 2, func(c *ppl.Ctx) { c.Plate("p", 2, func(*ppl.Ctx) {}) })
		}, []string{"in plate p", "open already"}},
		"plates on one dimension": {func(c *ppl.Ctx) {
			c.Plate("p", 2, func(c *ppl.Ctx) { c.Plate("q", 2, func(*ppl.Ctx) {}, ppl.Dim(-1)) })
		}, []string{"in plate q", "another open plate has its dimension"}},
		"a positive dimension": {func(c *ppl.Ctx) { c.Plate("p", 2, func(*ppl.Ctx) {}, ppl.Dim(1)) },
			[]string{"must be negative"}},
		"the context outside the plate": {func(c *ppl.Ctx) {
			c.Plate("p", 8, func(*ppl.Ctx) { c.Observe("y", dist.Normal(0, 1), c.Data("y")) })
		}, []string{`site "y"`, `outside plate "p"`, "use the context that the plate's function is given"}},
		"the context outside the plate, in a handler": {func(c *ppl.Ctx) {
			ppl.Scale(func(cs *ppl.Ctx) {
				cs.Plate("p", 8, func(*ppl.Ctx) { c.Observe("y", dist.Normal(0, 1), c.Data("y")) })
			}, 2)(c)
		}, []string{`site "y"`, `outside plate "p"`}},
		"local variables and a minibatch": {func(c *ppl.Ctx) {
			c.Plate("p", 80, func(c *ppl.Ctx) {
				z := c.Sample("z", dist.Normal(0, 1))
				c.Observe("y", dist.Normal(z, 1), c.Data("y"))
			})
		}, []string{`site "y"`, `value of shape [8]`, `batch shape [80]`, "takes all of its data in every batch"}},
		"local variables after a minibatch": {func(c *ppl.Ctx) {
			c.Plate("p", 80, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(0, 1), c.Data("y"))
				c.Sample("z", dist.Normal(0, 1))
			}, ppl.Minibatch)
		}, []string{`site "z"`, `plate "p" has size 80`, "size 8 there", "needs a value for each"}},
		"data that are missing": {func(c *ppl.Ctx) { c.Data("nope") }, []string{`"nope"`, `"sigma"`, `"y"`}},
		"a discrete variable": {func(c *ppl.Ctx) { c.Sample("z", dist.Poisson(0.5)) },
			[]string{`site "z"`, "discrete", "not finite", "dist.Truncated(d, 0, n)"}},
		"discrete variables alone": {func(c *ppl.Ctx) { c.Sample("z", dist.Bernoulli(0.5)) },
			[]string{"no latent variable", "nothing is left to infer"}},
		"no value": {
			func(c *ppl.Ctx) { c.Observe("z", dist.Bernoulli(0.5), nil) },
			[]string{`site "z"`, "value is nil", "use Sample"},
		},
		"no name":         {func(c *ppl.Ctx) { c.Sample("", dist.Normal(0, 1)) }, []string{"needs a name"}},
		"no distribution": {func(c *ppl.Ctx) { c.Sample("a", nil) }, []string{`site "a"`, "distribution is nil"}},
		"no variables": {
			func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, 1), c.Data("y")) },
			[]string{"no latent variable"},
		},
		"a bad start": {
			func(c *ppl.Ctx) { c.Param("s", scalar(-1), support.Positive) },
			[]string{`site "s"`, "initial value is outside"},
		},
		"a failing operation": {func(c *ppl.Ctx) { c.Data("y").MatMul(vec(1, 2)) },
			[]string{"Matmul", "[8]", "[2]"}},
	} {
		_, err := ppl.Compile(c.model, batch)
		require.Error(t, err, name)
		for _, w := range c.want {
			require.ErrorContains(t, err, w, name)
		}
	}
}

// A site that appears only sometimes: too many, too few, another shape.
func TestSitesMustNotChange(t *testing.T) {
	model := func(c *ppl.Ctx) {
		c.Sample("a", dist.Normal(0, 1))
		if c.Data("flag").Item() > 0 {
			c.Sample("b", dist.Normal(0, 1))
		}
	}
	for _, at := range []float64{0, 1} {
		p, err := ppl.Compile(model, infer.Batch{"flag": scalar(at)})
		require.NoError(t, err)
		point, err := infer.Zeros(p.Layout())
		require.NoError(t, err)
		g, err := infer.NewGradient(infer.Sum(whole(p), 1))
		require.NoError(t, err)
		_, err = g.ValueAndGrad(point, infer.Batch{"flag": scalar(1 - at)}, 0)
		require.ErrorContains(t, err, `site "b"`)
		require.ErrorContains(t, err, "appears only sometimes")
	}
}

// Two goroutines run one program, and one model, at the same time.
func TestConcurrentRuns(t *testing.T) {
	batch := schoolData(t)
	p, f := compiled(t, schools, batch)
	x := append([]float64{1.5, 0.3}, 3, -1, 0.5, 2, 7, -4, 1, 6)
	want := f(batch, x...)
	prior, err := ppl.Predictive{Model: schools, Batch: batch, Seed: 3}.Prior(5)
	require.NoError(t, err)
	theta := floats(t, prior["theta"])
	var wg sync.WaitGroup
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 30 {
				v, _ := evaluate(t, p, whole(p), batch, x...)
				if v[0] != want {
					t.Errorf("the density is %v, and %v without the other goroutine", v[0], want)
				}
				q, err := ppl.Predictive{Model: schools, Batch: batch, Seed: 3}.Prior(5)
				if err != nil {
					t.Error(err)
					return
				}
				if have, err := torch.ToSlice[float64](q["theta"]); err != nil || have[7] != theta[7] {
					t.Errorf("theta is %v (%v), and %v without the other goroutine", have, err, theta)
				}
			}
		}()
	}
	wg.Wait()
}
