package sgmcmc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
)

// trial is a run of a method with momenta on a Gaussian target, whose recursion is known.
type trial struct {
	setting
	what          string
	method        infer.Method
	law           law
	chains, draws int
	copies        int
	seed          uint64
}

func (e trial) String() string {
	return name("%s, %d-d, T %g, step %g, beta %g, gradient noise %g, alpha %g, sigma %g", e.what, e.dim(), e.temperature,
		e.eps, e.beta, e.noise, e.alpha, e.sigma)
}

// run starts all chains at 0, lets them forget it, and takes the moments of (θ − μ, m) at every second part of a
// relaxation time. Chains share the noise of their batches, so that with noise only the copies are independent.
func (e trial) run(t testing.TB) *moments {
	t.Helper()
	require.Less(t, e.law.radius(), 1.0)
	settle, thin := e.law.settle(), int(math.Ceil(-0.5/math.Log(e.law.radius())))
	g := newGaussian(e.precision, e.copies)
	d, size := e.dim(), g.layout.Dim()
	units := e.chains * e.copies
	if e.noise > 0 {
		units = e.copies
	}
	m, x := newMoments(2*d, units), make([]float64, 2*d)
	start := params(g.layout, make([]float64, e.chains*size), e.chains)
	run(t, build(t, e.method, g.logPosterior), start, g.batches(e.noise, e.seed),
		settle+thin*e.draws, e.seed, func(s infer.State) {
			if s.Steps() <= settle || (s.Steps()-settle)%thin != 0 {
				return
			}
			theta, momenta := values(s.Position().Flat.T()), values(s.Save().Tensors["momenta"].T())
			m.count++
			for k := range e.chains {
				for r := range e.copies {
					g.at(theta[k*size:(k+1)*size], r, x)
					for i := range d {
						x[i] -= g.mean[i]
					}
					g.at(momenta[k*size:(k+1)*size], r, x[d:])
					m.add((k*e.copies+r)%units, x, float64(units)/float64(e.chains*e.copies))
				}
			}
		})
	return m
}

// fallToMode checks that at T = 0 the chains follow x' = Ax exactly and end at the mode.
func fallToMode(t *testing.T, e trial, updates int) {
	t.Helper()
	g, d := newGaussian(e.precision, 2), e.dim()
	size := g.layout.Dim()
	const chains = 3
	first := scaled(2, spread(chains*size))
	want := make([]*mat.VecDense, chains*g.copies)
	point := make([]float64, d)
	for i := range want {
		want[i] = mat.NewVecDense(2*d, nil)
		g.at(first[i/g.copies*size:], i%g.copies, point)
		for j := range d {
			want[i].SetVec(j, point[j]-g.mean[j])
		}
	}
	worst, last := 0.0, 0.0
	run(t, build(t, e.method, g.logPosterior), params(g.layout, first, chains), g.batches(0, 0),
		updates, 1, func(s infer.State) {
			theta, m := values(s.Position().Flat.T()), values(s.Save().Tensors["momenta"].T())
			last = 0
			for i, x := range want {
				var next mat.VecDense
				next.MulVec(e.law.a, x)
				want[i] = &next
				g.at(theta[i/g.copies*size:], i%g.copies, point)
				for j := range d {
					worst = max(worst, math.Abs(point[j]-g.mean[j]-next.AtVec(j)))
					last = max(last, math.Abs(point[j]-g.mean[j]))
				}
				g.at(m[i/g.copies*size:], i%g.copies, point)
				for j := range d {
					worst = max(worst, math.Abs(point[j]-next.AtVec(d+j)))
				}
			}
		})
	assert.LessOrEqual(t, worst, golden, "the recursion")
	assert.Less(t, last, 1e-9, "the distance to the mode at the end")
}

// slope is the order of a bias: the slope of its logarithm between two steps.
func slope(bias func(eps float64) float64) float64 {
	const coarse, fine = 0.02, 0.01
	return math.Log(math.Abs(bias(coarse)/bias(fine))) / math.Log(coarse/fine)
}

// digits rounds to the five decimal places of a table.
func digits(v float64) float64 { return math.Round(v*1e5) / 1e5 }

// startedBy are the momenta that a method starts with at the given number of chains of zeros.
func startedBy(t testing.TB, method infer.Method, l *infer.Layout, chains int, seed uint64) []float64 {
	t.Helper()
	p := params(l, make([]float64, chains*l.Dim()), chains)
	return values(begin[infer.State](t, build(t, method, newQuartic().logPosterior), p,
		seed).Save().Tensors["momenta"].T())
}

// hasVariance compares the average square of n independent normal numbers with their variance: its
// standard error is v√(2/n).
func hasVariance(t testing.TB, v float64, x []float64, what string) {
	t.Helper()
	sum := 0.0
	for _, a := range x {
		sum += a * a
	}
	n := float64(len(x))
	assert.InDelta(t, v, sum/n, allowed*v*math.Sqrt(2/n), what)
}
