package sgmcmc_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

func TestSGNHTFollowsItsEquations(t *testing.T) {
	d := newQuartic().layout.Dim()
	check := func(lr, temperature, friction rate, beta, sigma float64, first *float64, each bool) {
		rho, size := 1/math.Pow(cmp.Or(sigma, 1), 2), d // elements of a thermostat
		if each {
			size = 1
		}
		equation{name("alpha %s, beta %g, sigma %g, each %v", friction.name, beta, sigma, each), sgmcmc.SGNHT{LR: lr.f,
			Temperature: temperature.f, Alpha: friction.f, Beta: beta, Sigma: sigma, Xi: first, PerParameter: each,
			Momenta: torch.Of(vector(scaled(0.5, spread(d))))}, lr, temperature, nil,
			func(step int, x map[string][]float64, g, z []float64) (float64, map[string][]float64) {
				eps, temp, alpha := lr.value(step), temperature.value(step), friction.value(step)
				scale := math.Sqrt(temp * eps * (2*alpha - temp*eps*beta))
				theta, m, xi := x["params"], x["momenta"], x["xi"]
				if start := alpha; step == 0 {
					if first != nil {
						start = *first
					}
					assert.Equal(t, slices.Repeat([]float64{start}, len(xi)), xi, "the thermostat at the start")
				}
				mean := make([]float64, len(g)/d)
				for j, friction := range xi {
					heat := 0.0
					for i := j * size; i < (j+1)*size; i++ {
						heat += rho * m[i] * m[i] / float64(size)
						theta[i] += eps * rho * m[i]
						m[i] += eps*g[i] - eps*rho*friction*m[i] + scale*z[i]
					}
					xi[j] += eps * (heat - temp)
					mean[j*size/d] += friction * float64(size) / float64(d)
				}
				return scale, map[string][]float64{"xi": mean}
			}}.follow(t)
	}
	minus := -0.4
	for _, each := range []bool{false, true} {
		for _, temperature := range []float64{0.5, 1, 2} {
			for _, beta := range []float64{0, 0.3} {
				for _, sigma := range []float64{0.7, 2} {
					check(fixed(0.1), fixed(temperature), fixed(0.6), beta, sigma, nil, each)
					check(varied(0.2), varied(temperature), varied(0.9), beta, sigma, new(float64), each) // ξ₀ = 0
				}
			}
			check(fixed(0.1), fixed(temperature), fixed(0), 0, 1.5, &minus, each)
		}
		check(fixed(0.1), rate{"default", nil}, rate{"default", nil}, 0.3, 0, nil, each)
	}
}

// frozen is the recursion of SGNHT with the thermostat held at ξ: explicit Euler-Maruyama with friction ξ and the noise
// of α.
func (s setting) frozen(xi float64) law {
	d, rho := s.dim(), 1/(s.sigma*s.sigma)
	l := s.sghmc()
	for i := range d {
		l.a.Set(d+i, d+i, 1-s.eps*rho*xi)
	}
	return l
}

// kinetic is the kinetic temperature σ⁻²E|m|²/d of a law of (θ, m).
func (s setting) kinetic(sigma *mat.Dense) float64 {
	d, sum := s.dim(), 0.0
	for i := range d {
		sum += sigma.At(d+i, d+i)
	}
	return sum / float64(d) / (s.sigma * s.sigma)
}

// balance is the friction at which the frozen recursion has kinetic temperature T, by bisection, with its law. It is
// what SGNHT is like when one thermostat serves many parameters, because its variance is T/d: E[ξ'] = E[ξ] says that
// the kinetic temperature is T on average, and a thermostat that hardly moves must then stand where the frozen
// recursion has that.
func (s setting) balance(t testing.TB) (float64, *mat.Dense) {
	t.Helper()
	// A friction that is too small is unstable or too hot; one of σ²/ε forgets the momenta at once, and is as cold as
	// can be.
	lo, hi := 0.0, s.sigma*s.sigma/s.eps
	for range 80 {
		mid := (lo + hi) / 2
		l := s.frozen(mid)
		if l.radius() >= 1 || s.kinetic(l.covariance()) > s.temperature {
			lo = mid
		} else {
			hi = mid
		}
	}
	l := s.frozen(hi)
	require.Less(t, l.radius(), 1.0)
	require.InDelta(t, s.temperature, s.kinetic(l.covariance()), 1e-9)
	return hi, l.covariance()
}

// thermo is a run of SGNHT on a Gaussian target.
type thermo struct {
	setting
	each           bool // a thermostat for each parameter
	chains, copies int
	settle         int
	draws          int
	thin           int
	blocks         int // time blocks as units, for a run of one chain
	seed           uint64
	balanced       float64 // what ξ is compared with: subtracted in the draws
}

