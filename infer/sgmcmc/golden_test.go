package sgmcmc_test

import (
	"cmp"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The golden tests take the noise z that an update is going to use from a copy of the state's streams, which draw the
// same numbers at the same position, and compute the update from the equations of the doc comments in Go's float64.
// Both sides round a handful of operations on numbers of size one, so they agree to much less than 1e-12.
const golden = 1e-12

// consecutive updates of every golden test.
const consecutive = 6

// shapesOfChains are the forms of a point: a single one, one with a chain axis, and several chains.
var shapesOfChains = []struct {
	name string
	rows int
}{{"one point", 0}, {"a chain axis of 1", 1}, {"5 chains", 5}}

// rate is a schedule of the golden tests, with its name.
type rate struct {
	name string
	f    infer.Schedule
}

// value is the rate at a step; a nil schedule is a default of 1.
func (r rate) value(step int) float64 {
	if r.f == nil {
		return 1
	}
	return r.f(step)
}

func fixed(v float64) rate { return rate{name("%g", v), infer.Constant(v)} }

// varied halves at the second update and goes on changing: it tells whether the step counts from 0.
func varied(v float64) rate {
	return rate{name("%g/(1+t)", v), func(step int) float64 { return v / float64(1+step) }}
}

// noise is z of the next update: the streams are a value, so that drawing from the copy leaves the state alone.
func noise(t testing.TB, streams torch.Streams, like torch.Tensor) []float64 {
	t.Helper()
	z, err := streams.NormalLike(like)
	require.NoError(t, err)
	return values(z.T())
}

// checkInfo checks what an update says about itself: everything is of the point before the move.
func checkInfo(t testing.TB, q quartic, before []float64, info infer.Info, lr, temperature float64) {
	t.Helper()
	logp, g := q.rows(before)
	within(t, logp, info.LogPosterior, golden, "LogPosterior")
	within(t, norms(g, q.layout.Dim()), info.GradNorm, golden, "GradNorm")
	assert.Nil(t, info.Diverged)
	assert.InDelta(t, lr, info.LR, 1e-15)
	assert.Equal(t, temperature, info.Temperature)
	var sums []float64
	for d := q.layout.Dim(); len(before) > 0; before = before[d:] {
		sum := 0.0
		for _, w := range before[3:d] {
			sum += w
		}
		sums = append(sums, sum)
	}
	within(t, sums, values(info.Aux["sum"].T()), golden, "Aux")
}

// tensors are the numbers of a state, by the names of a checkpoint.
func tensors(s infer.State) map[string][]float64 {
	out := map[string][]float64{}
	for name, x := range s.Save().Tensors {
		out[name] = values(x.T())
	}
	return out
}

// equation writes a method's equations down.
type equation struct {
	what            string
	method          infer.Method
	lr, temperature rate // what updates tell
	// start changes the first state of all; nil leaves it.
	start func(s infer.State) infer.State
	// next makes the tensors of the next state of those of a state, x, which is a copy: g is the gradient at its points, z
	// the noise. It returns the scale of the noise, 0 where none is drawn, and the statistics that an update tells.
	next func(step int, x map[string][]float64, g, z []float64) (scale float64, stats map[string][]float64)
}

// follow compares consecutive updates from every form of a point with the equations. No update may change its state,
// and the streams go on exactly where noise was drawn, so that no update sees the noise of another.
func (e equation) follow(t *testing.T) {
	t.Helper()
	q := newQuartic()
	for _, chains := range shapesOfChains {
		t.Run(name("%s, lr %s, T %s, %s", e.what, e.lr.name, e.temperature.name, chains.name), func(t *testing.T) {
			transform := build(t, e.method, q.logPosterior)
			start := params(q.layout, spread(max(chains.rows, 1)*q.layout.Dim()), chains.rows)
			s, batch := begin[infer.State](t, transform, start, 7), q.batch()
			if e.start != nil {
				s = e.start(s)
			}
			for step := range int(consecutive) {
				before, want := tensors(s), tensors(s)
				streams := s.Save().Streams
				_, g := q.rows(before["params"])
				scale, stats := e.next(step, want, g, noise(t, streams, s.Position().Flat))
				next, info := update(t, transform, s, batch)
				checkInfo(t, q, before["params"], info, e.lr.value(step), e.temperature.value(step))
				for stat, v := range stats {
					within(t, v, info.Stats[stat], golden, stat)
				}
				for part, v := range before {
					identical(t, v, tensors(s)[part], part+" of the old state")
					if !within(t, want[part], tensors(next)[part], golden, name("%s after update %d", part, step)) {
						return
					}
				}
				assert.Equal(t, step+1, next.Steps())
				after := next.Save().Streams
				assert.Equal(t, scale != 0, after.Offset > streams.Offset, "noise is drawn where there is any")
				after.Offset = streams.Offset
				assert.Equal(t, streams, after)
				s = next
			}
		})
	}
}

func TestSGLDFollowsItsEquation(t *testing.T) {
	check := func(lr, temperature rate, beta float64) {
		equation{name("beta %g", beta), sgmcmc.SGLD{LR: lr.f, Temperature: temperature.f, Beta: beta}, lr, temperature, nil,
			func(step int, x map[string][]float64, g, z []float64) (float64, map[string][]float64) {
				eps, temp := lr.value(step), temperature.value(step)
				scale := math.Sqrt(temp * eps * (2 - temp*eps*beta))
				for i := range g {
					x["params"][i] += eps*g[i] + scale*z[i]
				}
				return scale, nil
			}}.follow(t)
	}
	for _, temperature := range []float64{0, 0.5, 1, 2} {
		for _, beta := range []float64{0, 0.3} {
			check(fixed(0.1), fixed(temperature), beta)
			check(varied(0.2), varied(temperature), beta)
		}
	}
	check(fixed(0.1), rate{"default", nil}, 0.3)
}

func TestSGHMCFollowsItsEquations(t *testing.T) {
	check := func(lr, temperature, friction rate, beta, sigma float64) {
		rho := 1 / math.Pow(cmp.Or(sigma, 1), 2)
		equation{name("alpha %s, beta %g, sigma %g", friction.name, beta, sigma), sgmcmc.SGHMC{LR: lr.f,
			Temperature: temperature.f, Alpha: friction.f, Beta: beta, Sigma: sigma,
			Momenta: torch.Of(vector(scaled(0.5, spread(9))))}, lr, temperature, nil,
			func(step int, x map[string][]float64, g, z []float64) (float64, map[string][]float64) {
				eps, temp, alpha := lr.value(step), temperature.value(step), friction.value(step)
				scale := math.Sqrt(temp * eps * (2*alpha - temp*eps*beta))
				theta, m := x["params"], x["momenta"]
				for i := range g {
					theta[i], m[i] = theta[i]+eps*rho*m[i], m[i]+eps*g[i]-eps*rho*alpha*m[i]+scale*z[i]
				}
				return scale, nil
			}}.follow(t)
	}
	for _, temperature := range []float64{0, 0.5, 1, 2} {
		for _, beta := range []float64{0, 0.3} {
			for _, sigma := range []float64{0.7, 2} {
				check(fixed(0.1), fixed(temperature), fixed(0.6), beta, sigma)
				check(varied(0.2), varied(temperature), varied(0.9), beta, sigma)
			}
		}
		// Without friction there is no noise to inject, and beta must be 0.
		check(fixed(0.1), fixed(temperature), fixed(0), 0, 1.5)
	}
	check(fixed(0.1), rate{"default", nil}, rate{"default", nil}, 0.3, 0) // all defaults are 1
	// Friction that starts at 0, with a beta that only T = 0 allows there.
	check(fixed(0.1), rate{"t/4", func(t int) float64 { return float64(t) / 4 }},
		rate{"t", func(t int) float64 { return float64(t) }}, 0.3, 1.5)
}
