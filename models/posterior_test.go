package models_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// point is the unconstrained numbers of each site.
type point map[string][]dual

// one is a site of one number.
func (p point) one(name string) dual { return p[name][0] }

// data is the batch's numbers.
type data map[string][]float64

// byHand are the log posteriors on unconstrained space, written out. The scales are those that the
// models' doc comments name.
var byHand = map[string]func(p point, b data) dual{
	"beetles": func(p point, b data) dual {
		out := normal(p.one("w"), con(0), con(10)).add(normal(p.one("intercept"), con(0), con(10)))
		for i, y := range b["y"] {
			// p(y) is σ(η) for y = 1 and σ(−η) for y = 0.
			eta := p.one("w").times(b["x"][i]).add(p.one("intercept"))
			out = out.add(eta.times(2*y - 1).logSigmoid())
		}
		return out
	},
	"anscombe": func(p point, b data) dual {
		sigma, jacobian := positive(p.one("sigma"))
		out := sum(
			normal(p.one("w"), con(0), con(10)),
			normal(p.one("intercept"), con(0), con(10)),
			halfCauchy(sigma, 2.5),
			jacobian,
		)
		for i, y := range b["y"] {
			out = out.add(normal(con(y), p.one("w").times(b["x"][i]).add(p.one("intercept")), sigma))
		}
		return out
	},
	"eight_schools": func(p point, b data) dual {
		mu := p.one("mu")
		tau, jacobian := positive(p.one("tau"))
		out := sum(normal(mu, con(0), con(5)), halfCauchy(tau, 5), jacobian)
		for j, z := range p["theta_decentred"] {
			out = sum(out, normal(z, con(0), con(1)), normal(con(b["y"][j]), mu.add(tau.mul(z)), con(b["sigma"][j])))
		}
		return out
	},
	"eight_schools_centred": func(p point, b data) dual {
		mu := p.one("mu")
		tau, jacobian := positive(p.one("tau"))
		out := sum(normal(mu, con(0), con(5)), halfCauchy(tau, 5), jacobian)
		for j, theta := range p["theta"] {
			out = sum(out, normal(theta, mu, tau), normal(con(b["y"][j]), theta, con(b["sigma"][j])))
		}
		return out
	},
	"salmonella": func(p point, b data) dual {
		sigma, jacobian := positive(p.one("sigma"))
		out := sum(normal(p.one("intercept"), con(0), con(10)), halfNormal(sigma, 1), jacobian)
		for _, w := range p["w"] {
			out = out.add(normal(w, con(0), con(10)))
		}
		for i, z := range p["effect_decentred"] {
			y := b["y"][i]
			eta := sum(p.one("intercept"), p["w"][0].times(b["x"][2*i]), p["w"][1].times(b["x"][2*i+1]), sigma.mul(z))
			factorial, _ := math.Lgamma(y + 1)
			out = sum(out, normal(z, con(0), con(1)), eta.times(y).sub(eta.exp()).plus(-factorial))
		}
		return out
	},
	"radon": func(p point, b data) dual {
		return radonByHand(p, b, uranium(8, 60, 1), p["level_decentred"])
	},
	"mixture": func(p point, b data) dual {
		weights, j1 := simplex(p["weights"])
		loc, j2 := increasing(p["loc"])
		out := sum(dirichlet(weights, 1), orderedNormal(loc, 0, 5), j1, j2)
		var scale []dual
		for _, u := range p["scale"] {
			s, j := positive(u)
			scale, out = append(scale, s), sum(out, logNormal(s, 0, 1), j)
		}
		for _, y := range b["y"] {
			var each []dual
			for k := range loc {
				each = append(each, weights[k].log().add(normal(con(y), loc[k], scale[k])))
			}
			out = out.add(logSumExp(each))
		}
		return out
	},
	"lynx": func(p point, b data) dual {
		sigma, jacobian := positive(p.one("sigma"))
		alpha, beta := p.one("alpha"), p["beta"]
		out := sum(
			normal(alpha, con(0), con(10)),
			normal(beta[0], con(0), con(10)),
			normal(beta[1], con(0), con(10)),
			halfCauchy(sigma, 2.5),
			jacobian,
		)
		// The series itself, in the order of time: the first two numbers are the lags of the third.
		series := append([]float64{b["lags"][1], b["lags"][0]}, b["y"]...)
		for t := 2; t < len(series); t++ {
			out = out.add(normal(con(series[t]), sum(alpha, beta[0].times(series[t-1]), beta[1].times(series[t-2])), sigma))
		}
		return out
	},
	"hidden_markov": func(p point, b data) dual {
		loc, jacobian := increasing(p["loc"])
		out := orderedNormal(loc, 0, 5).add(jacobian)
		states := len(loc)
		var scale []dual
		var transition [][]dual
		for s := range states {
			x, j := positive(p["scale"][s])
			scale, out = append(scale, x), sum(out, logNormal(x, 0, 1), j)
			row, j := simplex(p["transition"][s*(states-1) : (s+1)*(states-1)])
			transition, out = append(transition, row), sum(out, dirichlet(row, 1), j)
		}
		// The forward algorithm with probabilities, scaled to sum 1 at each time instead of in logarithms.
		filtered := make([]dual, states)
		for s := range filtered {
			filtered[s] = con(1 / float64(states))
		}
		for t, y := range b["y"] {
			predicted := filtered
			if t > 0 {
				predicted = make([]dual, states)
				for s := range predicted {
					for r := range states {
						predicted[s] = predicted[s].add(filtered[r].mul(transition[r][s]))
					}
				}
			}
			joint, total := make([]dual, states), con(0)
			for s := range joint {
				joint[s] = predicted[s].mul(normal(con(y), loc[s], scale[s]).exp())
				total = total.add(joint[s])
			}
			for s := range joint {
				joint[s] = joint[s].div(total)
			}
			filtered, out = joint, out.add(total.log())
		}
		return out
	},
	"wave_gp": func(p point, b data) dual {
		length, j1 := positive(p.one("lengthscale"))
		amplitude, j2 := positive(p.one("amplitude"))
		noise, j3 := positive(p.one("noise"))
		out := sum(inverseGamma(length, 5, 5), halfNormal(amplitude, 1), halfNormal(noise, 1), j1, j2, j3)
		// log N(y; 0, K) one number after the other: each given those before it, by the Cholesky factor row by row.
		var rows [][]dual
		var white []dual
		for i, y := range b["y"] {
			var row []dual
			rest := con(y)
			for j := range i + 1 {
				r := b["x"][i] - b["x"][j]
				k := length.square().log().times(-1).exp().times(-r * r / 2).exp().mul(amplitude.square())
				if i == j {
					k = k.add(noise.square())
				}
				for l := range j {
					k = k.sub(row[l].mul(append(rows, row)[j][l]))
				}
				if i == j {
					row = append(row, k.sqrt())
				} else {
					row = append(row, k.div(rows[j][j]))
					rest = rest.sub(row[j].mul(white[j]))
				}
			}
			rows, white = append(rows, row), append(white, rest.div(row[i]))
			out = out.add(normal(rest, con(0), row[i]))
		}
		return out
	},
}

