package posteriors

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

// point is what a formula gets: the unconstrained numbers of each latent variable, and the constrained values, of
// which formulas use only those that models compute from others: beta, alpha, f.
type point struct {
	u, v  map[string][]float64
	moved func(name string, i int) point // the point with 1 more in one unconstrained number
}

// positive is exp(u), with its log Jacobian.
func (p point) positive(name string, i int) (x, jacobian float64) {
	return math.Exp(p.u[name][i]), p.u[name][i]
}

// unit is 1/(1 + exp(−u)), with its log Jacobian.
func (p point) unit(name string) (x, jacobian float64) {
	s := 1 / (1 + math.Exp(-p.u[name][0]))
	return s, math.Log(s) + math.Log(1-s)
}

func normal(x, mean, sd float64) float64 {
	z := (x - mean) / sd
	return -z*z/2 - math.Log(sd) - math.Log(2*math.Pi)/2
}

func halfNormal(x, sd float64) float64 { return math.Log(2) + normal(x, 0, sd) }
func halfCauchy(x, scale float64) float64 {
	return math.Log(2/(math.Pi*scale)) - math.Log(1+x*x/(scale*scale))
}
func gamma(x, a, rate float64) float64 {
	return a*math.Log(rate) - lgamma(a) + (a-1)*math.Log(x) - rate*x
}
func beta(x, a, b float64) float64 {
	return lgamma(a+b) - lgamma(a) - lgamma(b) + (a-1)*math.Log(x) + (b-1)*math.Log(1-x)
}
func poisson(k, rate float64) float64           { return k*math.Log(rate) - rate - lgamma(k+1) }
func noPrior(float64) float64                   { return 0 }
func cauchyPrior(sigma float64) float64         { return halfCauchy(sigma, 2.5) }
func lgamma(x float64) float64                  { v, _ := math.Lgamma(x); return v }
func logSum(a, b float64) float64               { return math.Log(math.Exp(a) + math.Exp(b)) }
func list(d map[string]any, s string) []float64 { return d[s].([]float64) }

// regression is the density of a linear regression with flat coefficients, whose rows x gives.
func regression(p point, y []float64, prior func(float64) float64, x func(i int) []float64) float64 {
	sigma, lp := p.positive("sigma", 0)
	lp += prior(sigma)
	for i := range y {
		mean := 0.0
		for j, v := range x(i) {
			mean += v * p.v["beta"][j]
		}
		lp += normal(y[i], mean, sigma)
	}
	return lp
}

// formula is the log density of one posterior in plain Go, from the mathematics, and made-up data.
type formula struct {
	name    string
	data    map[string]any
	density func(d map[string]any, p point) float64
}

