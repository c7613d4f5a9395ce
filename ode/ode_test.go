package ode_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ode"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

var methods = map[string]ode.Method{"DormandPrince": ode.DormandPrince, "SDIRK": ode.SDIRK}

// logistic is dy/dt = r y (1 − y/k).
func logistic(_, y torch.Tensor, p []torch.Tensor) torch.Tensor {
	return p[0].Mul(y).Mul(torch.Of(1).Sub(y.Div(p[1])))
}

// logisticAt is its solution, with the derivatives in (start, y0, r, k): y = k/(1 + c e^{−r s}), c = k/y0 − 1.
func logisticAt(t, start, y0, r, k float64) (y float64, grad [4]float64) {
	s := t - start
	e := math.Exp(-r * s)
	c := k/y0 - 1
	d := 1 + c*e
	y = k / d
	by := -k / (d * d)
	return y, [4]float64{by * c * r * e, by * e * -k / (y0 * y0), by * c * e * -s, 1/d + by*e/y0}
}

// solved solves a system of one equation at some times, with the derivatives in start, y0 and params of the solution at
// each time.
func solved(t *testing.T, s *ode.System, start float64, y0, times, params []float64) (y []float64, grads [][]float64) {
	t.Helper()
	n := len(y0)
	x := append(append([]float64{start}, y0...), params...)
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		for k := range len(times) * n {
			v, g, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
				all := x
				var p []any
				for i := range params {
					p = append(p, all.At(1+n+i))
				}
				out := ode.Solve(s, torch.Of(x.T().MustNarrow(0, 1, int64(n), false)), all.At(0), times, p...)
				return out.At(k / n).At(k % n)
			}, torch.New(x))
			if err != nil {
				return err
			}
			y = append(y, v.Item())
			grads = append(grads, torch.Must(torch.ToSlice[float64](g)))
		}
		return nil
	}))
	return y, grads
}

// The solution of the logistic equation and its derivatives are known. At tolerances of 1e-11 the error is that of some
// tens of steps, well below 1e-7 of each number.
func TestLogisticGradients(t *testing.T) {
	times := []float64{0.25, 0.3, 1, 2.5, 6}
	for name, method := range methods {
		s := ode.New(logistic, ode.Options{Method: method, RTol: 1e-10, ATol: 1e-12})
		y, grads := solved(t, s, 0.25, []float64{0.4}, times, []float64{1.3, 5})
		for i, at := range times {
			want, grad := logisticAt(at, 0.25, 0.4, 1.3, 5)
			require.InDelta(t, want, y[i], 1e-8, "%s at %v", name, at)
			require.InDeltaSlice(t, grad[:], grads[i], 1e-7, "%s at %v", name, at)
		}
	}
}

// growth is a model of logistic growth with latent variables in every place, seen through normal noise.
func growth(s *ode.System) ppl.Model {
	return func(c *ppl.Ctx) {
		r := c.Sample("r", dist.LogNormal(0, 0.5))
		k := c.Sample("k", dist.LogNormal(1.5, 0.5))
		y0 := c.Sample("y0", dist.LogNormal(-1, 0.5))
		y := ode.Solve(s, torch.Stack(0, y0), 0, c.Data("t"), r, k)
		c.Plate("data", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(y.Transpose().At(0), 0.1), c.Data("y"))
		})
	}
}

func growthBatch() infer.Batch {
	var t, y []float64
	for i := range 12 {
		t = append(t, 0.5*float64(i+1))
		v, _ := logisticAt(t[i], 0, 0.4, 1.3, 5)
		y = append(y, v+0.1*math.Cos(7*float64(i)))
	}
	return infer.Batch{"t": torch.New(t), "y": torch.New(y)}
}

// Compiled functions give the numbers of eager evaluation: the same solver runs in both, and the rest differs by
// rounding.
func TestCompiled(t *testing.T) {
	for name, method := range methods {
		for _, tier := range []native.Tier{native.C, native.VM} {
			s := ode.New(logistic, ode.Options{Method: method})
			program, err := ppl.Compile(growth(s), growthBatch())
			require.NoError(t, err)
			start, err := infer.NewParams(program.Layout(), []float64{0.1, -0.2, 0.3, 0.4, 0.5, 0.6})
			require.NoError(t, err)
			f, report, err := infer.Compile(program.Target(), start, growthBatch(), native.Options{Tier: tier})
			require.NoError(t, err, name)
			require.Equal(t, tier, report.Tier)
			t.Log(name, report)
			gradient, err := infer.NewGradient(program.Target())
			require.NoError(t, err)
			require.NoError(t, torch.Do(func(*torch.Scope) error {
				e, err := gradient.ValueAndGrad(start, growthBatch(), 1)
				require.NoError(t, err)
				grads := torch.Must(torch.ToSlice[float64](e.Grad))
				x, err := start.Values()
				require.NoError(t, err)
				for k := range 2 {
					g := make([]float64, 3)
					v, err := f.Eval(x[3*k:3*k+3], 1, g)
					require.NoError(t, err)
					require.InEpsilon(t, e.Values[k], v, 1e-10)
					require.InDeltaSlice(t, grads[3*k:3*k+3], g, 1e-10*math.Abs(v))
				}
				return nil
			}))
		}
	}
}

func TestSample(t *testing.T) {
	s := ode.New(logistic, ode.Options{})
	program, err := ppl.Compile(growth(s), growthBatch())
	require.NoError(t, err)
	d, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Seed: 1, Draws: 200, Warmup: 300})
	require.NoError(t, err)
	t.Log(d.Attrs()["gradient"], s.Report())
}

// One step goes to the last time, also where the sum of start and length of that step rounds to less: it is then the
// whole of the solution.
func TestLastTime(t *testing.T) {
	start, end := -2.0, 0.3
	require.Less(t, start+(end-start), end)
	slow := func(_, y torch.Tensor, params []torch.Tensor) torch.Tensor { return y.Mul(params[0]) }
	for _, method := range []ode.Method{ode.DormandPrince, ode.SDIRK} {
		system := ode.New(slow, ode.Options{Method: method, FirstStep: 10})
		y, _ := solved(t, system, start, []float64{1}, []float64{end}, []float64{-1e-3})
		require.InDelta(t, math.Exp(-1e-3*(end-start)), y[0], 1e-12)
	}
}

// Times that differ by a rounding, among themselves or from the start, have the same solution: no step leads from one
// to the other.
func TestNearTimes(t *testing.T) {
	tenth := 0.1
	times := []float64{0.3, tenth + 0.2, 24}
	require.Greater(t, times[1], times[0])
	for name, method := range methods {
		s := ode.New(logistic, ode.Options{Method: method})
		y, grads := solved(t, s, 0, []float64{0.4}, times, []float64{1.3, 5})
		for i, at := range times {
			want, _ := logisticAt(at, 0, 0.4, 1.3, 5)
			require.InDelta(t, want, y[i], 1e-4, name)
		}
		require.InDeltaSlice(t, grads[0], grads[1], 1e-12, name)
		y, grads = solved(t, s, times[0], []float64{0.4}, times[1:2], []float64{1.3, 5})
		require.Equal(t, []float64{0.4}, y, name)
		slope := 1.3 * 0.4 * (1 - 0.4/5)
		require.InDeltaSlice(t, []float64{-slope, 1, 0, 0}, grads[0], 1e-12, name)
	}
}
