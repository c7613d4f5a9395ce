package infer_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The gradient of Where is that of the branch taken in every tier, at points other than those of the recording.
func TestWhereDifferentiatesTheBranchTaken(t *testing.T) {
	for _, c := range []struct {
		name    string
		x, grad []float64
		f       func(x torch.Tensor) torch.Tensor
	}{
		{"sqrt", []float64{-1, 4}, []float64{0, 0.25},
			func(x torch.Tensor) torch.Tensor { return torch.Where(x.Gt(0), x.Sqrt(), 0) }},
		{"log", []float64{0, 4}, []float64{0, 0.25},
			func(x torch.Tensor) torch.Tensor { return torch.Where(x.Gt(0), x.Log(), 0) }},
		{"1/x", []float64{0, 4}, []float64{0, -1. / 16},
			func(x torch.Tensor) torch.Tensor { return torch.Where(x.Gt(0), torch.Of(1).Div(x), 0) }},
		{"exp that overflows", []float64{800, 1}, []float64{1, math.E},
			func(x torch.Tensor) torch.Tensor { return torch.Where(x.Lt(10), x.Exp(), x) }},
		{"power", []float64{-1, 4}, []float64{0, 3},
			func(x torch.Tensor) torch.Tensor { return torch.Where(x.Gt(0), x.Pow(1.5), 0) }},
		{"Box-Cox", []float64{0, 1}, []float64{0, 2*math.Ln2 - 1}, func(x torch.Tensor) torch.Tensor {
			return torch.Where(x.Abs().Lt(1e-9), x.Mul(0).Add(math.Ln2), torch.Of(2).Pow(x).Sub(1).Div(x))
		}},
		{"generalised extreme value", []float64{0, 1}, []float64{0, math.Log(1.7) - 0.7/1.7},
			func(x torch.Tensor) torch.Tensor {
				return torch.Where(x.Abs().Lt(1e-9), x.Mul(0).Sub(0.7), x.Mul(0.7).Add(1).Log().Div(x).Neg())
			}},
		{"norm at 0", []float64{0, 0}, []float64{0, 0}, func(x torch.Tensor) torch.Tensor {
			s := x.Square().Sum()
			return torch.Where(s.Gt(0), s.Sqrt(), 0)
		}},
		{"inputs that broadcast", []float64{1, 0}, []float64{-math.Sqrt2*(math.Ln2/2+1) - 2*(math.Ln2+1), 0},
			func(x torch.Tensor) torch.Tensor {
				u := column([]float64{-1, 2, 4}, 3, 1).Div(x)
				return torch.Where(x.Gt(0), torch.Where(u.Gt(0), u.Sqrt().Mul(u.Log()), 0), 0)
			}},
		{"min", []float64{800, 1}, []float64{0, math.E},
			func(x torch.Tensor) torch.Tensor { return x.Exp().Min(5) }},
		{"min of two", []float64{0, 4}, []float64{1, -1. / 16},
			func(x torch.Tensor) torch.Tensor { return x.Reciprocal().Min(x.Add(5)) }},
		{"max", []float64{0, 2}, []float64{0, 0.5}, func(x torch.Tensor) torch.Tensor { return x.Log().Max(-5) }},
		{"clamp", []float64{0, 2}, []float64{0, 0.5},
			func(x torch.Tensor) torch.Tensor { return x.Log().Clamp(-5, 5) }},
		{"relu", []float64{0, -4}, []float64{0, 1. / 16},
			func(x torch.Tensor) torch.Tensor { return torch.Of(-1).Div(x).Relu() }},
		{"nested", []float64{-1, 4}, []float64{-0.5, 0.125}, func(x torch.Tensor) torch.Tensor {
			positive := torch.Where(x.Gt(1), x.Sqrt().Log(), torch.Of(1).Div(x))
			return torch.Where(x.Gt(0), positive, torch.Where(x.Lt(0), x.Neg().Sqrt(), 0))
		}},
	} {
		target := infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			return c.f(p.Get("x")).Sum(), nil
		}, 1)
		layout := torch.Must(infer.NewLayout(infer.Shapes{"x": {len(c.x)}}))
		gradient := torch.Must(infer.NewGradient(target))
		require.NoError(t, torch.Do(func(*torch.Scope) error {
			e := torch.Must(gradient.ValueAndGrad(torch.Must(infer.NewParams(layout, c.x)), nil, 0))
			assert.InDeltaSlice(t, c.grad, torch.Must(torch.ToSlice[float64](e.Grad)), 1e-13, c.name)
			return nil
		}))
		start := torch.Must(infer.NewParams(layout, []float64{0.3, 0.6}))
		for _, tier := range []native.Tier{native.C, native.VM, native.Replay} {
			f, report, err := infer.Compile(target, start, nil, native.Options{Tier: tier})
			require.NoError(t, err, "%s, %s", c.name, tier)
			require.Equal(t, tier, report.Tier, "%s: %s", c.name, report)
			grad := make([]float64, len(c.x))
			_, err = f.Eval(c.x, 0, grad)
			require.NoError(t, err)
			assert.InDeltaSlice(t, c.grad, grad, 1e-13, "%s, %s", c.name, tier)
		}
	}
}

// half has a density that is finite everywhere, by a formula whose gradient is NaN for a > 1: √(|1-a| + 1-a).
func half(c *ppl.Ctx) {
	a := c.Sample("a", dist.Normal(0, 1))
	z := torch.Of(1).Sub(a)
	f := z.Abs().Add(z).Sqrt()
	c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(f, 1), c.Data("y")) })
}

// All methods say the same of gradients that are NaN where the density is finite, name the site, and blame no step.
// Of a density whose gradient is defined nothing is said.
func TestGradientsUndefinedWhereTheDensityIsFinite(t *testing.T) {
	testkit.Long(t)
	batch := infer.Batch{"y": column([]float64{0.1, -0.2, 0.3})} // the posterior is on both sides
	whole := func(c *ppl.Ctx) {
		z := torch.Of(1).Sub(c.Sample("a", dist.Normal(0, 1)))
		f := torch.Where(z.Gt(0), z.Mul(2).Sqrt(), 0)
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(f, 1), c.Data("y")) })
	}
	const words = `gradients were NaN where the density is finite: the density of "y" has no gradient`
	for _, tier := range []native.Tier{native.Auto, native.Eager} {
		for _, defined := range []bool{false, true} {
			model := half
			if defined {
				model = whole
			}
			p := torch.Must(ppl.Compile(model, batch))
			for _, m := range []infer.Method{hmc.NUTS{}, hmc.HMC{}, sgmcmc.SGLD{LR: infer.Constant(0.05)},
				optim.Adam{LR: infer.Constant(0.05)}, optim.LBFGS{}, vi.Diag{}, laplace.DenseHessian{},
				pathfinder.Pathfinder{}} {
				d, err := infer.Sample(context.Background(), p, m, infer.Options{Seed: 1, Warmup: 300, Draws: 300,
					Observer: infer.Silent, Native: tier})
				var text string
				if err != nil {
					text = err.Error()
				} else {
					r := torch.Must(diag.Diagnose(d, diag.DiagnoseOptions{}))
					for _, f := range r.Of("undefined_gradient") {
						text += f.Message
						assert.NotContains(t, r.String(), "step size is too large", "%T", m)
					}
				}
				if defined {
					assert.NotContains(t, text, "NaN", "%T, %q", m, tier)
				} else {
					assert.Contains(t, text, words, "%T, %q", m, tier)
				}
				assert.NotContains(t, text, "lower the step size", "%T, %q", m, tier)
			}
		}
	}
}
