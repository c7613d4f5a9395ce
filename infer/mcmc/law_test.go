package mcmc_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/mcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// law is a density in plain Go with known expectations.
type law struct {
	f        func(x []float64) float64
	start    []float64
	moments  func(x []float64) []float64
	want     []float64 // of the moments
	hot      []float64 // and at temperature 2; nil where they are not known
	mean     []float64 // of a normal distribution near to it, for Elliptical
	cov      []float64
	gradient func(x torch.Tensor) torch.Tensor // the same with tensors, for Barker
}

// laws are a normal distribution with correlation 0.9 and a scale of 100, a Gamma(3, 2), and a banana: x ~ N(0, 1), and
// y ~ N(x², 1/4).
func laws() map[string]law {
	return map[string]law{
		"normal": {
			f: func(x []float64) float64 {
				u, v, w := x[0]-1, x[1]+2, x[2]/100
				return -(u*u-1.8*u*v+v*v)/(2*0.19) - w*w/2
			},
			start: []float64{1, -2, 0},
			moments: func(x []float64) []float64 {
				u, v := x[0]-1, x[1]+2
				return []float64{u, v, u * u, u * v, x[2] * x[2] / 1e4, math.Tanh(x[2] / 100)}
			},
			want: []float64{0, 0, 1, 0.9, 1, 0}, hot: []float64{0, 0, 2, 1.8, 2, 0},
			mean: []float64{10, -1, 0}, cov: []float64{2e4, 0, 0, 0, 2, 1, 0, 1, 2}, // in the order of the names
			gradient: func(x torch.Tensor) torch.Tensor {
				u, v, w := x.At(0).Sub(1), x.At(1).Add(2), x.At(2).Div(100)
				return u.Square().Sub(u.Mul(v).Mul(1.8)).Add(v.Square()).Div(-2 * 0.19).Sub(w.Square().Div(2))
			},
		},
		"gamma": {
			f: func(x []float64) float64 {
				if x[0] <= 0 {
					return math.Inf(-1)
				}
				return 2*math.Log(x[0]) - 2*x[0]
			},
			start:   []float64{1.5},
			moments: func(x []float64) []float64 { return []float64{x[0], x[0] * x[0], math.Log(x[0])} },
			want:    []float64{1.5, 3, 0.92278433509846714 - math.Ln2},
			hot:     []float64{2, 6, 0.42278433509846714}, // Gamma(2, 1)
			mean:    []float64{1.5}, cov: []float64{2},
			gradient: func(x torch.Tensor) torch.Tensor {
				return torch.Where(x.At(0).Gt(0), x.At(0).Abs().Log().Mul(2).Sub(x.At(0).Mul(2)), math.Inf(-1))
			},
		},
		"banana": {
			f: func(x []float64) float64 {
				e := x[1] - x[0]*x[0]
				return -x[0]*x[0]/2 - 2*e*e
			},
			start: []float64{0, 0},
			moments: func(x []float64) []float64 {
				e := x[1] - x[0]*x[0]
				return []float64{x[0], x[0] * x[0], e, e * e, math.Tanh(x[1] - 1)}
			},
			want: []float64{0, 1, 0, 0.25, tanhBanana()},
			hot:  []float64{0, 2, 0, 0.5},
			mean: []float64{1, 0}, cov: []float64{3, 0, 0, 1.5},
			gradient: func(x torch.Tensor) torch.Tensor {
				e := x.At(1).Sub(x.At(0).Square())
				return x.At(0).Square().Div(-2).Sub(e.Square().Mul(2))
			},
		},
	}
}

// tanhBanana is E tanh(y − 1) of the banana, by sums.
func tanhBanana() (sum float64) {
	total := 0.0
	for i := -600; i <= 600; i++ {
		x := float64(i) / 100
		for j := -60; j <= 60; j++ {
			e := float64(j) / 20
			w := math.Exp(-x*x/2 - 2*e*e)
			total += w
			sum += w * math.Tanh(x*x+e-1)
		}
	}
	return sum / total
}

