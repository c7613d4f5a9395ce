package sgmcmc_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// gaussian is a Gaussian target of one or three dimensions, several times over: a posterior of independent copies, each
// with the same precision and mean. With three dimensions the first two are the rows of site "a", the third is site
// "b"; with one dimension there is only "b".
//
// The gradient noise of a batch is one vector for each copy, the same for all chains, because chains share batches:
// chains of a copy are then not independent of each other, but copies are.
type gaussian struct {
	precision *mat.SymDense
	mean      []float64
	copies    int
	layout    *infer.Layout
}

func newGaussian(precision *mat.SymDense, copies int) gaussian {
	g := gaussian{precision: precision, mean: []float64{1, -2, 0.5}[:precision.SymmetricDim()], copies: copies}
	n := copies
	switch g.dim() {
	case 1:
		g.layout = layout(infer.Shapes{"b": {n}})
	case 3:
		g.layout = layout(infer.Shapes{"a": {n, 2}, "b": {n}})
	}
	return g
}

func (g gaussian) dim() int { return g.precision.SymmetricDim() }

// logPosterior is −½Σ(x − μ)ᵀΛ(x − μ) + Σ noiseᵀx over the copies x, which has the gradient −Λ(x − μ) + noise in each.
func (g gaussian) logPosterior(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	x := p.Get("b").Unsqueeze(1).T()
	if g.dim() == 3 {
		x = ts.MustCat([]*ts.Tensor{p.Get("a").T(), x}, 1)
	}
	r := x.MustSub(b.Get("mean").T(), false)
	half := r.MustMatmul(b.Get("precision").T(), false).MustMulScalar(ts.FloatScalar(-0.5), false)
	if noise, ok := b["noise"]; ok {
		half = half.MustAdd(noise.T(), false)
	}
	return torch.Of(half.MustMul(r, false).MustSum(gotch.Double, false)), nil
}

// batches gives the target's constants, and noise of variance v drawn anew for each update when v is positive.
func (g gaussian) batches(v float64, seed uint64) infer.Batches {
	d := g.dim()
	precision := make([]float64, 0, d*d)
	for i := range d {
		for j := range d {
			precision = append(precision, g.precision.At(i, j))
		}
	}
	fixed := infer.Batch{"precision": torch.Of(vector(precision, d, d)), "mean": torch.Of(vector(g.mean))}
	if v == 0 {
		return infer.Full(fixed)
	}
	return &noisy{g: g, fixed: fixed, sd: math.Sqrt(v), random: rand.New(rand.NewPCG(seed, 1)), buffer: make([]float64,
		g.copies*d)}
}

// noisy are batches with fresh noise. They cannot be resumed, which these tests do not do.
type noisy struct {
	infer.Batches
	g      gaussian
	fixed  infer.Batch
	sd     float64
	random *rand.Rand
	buffer []float64
}

// The noise goes on from where it is, so there is nothing to seek.
func (n *noisy) Position() infer.Position  { return infer.Position{} }
func (n *noisy) Seek(infer.Position) error { return nil }

func (n *noisy) Next() (infer.Batch, error) {
	for i := range n.buffer {
		n.buffer[i] = n.sd * n.random.NormFloat64()
	}
	noise, err := torch.FromSlice(n.buffer, n.g.copies, n.g.dim())
	return infer.Batch{"precision": n.fixed["precision"], "mean": n.fixed["mean"], "noise": noise}, err
}

// at gathers copy r of a flat row into out.
func (g gaussian) at(row []float64, r int, out []float64) {
	if g.dim() == 3 {
		copy(out, row[2*r:2*r+2])
		row = row[2*g.copies:]
		out = out[2:]
	}
	out[0] = row[r]
}

// moments are averages over the updates of a run, kept apart for independent units (chains or copies).
type moments struct {
	n     int // length of x
	names []string
	units [][]float64 // for each unit the sums of x and of the products of its elements
	count float64     // of draws in each unit
}

func newMoments(n, units int) *moments {
	m := &moments{n: n}
	for i := range n {
		m.names = append(m.names, name("mean of x[%d]", i))
	}
	for i := range n {
		for j := i; j < n; j++ {
			m.names = append(m.names, name("covariance of x[%d] and x[%d]", i, j))
		}
	}
	for range units {
		m.units = append(m.units, make([]float64, len(m.names)))
	}
	return m
}

// add adds a draw of a unit; the weight is 1 over the draws that a unit has at one update.
func (m *moments) add(unit int, x []float64, weight float64) {
	sums := m.units[unit]
	at := m.n
	for i, v := range x {
		sums[i] += weight * v
		for _, w := range x[i:] {
			sums[at] += weight * v * w
			at++
		}
	}
}

// estimate is the average of an element over units, with its standard error. The units are independent and equally
// distributed, so that the variance of their average is that of the units over their number, whatever the
// autocorrelation within a unit: an effective sample size is not needed.
func (m *moments) estimate(i int) (average, se float64) {
	for _, u := range m.units {
		average += u[i] / m.count
	}
	k := float64(len(m.units))
	average /= k
	for _, u := range m.units {
		se += (u[i]/m.count - average) * (u[i]/m.count - average)
	}
	return average, math.Sqrt(se / (k - 1) / k)
}