func formulas() []formula {
	rng := rand.New(rand.NewPCG(5, 6))
	some := func(n int, mean, sd float64) []float64 {
		return each(n, func(int) float64 { return mean + sd*rng.NormFloat64() })
	}
	above := func(n int) []float64 { return each(n, func(int) float64 { return math.Exp(0.5 * rng.NormFloat64()) }) }
	whole := func(n, below int) []float64 { return each(n, func(int) float64 { return float64(rng.IntN(below)) }) }
	out := []formula{
		{"arK-arK", map[string]any{"K": 3, "T": 12, "y": some(12, 0.5, 1)}, func(d map[string]any, p point) float64 {
			y, b := list(d, "y"), p.u["beta"]
			sigma, lp := p.positive("sigma", 0)
			lp += halfCauchy(sigma, 2.5) + normal(p.u["alpha"][0], 0, 10)
			for _, v := range b {
				lp += normal(v, 0, 10)
			}
			for t := 3; t < 12; t++ {
				lp += normal(y[t], p.u["alpha"][0]+b[0]*y[t-1]+b[1]*y[t-2]+b[2]*y[t-3], sigma)
			}
			return lp
		}},
		{"earnings-logearn_interaction", map[string]any{"N": 9, "earn": above(9), "height": some(9, 66, 4),
			"male": []float64{0, 1, 1, 0, 1, 0, 0, 1, 0}},
			func(d map[string]any, p point) float64 {
				logs := each(9, func(i int) float64 { return math.Log(list(d, "earn")[i]) })
				return regression(p, logs, noPrior, func(i int) []float64 {
					h, m := list(d, "height")[i], list(d, "male")[i]
					return []float64{1, h, m, h * m}
				})
			}},
		{"eight_schools-eight_schools_noncentered", map[string]any{"J": 5, "y": some(5, 3, 8), "sigma": above(5)},
			func(d map[string]any, p point) float64 {
				tau, lp := p.positive("tau", 0)
				mu := p.u["mu"][0]
				lp += halfCauchy(tau, 5) + normal(mu, 0, 5)
				for j, z := range p.u["theta_trans"] {
					lp += normal(z, 0, 1) + normal(list(d, "y")[j], mu+tau*z, list(d, "sigma")[j])
				}
				return lp
			}},
		{"gp_pois_regr-gp_pois_regr", map[string]any{"N": 5, "x": []float64{-3, -1.2, 0.4, 2, 4.5}, "k": whole(5, 9)},
			processDensity},
		{"kidiq-kidscore_interaction", map[string]any{"N": 8, "kid_score": some(8, 80, 20),
			"mom_hs": []float64{0, 1, 1, 0, 0, 1, 1, 1}, "mom_iq": some(8, 100, 15)},
			func(d map[string]any, p point) float64 {
				return regression(p, list(d, "kid_score"), cauchyPrior, func(i int) []float64 {
					h, q := list(d, "mom_hs")[i], list(d, "mom_iq")[i]
					return []float64{1, h, q, h * q}
				})
			}},
		{"kidiq-kidscore_momiq", map[string]any{"N": 6, "kid_score": some(6, 80, 20), "mom_iq": some(6, 100, 15)},
			func(d map[string]any, p point) float64 {
				return regression(p, list(d, "kid_score"), cauchyPrior, func(i int) []float64 {
					return []float64{1,
						list(d, "mom_iq")[i]}
				})
			}},
		{"kilpisjarvi_mod-kilpisjarvi", map[string]any{"N": 7, "x": some(7, 30, 5), "y": some(7, 9, 1), "pmualpha": 9.3,
			"psalpha": 20, "pmubeta": 0.1, "psbeta": 0.3},
			func(d map[string]any, p point) float64 {
				alpha, slope := p.v["alpha"][0], p.u["beta"][0]
				sigma, lp := p.positive("sigma", 0)
				lp += normal(alpha, 9.3, 20) + normal(slope, 0.1, 0.3)
				for i, x := range list(d, "x") {
					lp += normal(list(d, "y")[i], alpha+slope*x, sigma)
				}
				return lp
			}},
		{"low_dim_gauss_mix-low_dim_gauss_mix", map[string]any{"N": 9, "y": some(9, 0, 2)},
			func(d map[string]any, p point) float64 {
				mu1, apart := p.u["mu"][0], math.Exp(p.u["mu"][1])
				s1, j1 := p.positive("sigma", 0)
				s2, j2 := p.positive("sigma", 1)
				theta, j3 := p.unit("theta")
				lp := p.u["mu"][1] + j1 + j2 + j3 + normal(mu1, 0, 2) + normal(mu1+apart, 0, 2) + halfNormal(s1, 2) +
					halfNormal(s2, 2) + beta(theta, 5, 5)
				for _, y := range list(d, "y") {
					lp += logSum(math.Log(theta)+normal(y, mu1, s1), math.Log(1-theta)+normal(y, mu1+apart, s2))
				}
				return lp
			}},
		{"mesquite-logmesquite_logvas", map[string]any{"N": 11, "weight": above(11), "diam1": above(11), "diam2": above(11),
			"canopy_height": above(11),
			"total_height":  above(11), "density": above(11), "group": whole(11, 2)}, func(d map[string]any, p point) float64 {
			logs := each(11, func(i int) float64 { return math.Log(list(d, "weight")[i]) })
			return regression(p, logs, noPrior, func(i int) []float64 {
				d1, d2, ch := list(d, "diam1")[i], list(d, "diam2")[i], list(d, "canopy_height")[i]
				return []float64{1, math.Log(d1 * d2 * ch), math.Log(d1 * d2), math.Log(d1 / d2),
					math.Log(list(d, "total_height")[i]),
					math.Log(list(d, "density")[i]), list(d, "group")[i]}
			})
		}},
		{"nes2000-nes", map[string]any{"N": 14, "partyid7": whole(14, 8), "real_ideo": whole(14, 7), "race_adj": whole(14, 3),
			"age_discrete": []float64{1, 2, 3, 4, 1, 2, 3, 4, 2, 1, 3, 4, 2, 3}, "educ1": whole(14, 5), "gender": whole(14, 2),
			"income": whole(14, 6)},
			func(d map[string]any, p point) float64 {
				return regression(p, list(d, "partyid7"), noPrior, func(i int) []float64 {
					x := []float64{1, list(d, "real_ideo")[i], list(d, "race_adj")[i], 0, 0, 0, list(d, "educ1")[i],
						list(d, "gender")[i], list(d, "income")[i]}
					if age := list(d, "age_discrete")[i]; age > 1 {
						x[int(age)+1] = 1
					}
					return x
				})
			}},
		{"sblrc-blr", map[string]any{"N": 6, "D": 3, "y": some(6, 0, 3),
			"X": [][]float64{some(3, 0, 1), some(3, 0, 1), some(3, 0, 1), some(3, 0, 1), some(3, 0, 1), some(3, 0, 1)}},
			func(d map[string]any, p point) float64 {
				sigma, lp := p.positive("sigma", 0)
				lp += halfNormal(sigma, 10)
				for _, b := range p.u["beta"] {
					lp += normal(b, 0, 10)
				}
				for i, row := range d["X"].([][]float64) {
					mean := 0.0
					for j, x := range row {
						mean += x * p.u["beta"][j]
					}
					lp += normal(list(d, "y")[i], mean, sigma)
				}
				return lp
			}},
	}
	// Series of several lengths, since the algorithms over time depend on them.
	for _, n := range []int{2, 3, 4, 6, 9, 11} {
		out = append(out, formula{"hmm_example-hmm_example", map[string]any{"N": n, "K": 2, "y": some(n, 6, 3)},
			hiddenDensity})
	}
	for _, n := range []int{2, 4, 5, 9, 12, 23} {
		out = append(out, formula{"garch-garch11", map[string]any{"T": n, "y": some(n, 1, 2), "sigma1": 0.7}, garchDensity})
	}
	return out
}

