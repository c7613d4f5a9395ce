package sgmcmc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

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
func (r rate) value(step int64) float64 {
	if r.f == nil {
		return 1
	}
	return r.f(step)
}

func fixed(v float64) rate { return rate{name("%g", v), infer.Constant(v)} }

// varied halves at the second update and goes on changing: it tells whether the step counts from 0.
func varied(v float64) rate {
	return rate{name("%g/(1+t)", v), func(step int64) float64 { return v / float64(1+step) }}
}

// noise is z of the next update: the streams are a value, so that drawing from the copy leaves the state alone.
func noise(t testing.TB, streams torch.Streams, like *ts.Tensor) []float64 {
	t.Helper()
	z, err := streams.NormalLike(like)
	require.NoError(t, err)
	return values(z)
}

// moved checks that the streams went on exactly when noise was drawn, so that no update sees the noise of another.
func moved(t testing.TB, before, after torch.Streams, scale float64) {
	t.Helper()
	if scale == 0 {
		assert.Equal(t, before, after, "nothing is drawn without noise")
		return
	}
	assert.Greater(t, after.Offset, before.Offset)
	assert.Equal(t, before.Chains, after.Chains)
	assert.Equal(t, before.Seed, after.Seed)
}

// checkInfo checks what an update says about itself: everything is of the point before the move.
func checkInfo(t testing.TB, q quartic, before []float64, info infer.Info, lr, temperature float64) {
	t.Helper()
	logp, g := q.rows(before)
	within(t, logp, info.LogPosterior, golden, "LogPosterior")
	within(t, norms(g, q.layout.Dim()), info.GradNorm, golden, "GradNorm")
	assert.Nil(t, info.Diverged)
	assert.Equal(t, lr, info.LR)
	assert.Equal(t, temperature, info.Temperature)
	var sums []float64
	for d := q.layout.Dim(); len(before) > 0; before = before[d:] {
		sum := 0.0
		for _, w := range before[3:d] {
			sum += w
		}
		sums = append(sums, sum)
	}
	within(t, sums, values(info.Aux["sum"]), golden, "Aux")
}

func TestSGLDFollowsItsEquation(t *testing.T) {
	q := newQuartic()
	type config struct {
		lr, temperature rate
		beta            float64
	}
	var configs []config
	for _, temperature := range []float64{0, 0.5, 1, 2} {
		for _, beta := range []float64{0, 0.3} {
			configs = append(configs,
				config{fixed(0.1), fixed(temperature), beta},
				config{varied(0.2), varied(temperature), beta})
		}
	}
	configs = append(configs, config{fixed(0.1), rate{"default", nil}, 0.3})

	for _, c := range configs {
		for _, chains := range shapesOfChains {
			t.Run(name("lr %s, T %s, beta %g, %s", c.lr.name, c.temperature.name, c.beta, chains.name),
				func(t *testing.T) {
					transform := build(t, sgmcmc.SGLD{LR: c.lr.f, Temperature: c.temperature.f, Beta: c.beta},
						q.logPosterior)
					start := params(q.layout, spread(max(chains.rows, 1)*q.layout.Dim()), chains.rows)
					s, batch := begin[sgmcmc.SGLDState](t, transform, start, 7), q.batch()
					for step := range int64(consecutive) {
						eps, temp := c.lr.value(step), c.temperature.value(step)
						scale := math.Sqrt(temp * eps * (2 - temp*eps*c.beta))
						theta, z := values(s.Params.Flat), noise(t, s.Streams, s.Params.Flat)
						_, g := q.rows(theta)
						want := make([]float64, len(theta))
						for i := range theta {
							want[i] = theta[i] + eps*g[i] + scale*z[i]
						}
						next, info := update(t, transform, s, batch)
						checkInfo(t, q, theta, info, eps, temp)
						identical(t, theta, values(s.Params.Flat), "the old state")
						if !within(t, want, values(next.Params.Flat), golden, name("theta after update %d", step)) {
							return
						}
						assert.Equal(t, step+1, next.Steps())
						moved(t, s.Streams, next.Streams, scale)
						s = next
					}
				})
		}
	}
}

func TestSGHMCFollowsItsEquations(t *testing.T) {
	q := newQuartic()
	type config struct {
		lr, temperature, alpha rate
		beta, sigma            float64
	}
	var configs []config
	for _, temperature := range []float64{0, 0.5, 1, 2} {
		for _, beta := range []float64{0, 0.3} {
			for _, sigma := range []float64{0.7, 2} {
				configs = append(configs,
					config{fixed(0.1), fixed(temperature), fixed(0.6), beta, sigma},
					config{varied(0.2), varied(temperature), varied(0.9), beta, sigma})
			}
		}
		// Without friction there is no noise to inject, and beta must be 0.
		configs = append(configs, config{fixed(0.1), fixed(temperature), fixed(0), 0, 1.5})
	}
	configs = append(configs,
		config{fixed(0.1), rate{"default", nil}, rate{"default", nil}, 0.3, 0}, // all defaults are 1
		// Friction that starts at 0, with a beta that only T = 0 allows there.
		config{fixed(0.1), rate{"t/4", func(t int64) float64 { return float64(t) / 4 }},
			rate{"t", func(t int64) float64 { return float64(t) }}, 0.3, 1.5})

	for _, c := range configs {
		for _, chains := range shapesOfChains {
			t.Run(name("lr %s, T %s, alpha %s, beta %g, sigma %g, %s", c.lr.name, c.temperature.name, c.alpha.name,
				c.beta, c.sigma, chains.name), func(t *testing.T) {
				transform := build(t, sgmcmc.SGHMC{LR: c.lr.f, Temperature: c.temperature.f, Alpha: c.alpha.f,
					Beta:  c.beta,
					Sigma: c.sigma, Momenta: vector(scaled(0.5, spread(q.layout.Dim())))}, q.logPosterior)
				start := params(q.layout, spread(max(chains.rows, 1)*q.layout.Dim()), chains.rows)
				s, batch := begin[sgmcmc.SGHMCState](t, transform, start, 7), q.batch()
				rho := 1.0
				if c.sigma != 0 {
					rho = 1 / (c.sigma * c.sigma)
				}
				for step := range int64(consecutive) {
					eps, temp, alpha := c.lr.value(step), c.temperature.value(step), c.alpha.value(step)
					scale := math.Sqrt(temp * eps * (2*alpha - temp*eps*c.beta))
					theta, m, z := values(s.Params.Flat), values(s.Momenta), noise(t, s.Streams, s.Momenta)
					_, g := q.rows(theta)
					wantTheta, wantM := make([]float64, len(theta)), make([]float64, len(theta))
					for i := range theta {
						wantTheta[i] = theta[i] + eps*rho*m[i]
						wantM[i] = m[i] + eps*g[i] - eps*rho*alpha*m[i] + scale*z[i]
					}
					next, info := update(t, transform, s, batch)
					checkInfo(t, q, theta, info, eps, temp)
					identical(t, theta, values(s.Params.Flat), "theta of the old state")
					identical(t, m, values(s.Momenta), "momenta of the old state")
					if !within(t, wantTheta, values(next.Params.Flat), golden, name("theta after update %d", step)) ||
						!within(t, wantM, values(next.Momenta), golden, name("momenta after update %d", step)) {
						return
					}
					assert.Equal(t, step+1, next.Steps())
					moved(t, s.Streams, next.Streams, scale)
					s = next
				}
			})
		}
	}
}