func (e thermo) String() string {
	return name("each %v, %d-d, %d copies, T %g, step %g, gradient noise %g, beta %g, alpha %g, sigma %g", e.each, e.dim(),
		e.copies, e.temperature, e.eps, e.noise, e.beta, e.alpha, e.sigma)
}

// run starts from the target's law, and takes the moments of (θ − μ, m, ξ − balanced). Independent units are
// chains; with one thermostat for each parameter and gradient noise, which chains share, the copies; with one
// chain, blocks of time.
func (e thermo) run(t testing.TB) *moments {
	t.Helper()
	g, d := newGaussian(e.precision, e.copies), e.dim()
	size := g.layout.Dim()
	random := rand.New(rand.NewPCG(e.seed, 2))
	// A draw of the target: with Λ = LLᵀ, L⁻ᵀz has covariance Λ⁻¹.
	var chol mat.Cholesky
	require.True(t, chol.Factorize(e.precision))
	var lower mat.TriDense
	chol.LTo(&lower)
	start := make([]float64, e.chains*size)
	for i := range e.chains * e.copies {
		z := mat.NewVecDense(d, nil)
		for j := range d {
			z.SetVec(j, math.Sqrt(e.temperature)*random.NormFloat64())
		}
		var x mat.VecDense
		require.NoError(t, x.SolveVec(lower.T(), z))
		k, r := i/e.copies, i%e.copies
		for j := range d {
			at := k*size + r
			if d == 3 {
				at = k*size + []int{2 * r, 2*r + 1, 2*e.copies + r}[j]
			}
			start[at] = g.mean[j] + x.AtVec(j)
		}
	}
	thermostats := 1
	if e.each {
		thermostats = d
	}
	units := e.chains
	switch {
	case e.blocks > 0:
		units = e.blocks
	case e.noise > 0:
		require.True(t, e.each)
		units = e.copies
	case e.each && d == 1:
		units = e.chains * e.copies
	}
	m, x := newMoments(2*d+thermostats, units), make([]float64, 2*d+thermostats)
	m.count = float64(e.chains*e.copies*e.draws) / float64(units)
	draw := 0
	method := sgmcmc.SGNHT{LR: infer.Constant(e.eps), Alpha: infer.Constant(e.alpha), Beta: e.beta, Sigma: e.sigma,
		Temperature: infer.Constant(e.temperature), PerParameter: e.each}
	run(t, build(t, method, g.logPosterior), params(g.layout, start, e.chains), g.batches(e.noise, e.seed),
		e.settle+e.thin*e.draws, e.seed, func(state infer.State) {
			s := state.(sgmcmc.SGNHTState)
			if s.Step <= e.settle || (s.Step-e.settle)%e.thin != 0 {
				return
			}
			theta, momenta, xi := values(s.Params.Flat.T()), values(s.Momenta.T()), values(s.Xi.T())
			for k := range e.chains {
				for r := range e.copies {
					g.at(theta[k*size:(k+1)*size], r, x)
					for i := range d {
						x[i] -= g.mean[i]
					}
					g.at(momenta[k*size:(k+1)*size], r, x[d:])
					if e.each {
						g.at(xi[k*size:(k+1)*size], r, x[2*d:])
					} else {
						x[2*d] = xi[k]
					}
					for i := range thermostats {
						x[2*d+i] -= e.balanced
					}
					unit := k
					switch {
					case e.blocks > 0:
						unit = draw * e.blocks / e.draws
					case e.noise > 0:
						unit = r
					case e.each && d == 1:
						unit = k*e.copies + r
					}
					m.add(unit, x, 1)
				}
			}
			draw++
		})
	return m
}

// law is the covariance of a law of (θ, m), with ξ independent of them and of the given variance.
func (e thermo) law(sigma *mat.Dense, variance float64) *mat.Dense {
	n, _ := sigma.Dims()
	thermostats := 1
	if e.each {
		thermostats = e.dim()
	}
	out := mat.NewDense(n+thermostats, n+thermostats, nil)
	out.Slice(0, n, 0, n).(*mat.Dense).Copy(sigma)
	for i := range thermostats {
		out.Set(n+i, n+i, variance)
	}
	return out
}