// expected are the exact values of what estimate estimates when x has mean 0 and covariance sigma.
func (m *moments) expected(sigma mat.Matrix) []float64 {
	out := make([]float64, m.n)
	for i := range m.n {
		for j := i; j < m.n; j++ {
			out = append(out, sigma.At(i, j))
		}
	}
	return out
}

// allowed is the number of standard errors that an estimate may be off. The estimates are means of hundreds of
// independent units, close to normal: each is off by more with probability 7e-5. One run of all tests of this package
// compares fewer than 1600 of them, so that a correct method fails for about one seed in ten. The seeds are fixed, the
// streams are the same on every machine and the recursions contract rounding differences, so that a seed that passes
// passes everywhere.
const allowed = 4

// check compares all means and covariances with a law.
func (m *moments) check(t testing.TB, sigma mat.Matrix) {
	t.Helper()
	worst := 0.0
	for i, want := range m.expected(sigma) {
		got, se := m.estimate(i)
		z := math.Abs(got-want) / se
		worst = max(worst, z)
		assert.LessOrEqualf(t, z, float64(allowed),
			"%s is %.5f, the exact law of this step size has %.5f: standard error %.5f",
			m.names[i], got, want, se)
	}
	t.Logf("%d comparisons, the worst off by %.2f standard errors", len(m.names), worst)
}

// tells asserts that the run is long enough to tell a law from another: every variance of the two that should differ is
// more than 8 standard errors apart, so that an estimate within 4 of one is more than 4 from the other.
func (m *moments) tells(t testing.TB, right, wrong mat.Matrix, what string) {
	t.Helper()
	a, b := m.expected(right), m.expected(wrong)
	at := m.n
	for i := range m.n {
		_, se := m.estimate(at)
		assert.Greaterf(t, math.Abs(a[at]-b[at])/se, 2.0*allowed,
			"%s: the exact %.5f cannot be told from %s, %.5f: standard error %.5f",
			m.names[at], a[at], what, b[at], se)
		at += m.n - i
	}
}

// experiment is a run of a method on a Gaussian target.
type experiment struct {
	setting
	momenta bool // SGHMC rather than SGLD
	chains  int
	copies  int
	draws   int // of each chain
	seed    uint64

	estimate *sgmcmc.Estimate // of β
}

func (e experiment) String() string {
	method := "SGLD"
	rest := ""
	if e.momenta {
		method = "SGHMC"
		rest = name(", alpha %g, sigma %g", e.alpha, e.sigma)
	}
	return name("%s, %d-d, T %g, step %g, beta %g, gradient noise %g%s", method, e.dim(), e.temperature, e.eps, e.beta,
		e.noise, rest)
}

func (e experiment) law() law {
	if e.momenta {
		return e.sghmc()
	}
	return e.sgld()
}

func (e experiment) method() infer.Method {
	lr, temperature := infer.Constant(e.eps), infer.Constant(e.temperature)
	if e.momenta {
		return sgmcmc.SGHMC{LR: lr, Alpha: infer.Constant(e.alpha), Beta: e.beta, Sigma: e.sigma,
			Temperature: temperature, EstimateBeta: e.estimate}
	}
	return sgmcmc.SGLD{LR: lr, Temperature: temperature, Beta: e.beta, EstimateBeta: e.estimate}
}

// run starts all chains at 0, two standard deviations or so from the mean, lets them forget it, and takes the moments
// of x = θ − μ, or (θ − μ, m), at every second part of a relaxation time.
func (e experiment) run(t testing.TB) *moments {
	t.Helper()
	l := e.law()
	require.Less(t, l.radius(), 1.0)
	settle, thin := l.settle(), int(math.Ceil(-0.5/math.Log(l.radius())))
	g := newGaussian(e.precision, e.copies)
	d := e.dim()
	n, units := d, e.chains*e.copies
	if e.momenta {
		n = 2 * d
	}
	if e.noise > 0 {
		units = e.copies // chains share the noise of their batches
	}
	m, x := newMoments(n, units), make([]float64, n)
	start := params(g.layout, make([]float64, e.chains*g.layout.Dim()), e.chains)
	size := g.layout.Dim()
	run(t, build(t, e.method(), g.logPosterior), start, g.batches(e.noise, e.seed), settle+thin*e.draws, e.seed,
		func(s infer.State) {
			if s.Steps() <= settle || (s.Steps()-settle)%thin != 0 {
				return
			}
			theta, momenta := values(s.Position().Flat.T()), []float64(nil)
			if e.momenta {
				momenta = values(s.(sgmcmc.SGHMCState).Momenta.T())
			}
			m.count++
			for k := range e.chains {
				for r := range e.copies {
					g.at(theta[k*size:(k+1)*size], r, x)
					for i := range d {
						x[i] -= g.mean[i]
					}
					if e.momenta {
						g.at(momenta[k*size:(k+1)*size], r, x[d:])
					}
					m.add((k*e.copies+r)%units, x, float64(units)/float64(e.chains*e.copies))
				}
			}
		})
	return m
}
