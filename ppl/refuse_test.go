package ppl_test

import (
	"fmt"
	"math/rand"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/statespace"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// What Compile refuses, with the site or tensor, the user's line, and what to do.
func TestCompileRefuses(t *testing.T) {
	line := func() string {
		_, _, n, _ := runtime.Caller(1)
		return fmt.Sprintf("(at ppl/refuse_test.go:%d)", n+1)
	}
	var at string
	x := vec(1, 2, 3, 4, 5, 6).Reshape(3, 2).T()
	batch := infer.Batch{
		"x": torch.Of(x), "y": vec(1, 0, 1), "column": vec(1, 0, 1).Unsqueeze(-1),
		"count": torch.Of(x.MustTotype(gotch.Int64, false)), "single": torch.Of(x.MustTotype(gotch.Float, false)),
	}
	for name, c := range map[string]struct {
		model func(c *ppl.Ctx)
		want  []string
	}{
		"a scale that may be negative": {func(c *ppl.Ctx) {
			s := c.Sample("s", dist.Normal(1, 1))
			at = line()
			c.Observe("y", dist.Normal(0, s), c.Data("y"))
		}, []string{`site "y"`, "scale is -", "greater than 0", "sign is free", "dist.HalfNormal", "Exp"}},
		"a standard deviation of a series that may be negative": {func(c *ppl.Ctx) {
			s := c.Sample("s", dist.Normal(1, 1))
			at = line()
			c.Observe("y", statespace.New(3, s, statespace.LocalLevel{Scale: 1}), c.Data("y"))
		}, []string{`site "y"`, "noise", "at least 0", "sign is free", "dist.HalfNormal"}},
		"a discrete variable without an end": {func(c *ppl.Ctx) {
			a := c.Sample("a", dist.LogNormal(0, 1))
			at = line()
			n := c.Sample("n", dist.Poisson(a))
			c.Observe("y", dist.Normal(n, 1), c.Data("y"))
		}, []string{`site "n"`, "not finite", "dist.Truncated"}},
		"a branch on a discrete variable": {func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Bernoulli(c.Sample("a", dist.Beta(1, 1))))
			at = line()
			if z.Item() > 0 {
				z = z.Mul(2)
			}
			c.Observe("y", dist.Normal(z, 1), 0.3)
		}, []string{"reads the value of a tensor", "Take", "torch.Where", "Float64Value"}},
		"more numbers than memory": {func(c *ppl.Ctx) {
			at = line()
			c.Sample("a", dist.Normal(0, 1).Expand(1<<20, 1<<20))
		}, []string{`site "a"`, "[1048576 1048576] numbers to infer", "at most 2^31"}},
		"a branch": {func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(0, 1))
			at = line()
			if a.Item() > 0 {
				a = a.Mul(2)
			}
			c.Observe("y", dist.Normal(a, 1), c.Data("y"))
		}, []string{"reads the value of a tensor", "torch.Where", "Float64Value"}},
		"values in Go": {func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(0, 1))
			at = line()
			v := a.Values()
			c.Observe("y", dist.Normal(v[0], 1), c.Data("y"))
		}, []string{"reads the value of a tensor", "Read("}},
		"a column": {func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(0, 1))
			c.Plate("data", 0, func(c *ppl.Ctx) {
				at = line()
				c.Observe("y", dist.Normal(a, 1), c.Data("column"))
			})
		}, []string{`site "y" in plate data`, "shape [3 1], a column", "Squeeze(-1)"}},
		"whole numbers": {func(c *ppl.Ctx) {
			w := c.Sample("w", dist.Normal(0, 1).Expand(2))
			at = line()
			c.Observe("y", dist.Normal(c.Data("count").MatMul(w), 1), c.Data("y"))
		}, []string{`"count" is Int64`, `"single" is Float`, "torch.To(x, torch.CPU, gotch.Double)"}},
		"float32": {func(c *ppl.Ctx) {
			w := c.Sample("w", dist.Normal(0, 1).Expand(2))
			at = line()
			c.Observe("y", dist.Normal(c.Data("single").MatMul(w), 1), c.Data("y"))
		}, []string{`"single" is Float`, "torch.To(x, torch.CPU, gotch.Double)"}},
		"a GLM": {func(c *ppl.Ctx) {
			w := c.Sample("w", dist.Normal(0, 1).Expand(3))
			at = line()
			c.Observe("y", dist.NormalGLM(c.Data("x"), w, 0, 1), c.Data("y"))
		}, []string{`site "y" (NormalGLM)`, "dist.NormalGLM: w is of shape [3]", "must be [2]"}},
		"a GLM that does not fit its data": {func(c *ppl.Ctx) {
			w := c.Sample("w", dist.Normal(0, 1).Expand(2))
			at = line()
			c.Observe("y", dist.BernoulliLogitGLM(c.Data("x"), w, 0), vec(1, 0))
		}, []string{`site "y"`, "BernoulliLogitGLM"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ppl.Compile(c.model, batch)
			require.Error(t, err)
			for _, w := range append(c.want, at) {
				require.ErrorContains(t, err, w)
			}
		})
	}
}

