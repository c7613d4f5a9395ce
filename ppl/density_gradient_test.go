package ppl_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shape is a log density of three numbers, a sum of g over x_j − c_j, with the derivative of g.
type shape struct {
	g     func(u float64) (v, slope float64)
	mean  float64               // of the prior of x, near which Compile looks
	rough func(float64) float64 // what becomes of the sum on its way to the caller; nil for itself
	vague bool                  // differences of values cannot tell 1 %
}

// shapes are log densities that are smooth, steep, flat, far from 0, with kinks, and noisy.
func shapes() map[string]shape {
	power := func(v, slope float64) func(float64) (float64, float64) {
		return func(u float64) (float64, float64) { return v * u * u, slope * u }
	}
	cosh := func(width float64) func(float64) (float64, float64) {
		return func(u float64) (float64, float64) {
			z := math.Abs(u / width)
			return -(z + math.Log1p(math.Exp(-2*z))), -math.Tanh(u/width) / width
		}
	}
	exp := func(k float64) func(float64) (float64, float64) {
		return func(u float64) (float64, float64) { return -math.Exp(k * u), -k * math.Exp(k*u) }
	}
	waves := func(k float64) func(float64) (float64, float64) {
		return func(u float64) (float64, float64) { return math.Sin(k * u), k * math.Cos(k*u) }
	}
	normal := power(-0.5, -1)
	return map[string]shape{
		"quadratic":         {g: normal},
		"narrow":            {g: power(-5e9, -1e10)},
		"wide":              {g: power(-5e-11, -1e-10)},
		"growing":           {g: exp(1)},
		"steep":             {g: exp(100), vague: true},
		"flat":              {g: exp(-60), rough: func(v float64) float64 { return 1 + v }, vague: true},
		"constant":          {g: power(0, 0), rough: func(v float64) float64 { return 3 + v }, vague: true},
		"far below":         {g: normal, rough: func(v float64) float64 { return v - 1e8 }},
		"far away":          {g: normal, mean: 1e8},
		"a saturated start": {g: cosh(1e-3)},
		"a step": {g: func(u float64) (float64, float64) {
			e := math.Exp(-1e6 * math.Abs(u))
			return -1 / (1 + math.Exp(-1e6*u)), -1e6 * e / (1 + e) / (1 + e)
		}, vague: true},
		"waves":      {g: waves(200)},
		"fast waves": {g: waves(1e9), vague: true},
		"a ripple": {g: func(u float64) (float64, float64) {
			return -u*u/2 + 1e-5*math.Sin(1e5*u), -u + math.Cos(1e5*u)
		}, vague: true},
		"a kink": {g: func(u float64) (float64, float64) { return -math.Abs(u), -math.Copysign(1, u) }},
		"many kinks": {g: func(u float64) (v, slope float64) {
			for i := range 300 {
				w := u - 4*math.Sin(float64(i*i))
				v, slope = v-math.Abs(w), slope-math.Copysign(1, w)
			}
			return v, slope
		}, vague: true},
		"an edge": {g: func(u float64) (float64, float64) { return math.Log(u + 0.1), 1 / (u + 0.1) },
			vague: true},
		"a sum that cancels": {g: normal, rough: func(v float64) float64 { return v + 1e8 - 1e8 }},
		"float32":            {g: normal, rough: func(v float64) float64 { return float64(float32(v - 10)) }, vague: true},
		"float32 far below":  {g: normal, rough: func(v float64) float64 { return float64(float32(v - 1e5)) }, vague: true},
		"noise":              {g: normal, rough: func(v float64) float64 { return v + 1e-6*math.Sin(1e12*v) }, vague: true},
		"much noise":         {g: normal, rough: func(v float64) float64 { return v + 0.1*math.Sin(1e12*v) }, vague: true},
	}
}

// A gradient that is right passes, whatever the shape of the density. One that is wrong by 1 %, in one element or in a
// sign is refused where differences of the values can tell.
func TestDensityGradientIsChecked(t *testing.T) {
	wrongs := map[string]func(grad []float64){
		"right": func([]float64) {},
		"1 % too large": func(grad []float64) {
			for j := range grad {
				grad[j] *= 1.01
			}
		},
		"one element is 2 % too small": func(grad []float64) { grad[1] *= 0.98 },
		"one element is missing":       func(grad []float64) { grad[2] = 0 },
		"one sign":                     func(grad []float64) { grad[0] = -grad[0] },
	}
	for name, s := range shapes() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(25) {
				random := rand.New(rand.NewPCG(seed, 1))
				centre := []float64{random.NormFloat64(), random.NormFloat64(), random.NormFloat64()}
				for what, wrong := range wrongs {
					_, err := ppl.Compile(func(c *ppl.Ctx) {
						c.Density("f", func(x, grad [][]float64) float64 {
							sum := 0.0
							for j, v := range x[0] {
								var value float64
								value, grad[0][j] = s.g(v - s.mean - centre[j])
								sum += value
							}
							wrong(grad[0])
							if s.rough == nil {
								return sum
							}
							return s.rough(sum)
						}, c.Sample("x", dist.Normal(s.mean, 1).Expand(3)))
					}, nil)
					switch about := fmt.Sprintf("%s, seed %d", what, seed); {
					case what == "right":
						require.NoError(t, err, about)
					case !s.vague:
						assert.ErrorContains(t, err, "gradient in input 0 is wrong", about)
					}
				}
			}
		})
	}
}