// compare checks the moments of (θ − μ, m, ξ − balanced) that choose names, given two coordinates (equal for means).
func (e thermo) compare(t testing.TB, m *moments, law *mat.Dense, choose func(i, j int) bool) {
	t.Helper()
	want := m.expected(law)
	worst, count := 0.0, 0
	look := func(at int) {
		got, se := m.estimate(at)
		z := math.Abs(got-want[at]) / se
		worst = max(worst, z)
		count++
		assert.LessOrEqualf(t, z, float64(allowed), "%s is %.5f, expected %.5f: standard error %.5f", m.names[at], got,
			want[at], se)
	}
	at := m.n
	for i := range m.n {
		look(i)
		for j := i; j < m.n; j++ {
			if choose(i, j) {
				look(at)
			}
			at++
		}
	}
	t.Logf("%d comparisons, the worst off by %.2f standard errors", count, worst)
}

// At a small step the chain has the law of the target: Var θ = T/λ, Var m = Tσ², Cov(θ, m) = −½εT, E ξ = α and Var ξ =
// Tσ²/d, with one thermostat for each parameter or one for eight. The constants at σ = 2 are 1 and 4; a σ⁻¹ in place of
// σ⁻² would give Var θ = 2, and a ξ of variance T/d would be off by a factor 4. These are 45 comparisons; the bias of
// the step is at most one standard error.
func TestSGNHTHasTheTargetsLawAtSmallSteps(t *testing.T) {
	for i, e := range []thermo{
		{setting: setting{temperature: 1, alpha: 2, sigma: 2}, each: true},
		{setting: setting{temperature: 1, alpha: 2, sigma: 2}},
		{setting: setting{temperature: 0.25, alpha: 1, sigma: 1}, each: true},
		{setting: setting{temperature: 4, alpha: 2, sigma: 1.4}},
		// β takes noise away, and the mean of ξ falls by ½εTβ
		{setting: setting{temperature: 4, alpha: 1, sigma: 1, beta: 0.5}},
	} {
		e.precision, e.eps, e.chains, e.copies, e.settle, e.draws, e.thin, e.seed = scalar(1), 0.01, 128, 8, 800, 20,
			60, uint64(i+1)
		t.Run(e.String(), func(t *testing.T) {
			d := float64(e.copies)
			if e.each {
				d = 1
			}
			e.balanced = e.alpha - e.eps*e.temperature*e.beta/2
			law := e.ideal(true)
			law.Set(0, 1, -e.eps*e.temperature/2)
			law.Set(1, 0, -e.eps*e.temperature/2)
			e.run(t).check(t, e.law(law, e.temperature*e.sigma*e.sigma/d))
		})
	}
}

// With many parameters to a thermostat the law at any step is that of the balanced friction, to corrections of T/d: it
// is compared at steps where it is far from the target's.
func TestSGNHTHasTheLawOfItsBalancedFriction(t *testing.T) {
	for i, e := range []thermo{
		{setting: setting{precision: scalar(1), eps: 0.25, temperature: 1, alpha: 1.5, sigma: 1}, copies: 256},
		{setting: setting{precision: scalar(1), eps: 0.15, temperature: 4, alpha: 1.5, sigma: 0.8}, copies: 256},
		{setting: setting{precision: correlated(), eps: 0.2, temperature: 0.25, alpha: 1.5, sigma: 1.4}, copies: 128},
		{setting: setting{precision: correlated(), eps: 0.2, temperature: 1, alpha: 1.5, sigma: 1.4, beta: 3},
			copies: 128},
		{setting: setting{precision: correlated(), eps: 0.2, temperature: 4, alpha: 1.5, sigma: 1}, copies: 128},
	} {
		e.chains, e.settle, e.draws, e.thin, e.seed = 48, 300, 20, 10, uint64(i+1)
		t.Run(e.String(), func(t *testing.T) {
			var sigma *mat.Dense
			e.balanced, sigma = e.balance(t)
			m, d := e.run(t), e.dim()
			e.compare(t, m, e.law(sigma, 0), func(i, j int) bool { return j < 2*d || i != j }) // not Var ξ
			for i := range d {
				at := m.n
				for k := range i {
					at += m.n - k
				}
				_, se := m.estimate(at)
				assert.Greater(t, math.Abs(sigma.At(i, i)-e.ideal(true).At(i, i))/se, 2.0*allowed,
					"the target's law can be told from it")
			}
		})
	}
}

// The bias of θ is of first order, like that of the other explicit scheme; the kinetic temperature has none.
func TestOrderOfSGNHT(t *testing.T) {
	assert.InDelta(t, 1, slope(func(eps float64) float64 {
		s := setting{precision: scalar(1.7), eps: eps, temperature: 0.8, alpha: 1.3, sigma: 1.2}
		_, sigma := s.balance(t)
		return sigma.At(0, 0) - 0.8/1.7
	}), 0.05)
}