// samplers are all of them, for a law at a temperature.
func samplers(l law, temperature infer.Schedule) map[string]infer.Method {
	return map[string]infer.Method{
		"Slice":                 mcmc.Slice{Temperature: temperature},
		"Slice doubling":        mcmc.Slice{Doubling: true, Width: 0.5, Temperature: temperature},
		"Elliptical":            mcmc.Elliptical{Mean: l.mean, Covariance: l.cov, Temperature: temperature},
		"Stretch":               mcmc.Stretch{Temperature: temperature},
		"DifferentialEvolution": mcmc.DifferentialEvolution{Temperature: temperature},
		"RandomWalk":            mcmc.RandomWalk{Temperature: temperature},
		"Barker":                mcmc.Barker{Temperature: temperature},
	}
}

// program is a law for a sampler: with tensors for the one that needs a gradient.
func (l law) program(t *testing.T, name string) infer.Program {
	if name != "Barker" {
		return infer.Plain(l.f, []string{"c", "b", "a"}[3-len(l.start):], l.start)
	}
	layout, err := infer.NewLayout(infer.Shapes{"x": {len(l.start)}})
	require.NoError(t, err)
	start, err := infer.NewParams(layout, l.start)
	require.NoError(t, err)
	return infer.Handwritten(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return l.gradient(p.Get("x")), nil
	}, 1), start, nil)
}

// moments are the means of a run.
func (l law) sampled(t *testing.T, name string, m infer.Method, seed uint64, o infer.Options) []float64 {
	o.Seed, o.Chains, o.Observer = seed, 8, infer.Silent
	d, err := infer.Sample(context.Background(), l.program(t, name), m, o)
	require.NoError(t, err)
	sums, n := make([]float64, len(l.want)), 0.0
	x := make([]float64, len(l.start))
	for _, row := range d.Rows() {
		if copy(x, row); name != "Barker" && len(x) == 3 {
			x[0], x[2] = row[2], row[0] // the names are not in their order
		} else if name != "Barker" && len(x) == 2 {
			x[0], x[1] = row[1], row[0]
		}
		for i, v := range l.moments(x)[:len(sums)] {
			sums[i] += v
		}
		n++
	}
	for i := range sums {
		sums[i] /= n
	}
	return sums
}

// Each sampler has the law, at two temperatures: the means of 20 runs are within four of their standard errors.
func TestLaws(t *testing.T) {
	for what, l := range laws() {
		for temperature, want := range map[float64][]float64{1: l.want, 2: l.hot} {
			if testing.Short() && temperature != 1 {
				continue
			}
			for name, m := range samplers(l, infer.Constant(temperature)) {
				t.Run(what+" "+name, func(t *testing.T) {
					t.Parallel()
					seeds, draws := 20, 500
					sum, square := make([]float64, len(want)), make([]float64, len(want))
					for seed := range seeds {
						for i, v := range l.sampled(t, name, m, uint64(100+seed), infer.Options{Draws: draws, Warmup: 500})[:len(want)] {
							sum[i] += v
							square[i] += v * v
						}
					}
					n := float64(seeds)
					for i, w := range want {
						mean := sum[i] / n
						se := math.Sqrt((square[i]/n - mean*mean) / (n - 1))
						// What has Student's law, its standard error being estimated from few runs, as a normal deviate.
						tail := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Survival(math.Abs(mean-w) / se)
						z := -distuv.UnitNormal.Quantile(tail)
						assert.Less(t, math.Abs(z), 4.0, "T = %v, moment %d: %v ± %v, want %v", temperature, i, mean, se, w)
						assert.Less(t, se, 0.05*(1+math.Abs(w)), "T = %v, moment %d", temperature, i)
					}
				})
			}
		}
	}
}

// The chains mix: so many effective draws of 8 chains of 1000.
func TestEffectiveSizes(t *testing.T) {
	for what, least := range map[string]float64{"normal": 500, "gamma": 1500, "banana": 200} {
		l := laws()[what]
		for name, m := range samplers(l, nil) {
			d, err := infer.Sample(context.Background(), l.program(t, name), m, infer.Options{Chains: 8, Seed: 3,
				Observer: infer.Silent})
			require.NoError(t, err)
			report, err := diag.Summary(d, diag.SummaryOptions{})
			require.NoError(t, err)
			for _, row := range report.Rows {
				t.Log(what, name, row.Name, row.ESSBulk, row.RHat)
				assert.Greater(t, row.ESSBulk, least, "%s %s %s", what, name, row.Name)
			}
		}
	}
}
