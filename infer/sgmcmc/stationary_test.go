package sgmcmc_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
)

// stationary runs an experiment and checks its moments against the exact law of the recursion, after making sure that
// the run can tell that law from the target's own, which no explicit method has at a finite step size, and from the law
// that a method which ignored beta would have.
func stationary(t *testing.T, e experiment) {
	t.Run(e.String(), func(t *testing.T) {
		sigma := e.law().covariance()
		m := e.run(t)
		m.tells(t, sigma, e.ideal(e.momenta), "the target's")
		if e.beta > 0 {
			without := e
			without.beta = 0
			m.tells(t, sigma, without.law().covariance(), "the one without beta")
		}
		m.check(t, sigma)
	})
}

// targets are the precisions of the stationary tests.
func targets() []*mat.SymDense { return []*mat.SymDense{scalar(1), correlated()} }

// seeds numbers the experiments of a test.
func seeds() func() uint64 {
	var n uint64
	return func() uint64 {
		n++
		return n
	}
}

func TestStationaryLawOfSGLD(t *testing.T) {
	seed := seeds()
	for _, precision := range targets() {
		for _, temperature := range []float64{0.25, 1, 4} {
			// A beta of c/T takes the part cε/2 of the noise variance away, the same at every temperature.
			for _, beta := range []float64{0, 2 / temperature} {
				stationary(t, experiment{
					setting: setting{precision: precision, eps: 0.35, temperature: temperature, beta: beta},
					chains:  256, copies: 2, draws: 150, seed: seed(),
				})
			}
		}
	}
}

func TestStationaryLawOfSGHMC(t *testing.T) {
	seed := seeds()
	for _, precision := range targets() {
		for _, temperature := range []float64{0.25, 1, 4} {
			for _, c := range []struct{ eps, alpha, sigma, beta float64 }{
				{0.25, 1.2, 1, 0}, {0.3, 1.5, 1.4, 4.5 / temperature}, {0.2, 1.2, 0.8, 0},
			} {
				stationary(t, experiment{
					setting: setting{precision: precision, eps: c.eps, temperature: temperature, alpha: c.alpha,
						sigma: c.sigma, beta: c.beta},
					momenta: true, chains: 256, copies: 2, draws: 150, seed: seed(),
				})
			}
		}
	}
}

// The chain has the variances of TestReferenceConstantsOfSGHMC.
func TestSGHMCHasTheReferenceVariances(t *testing.T) {
	for _, eps := range []float64{0.5, 0.1} {
		stationary(t, experiment{
			setting: setting{precision: scalar(1), eps: eps, temperature: 1, alpha: 1, sigma: 1},
			momenta: true, chains: 256, copies: 2, draws: 200, seed: 1,
		})
	}
}

// At T = 0 nothing is random: after n updates θ − μ, and the momenta, are exactly Aⁿ times what they were, which goes
// to 0.
func TestZeroTemperatureFollowsTheRecursionToTheMode(t *testing.T) {
	for _, precision := range targets() {
		for _, e := range []experiment{
			{setting: setting{precision: precision, eps: 0.35}},
			{setting: setting{precision: precision, eps: 0.25, alpha: 1.2, sigma: 0.8}, momenta: true},
			// T = 0 takes any beta
			{setting: setting{precision: precision, eps: 0.3, alpha: 1.5, sigma: 1.4, beta: 5}, momenta: true},
		} {
			e.chains, e.copies = 3, 2
			t.Run(e.String(), func(t *testing.T) {
				const updates = 300
				g, l, d := newGaussian(precision, e.copies), e.law(), e.dim()
				size := g.layout.Dim()
				first := scaled(2, spread(e.chains*size))
				n, _ := l.a.Dims()

				// want holds x of each copy of each chain, and is moved by A for each update.
				want := make([]*mat.VecDense, e.chains*e.copies)
				point := make([]float64, d)
				for i := range want {
					want[i] = mat.NewVecDense(n, nil)
					g.at(first[i/e.copies*size:], i%e.copies, point)
					for j := range d {
						want[i].SetVec(j, point[j]-g.mean[j])
					}
				}
				var last float64
				run(t, build(t, e.method(), g.logPosterior), params(g.layout, first, e.chains), g.batches(0, 0),
					updates, 1, func(s infer.State) {
						theta := values(s.Position().Flat.T())
						last = 0
						for i, x := range want {
							var next mat.VecDense
							next.MulVec(l.a, x)
							want[i] = &next
							g.at(theta[i/e.copies*size:], i%e.copies, point)
							for j := range d {
								expect := next.AtVec(j) + g.mean[j]
								if !(math.Abs(point[j]-expect) <= golden) {
									t.Errorf("update %d, copy %d, element %d: want %.17g, got %.17g", s.Steps(), i, j,
										expect, point[j])
								}
								last = max(last, math.Abs(point[j]-g.mean[j]))
							}
							if h, ok := s.(sgmcmc.SGHMCState); ok {
								g.at(values(h.Momenta.T())[i/e.copies*size:], i%e.copies, point)
								for j := range d {
									if !(math.Abs(point[j]-next.AtVec(d+j)) <= golden) {
										t.Errorf("update %d, copy %d, momentum %d: want %.17g, got %.17g", s.Steps(), i, j,
											next.AtVec(d+j), point[j])
									}
								}
							}
						}
					})
				// The slowest of these recursions has a spectral radius of 0.92, so that 300 updates leave 1e-11 of the start.
				if last > 1e-9 {
					t.Errorf("the chains end %g from the mode", last)
				}
			})
		}
	}
}