// garchDensity takes one variance after the other.
func garchDensity(d map[string]any, p point) float64 {
	mu := p.u["mu"][0]
	alpha0, j0 := p.positive("alpha0", 0)
	alpha1, j1 := p.unit("alpha1")
	share, j2 := p.unit("beta1")
	lp := j0 + j1 + j2 + math.Log(1-alpha1)
	v := 0.7 * 0.7
	for t, y := range list(d, "y") {
		if t > 0 {
			e := list(d, "y")[t-1] - mu
			v = alpha0 + alpha1*e*e + (1-alpha1)*share*v
		}
		lp += normal(y, mu, math.Sqrt(v))
	}
	return lp
}

// hiddenDensity sums over all sequences of states, 2ⁿ of them.
func hiddenDensity(d map[string]any, p point) float64 {
	t1, j1 := p.unit("theta1")
	t2, j2 := p.unit("theta2")
	transition := [2][2]float64{{t1, 1 - t1}, {t2, 1 - t2}}
	mu1, j3 := p.positive("mu", 0)
	apart, j4 := p.positive("mu", 1)
	mu := [2]float64{mu1, mu1 + apart}
	y, total := list(d, "y"), 0.0
	for path := range 1 << len(y) {
		weight := 1.0
		for t := range y {
			state := path >> t & 1
			weight *= math.Exp(normal(y[t], mu[state], 1))
			if t > 0 {
				weight *= transition[path>>(t-1)&1][state]
			}
		}
		total += weight
	}
	return j1 + j2 + j3 + j4 + normal(mu[0], 3, 1) + normal(mu[1], 10, 1) + math.Log(total)
}

