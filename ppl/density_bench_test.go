package ppl_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// Logistic growth dy/dt = r y (1 − y/k) by the classic Runge-Kutta method, with noisy observations of log y after every
// tenth of 200 steps: the usual shape of a model of differential equations.
const (
	growthSteps = 200
	growthEvery = 10
	growthStep  = 0.05
)

// growthDensity carries the derivatives of y in (r, k, y0) along with y.
func growthDensity(x, grad [][]float64) float64 {
	r, k, y0, s, data := x[0][0], x[1][0], x[2][0], x[3][0], x[4]
	type state [4]float64 // y, and its derivatives in r, k, y0
	slope := func(u state) state {
		y := u[0]
		dy := r * (1 - 2*y/k)
		return state{r * y * (1 - y/k), dy*u[1] + y*(1-y/k), dy*u[2] + r*y*y/(k*k), dy * u[3]}
	}
	move := func(u, v state, h float64) state {
		for i := range u {
			u[i] += h * v[i]
		}
		return u
	}
	u := state{y0, 0, 0, 1}
	v := 0.0
	for i := range growthSteps {
		a := slope(u)
		b := slope(move(u, a, growthStep/2))
		c := slope(move(u, b, growthStep/2))
		d := slope(move(u, c, growthStep))
		for j := range u {
			u[j] += growthStep / 6 * (a[j] + 2*b[j] + 2*c[j] + d[j])
		}
		if (i+1)%growthEvery == 0 {
			z := (data[i/growthEvery] - math.Log(u[0])) / s
			v -= 0.5*z*z + math.Log(s)
			for j := range 3 {
				grad[j][0] += z / s * u[1+j] / u[0]
			}
			grad[3][0] += (z*z - 1) / s
		}
	}
	return v
}

// growthTensors is the same term by tensors.
func growthTensors(r, k, y, s torch.Tensor, data []float64) torch.Tensor {
	slope := func(y torch.Tensor) torch.Tensor { return r.Mul(y).Mul(y.Div(k).Neg().Add(1)) }
	sum := torch.Of(0)
	for i := range growthSteps {
		a := slope(y)
		b := slope(y.Add(a.Mul(growthStep / 2)))
		c := slope(y.Add(b.Mul(growthStep / 2)))
		d := slope(y.Add(c.Mul(growthStep)))
		y = y.Add(a.Add(b.Mul(2)).Add(c.Mul(2)).Add(d).Mul(growthStep / 6))
		if (i+1)%growthEvery == 0 {
			z := torch.Of(data[i/growthEvery]).Sub(y.Log()).Div(s)
			sum = sum.Sub(z.Square().Mul(0.5)).Sub(s.Log())
		}
	}
	return sum
}

func growthModels() (function, tensors ppl.Model, data []float64) {
	for i := range growthSteps / growthEvery {
		time := growthStep * growthEvery * float64(i+1)
		data = append(data, math.Log(10/(1+9*math.Exp(-0.8*time)))+0.1*math.Sin(5*time))
	}
	model := func(term func(c *ppl.Ctx, r, k, y, s torch.Tensor)) ppl.Model {
		return func(c *ppl.Ctx) {
			r, k := c.Sample("r", dist.LogNormal(0, 1)), c.Sample("k", dist.LogNormal(2, 1))
			y, s := c.Sample("y", dist.LogNormal(0, 1)), c.Sample("s", dist.HalfNormal(1))
			term(c, r, k, y, s)
		}
	}
	function = model(func(c *ppl.Ctx, r, k, y, s torch.Tensor) {
		c.Density("growth", growthDensity, r, k, y, s, c.Data("data"))
	})
	tensors = model(func(c *ppl.Ctx, r, k, y, s torch.Tensor) {
		c.Factor("growth", growthTensors(r, k, y, s, data))
	})
	return function, tensors, data
}

// The two ways of writing a model of differential equations have one posterior.
func TestDensityOfADifferentialEquation(t *testing.T) {
	f, g, data := growthModels()
	batch := infer.Batch{"data": vec(data...)}
	p, err := ppl.Compile(f, batch)
	require.NoError(t, err)
	q, err := ppl.Compile(g, batch)
	require.NoError(t, err)
	x := []float64{0, 0.5, -0.2, 0.1, 2, -1, 0.3, 0}
	v, grad := evaluate(t, p, p.Target().LogPosterior, batch, x...)
	want, wantGrad := evaluate(t, q, q.Target().LogPosterior, batch, x...)
	require.InEpsilonSlice(t, want, v, 1e-11)
	require.InEpsilonSlice(t, wantGrad, grad, 1e-9)
}

func BenchmarkDensity(b *testing.B) {
	f, g, data := growthModels()
	batch := infer.Batch{"data": vec(data...)}
	for _, c := range []struct {
		name  string
		model ppl.Model
	}{{"function", f}, {"tensors", g}} {
		p, err := ppl.Compile(c.model, batch)
		require.NoError(b, err)
		gradient, err := infer.NewGradient(p.Target())
		require.NoError(b, err)
		for _, k := range []int{1, 4, 64} {
			point, err := infer.NewParams(p.Layout(), make([]float64, 4*k))
			require.NoError(b, err)
			b.Run(fmt.Sprintf("%s/chains=%d", c.name, k), func(b *testing.B) {
				for range b.N {
					err := torch.Do(func(*torch.Scope) error {
						_, err := gradient.ValueAndGrad(point, batch, 1)
						return err
					})
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