// A rate that is 0 but for the error of a solver is no mistake of sign; where it is so at all points, the error says
// what to do.
func TestNegativeByRounding(t *testing.T) {
	model := func(low torch.Tensor) ppl.Model {
		return func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(0, 1))
			rounded := torch.Where(a.Gt(0.5), -3e-9, low) // a is above 0.5 only where all latent variables are positive
			c.Observe("y", dist.Poisson(torch.Stack(0, a.Exp(), rounded)), vec(1, 0))
		}
	}
	_, err := ppl.Compile(model(torch.Of(1e-9)), nil)
	require.NoError(t, err)
	_, err = ppl.Compile(model(torch.Of(-1e-9)), nil)
	require.ErrorContains(t, err, "rate is -1e-09 at element 1 of shape [2]")
	require.ErrorContains(t, err, "0 but for the error of what computed it")
	require.ErrorContains(t, err, "Max(1e-8)")
	_, err = ppl.Compile(func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 1))
		c.Observe("y", dist.Poisson(torch.Stack(0, 1, torch.Where(a.Gt(0.5), -1e-3, 1))), vec(1, 0))
	}, nil)
	require.ErrorContains(t, err, "sign is free")
}

// Scales that are positive by their support, or by what is done to them, are none of these mistakes; whole numbers that
// a density converts are right to the last digit.
func TestCompileAccepts(t *testing.T) {
	count := torch.New([]int{16777217, 3}, 2, 1)
	for name, model := range map[string]ppl.Model{
		"support": func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, c.Sample("s", dist.HalfNormal(1))), 0.5) },
		"exp":     func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, c.Sample("s", dist.Normal(0, 1)).Exp()), 0.5) },
		"abs":     func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, c.Sample("s", dist.Normal(0, 1)).Abs()), 0.5) },
		"data":    func(c *ppl.Ctx) { c.Sample("s", dist.Normal(0, 1)); _ = c.Data("x").Item },
		"whole numbers": func(c *ppl.Ctx) {
			w := c.Sample("w", dist.Normal(0, 1).Expand(1))
			c.Observe("y", dist.NormalGLM(c.Data("x"), w, 0, 1), c.Data("x").Squeeze(-1))
		},
	} {
		_, err := ppl.Compile(model, infer.Batch{"x": count})
		require.NoError(t, err, name)
	}
}

