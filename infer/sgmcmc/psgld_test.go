package sgmcmc_test

import (
	"cmp"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

func TestPSGLDFollowsItsEquations(t *testing.T) {
	check := func(lr, temperature rate, decay, limit float64) {
		a, lambda := cmp.Or(decay, 0.99), cmp.Or(limit, 1e-5)
		equation{name("a %g, eps %g", decay, limit), sgmcmc.PSGLD{LR: lr.f, Temperature: temperature.f, Decay: decay,
			Eps: limit}, lr, temperature, nil,
			func(step int, x map[string][]float64, g, z []float64) (float64, map[string][]float64) {
				eps, temp, theta, v := lr.value(step), temperature.value(step), x["params"], x["square"]
				for i := range g {
					if step == 0 {
						assert.Zero(t, v[i], "v at the start")
					}
					v[i] = a*v[i] + (1-a)*g[i]*g[i]
					p := 1 / (lambda + math.Sqrt(v[i]))
					theta[i] += eps*p*g[i] + math.Sqrt(2*temp*eps*p)*z[i]
				}
				return temp, nil
			}}.follow(t)
	}
	check(fixed(0.1), rate{"default", nil}, 0, 0)
	for _, temperature := range []float64{0, 0.5, 2} {
		check(fixed(0.1), fixed(temperature), 0.9, 0.3)
		check(varied(0.2), varied(temperature), 0.6, 1e-3)
	}
}

// At T = 0 it is RMSprop, written out here, for 100 updates; nothing is drawn.
func TestPSGLDAtZeroTemperatureIsRMSprop(t *testing.T) {
	q := newQuartic()
	transform := build(t, sgmcmc.PSGLD{LR: infer.Constant(0.01), Temperature: zero, Decay: 0.9, Eps: 1e-8},
		q.logPosterior)
	theta := spread(q.layout.Dim())
	v := make([]float64, len(theta))
	s, batch := begin[sgmcmc.PSGLDState](t, transform, params(q.layout, theta, 0), 3), q.batch()
	for step := range 100 {
		_, g := q.rows(theta)
		for i := range theta {
			v[i] = 0.9*v[i] + 0.1*g[i]*g[i]
			theta[i] += 0.01 * g[i] / (math.Sqrt(v[i]) + 1e-8)
		}
		s, _ = update(t, transform, s, batch)
		if !within(t, theta, values(s.Params.Flat.T()), 1e-11, name("theta after update %d", step)) {
			return
		}
	}
	assert.Zero(t, s.Streams.Offset)
}

// With λ much larger than √v the preconditioner is the number 1/λ, and PSGLD is SGLD with the step size ε/λ.
func TestPSGLDWithALargeEpsIsSGLD(t *testing.T) {
	q := newQuartic()
	const big = 1e10
	a := build(t, sgmcmc.PSGLD{LR: infer.Constant(0.1 * big), Eps: big}, q.logPosterior)
	b := build(t, sgmcmc.SGLD{LR: infer.Constant(0.1)}, q.logPosterior)
	start, batch := params(q.layout, spread(q.layout.Dim()), 0), q.batch()
	x, y := begin[sgmcmc.PSGLDState](t, a, start, 3), begin[sgmcmc.SGLDState](t, b, start, 3)
	for range 50 {
		x, _ = update(t, a, x, batch)
		y, _ = update(t, b, y, batch)
	}
	within(t, values(y.Params.Flat.T()), values(x.Params.Flat.T()), 1e-8, "theta")
}

// preconditioned is PSGLD that starts from given v.
type preconditioned struct {
	infer.Transform
	square []float64
}

func (p preconditioned) InitStreams(at infer.Params, streams torch.Streams) (infer.State, error) {
	s, err := p.Transform.(infer.Seeded).InitStreams(at, streams)
	if err != nil {
		return nil, err
	}
	state := s.(sgmcmc.PSGLDState)
	return state, torch.CopyFrom(state.Square, p.square)
}

// With a preconditioner that stays as it is, a different one for each dimension, the recursion on a Gaussian target is
// affine, A = I − εGΛ and Q = 2TεG, and the law is its stationary one.
func TestStationaryLawOfPSGLD(t *testing.T) {
	v := []float64{0.25, 1, 4} // of the three dimensions
	const lambda, eps, copies = 0.5, 0.4, 512
	precision := correlated()
	for i, temperature := range []float64{0.25, 1, 4} {
		t.Run(name("T %g", temperature), func(t *testing.T) {
			l := law{mat.NewDense(3, 3, nil), mat.NewDense(3, 3, nil)}
			for i := range 3 {
				p := 1 / (lambda + math.Sqrt(v[i]))
				for j := range 3 {
					l.a.Set(i, j, one(i == j)-eps*p*precision.At(i, j))
				}
				l.q.Set(i, i, 2*temperature*eps*p)
			}
			g := newGaussian(precision, copies)
			square := make([]float64, 0, 3*copies)
			for range copies {
				square = append(square, v[0], v[1])
			}
			for range copies {
				square = append(square, v[2])
			}
			method := sgmcmc.PSGLD{LR: infer.Constant(eps), Temperature: infer.Constant(temperature), Decay: 1 - 1e-13,
				Eps: lambda}
			transform := preconditioned{build(t, method, g.logPosterior), square}
			settle, thin := l.settle(), int(math.Ceil(-0.5/math.Log(l.radius())))
			m, x := newMoments(3, copies), make([]float64, 3)
			run(t, transform, params(g.layout, make([]float64, 3*copies), 0), g.batches(0, 0), settle+thin*300,
				uint64(i), func(s infer.State) {
					if s.Steps() <= settle || (s.Steps()-settle)%thin != 0 {
						return
					}
					theta := values(s.Position().Flat.T())
					m.count++
					for r := range copies {
						g.at(theta, r, x)
						for i := range x {
							x[i] -= g.mean[i]
						}
						m.add(r, x, 1)
					}
				})
			sigma := l.covariance()
			m.tells(t, sigma, setting{precision: precision, temperature: temperature}.ideal(false), "the target's")
			m.check(t, sigma)
		})
	}
}

// The term that is left out shows where the preconditioner changes as fast as θ does: on a Gaussian of variance 1 the
// chain is too wide by as much as the doc comment says, at a step size at which SGLD would be within 1% (1 − ελ/2), and
// less so the longer the average.
func TestPSGLDLeavesOutGamma(t *testing.T) {
	const copies = 512
	for _, c := range []struct{ decay, variance float64 }{{0.5, 1.69}, {0.99, 1.19}, {0.999, 1.03}} {
		g := newGaussian(scalar(1), copies)
		transform := build(t, sgmcmc.PSGLD{LR: infer.Constant(0.02), Decay: c.decay, Eps: 0.3}, g.logPosterior)
		a := &averages{sums: [][]float64{make([]float64, copies)}}
		run(t, transform, params(g.layout, make([]float64, copies), 0), g.batches(0, 0), 5000, 1, func(s infer.State) {
			if s.Steps() < 2000 || s.Steps()%50 != 0 {
				return
			}
			a.count++
			for r, x := range values(s.Position().Flat.T()) {
				a.sums[0][r] += (x - g.mean[0]) * (x - g.mean[0])
			}
		})
		mean, se := a.estimate(0)
		assert.InDelta(t, c.variance, mean, 0.005+allowed*se, "decay %g", c.decay)
		assert.Greater(t, (mean-1)/se, 1.0, "decay %g: too wide", c.decay)
	}
}

func TestPSGLDErrors(t *testing.T) {
	c := infer.Constant
	refused(t, []mistake{
		{sgmcmc.PSGLD{}, "LR", "sgmcmc.PSGLD: LR is missing: a schedule is required, for example infer.Constant(0.01): " +
			"the move of an element with a constant gradient"},
		{sgmcmc.PSGLD{LR: c(0)}, "LR", "sgmcmc.PSGLD: LR is 0: it must be finite and greater than 0"},
		{sgmcmc.PSGLD{LR: c(nan)}, "LR", "sgmcmc.PSGLD: LR is NaN: it must be finite and greater than 0"},
		{sgmcmc.PSGLD{LR: c(1), Temperature: c(-1)}, "Temperature",
			"sgmcmc.PSGLD: Temperature is -1: it must be finite and at least 0"},
		{sgmcmc.PSGLD{LR: c(1), Decay: 1}, "Decay", "sgmcmc.PSGLD: Decay is 1: it must be at least 0 and less than 1"},
		{sgmcmc.PSGLD{LR: c(1), Decay: -0.5}, "Decay", "sgmcmc.PSGLD: Decay is -0.5: it must be at least 0 and less than 1"},
		{sgmcmc.PSGLD{LR: c(1), Decay: nan}, "Decay", "sgmcmc.PSGLD: Decay is NaN: it must be at least 0 and less than 1"},
		{sgmcmc.PSGLD{LR: c(1), Eps: -1}, "Eps", "sgmcmc.PSGLD: Eps is -1: it must be finite and greater than 0"},
		{sgmcmc.PSGLD{LR: c(1), Eps: nan}, "Eps", "sgmcmc.PSGLD: Eps is NaN: it must be finite and greater than 0"},
	}...)
	goWrong(t, []mistake{
		{sgmcmc.PSGLD{LR: from(2, 0.1, -0.1)}, "LR at update 2",
			"sgmcmc.PSGLD: LR at update 2 is -0.1: it must be finite and at least 0"},
		{sgmcmc.PSGLD{LR: c(0.1), Temperature: from(2, 1, nan)}, "Temperature at update 2",
			"sgmcmc.PSGLD: Temperature at update 2 is NaN: it must be finite and at least 0"},
	}...)
}
