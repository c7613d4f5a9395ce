package optim_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
)

// The golden tests follow each optimiser with its equations in Go's float64. Both sides round a handful of operations
// on numbers of size one in each of 60 updates, which contract towards a mode: they agree to much less than 1e-12.
const (
	golden      = 1e-12
	consecutive = 60
)

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

func rates(v float64) []rate {
	return []rate{
		{name("%g", v), infer.Constant(v)},
		{name("%g·(1+t)^-½", v), infer.Polynomial(v, 1, 0.5)},
		{name("%g down to 0 in 40", v), infer.Linear(v, 0, 0, 40)},
	}
}

// follow compares an optimiser with a recursion, which moves θ by update t (from 0) with the gradient g there.
func follow(t *testing.T, method infer.Method, lr infer.Schedule, rows int, recursion func(t int, lr float64, theta,
	g []float64)) infer.State {
	w := newWells()
	transform := build(t, method, w.logPosterior)
	theta, batch, d := spread(max(rows, 1)*w.layout.Dim()), w.batch(), w.layout.Dim()
	s := begin(t, transform, params(w.layout, theta, rows))
	for step := range consecutive {
		g := w.gradient(theta)
		next, info := update(t, transform, s, batch)
		assert.Equal(t, lr(step), info.LR)
		assert.Zero(t, info.Temperature)
		assert.Nil(t, info.Diverged)
		for k := range max(rows, 1) {
			square := 0.0
			for _, v := range g[k*d : (k+1)*d] {
				square += v * v
			}
			assert.InDelta(t, w.value(theta[k*d:(k+1)*d]), info.LogPosterior[k], golden,
				"the density is of the point before the move")
			assert.InDelta(t, math.Sqrt(square), info.GradNorm[k], golden, "the norm is of the point before the move")
		}
		assert.Len(t, values(info.Aux["u"].T()), max(rows, 1))

		recursion(step, lr(step), theta, g)
		s = next
		if !within(t, theta, values(s.Position().Flat.T()), golden, name("theta after update %d", step)) {
			t.FailNow()
		}
		assert.Equal(t, step+1, s.Steps())
	}
	return s
}

func TestSGDFollowsItsEquations(t *testing.T) {
	for _, c := range []optim.SGD{
		{},
		{WeightDecay: 0.3},
		{Momentum: 0.9},
		{Momentum: 0.9, WeightDecay: 0.3},
		{Momentum: 0.9, Dampening: 0.4},
		{Momentum: 0.9, Dampening: 1},
		{Dampening: 0.4}, // without momentum there is nothing to dampen
		{Momentum: 0.9, Nesterov: true},
		{Momentum: 0.7, Nesterov: true, WeightDecay: 0.3},
	} {
		for _, lr := range rates(0.05) {
			for _, chains := range shapesOfChains {
				t.Run(name("momentum %g, dampening %g, Nesterov %v, decay %g, lr %s, %s", c.Momentum, c.Dampening,
					c.Nesterov, c.WeightDecay, lr.name, chains.name), func(t *testing.T) {
					c.LR = lr.f
					var b []float64
					s := follow(t, c, lr.f, chains.rows, func(step int, lr float64, theta, g []float64) {
						first := b == nil
						if first {
							b = make([]float64, len(theta))
						}
						for i := range theta {
							u := g[i] - c.WeightDecay*theta[i]
							switch {
							case first || c.Momentum == 0:
								b[i] = u
							default:
								b[i] = c.Momentum*b[i] + (1-c.Dampening)*u
							}
							if c.Nesterov {
								theta[i] += lr * (u + c.Momentum*b[i])
							} else {
								theta[i] += lr * b[i]
							}
						}
					})
					within(t, b, values(s.(optim.SGDState).Buffer.T()), golden, "the buffer at the end")
				})
			}
		}
	}
}

// adam are the numbers of Adam after defaults.
type adam struct {
	beta1, beta2, eps, decay float64
	decoupled                bool
}

// check follows an optimiser with Adam's equations, as printed: with bias-corrected moments.
func (a adam) check(t *testing.T, method infer.Method, lr infer.Schedule, rows int) {
	t.Helper()
	var m, v []float64
	s := follow(t, method, lr, rows, func(step int, lr float64, theta, g []float64) {
		if m == nil {
			m, v = make([]float64, len(theta)), make([]float64, len(theta))
		}
		n := float64(step + 1)
		for i := range theta {
			u := g[i]
			if !a.decoupled {
				u -= a.decay * theta[i]
			}
			m[i] = a.beta1*m[i] + (1-a.beta1)*u
			v[i] = a.beta2*v[i] + (1-a.beta2)*u*u
			mHat, vHat := m[i]/(1-math.Pow(a.beta1, n)), v[i]/(1-math.Pow(a.beta2, n))
			if a.decoupled {
				theta[i] -= lr * a.decay * theta[i]
			}
			theta[i] += lr * mHat / (math.Sqrt(vHat) + a.eps)
		}
	}).(optim.AdamState)
	within(t, m, values(s.First.T()), golden, "the first moment at the end")
	within(t, v, values(s.Second.T()), golden, "the second moment at the end")
}

func TestAdamFollowsItsEquations(t *testing.T) {
	for _, c := range []struct {
		given optim.Adam
		used  adam
	}{
		{optim.Adam{}, adam{0.9, 0.999, 1e-8, 0, false}},
		{optim.Adam{WeightDecay: 0.3}, adam{0.9, 0.999, 1e-8, 0.3, false}},
		{optim.Adam{Beta1: 0.5, Beta2: 0.8, Eps: 0.1}, adam{0.5, 0.8, 0.1, 0, false}},
		{optim.Adam{Beta1: 0.7, Beta2: 0.9, Eps: 1e-3, WeightDecay: 0.1}, adam{0.7, 0.9, 1e-3, 0.1, false}},
	} {
		for _, lr := range rates(0.05) {
			for _, chains := range shapesOfChains {
				t.Run(name("%+v, lr %s, %s", c.used, lr.name, chains.name), func(t *testing.T) {
					c.given.LR = lr.f
					c.used.check(t, c.given, lr.f, chains.rows)
				})
			}
		}
	}
}

func TestAdamWFollowsItsEquations(t *testing.T) {
	none, some := 0.0, 0.7
	for _, c := range []struct {
		given optim.AdamW
		used  adam
	}{
		{optim.AdamW{}, adam{0.9, 0.999, 1e-8, 0.01, true}},
		{optim.AdamW{WeightDecay: &none}, adam{0.9, 0.999, 1e-8, 0, true}},
		{optim.AdamW{WeightDecay: &some}, adam{0.9, 0.999, 1e-8, 0.7, true}},
		{optim.AdamW{Beta1: 0.5, Beta2: 0.8, Eps: 0.1, WeightDecay: &some}, adam{0.5, 0.8, 0.1, 0.7, true}},
	} {
		for _, lr := range rates(0.05) {
			for _, chains := range shapesOfChains {
				t.Run(name("%+v, lr %s, %s", c.used, lr.name, chains.name), func(t *testing.T) {
					c.given.LR = lr.f
					c.used.check(t, c.given, lr.f, chains.rows)
				})
			}
		}
	}
}