// A scale on the real line is refused also where it is negative only far from 0: in any direction, for vectors, and in
// a plate whose size the data tell later. A scale that is positive everywhere is accepted, also where it overflows,
// rounds to 0 or is a difference of large numbers.
func TestScalesFarAway(t *testing.T) {
	var s, a, b, v torch.Tensor
	declare := func(c *ppl.Ctx) {
		one := dist.Normal(0, 1)
		s, a, b, v = c.Sample("s", one), c.Sample("a", one), c.Sample("b", one), c.Sample("v", one.Expand(2))
	}
	plain := func(scale func() any) ppl.Model {
		return func(c *ppl.Ctx) {
			declare(c)
			c.Observe("y", dist.Normal(0, scale()), vec(1, 0))
		}
	}
	late := func(scale func() any) ppl.Model { // the size of the plate is known from y alone
		return func(c *ppl.Ctx) {
			declare(c)
			c.Plate("data", 0, func(c *ppl.Ctx) {
				x := c.Sample("x", dist.Normal(0, scale()))
				c.Observe("y", dist.Normal(x, 1), vec(1, 0))
			})
		}
	}
	for name, scale := range map[string]func() any{
		"itself":     func() any { return s },
		"shifted":    func() any { return s.Add(3) },
		"far":        func() any { return s.Mul(-5).Add(100) },
		"difference": func() any { return a.Sub(b).Add(3) },
		"vector":     func() any { return v.Add(3) },
		"elements":   func() any { return v.At(0).Sub(v.At(1)).Add(3) },
		"cube":       func() any { return s.Pow(3).Add(10) },
		"no exp":     func() any { return torch.Of(1.0).Sub(s.Square()).Add(10) },
	} {
		for _, m := range []ppl.Model{plain(scale), late(scale)} {
			_, err := ppl.Compile(m, nil)
			for _, want := range []string{"Normal: scale is -", "greater than 0", "sign is free", "dist.HalfNormal"} {
				require.ErrorContains(t, err, want, name)
			}
		}
	}
	for name, scale := range map[string]func() any{
		"exp":          func() any { return s.Exp() },
		"inverse":      func() any { return s.Neg().Exp() },
		"softplus":     func() any { return s.Softplus() },
		"root":         func() any { return s.Square().Sqrt() },
		"sigmoid":      func() any { return s.Sigmoid() },
		"distance":     func() any { return a.Sub(b).Square().Add(v.Square().Sum(-1)).Sqrt() },
		"cancellation": func() any { return s.Add(1).Square().Sub(s.Square()).Sub(s.Mul(2)).Add(1e-12) },
		"bounded":      func() any { return s.Tanh().Add(1.5) },
		"exp of large": func() any { return s.Square().Exp() },
	} {
		for _, m := range []ppl.Model{plain(scale), late(scale)} {
			_, err := ppl.Compile(m, nil)
			require.NoError(t, err, name)
		}
	}
	_, err := ppl.Compile(func(c *ppl.Ctx) {
		c.Observe("n", dist.Poisson(c.Sample("s", dist.Normal(0, 1)).Add(20)), vec(3, 4))
	}, nil)
	require.ErrorContains(t, err, `site "n" (Poisson): dist.Poisson: rate is -1280`)
	require.ErrorContains(t, err, "about 1000 away from 0")
}

// A start at which nothing is finite names the site, and says where to start instead.
func TestStartSaysWhatToDo(t *testing.T) {
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 1))
		c.Factor("barrier", a.Sub(1e6).Log())
	}, nil)
	require.NoError(t, err)
	_, err = p.Init(nil, ppl.FromUniform, 1, 1)
	for _, want := range []string{`site "barrier"`, "ppl.FromPrior", "ppl.FromValues", "scale"} {
		require.ErrorContains(t, err, want)
	}
}

