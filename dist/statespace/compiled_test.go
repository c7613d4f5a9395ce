package statespace_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/statespace"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// models are models of a series of n numbers by latent scales and coefficients.
func models(n int) map[string]ppl.Model {
	series := func(parts func(c *ppl.Ctx) []statespace.Part) ppl.Model {
		return func(c *ppl.Ctx) {
			noise := c.Sample("noise", dist.HalfNormal(1))
			c.Observe("y", statespace.New(n, noise, parts(c)...), c.Data("y"))
		}
	}
	return map[string]ppl.Model{
		"level": series(func(c *ppl.Ctx) []statespace.Part {
			return parts{statespace.LocalLevel{
				Scale: c.Sample("scale", dist.HalfNormal(1)), Mean: c.Sample("first", dist.Normal(0, 1)), Spread: 1,
			}}
		}),
		"trend and seasons": series(func(c *ppl.Ctx) []statespace.Part {
			return parts{
				statespace.LocalTrend{
					LevelScale: c.Sample("level", dist.HalfNormal(1)),
					SlopeScale: c.Sample("slope", dist.HalfNormal(1)),
				},
				statespace.Seasonal{Period: 4, Scale: c.Sample("season", dist.HalfNormal(1))},
			}
		}),
		"diffuse": series(func(c *ppl.Ctx) []statespace.Part {
			return parts{
				statespace.LocalTrend{SlopeScale: c.Sample("slope", dist.HalfNormal(1)), Diffuse: true},
				statespace.ARMA{AR: c.Sample("ar", dist.Uniform(-1, 1).Expand(1))},
			}
		}),
		"waves": series(func(c *ppl.Ctx) []statespace.Part {
			return parts{statespace.Trigonometric{Period: 5, Scale: c.Sample("wave", dist.HalfNormal(1))}}
		}),
		"ARMA": series(func(c *ppl.Ctx) []statespace.Part {
			r := c.Sample("partial", dist.Uniform(-1, 1).Expand(2))
			return parts{statespace.ARMA{
				AR: statespace.Stationary(r), MA: c.Sample("ma", dist.Normal(0, 0.5).Expand(1)),
				Scale: c.Sample("scale", dist.HalfNormal(1)),
			}}
		}),
	}
}

// whole is the log density on unconstrained space.
var whole = infer.Weights{Prior: 1, Likelihood: 1, Jacobian: 1}

// Gradients are those of finite differences of values, eager and for several chains at once; the compiled function has
// the same values and gradients, and its filter is a loop: its code does not grow with the number of steps.
func TestGradients(t *testing.T) {
	for name := range models(1) {
		t.Run(name, func(t *testing.T) {
			ops := map[int]int{}
			for _, n := range []int{24, 48} {
				batch := infer.Batch{"y": tensor(wave(n, true))}
				p, err := ppl.Compile(models(n)[name], batch)
				require.NoError(t, err)
				start, err := p.Start(batch, 1, 1)
				require.NoError(t, err)
				f, report, err := infer.Compile(p.Target(), start, batch, native.Options{Tier: native.VM})
				require.NoError(t, err)
				require.NotNil(t, f, report)
				ops[n] = report.Ops
				size := p.Target().N()
				var x, z []float64
				for i := range p.Layout().Dim() {
					x, z = append(x, 0.3-0.2*float64(i)), append(z, -0.4+0.1*float64(i*i))
				}
				values, grads := infertest.Evaluate(t, p.Layout(), p.Target().Weigh(whole), batch, append(x, z...)...)
				for k, point := range [][]float64{x, z} {
					grad := make([]float64, len(x))
					value, err := f.Eval(point, 1/size, grad)
					require.NoError(t, err)
					assert.InDelta(t, values[k], size*value, 1e-9*size)
					for i := range point {
						assert.InDelta(t, grads[k*len(x)+i], size*grad[i], 1e-9*size)
						d := func(h float64) float64 {
							at := append([]float64{}, point...)
							at[i] += h
							v, err := f.Eval(at, 1/size, make([]float64, len(at)))
							require.NoError(t, err)
							return size * v
						}
						// Differences of fourth order: off by h⁴/30 times a fifth derivative, of the size of the
						// density, and by its rounding over h.
						const h = 1e-3
						slope := (8*(d(h)-d(-h)) - (d(2*h) - d(-2*h))) / (12 * h)
						assert.InDelta(t, slope, size*grad[i], 1e-8*(1+size), fmt.Sprint(n, i))
					}
				}
			}
			assert.Equal(t, ops[24], ops[48])
		})
	}
}

// A long series is recorded with a few steps: the code that follows has the values and gradients of eager evaluation of
// all steps, at points apart. Series of two lengths in one model are recorded whole, with the same numbers.
func TestLongSeries(t *testing.T) {
	const n = 61
	all := models(n)
	all["two lengths"] = func(c *ppl.Ctx) {
		scale := c.Sample("scale", dist.HalfNormal(1))
		for i, steps := range []int{n, 40} {
			y := c.Data("y").Slice(0, 0, steps)
			c.Observe(fmt.Sprint("y", i), statespace.New(steps, 0.5, statespace.LocalLevel{Scale: scale}), y)
		}
	}
	for name, m := range all {
		t.Run(name, func(t *testing.T) {
			batch := infer.Batch{"y": tensor(wave(n, true))}
			p, err := ppl.Compile(m, batch)
			require.NoError(t, err)
			start, err := p.Start(batch, 1, 1)
			require.NoError(t, err)
			f, report, err := infer.Compile(p.Target(), start, batch, native.Options{Tier: native.VM})
			require.NoError(t, err)
			follows := func(note string) bool { return strings.HasPrefix(note, "all steps of a series follow from") }
			require.Equal(t, name != "two lengths", slices.ContainsFunc(report.Notes, follows), report)
			size, d := p.Target().N(), p.Layout().Dim()
			var points []float64
			for k := range 10 * d {
				points = append(points, math.Sin(3*float64(k)))
			}
			values, grads := infertest.Evaluate(t, p.Layout(), p.Target().Weigh(whole), batch, points...)
			for k, want := range values {
				grad := make([]float64, d)
				value, err := f.Eval(points[k*d:(k+1)*d], 1/size, grad)
				require.NoError(t, err)
				largest := 1.0
				for _, g := range grads[k*d : (k+1)*d] {
					largest = max(largest, math.Abs(g))
				}
				assert.InDelta(t, want, size*value, 1e-10*max(1, math.Abs(want)))
				for i, g := range grad {
					assert.InDelta(t, grads[k*d+i], size*g, 1e-10*largest)
				}
			}
		})
	}
}
