package infer_test

import (
	"cmp"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

func column(x []float64, shape ...int) torch.Tensor {
	return torch.New(x, shape...)
}

// regression is of y on the columns x, whose coefficients have a prior.
func regression(prior dist.Distribution) ppl.Model {
	return func(c *ppl.Ctx) {
		w := c.Sample("w", prior)
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(c.Data("x").MatMul(w), 0.3), c.Data("y")) })
	}
}

func separable(prior dist.Distribution) ppl.Model {
	return func(c *ppl.Ctx) {
		b := c.Sample("b", prior)
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.BernoulliLogits(c.Data("x").Mul(b)), c.Data("y")) })
	}
}

// All methods name the direction in which a density has no end, and none says that its steps or draws are the cause.
// Of densities that end, however far away, nothing is said: those of wide priors, of heavy tails, of a proper posterior
// whose density is infinite at 0.
func TestDensitiesWithoutAnEnd(t *testing.T) {
	testkit.Long(t)
	var twice, zero []float64 // the second column is twice the first, or 0
	y := []float64{0.3, -1.2, 2, 0.7, -0.4, 1.1}
	for _, v := range y {
		twice, zero = append(twice, v, 2*v), append(zero, v, 0)
	}
	scale := func(c *ppl.Ctx) {
		s := c.Sample("s", dist.HalfNormal(1))
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, s), c.Data("y")) })
	}
	centre := func(c *ppl.Ctx) {
		mu, s := c.Sample("mu", dist.Normal(0, 10)), c.Sample("s", dist.HalfNormal(1))
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, s), c.Data("y")) })
	}
	hierarchy := func(c *ppl.Ctx) { // whose density is infinite where tau is 0 and all theta are mu
		mu, tau := c.Sample("mu", dist.Normal(0, 1)), c.Sample("tau", dist.HalfCauchy(1))
		c.Plate("rows", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Sample("theta", dist.Normal(mu, tau)), 1), c.Data("y"))
		})
	}
	same, nearly := []float64{3, 3, 3, 3, 3, 3, 3}, []float64{3, 3, 3, 3, 3, 3, 3.001}
	beta := func(c *ppl.Ctx) {
		p := c.Sample("p", dist.Beta(0.5, 0.5))
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Bernoulli(p), c.Data("y")) })
	}
	sum := func(c *ppl.Ctx) {
		a, b := c.Sample("a", dist.Flat()), c.Sample("b", dist.Flat())
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(a.Add(b), 1), c.Data("y")) })
	}
	unused := func(c *ppl.Ctx) {
		c.Sample("a", dist.Flat())
		b := c.Sample("b", dist.Normal(0, 1))
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(b, 1), c.Data("y")) })
	}
	separated := infer.Batch{"x": column([]float64{-2, -1, 1, 2}), "y": column([]float64{0, 0, 1, 1})}
	collinear := infer.Batch{"x": column(twice, 6, 2), "y": column(y)}
	for _, e := range []struct {
		name  string
		model ppl.Model
		batch infer.Batch
		text  string // either sign of the direction; empty where the density ends
		other string
		modes string // the text of methods that look for the mode
	}{
		{"data that do not vary", scale, infer.Batch{"y": column(make([]float64, 9))}, "rises as s falls", "", ""},
		{"data that do not vary about a mean", centre, infer.Batch{"y": column(same)}, "rises as s falls", "", ""},
		{"data that vary little about a mean", centre, infer.Batch{"y": column(nearly)}, "", "", ""},
		{"a hierarchy", hierarchy, infer.Batch{"y": column(y)}, "", "", "rises as tau falls"},
		{"separation", separable(dist.Flat()), separated, "rises as b grows", "", ""},
		{"collinear", regression(dist.Flat(2)), collinear, // (2, -1)/√5
			"along -0.894 w[0] +0.447 w[1]", "along +0.894 w[0] -0.447 w[1]", ""},
		{"a column of zeros", regression(dist.Flat(2)), infer.Batch{"x": column(zero, 6, 2), "y": column(y)},
			"rises as w[1] grows and as it falls", "", ""},
		{"two intercepts", sum, infer.Batch{"y": column(y)}, "along +0.707 a -0.707 b", "along -0.707 a +0.707 b", ""},
		{"a parameter without data", unused, infer.Batch{"y": column(y)}, "rises as a grows and as it falls", "", ""},
		{"collinear, wide prior", regression(dist.Independent(dist.Normal(torch.Zeros(2), 1e4), 1)), collinear, "", "", ""},
		{"separation, heavy tails", separable(dist.Cauchy(0, 2.5)), separated, "", "", ""},
		{"infinite at 0", beta, infer.Batch{"y": column(make([]float64, 3))}, "", "", ""},
	} {
		p := torch.Must(ppl.Compile(e.model, e.batch))
		for _, m := range []infer.Method{hmc.NUTS{}, optim.LBFGS{}, optim.Adam{LR: infer.Constant(0.05)}, vi.Diag{},
			vi.Dense{},
			vi.Dense{Optimizer: optim.Adam{LR: infer.Constant(0.05)}}, laplace.DenseHessian{}} {
			for seed := range uint64(2) {
				d, err := infer.Sample(context.Background(), p, m, infer.Options{Seed: seed, Warmup: 300, Draws: 300,
					Observer: infer.Silent})
				var text string
				if err != nil {
					text = err.Error()
				} else {
					r := torch.Must(diag.Diagnose(d, diag.DiagnoseOptions{}))
					for _, f := range r.Of("endless") {
						text += f.Message
						assert.Equal(t, diag.Serious, f.Severity)
						assert.NotContains(t, r.String(), "step size is too large", "%s, %T", e.name, m)
						assert.NotContains(t, r.String(), "Draw more", "%s, %T", e.name, m)
						assert.NotContains(t, r.String(), "Draws are right", "%s, %T", e.name, m)
						assert.NotContains(t, r.String(), "Warm up longer", "%s, %T", e.name, m)
					}
				}
				want := e.text
				switch m.(type) {
				case optim.LBFGS, laplace.DenseHessian:
					want = cmp.Or(e.text, e.modes)
				}
				if want == "" {
					assert.NotContains(t, text, "has no end", "%s, %T, seed %d", e.name, m, seed)
					continue
				}
				found := strings.Contains(text, want) || e.other != "" && strings.Contains(text, e.other)
				assert.True(t, found, "%s, %T, seed %d: %s", e.name, m, seed, text)
			}
		}
	}
}