// A parameter that is not finite gets advice on what makes such numbers, and none on signs. What is said works.
func TestNotFiniteParameters(t *testing.T) {
	normalOf := func(parameters func(w torch.Tensor) (loc, scale any)) error {
		_, err := ppl.Compile(func(c *ppl.Ctx) {
			loc, scale := parameters(c.Sample("w", dist.Normal(0, 1)))
			c.Plate("d", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(loc, scale), c.Data("y")) })
		}, infer.Batch{"y": vec(1, 2, 3)})
		return err
	}
	for name, c := range map[string]struct {
		of         func(w torch.Tensor) (loc, scale any)
		want, then string
		remedy     func(w torch.Tensor) (loc, scale any)
	}{
		"a scale that overflows": {
			func(w torch.Tensor) (any, any) { return 0, w.Mul(1000).Exp() }, "scale is +Inf", "overflows there: Exp of more",
			func(w torch.Tensor) (any, any) { return 0, w.Mul(1000).Softplus().Add(1e-6) },
		},
		"a scale that overflows twice": {
			func(w torch.Tensor) (any, any) { return 0, w.Mul(1000).Exp().Exp() }, "scale is +Inf", "Make the exponent smaller",
			func(w torch.Tensor) (any, any) { return 0, w.Exp().Exp() },
		},
		"a scale that rounds to 0": {
			func(w torch.Tensor) (any, any) { return 0, w.Mul(-300).Exp().Neg().Exp() }, "scale is 0", "rounds to 0 there",
			func(w torch.Tensor) (any, any) { return 0, w.Mul(-300).Exp().Neg().Exp().Add(1e-6) },
		},
		"a scale that is no number": {
			func(w torch.Tensor) (any, any) { return 0, w.Sqrt().Add(1) }, "scale is NaN", "Sqrt of a negative number",
			func(w torch.Tensor) (any, any) { return 0, w.Exp().Sqrt().Add(1) },
		},
		"a mean that is no number": {
			func(w torch.Tensor) (any, any) { return w.Sub(10).Log(), 1 }, "loc is NaN", "Log or Sqrt of a negative number",
			func(w torch.Tensor) (any, any) { return w.Sub(10).Max(0.1).Log(), 1 },
		},
		"a mean of -Inf": {
			func(w torch.Tensor) (any, any) { return w.Mul(0).Log(), 1 }, "loc is -Inf", "Log of 0",
			func(w torch.Tensor) (any, any) { return w.Mul(0).Max(0.1).Log(), 1 },
		},
	} {
		err := normalOf(c.of)
		require.ErrorContains(t, err, `site "y" in plate d (Normal): dist.Normal: `+c.want, name)
		require.ErrorContains(t, err, c.then, name)
		require.NotContains(t, err.Error(), "sign is free", name)
		require.NoError(t, normalOf(c.remedy), name)
	}
	err := normalOf(func(w torch.Tensor) (any, any) { return 0, w })
	require.ErrorContains(t, err, "sign is free")
	require.NotContains(t, err.Error(), "overflow")
}

// Compile runs a model twice at one point, and refuses one that is another function the second time. What draws from
// Kelvin's streams, and what only counts its runs, is the same function.
func TestModelsThatDifferBetweenRunsAreRefused(t *testing.T) {
	n := 0
	y := infer.Batch{"y": vec(1, 2, 3)}
	noise := rand.New(rand.NewSource(1))
	for name, c := range map[string]struct {
		model ppl.Model
		want  []string
	}{
		"noise in a scale": {func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 1))
			c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1+noise.Float64()), c.Data("y")) })
		}, []string{`site "y"`, "its log density is -", "in one run of the model and -",
			"must not draw random numbers of its own", "c.Sample", "(at ppl/refuse_test.go:"}},
		"noise in a prior": {func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(noise.Float64(), 1))
			c.Observe("z", dist.Normal(mu, 1), 1)
		}, []string{`site "mu"`, "must not draw random numbers of its own"}},
		"noise of libtorch": {func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 1).Expand(3))
			c.Factor("f", mu.Mul(torch.Of(torch.Zeros(3).T().MustRandLike(false))).Sum())
		}, []string{`site "f"`, "must not draw random numbers of its own"}},
		"a counter": {func(c *ppl.Ctx) {
			n++
			mu := c.Sample("mu", dist.Normal(0, 1))
			c.Observe("z", dist.Normal(mu.Mul(float64(n)), 1), 1)
		}, []string{`site "z"`, "keep state from run to run"}},
		"a site in every other run": {func(c *ppl.Ctx) {
			n++
			mu := c.Sample("mu", dist.Normal(0, 1))
			if n%2 == 0 {
				c.Factor("even", mu)
			}
			c.Observe("z", dist.Normal(mu, 1), 1)
		}, []string{`site "`, "in one run of the model, and is", "keep state from run to run"}},
		"a number of data that grows": {func(c *ppl.Ctx) {
			n++
			mu := c.Sample("mu", dist.Normal(0, 1))
			c.Factor("f", mu.Add(torch.Zeros(n)))
		}, []string{`site "f"`, "its log density has shape [", "keep state from run to run"}},
	} {
		_, err := ppl.Compile(c.model, y)
		for _, words := range c.want {
			require.ErrorContains(t, err, words, name)
		}
	}
	plain := func(c *ppl.Ctx) {
		n++
		w := c.Sample("w", dist.Beta(2, 2))
		mu := c.Sample("mu", dist.Normal(0, 1).Expand(2))
		c.Plate("data", 0, func(c *ppl.Ctx) {
			k := c.Sample("k", dist.Bernoulli(w))
			c.Observe("y", dist.Normal(mu.Take(k), 1), c.Data("y"))
		})
	}
	inner := func(c *ppl.Ctx) { c.Observe("x", dist.Normal(c.Sample("e", dist.Normal(0, 1)), 1), 1) }
	for name, model := range map[string]ppl.Model{
		"a sum over a discrete variable": plain,
		"draws of a seed": func(c *ppl.Ctx) {
			plain(c)
			ppl.Seed(func(c *ppl.Ctx) { ppl.Block(inner, "e")(c) }, 3)(c)
		},
		"a Go function": func(c *ppl.Ctx) {
			plain(c)
			c.Density("d", func(x, grad [][]float64) float64 { grad[0][0] = -x[0][0]; return -x[0][0] * x[0][0] / 2 },
				c.Sample("q", dist.Normal(0, 1)))
		},
	} {
		_, err := ppl.Compile(model, y)
		require.NoError(t, err, name)
	}
}