// With a thermostat for each parameter every single one has kinetic temperature T and Cov(θ, m) = −½εT exactly, at any
// step at which it is stable, and with correlations: the first because E[ξ'] = E[ξ], the second because E[θ'²] = E[θ²].
func TestThermostatsHoldTheTemperatureOfEachParameter(t *testing.T) {
	for i, temperature := range []float64{0.25, 1} {
		e := thermo{setting: setting{precision: correlated(), eps: 0.05, temperature: temperature, alpha: 2,
			sigma: 1.2}, each: true,
			chains: 256, copies: 2, settle: 500, draws: 40, thin: 15, seed: uint64(i + 1)}
		m := e.run(t)
		at, compared := m.n, 0
		for a := range m.n {
			for b := a; b < m.n; b++ {
				want := math.NaN()
				switch {
				case a == b && a >= 3 && a < 6:
					want = temperature * 1.2 * 1.2
				case b == a+3 && a < 3:
					want = -0.05 * temperature / 2
				}
				if got, se := m.estimate(at); !math.IsNaN(want) {
					assert.InDelta(t, want, got, allowed*se, "%s, standard error %g", m.names[at], se)
					compared++
				}
				at++
			}
		}
		assert.Equal(t, 6, compared)
	}
}

// Gradient noise of an unknown variance V: the thermostat rises to make up for it, by εV/(2T) at small steps, and θ
// keeps its law where SGHMC with the same friction is far off. With β = V/T² there is nothing left to make up for.
func TestSGNHTFindsTheNoiseOfTheGradient(t *testing.T) {
	for i, e := range []thermo{
		{setting: setting{precision: scalar(1), eps: 0.01, temperature: 0.5, alpha: 1, sigma: 1.3, noise: 80},
			each: true, settle: 1500, draws: 100, thin: 25, copies: 256},
		{setting: setting{precision: scalar(1), eps: 0.05, temperature: 0.5, alpha: 1, sigma: 1.3, noise: 16},
			blocks: 32, settle: 800, draws: 480, thin: 5, copies: 256},
		{setting: setting{precision: correlated(), eps: 0.05, temperature: 1, alpha: 0.5, sigma: 1, noise: 20},
			blocks: 32, settle: 800, draws: 480, thin: 5, copies: 128},
		{setting: setting{precision: scalar(1), eps: 0.05, temperature: 0.5, alpha: 1, sigma: 1.3, noise: 8, beta: 32},
			blocks: 32, settle: 800, draws: 480, thin: 5, copies: 256},
	} {
		e.chains, e.seed = 1, uint64(i+1)
		t.Run(e.String(), func(t *testing.T) {
			var sigma *mat.Dense
			e.balanced, sigma = e.balance(t)
			left := e.noise - e.beta*e.temperature*e.temperature
			assert.InDelta(t, e.alpha+e.eps*left/(2*e.temperature), e.balanced, 0.1*e.balanced, "to first order in ε")
			d := e.dim()
			if e.each {
				e.balanced = e.alpha + e.eps*left/(2*e.temperature)
				sigma = e.ideal(true)
			}
			m := e.run(t)
			e.compare(t, m, e.law(sigma, 0), func(i, j int) bool {
				// One thermostat each is not held still, so that at this step only what is exact or of small bias is compared.
				return j < 2*d && (!e.each || i == j)
			})
			if left > 0 {
				biased := e.setting.sghmc().covariance()
				_, se := m.estimate(m.n)
				assert.Greater(t, math.Abs(biased.At(0, 0)-sigma.At(0, 0))/se, 2.0*allowed, "SGHMC has %g", biased.At(0,
					0))
			}
		})
	}
}

func TestSGNHTIsRefusedAtZeroTemperature(t *testing.T) {
	q := newQuartic()
	const reason = "it must be greater than 0: at T = 0 the thermostat ξ' = ξ + ε|m|²/(dσ²) can only grow, and " +
		"stops the chain away from a mode; " +
		"SGLD, SGHMC and package optim have a T = 0"
	_, err := sgmcmc.SGNHT{LR: infer.Constant(0.1), Temperature: zero}.Build(infer.Sum(q.logPosterior, 1))
	field(t, err, "Temperature", "sgmcmc.SGNHT: Temperature is 0: "+reason)

	transform := build(t, sgmcmc.SGNHT{LR: infer.Constant(0.1), Temperature: from(2, 1, 0)}, q.logPosterior)
	s := begin[infer.State](t, transform, params(q.layout, spread(q.layout.Dim()), 0), 1)
	for range 2 {
		s, _ = update(t, transform, s, q.batch())
	}
	_, _, err = transform.Update(s, q.batch())
	field(t, err, "Temperature at update 2", "sgmcmc.SGNHT: Temperature at update 2 is 0: "+reason)
}

