package sgmcmc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/stat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

func TestSGLRWFollowsItsEquation(t *testing.T) {
	q := newQuartic()
	d := q.layout.Dim()
	for _, temperature := range []rate{fixed(0.5), varied(1), fixed(1e-3)} { // the last clips nearly every move
		for _, chains := range shapesOfChains {
			transform := build(t, sgmcmc.SGLRW{LR: varied(0.2).f, Temperature: temperature.f}, q.logPosterior)
			s := begin[sgmcmc.SGLRWState](t, transform, params(q.layout, spread(max(chains.rows, 1)*d), chains.rows), 7)
			for step := range int(consecutive) {
				eps, temp := varied(0.2).value(step), temperature.value(step)
				streams, theta := s.Streams, values(s.Params.Flat.T())
				u := values(must(streams.Uniform([]int{d}, s.Params.Flat.T().DType(), torch.CPU)).T())
				_, g := q.rows(theta)
				delta := math.Sqrt(2 * temp * eps)
				want := make([]float64, len(theta))
				for i := range theta {
					want[i] = theta[i] - delta
					if u[i] < (1+min(max(eps*g[i]/delta, -1), 1))/2 {
						want[i] = theta[i] + delta
					}
				}
				next, info := update(t, transform, s, q.batch())
				checkInfo(t, q, theta, info, eps, temp)
				within(t, want, values(next.Params.Flat.T()), golden, name("T %s, %s, update %d", temperature.name,
					chains.name, step))
				s = next
			}
		}
	}
	transform := build(t, sgmcmc.SGLRW{LR: infer.Constant(0.1), Temperature: zero}, q.logPosterior)
	s := begin[sgmcmc.SGLRWState](t, transform, params(q.layout, spread(d), 0), 7)
	next, _ := update(t, transform, s, q.batch())
	identical(t, values(s.Params.Flat.T()), values(next.Params.Flat.T()), "at T = 0")
}

// On a Gaussian of precision λ the walk from 0 is a birth-death chain on the lattice δℤ: with p(x) the probability to
// go up, its stationary law has π(x + δ) = π(x) p(x)/(1 − p(x + δ)). A chain is on one parity at a time. Both
// parities are seen where the chains are looked at after even and odd numbers of updates. K chains start independent of
// each other.
func TestSGLRWHasItsStationaryLaw(t *testing.T) {
	const lambda, n, chains, looks = 1.5, 20, 4000, 6
	target := infer.Mean(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Square().Mul(-0.5 * lambda), nil
	}, n)
	for _, e := range []struct{ eps, temperature float64 }{{0.1, 1}, {0.5, 1}, {0.6, 1}, {0.3, 4}, {0.3, 0.25}} {
		tau := e.temperature / n
		delta := math.Sqrt(2 * tau * e.eps)
		up := func(i int) float64 { return (1 + min(max(-e.eps*lambda*float64(i), -1), 1)) / 2 }
		weight, total, second, fourth := 1.0, 1.0, 0.0, 0.0
		for i := 0; weight > 1e-30; i++ {
			weight *= up(i) / (1 - up(i+1))
			x := float64(i+1) * delta
			total, second, fourth = total+2*weight, second+2*weight*x*x, fourth+2*weight*x*x*x*x
		}
		second, fourth = second/total, fourth/total
		if e.eps < 0.2 { // no clipping up to 3.6 standard deviations
			assert.InEpsilon(t, tau/lambda, second, 1e-3)
		}

		transform := must(sgmcmc.SGLRW{LR: infer.Constant(e.eps),
			Temperature: infer.Constant(e.temperature)}.Build(target))
		s := begin[infer.State](t, transform, must(must(infer.Zeros(layout(infer.Shapes{"x": {}}))).Repeat(chains)), 2)
		means := make([]float64, chains) // of x² over a pair of neighbouring updates, for each chain
		for step := range 60 + 2*looks*20 {
			next, _ := update(t, transform, s, nil)
			infer.Free(s)
			s = next
			if step >= 60 && (step-60)%40 < 2 {
				for k, x := range values(s.Position().Flat.T()) {
					means[k] += x * x / (2 * looks)
				}
			}
		}
		mean, variance := stat.MeanVariance(means, nil)
		assert.InDelta(t, second, mean, 4.5*math.Sqrt(variance/chains), "ε %g, T %g: E[x²]", e.eps, e.temperature)
		assert.Greater(t, variance, (fourth-second*second)/(2*looks)/2, "draws are no more than independent")
	}
}