// A parameter that is allowed at 0 of unconstrained space alone is refused, whatever the distribution: a factor, which
// is the identity there, in the place of a covariance or of a precision, a unit vector that is a simplex at one point.
// One that is right everywhere, or at some points, is not.
func TestParametersAtGenericPoints(t *testing.T) {
	factor := func(c *ppl.Ctx) torch.Tensor { return c.Sample("l", dist.LKJCholesky(2, 1)) }
	y := infer.Batch{"y": torch.New([]float64{0, 1, 1, 0}, 2, 2)}
	observe := func(d func(c *ppl.Ctx) dist.Distribution) ppl.Model {
		return func(c *ppl.Ctx) {
			p := d(c)
			c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", p, c.Data("y")) })
		}
	}
	for name, c := range map[string]struct {
		model ppl.Model
		want  string // empty is right
	}{
		"covariance": {observe(func(c *ppl.Ctx) dist.Distribution {
			return dist.MultivariateNormal(torch.Zeros(2), factor(c))
		}), "a Cholesky factor belongs into MultivariateNormalCholesky"},
		"precision": {observe(func(c *ppl.Ctx) dist.Distribution {
			return dist.MultivariateNormalPrecision(torch.Zeros(2), factor(c))
		}), "precision_matrix"},
		"a probability above 1": {func(c *ppl.Ctx) {
			x := c.Sample("x", dist.Normal(0, 1).Expand(2))
			c.Plate("data", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.Bernoulli(x.Square().Sum().Mul(8)), torch.New([]float64{0, 1}))
			})
		}, "probs"},
		"the factor": {observe(func(c *ppl.Ctx) dist.Distribution {
			return dist.MultivariateNormalCholesky(torch.Zeros(2), factor(c))
		}), ""},
		"their product": {observe(func(c *ppl.Ctx) dist.Distribution {
			l := factor(c)
			return dist.MultivariateNormal(torch.Zeros(2), l.MatMul(l.Transpose()))
		}), ""},
		"definite at some points": {observe(func(c *ppl.Ctx) dist.Distribution {
			r := c.Sample("r", dist.Normal(0, 1))
			return dist.MultivariateNormal(torch.Zeros(2), torch.Stack(0, 1, r, r, 1).Reshape(2, 2))
		}), ""},
	} {
		_, err := ppl.Compile(c.model, y)
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.want, name)
		require.ErrorContains(t, err, "wherever the latent variables are", name)
	}
}