func TestStartOfSGNHT(t *testing.T) {
	q := newQuartic()
	d := q.layout.Dim()
	xi := 0.0
	for _, c := range []struct {
		method sgmcmc.SGNHT
		rows   int
		shape  []int
		want   float64
	}{
		{sgmcmc.SGNHT{}, 0, []int{1}, 1},
		{sgmcmc.SGNHT{Alpha: infer.Constant(0.3)}, 3, []int{3, 1}, 0.3},
		{sgmcmc.SGNHT{Alpha: infer.Constant(0.3), Xi: &xi}, 1, []int{1, 1}, 0},
		{sgmcmc.SGNHT{Xi: &xi, PerParameter: true}, 0, []int{d}, 0},
		{sgmcmc.SGNHT{PerParameter: true}, 3, []int{3, d}, 1},
	} {
		c.method.LR = infer.Constant(0.1)
		transform := build(t, c.method, q.logPosterior)
		xi = 7 // the transform has the number that it was built with
		s := begin[sgmcmc.SGNHTState](t, transform, params(q.layout, spread(max(c.rows, 1)*d), c.rows), 1)
		xi = 0
		assert.Equal(t, c.shape, s.Xi.Shape())
		for _, v := range values(s.Xi.T()) {
			assert.Equal(t, c.want, v)
		}
	}
}

func TestConfigurationErrorsOfSGNHT(t *testing.T) {
	c := infer.Constant
	q := newQuartic()
	infinite := math.Inf(1)
	refused(t, []mistake{
		{sgmcmc.SGNHT{}, "LR", "sgmcmc.SGNHT: LR is missing: a schedule is required, for example infer.Constant(0.01): " +
			"below α/λ, with λ the largest curvature of the mean log posterior"},
		{sgmcmc.SGNHT{LR: c(0)}, "LR", "sgmcmc.SGNHT: LR is 0: it must be finite and greater than 0"},
		{sgmcmc.SGNHT{LR: c(1), Alpha: c(-1)}, "Alpha", "sgmcmc.SGNHT: Alpha is -1: it must be finite and at least 0"},
		{sgmcmc.SGNHT{LR: c(1), Temperature: c(-1)}, "Temperature",
			"sgmcmc.SGNHT: Temperature is -1: it must be finite and at least 0"},
		{sgmcmc.SGNHT{LR: c(1), Sigma: -1}, "Sigma", "sgmcmc.SGNHT: Sigma is -1: it must be finite and greater than 0"},
		{sgmcmc.SGNHT{LR: c(1), Beta: -2}, "Beta", "sgmcmc.SGNHT: Beta is -2: it must be finite and at least 0"},
		{sgmcmc.SGNHT{LR: c(1), Xi: &nan}, "Xi", "sgmcmc.SGNHT: Xi is NaN: it must be finite"},
		{sgmcmc.SGNHT{LR: c(1), Xi: &infinite}, "Xi", "sgmcmc.SGNHT: Xi is +Inf: it must be finite"},
	}...)
	goWrong(t, []mistake{
		{sgmcmc.SGNHT{LR: from(2, 0.1, -0.1)}, "LR at update 2",
			"sgmcmc.SGNHT: LR at update 2 is -0.1: it must be finite and at least 0"},
		{sgmcmc.SGNHT{LR: c(0.1), Temperature: from(2, 1, nan)}, "Temperature at update 2",
			"sgmcmc.SGNHT: Temperature at update 2 is NaN: it must be finite and at least 0"},
		{sgmcmc.SGNHT{LR: c(0.1), Alpha: from(2, 1, -1)}, "Alpha at update 2",
			"sgmcmc.SGNHT: Alpha at update 2 is -1: it must be finite and at least 0"},
		{sgmcmc.SGNHT{LR: c(0.25), Alpha: from(2, 1, 0.5), Beta: 6}, "",
			"sgmcmc.SGNHT: the noise variance τε(2a − τεβ) is -0.125 at update 2, with τ = T/N = 1, step ε = " +
				"0.25, friction a = 0.5, β (Beta) = 6: " +
				"Beta must be at most 2a/(τε) = 4, or LR smaller: invalid configuration"},
	}...)
	_, err := sgmcmc.SGNHT{LR: c(0.1), Beta: 21}.Build(infer.Sum(q.logPosterior, 1))
	require.ErrorContains(t, err, "the noise variance")
}