// uranium is the county feature of a simulation.
func uranium(counties, homes int, seed uint64) []float64 {
	return must(models.SimulateRadon(counties, homes, seed)).Uranium
}

// radonByHand is the radon model in terms of standardised county effects.
func radonByHand(p point, b data, uranium []float64, z []dual) dual {
	tau, j1 := positive(p.one("tau"))
	sigma, j2 := positive(p.one("sigma"))
	out := sum(halfNormal(tau, 1), halfNormal(sigma, 1), j1, j2)
	for _, name := range []string{"intercept", "uranium_slope", "floor_slope"} {
		out = out.add(normal(p.one(name), con(0), con(10)))
	}
	var levels []dual
	for j, u := range uranium {
		out = out.add(normal(z[j], con(0), con(1)))
		levels = append(levels, sum(p.one("intercept"), p.one("uranium_slope").times(u), tau.mul(z[j])))
	}
	for i, y := range b["y"] {
		mean := levels[int(b["county"][i])].add(p.one("floor_slope").times(b["floor"][i]))
		out = out.add(normal(con(y), mean, sigma))
	}
	return out
}

// handAt evaluates a hand-written log posterior at a flat point.
func handAt(f func(point, data) dual, l *infer.Layout, flat []float64, batch infer.Batch) (float64, []float64) {
	x, p, b := variables(flat), point{}, data{}
	for _, s := range l.Sites {
		p[s.Name] = x[s.Offset : s.Offset+s.Size]
	}
	for name, t := range batch {
		b[name] = floats(t)
	}
	out := f(p, b)
	return out.v, out.d
}

// Every model's log posterior and gradient is the hand-written one, from the mathematics, with the Jacobians,
// differentiated in forward mode; and at K points at once it is that of the points one by one.
func TestLogPosteriorsAreThoseByHand(t *testing.T) {
	const points = 6
	for _, m := range all(t) {
		t.Run(m.Name, func(t *testing.T) {
			hand := byHand[m.Name]
			require.NotNil(t, hand, "a model of All needs a hand-written log posterior")
			p := compile(t, m)
			l := p.Layout()
			d := l.Dim()
			flat := spread(points, d, 5)
			together, err := infer.NewParams(l, flat)
			require.NoError(t, err)
			values, grads := evaluate(t, whole(p), together, m.Batch)
			require.Len(t, values, points)
			var worstValue, worstGrad, worstMap float64
			for k := range points {
				row := flat[k*d : (k+1)*d]
				single, err := infer.NewParams(l, row)
				require.NoError(t, err)
				value, grad := evaluate(t, whole(p), single, m.Batch)
				want, slope := handAt(hand, l, row, m.Batch)
				worstValue = math.Max(worstValue, off(want, value[0]))
				worstMap = math.Max(worstMap, off(value[0], values[k]))
				for i := range d {
					worstGrad = math.Max(worstGrad, off(slope[i], grad[i]))
					worstMap = math.Max(worstMap, off(grad[i], grads[k*d+i]))
				}
			}
			assert.LessOrEqual(t, worstValue, 1e-10, "value")
			assert.LessOrEqual(t, worstGrad, 1e-8, "gradient")
			assert.LessOrEqual(t, worstMap, 1e-12, "%d points at once", points)
			t.Logf(
				"greatest differences: value %.1e, gradient %.1e, %d points at once %.1e",
				worstValue,
				worstGrad,
				points,
				worstMap,
			)
		})
	}
}