// processDensity is the density of f, whose covariance is factored here, and the Jacobian of the map from u to f: it
// is linear, so that steps of 1 give it without error.
func processDensity(d map[string]any, p point) float64 {
	rho, j1 := p.positive("rho", 0)
	alpha, j2 := p.positive("alpha", 0)
	lp := j1 + j2 + gamma(rho, 25, 4) + halfNormal(alpha, 2)
	x, f := list(d, "x"), p.v["f"]
	n := len(x)
	cov := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			v := alpha * alpha * math.Exp(-(x[i]-x[j])*(x[i]-x[j])/(2*rho*rho))
			if i == j {
				v += 1e-10
			}
			cov.SetSym(i, j, v)
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(cov) {
		return math.NaN()
	}
	var solved mat.VecDense
	if err := chol.SolveVecTo(&solved, mat.NewVecDense(n, f)); err != nil {
		return math.NaN()
	}
	lp -= 0.5*mat.Dot(&solved, mat.NewVecDense(n, f)) + 0.5*chol.LogDet() + 0.5*float64(n)*math.Log(2*math.Pi)
	for i, k := range list(d, "k") {
		lp += poisson(k, math.Exp(f[i]))
	}
	jacobian := mat.NewDense(n, n, nil)
	for j := range n {
		moved := p.moved("u", j).v["f"]
		for i := range n {
			jacobian.Set(i, j, moved[i]-f[i])
		}
	}
	logDet, _ := mat.LogDet(jacobian)
	return lp + logDet
}

// made is a posterior of the Registry on made-up data.
func made(t *testing.T, name string, values map[string]any) (Posterior, error) {
	t.Helper()
	raw, err := json.Marshal(values)
	require.NoError(t, err)
	d := &Data{name: "made-up"}
	require.NoError(t, json.Unmarshal(raw, &d.values))
	chosen, err := Choose(name)
	require.NoError(t, err)
	return chosen[0].Load(d)
}

// The log densities are those of the formulas to 1e-10, and the gradients those of the formulas' differences.
func TestDensitiesAreTheFormulas(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range formulas() {
		seen[f.name] = true
		t.Run(fmt.Sprintf("%s/%v%v", f.name, f.data["N"], f.data["T"]), func(t *testing.T) {
			p, err := made(t, f.name, f.data)
			require.NoError(t, err)
			program, err := ppl.Compile(p.Model, p.Batch)
			require.NoError(t, err)
			parts := program.Target().Parts
			gradient, err := infer.NewGradient(infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
				return parts(p, b, infer.Weights{Prior: 1, Likelihood: 1, Jacobian: 1})
			}, 1))
			require.NoError(t, err)
			layout := program.Layout()
			rng := rand.New(rand.NewPCG(1, 2))
			for range 2 {
				flat := each(layout.Dim(), func(int) float64 { return 0.6 * rng.NormFloat64() })
				at, err := infer.NewParams(layout, flat)
				require.NoError(t, err)
				var value float64
				var slopes []float64
				require.NoError(t, torch.Do(func(*torch.Scope) error {
					e, err := gradient.ValueAndGrad(at, p.Batch, 0)
					if err != nil {
						return err
					}
					value = e.Values[0]
					slopes, err = torch.ToSlice[float64](e.Grad)
					return err
				}))
				density := func(x []float64) float64 { return f.density(f.data, pointAt(t, program, x)) }
				want := density(flat)
				assert.InDelta(t, want, value, 1e-10*math.Max(1, math.Abs(want)))
				for i := range flat {
					moved := func(h float64) float64 {
						x := append([]float64{}, flat...)
						x[i] += h
						return density(x)
					}
					const h = 1e-3
					slope := (8*(moved(h)-moved(-h)) - (moved(2*h) - moved(-2*h))) / (12 * h)
					assert.InDelta(t, slope, slopes[i], 1e-6*math.Max(1, math.Abs(slope)), "gradient, number %d", i)
				}
			}
		})
	}
	for _, e := range Registry {
		require.True(t, seen[e.Name], "%s has no formula", e.Name)
	}
}

func pointAt(t *testing.T, program *ppl.Program, flat []float64) point {
	t.Helper()
	out := point{u: map[string][]float64{}, v: map[string][]float64{}}
	for _, s := range program.Layout().Sites {
		out.u[s.Name] = flat[s.Offset : s.Offset+s.Size]
	}
	at, err := infer.NewParams(program.Layout(), flat)
	require.NoError(t, err)
	values, err := program.Constrain(at, program.Batch())
	require.NoError(t, err)
	for name, v := range values {
		out.v[name], err = torch.ToSlice[float64](v)
		require.NoError(t, err)
	}
	out.moved = func(name string, i int) point {
		s, _ := program.Layout().Site(name)
		x := append([]float64{}, flat...)
		x[s.Offset+i]++
		return pointAt(t, program, x)
	}
	return out
}
