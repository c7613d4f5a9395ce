package dist_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// scalarLaw is an independent implementation of a distribution of one real number; functions that it lacks are nil.
type scalarLaw struct {
	logp, cdf, icdf func(x float64) float64
	mean, variance  float64
}

// scalarCase is one family of continuous numbers.
type scalarCase struct {
	name string
	make func(p ...any) dist.Distribution
	// of the parameters: r real, p positive, l and h the ends of an interval (l after a location and a scale)
	domains string
	law     func(p []float64) scalarLaw
	// draws are smooth functions of the parameters and fixed random numbers.
	smooth bool
	// gamma families jump where rejection does; their gradients are checked on average.
	average bool
}

// gonumLaw is a distribution of gonum.
func gonumLaw(d interface {
	LogProb(float64) float64
	CDF(float64) float64
	Mean() float64
	Variance() float64
}) scalarLaw {
	l := scalarLaw{logp: d.LogProb, cdf: d.CDF, mean: d.Mean(), variance: d.Variance()}
	if q, ok := d.(interface{ Quantile(float64) float64 }); ok {
		l.icdf = q.Quantile
	}
	return l
}

var scalarFamilies = []scalarCase{
	{"Normal", func(p ...any) dist.Distribution { return dist.Normal(p[0], p[1]) }, "rp",
		func(p []float64) scalarLaw { return gonumLaw(distuv.Normal{Mu: p[0], Sigma: p[1]}) }, true, false},
	{"LogNormal", func(p ...any) dist.Distribution { return dist.LogNormal(p[0], p[1]) }, "rp",
		func(p []float64) scalarLaw { return gonumLaw(distuv.LogNormal{Mu: p[0], Sigma: p[1]}) }, true, false},
	{"HalfNormal", func(p ...any) dist.Distribution { return dist.HalfNormal(p[0]) }, "p",
		func(p []float64) scalarLaw {
			n := distuv.Normal{Sigma: p[0]}
			return scalarLaw{
				func(x float64) float64 { return n.LogProb(x) + math.Ln2 },
				func(x float64) float64 { return 2*n.CDF(x) - 1 }, func(q float64) float64 { return n.Quantile((1 + q) / 2) },
				p[0] * math.Sqrt(2/math.Pi), p[0] * p[0] * (1 - 2/math.Pi)}
		}, true, false},
	{"Cauchy", func(p ...any) dist.Distribution { return dist.Cauchy(p[0], p[1]) }, "rp",
		func(p []float64) scalarLaw {
			return scalarLaw{
				func(x float64) float64 { z := (x - p[0]) / p[1]; return -math.Log(math.Pi * p[1] * (1 + z*z)) },
				func(x float64) float64 { return 0.5 + math.Atan((x-p[0])/p[1])/math.Pi },
				func(q float64) float64 { return p[0] + p[1]*math.Tan(math.Pi*(q-0.5)) }, math.NaN(), math.NaN()}
		}, true, false},
	{"HalfCauchy", func(p ...any) dist.Distribution { return dist.HalfCauchy(p[0]) }, "p",
		func(p []float64) scalarLaw {
			return scalarLaw{
				func(x float64) float64 { z := x / p[0]; return -math.Log(math.Pi / 2 * p[0] * (1 + z*z)) },
				func(x float64) float64 { return 2 / math.Pi * math.Atan(x/p[0]) },
				func(q float64) float64 { return p[0] * math.Tan(math.Pi*q/2) }, math.Inf(1), math.NaN()}
		}, true, false},
	{"StudentT", func(p ...any) dist.Distribution { return dist.StudentT(p[0], p[1], p[2]) }, "prp",
		func(p []float64) scalarLaw {
			l := gonumLaw(distuv.StudentsT{Nu: p[0], Mu: p[1], Sigma: p[2]})
			l.icdf = nil
			// gonum knows neither bound of the moments.
			if p[0] <= 1 {
				l.mean, l.variance = math.NaN(), math.NaN()
			} else if p[0] <= 2 {
				l.variance = math.Inf(1)
			}
			return l
		}, false, true},
	{"Laplace", func(p ...any) dist.Distribution { return dist.Laplace(p[0], p[1]) }, "rp",
		func(p []float64) scalarLaw { return gonumLaw(distuv.Laplace{Mu: p[0], Scale: p[1]}) }, true, false},
	{"Logistic", func(p ...any) dist.Distribution { return dist.Logistic(p[0], p[1]) }, "rp",
		func(p []float64) scalarLaw {
			l := gonumLaw(distuv.Logistic{Mu: p[0], S: p[1]})
			l.logp = func(x float64) float64 { // gonum's forgets the scale
				z := (x - p[0]) / p[1]
				return -z - 2*math.Log1p(math.Exp(-z)) - math.Log(p[1])
			}
			return l
		}, true, false},
	{"Uniform", func(p ...any) dist.Distribution { return dist.Uniform(p[0], p[1]) }, "rh",
		func(p []float64) scalarLaw { return gonumLaw(distuv.Uniform{Min: p[0], Max: p[1]}) }, true, false},
	{"Exponential", func(p ...any) dist.Distribution { return dist.Exponential(p[0]) }, "p",
		func(p []float64) scalarLaw { return gonumLaw(distuv.Exponential{Rate: p[0]}) }, true, false},
	{"Gamma", func(p ...any) dist.Distribution { return dist.Gamma(p[0], p[1]) }, "pp",
		func(p []float64) scalarLaw {
			l := gonumLaw(distuv.Gamma{Alpha: p[0], Beta: p[1]})
			l.icdf = nil
			return l
		}, false, true},
	{"InverseGamma", func(p ...any) dist.Distribution { return dist.InverseGamma(p[0], p[1]) }, "pp",
		func(p []float64) scalarLaw {
			l := gonumLaw(distuv.InverseGamma{Alpha: p[0], Beta: p[1]})
			l.icdf = nil
			if p[0] <= 1 {
				l.mean, l.variance = math.Inf(1), math.NaN()
			} else if p[0] <= 2 {
				l.variance = math.Inf(1)
			}
			return l
		}, false, true},
	{"Chi2", func(p ...any) dist.Distribution { return dist.Chi2(p[0]) }, "p",
		func(p []float64) scalarLaw {
			l := gonumLaw(distuv.ChiSquared{K: p[0]})
			l.icdf = nil
			return l
		}, false, true},
	{"Beta", func(p ...any) dist.Distribution { return dist.Beta(p[0], p[1]) }, "pp",
		func(p []float64) scalarLaw {
			l := gonumLaw(distuv.Beta{Alpha: p[0], Beta: p[1]})
			l.icdf = nil
			return l
		}, false, true},
	{"Weibull", func(p ...any) dist.Distribution { return dist.Weibull(p[0], p[1]) }, "pp",
		func(p []float64) scalarLaw { return gonumLaw(distuv.Weibull{Lambda: p[0], K: p[1]}) }, true, false},
	{"Pareto", func(p ...any) dist.Distribution { return dist.Pareto(p[0], p[1]) }, "pp",
		func(p []float64) scalarLaw {
			l := gonumLaw(distuv.Pareto{Xm: p[0], Alpha: p[1]})
			if p[1] <= 1 {
				l.variance = math.NaN()
			}
			return l
		}, true, false},
	{"Gumbel", func(p ...any) dist.Distribution { return dist.Gumbel(p[0], p[1]) }, "rp",
		func(p []float64) scalarLaw { return gonumLaw(distuv.GumbelRight{Mu: p[0], Beta: p[1]}) }, true, false},
	{"SkewNormal", func(p ...any) dist.Distribution { return dist.SkewNormal(p[0], p[1], p[2]) }, "rpr", skewNormalLaw,
		true, false},
	{"InverseGaussian", func(p ...any) dist.Distribution { return dist.InverseGaussian(p[0], p[1]) }, "pp",
		func(p []float64) scalarLaw {
			phi := distuv.UnitNormal.CDF
			return scalarLaw{
				func(x float64) float64 {
					return 0.5*math.Log(p[1]/(2*math.Pi*x*x*x)) - p[1]*(x-p[0])*(x-p[0])/(2*p[0]*p[0]*x)
				},
				func(x float64) float64 {
					r := math.Sqrt(p[1] / x)
					return phi(r*(x/p[0]-1)) + math.Exp(2*p[1]/p[0])*phi(-r*(x/p[0]+1))
				}, nil, p[0], p[0] * p[0] * p[0] / p[1]}
		}, false, false},
	{"GeneralizedNormal", func(p ...any) dist.Distribution { return dist.GeneralizedNormal(p[0], p[1], p[2]) }, "rpp",
		func(p []float64) scalarLaw {
			one, _ := math.Lgamma(1 / p[2])
			three, _ := math.Lgamma(3 / p[2])
			power := func(x float64) float64 { return math.Pow(math.Abs(x-p[0])/p[1], p[2]) }
			return scalarLaw{
				func(x float64) float64 { return math.Log(p[2]/(2*p[1])) - one - power(x) },
				func(x float64) float64 {
					return 0.5 + math.Copysign(0.5, x-p[0])*mathext.GammaIncReg(1/p[2], power(x))
				}, nil, p[0], p[1] * p[1] * math.Exp(three-one)}
		}, false, true},
	{"VonMises", func(p ...any) dist.Distribution { return dist.VonMises(p[0], p[1]) }, "rp", vonMisesLaw, false, false},
	{
		"TruncatedNormal",
		func(p ...any) dist.Distribution { return dist.TruncatedNormal(p[0], p[1], p[2], p[3]) },
		"rplh",
		truncatedLaw,
		true,
		false,
	},
	{"Delta", func(p ...any) dist.Distribution { return dist.Delta(p[0], p[1]) }, "rr", nil, false, false},
}

// skewNormalLaw has the CDF Φ(z) − 2 T(z, α), with Owen's function T by Simpson's rule.
func skewNormalLaw(p []float64) scalarLaw {
	n := distuv.Normal{Mu: p[0], Sigma: p[1]}
	owen := func(z float64) float64 {
		const m = 2000
		f := func(t float64) float64 { return math.Exp(-z*z*(1+t*t)/2) / (1 + t*t) }
		h := p[2] / m
		sum := f(0) + f(p[2])
		for i := 1; i < m; i++ {
			sum += float64(2+2*(i%2)) * f(h*float64(i))
		}
		return sum * h / 3 / (2 * math.Pi)
	}
	delta := p[2] / math.Sqrt(1+p[2]*p[2])
	return scalarLaw{
		func(x float64) float64 {
			return n.LogProb(x) + math.Log(math.Erfc(-p[2]*(x-p[0])/p[1]/math.Sqrt2))
		},
		func(x float64) float64 { return n.CDF(x) - 2*owen((x-p[0])/p[1]) }, nil,
		p[0] + p[1]*delta*math.Sqrt(2/math.Pi), p[1] * p[1] * (1 - 2*delta*delta/math.Pi)}
}

// vonMisesLaw integrates by the trapezoidal rule, which converges exponentially for periodic functions.
func vonMisesLaw(p []float64) scalarLaw {
	const n = 4096
	density := func(x float64) float64 { return math.Exp(p[1] * (math.Cos(x-p[0]) - 1)) }
	var total, cos float64
	for i := range n {
		x := p[0] + 2*math.Pi*float64(i)/n
		total += density(x) * 2 * math.Pi / n
		cos += density(x) * math.Cos(x-p[0]) * 2 * math.Pi / n
	}
	cdf := func(x float64) float64 { // Simpson's rule from -π
		const m = 400
		h := (x + math.Pi) / m
		sum := density(-math.Pi) + density(x)
		for i := 1; i < m; i++ {
			sum += float64(2+2*(i%2)) * density(-math.Pi+h*float64(i))
		}
		return sum * h / 3 / total
	}
	return scalarLaw{
		func(x float64) float64 { return p[1]*(math.Cos(x-p[0])-1) - math.Log(total) },
		cdf,
		nil,
		p[0],
		1 - cos/total,
	}
}

func truncatedLaw(p []float64) scalarLaw {
	n := distuv.Normal{Mu: p[0], Sigma: p[1]}
	a, b := (p[2]-p[0])/p[1], (p[3]-p[0])/p[1]
	// The mass and the distribution function count from the nearer tail.
	mass := func(a, b float64) float64 {
		if a > 0 {
			a, b = -b, -a
		}
		return 0.5*math.Erfc(-b/math.Sqrt2) - 0.5*math.Erfc(-a/math.Sqrt2)
	}
	m := mass(a, b)
	phi := distuv.UnitNormal.Prob
	shift := (phi(a) - phi(b)) / m
	return scalarLaw{
		func(x float64) float64 { return n.LogProb(x) - math.Log(m) },
		func(x float64) float64 { return mass(a, (x-p[0])/p[1]) / m }, nil,
		p[0] + p[1]*shift, p[1] * p[1] * (1 + (a*phi(a)-b*phi(b))/m - shift*shift)}
}

func scalarFamily(name string) scalarCase {
	i := slices.IndexFunc(scalarFamilies, func(f scalarCase) bool { return f.name == name })
	return scalarFamilies[i]
}

func scalarVec(x ...float64) *ts.Tensor { return torch.New(x).T() }

func scalarRead(t *ts.Tensor) []float64 { return torch.Must(torch.ToSlice[float64](torch.Of(t))) }

func scalarNumbers(p []float64) []any {
	out := make([]any, len(p))
	for i, v := range p {
		out[i] = v
	}
	return out
}

// scalarGrad is the gradient of the sum.
func scalarGrad(y *ts.Tensor, leaves []torch.Tensor) [][]float64 {
	grads := torch.Must(torch.Grad(
		[]torch.Tensor{torch.Of(y.MustSum(gotch.Double, false))}, leaves, &torch.GradOptions{AllowUnused: true,
			KeepGraph: true}))
	out := make([][]float64, len(grads))
	for i, g := range grads {
		out[i] = scalarRead(g.T())
	}
	return out
}

// random draws n sets of parameters: columns[i] is parameter i.
func (f scalarCase) random(rng *rand.Rand, n int) (columns [][]float64) {
	columns = make([][]float64, len(f.domains))
	for range n {
		for i, d := range f.domains {
			v := 3 * rng.NormFloat64()
			switch d {
			case 'p':
				v = math.Exp(1.2 * rng.NormFloat64())
			case 'l':
				v = columns[i-2][len(columns[i-1])-1] + v/2*columns[i-1][len(columns[i-1])-1]
			case 'h':
				v = columns[i-1][len(columns[i-1])-1] + math.Exp(rng.NormFloat64())
			}
			columns[i] = append(columns[i], v)
		}
	}
	return columns
}

func row(columns [][]float64, k int) []float64 {
	p := make([]float64, len(columns))
	for i := range p {
		p[i] = columns[i][k]
	}
	return p
}

func tensors(columns [][]float64) (params []any, leaves []torch.Tensor) {
	for _, c := range columns {
		leaf := torch.Must(torch.Leaf(torch.Of(scalarVec(c...))))
		leaves, params = append(leaves, leaf), append(params, leaf)
	}
	return params, leaves
}

// inSupport moves draws a little inwards from where rounding may put them on an end.
func inSupport(f scalarCase, d dist.Distribution, columns [][]float64, x []float64) {
	for k := range x {
		switch f.name {
		case "Beta":
			x[k] = 0.001 + 0.998*x[k]
		case "Uniform", "TruncatedNormal":
			n := len(columns)
			x[k] = columns[n-2][k] + (x[k]-columns[n-2][k])*0.98 + 0.01*(columns[n-1][k]-columns[n-2][k])
		case "Pareto":
			x[k] *= 1.01
		case "GeneralizedNormal": // from its kink, or cusp, by many steps of a difference
			x[k] += math.Copysign(0.2*math.Abs(columns[0][k])+columns[1][k], x[k]-columns[0][k])
		}
	}
}

// scoped runs a test in a scope.
func scoped(t *testing.T, f func()) {
	t.Helper()
	require.NoError(t, torch.Do(func(*torch.Scope) error { f(); return nil }))
}

// eachScalar runs a test for each family.
func eachScalar(t *testing.T, f func(t *testing.T, c scalarCase, rng *rand.Rand)) {
	for _, c := range scalarFamilies {
		t.Run(c.name, func(t *testing.T) {
			scoped(t, func() { f(t, c, rand.New(rand.NewPCG(5, 9))) })
		})
	}
}

const scalarSets = 40

func TestScalarLogProb(t *testing.T) {
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		if f.law == nil {
			t.Skip("has no density")
		}
		columns := f.random(rng, scalarSets)
		params, _ := tensors(columns)
		d := f.make(params...)
		require.NoError(t, d.Validate())
		x := scalarRead(d.Sample(torch.NewSource(1, 0)).T())
		inSupport(f, d, columns, x)
		got := scalarRead(d.LogProb(torch.Of(scalarVec(x...))).T())
		for k := range x {
			want := f.law(row(columns, k)).logp(x[k])
			require.InDelta(t, want, got[k], 1e-10*math.Max(1, math.Abs(want)), "%v at %v", row(columns, k), x[k])
			number := scalarRead(f.make(scalarNumbers(row(columns, k))...).LogProb(torch.Of(scalarVec(x[k]))).T())[0]
			require.InDelta(t, want, number, 1e-10*math.Max(1, math.Abs(want)), "numbers %v at %v", row(columns, k), x[k])
		}
	})
}

// derivative is the five-point difference.
func derivative(f func(h float64) []float64, h []float64) []float64 {
	m2, m1, p1, p2 := f(-2), f(-1), f(1), f(2)
	out := make([]float64, len(h))
	for k := range out {
		out[k] = (m2[k] - 8*m1[k] + 8*p1[k] - p2[k]) / (12 * h[k])
	}
	return out
}

// steps are small against the numbers, so that they leave no domain.
func steps(x []float64, relative float64, s support.Support) []float64 {
	h := make([]float64, len(x))
	for k := range h {
		switch {
		case s.Kind == support.KindInterval && s.Low == torch.Of(0) && s.High == torch.Of(1):
			h[k] = relative * math.Min(x[k], 1-x[k])
		case s.Kind == support.KindInterval && s.Low == torch.Of(0):
			h[k] = relative * x[k]
		default:
			h[k] = relative * math.Max(math.Abs(x[k]), 1e-3)
		}
	}
	return h
}

func moved(x, h []float64, by float64) []float64 {
	out := make([]float64, len(x))
	for k := range out {
		out[k] = x[k] + by*h[k]
	}
	return out
}

func TestScalarGradients(t *testing.T) {
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		if f.law == nil {
			t.Skip("has no density")
		}
		columns := f.random(rng, scalarSets)
		if f.name == "Laplace" { // no set may have its kink within the steps of the difference
			for k := range columns[1] {
				columns[1][k] += 0.1
			}
		}
		params, leaves := tensors(columns)
		d := f.make(params...)
		x := scalarRead(d.Sample(torch.NewSource(1, 0)).T())
		inSupport(f, d, columns, x)
		all := append(slices.Clone(columns), x)
		leaf := torch.Must(torch.Leaf(torch.Of(scalarVec(x...))))
		got := scalarGrad(d.LogProb(leaf).T(), append(leaves, leaf))
		for i := range all {
			on := support.Real
			if i == len(columns) {
				on = d.Support()
			}
			h := steps(all[i], 1e-4, on)
			want := derivative(func(by float64) []float64 {
				at := slices.Clone(all)
				at[i] = moved(all[i], h, by)
				params, _ := tensors(at[:len(columns)])
				return scalarRead(f.make(params...).LogProb(torch.Of(scalarVec(at[len(columns)]...))).T())
			}, h)
			for k := range want {
				require.InDelta(
					t,
					want[k],
					got[i][k],
					1e-7*math.Max(1, math.Abs(want[k])),
					"argument %d of %v at %v",
					i,
					row(columns, k),
					x[k],
				)
			}
		}
	})
}

func TestScalarMoments(t *testing.T) {
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		if f.law == nil {
			t.Skip("has no density")
		}
		columns := f.random(rng, scalarSets)
		params, _ := tensors(columns)
		d := f.make(params...)
		mean, variance := scalarRead(d.Mean().T()), scalarRead(d.Variance().T())
		for k := range mean {
			law := f.law(row(columns, k))
			n := f.make(scalarNumbers(row(columns, k))...)
			for _, got := range [][2]float64{{mean[k], variance[k]},
				{scalarRead(n.Mean().T())[0], scalarRead(n.Variance().T())[0]}} {
				same(t, law.mean, got[0], 1e-10, "mean of %v", row(columns, k))
				same(t, law.variance, got[1], 1e-9, "variance of %v", row(columns, k))
			}
		}
	})
}

// same compares numbers that may be infinite or NaN.
func same(t *testing.T, want, got, relative float64, message string, args ...any) {
	t.Helper()
	if math.IsNaN(want) {
		require.True(t, math.IsNaN(got), append([]any{message}, args...)...)
		return
	}
	if math.IsInf(want, 0) {
		require.Equal(t, want, got, append([]any{message}, args...)...)
		return
	}
	require.InDelta(t, want, got, relative*math.Max(math.Abs(want), 1e-3), append([]any{message}, args...)...)
}

func TestScalarCDF(t *testing.T) {
	have := 0
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		columns := f.random(rng, scalarSets)
		params, leaves := tensors(columns)
		d, ok := f.make(params...).(dist.CDFer)
		if !ok {
			t.Skip("has no closed CDF")
		}
		have++
		x := scalarRead(d.(dist.Distribution).Sample(torch.NewSource(1, 0)).T())
		inSupport(f, d.(dist.Distribution), columns, x)
		leaf := torch.Must(torch.Leaf(torch.Of(scalarVec(x...))))
		tensor := d.CDF(leaf).T()
		p, density := scalarRead(tensor), scalarRead(d.(dist.Distribution).LogProb(torch.Of(scalarVec(x...))).T())
		grads := scalarGrad(tensor, append([]torch.Tensor{leaf}, leaves[len(leaves)-1:]...)[:1])
		for k := range x {
			same(t, f.law(row(columns, k)).cdf(x[k]), p[k], 1e-9, "CDF of %v at %v", row(columns, k), x[k])
			// The derivative of the CDF is the density.
			same(t, math.Exp(density[k]), grads[0][k], 1e-9, "density of %v at %v", row(columns, k), x[k])
		}
		inverse, ok := d.(dist.ICDFer)
		if !ok {
			return
		}
		u := make([]float64, scalarSets)
		for k := range u {
			u[k] = rng.Float64()
		}
		p1 := torch.Must(torch.Leaf(torch.Of(scalarVec(u...))))
		q := inverse.ICDF(p1).T()
		back, at := scalarRead(d.CDF(torch.Of(q)).T()), scalarRead(q)
		density = scalarRead(d.(dist.Distribution).LogProb(torch.Of(q)).T())
		slope := scalarGrad(q, []torch.Tensor{p1})[0]
		for k := range u {
			same(t, u[k], back[k], 1e-9, "CDF of the quantile of %v", row(columns, k))
			same(t, math.Exp(-density[k]), slope[k], 1e-8, "slope of the quantile of %v", row(columns, k))
			if icdf := f.law(row(columns, k)).icdf; icdf != nil {
				same(t, icdf(u[k]), at[k], 1e-9, "quantile of %v at %v", row(columns, k), u[k])
			}
		}
	})
	require.Equal(t, 18, have)
}

// The CDF is 0 below the support and 1 above it.
func TestScalarCDFOutsideTheSupport(t *testing.T) {
	scoped(t, func() {
		for _, c := range []struct {
			d    dist.Distribution
			x, p float64
		}{
			{dist.LogNormal(0, 1), -1, 0}, {dist.HalfNormal(1), -1, 0}, {dist.HalfCauchy(1), -1, 0}, {dist.Uniform(1, 2), 0, 0},
			{dist.Uniform(1, 2), 3, 1}, {dist.Exponential(1), -1, 0}, {dist.Gamma(2, 1), -1, 0},
			{dist.InverseGamma(2, 1), -1, 0},
			{dist.InverseGaussian(2, 1), -1, 0}, {dist.InverseGaussian(2, 1), 0, 0},
			{dist.Chi2(2), -1, 0}, {dist.Weibull(1, 2), -1, 0}, {dist.Pareto(1, 2), 0.5, 0},
			{dist.TruncatedNormal(0, 1, 3, 4), 2, 0},
			{dist.TruncatedNormal(0, 1, 3, 4), 5, 1}, {dist.TruncatedNormal(0, 1, math.Inf(-1), math.Inf(1)), 0, 0.5},
			// Lower tails are exact.
			{dist.Normal(0, 1), -37, 0.5 * math.Erfc(37/math.Sqrt2)}, {dist.Cauchy(0, 1), -1e200, 1 / math.Pi * 1e-200},
			{dist.Laplace(0, 1), -700, 0.5 * math.Exp(-700)},
		} {
			got := scalarRead(c.d.(dist.CDFer).CDF(torch.Of(scalarVec(c.x))).T())[0]
			require.InDelta(t, c.p, got, 1e-12*c.p, "%T at %v", c.d, c.x)
		}
	})
}

const scalarDraws = 20000

// ks is the largest distance between the empirical and the true distribution function, times √n. Beyond 2.28 its
// probability is that of four standard errors of a normal number.
func ks(x []float64, cdf func(float64) float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	n, far := float64(len(x)), 0.0
	for i, v := range x {
		p := cdf(v)
		far = max(far, p-float64(i)/n, float64(i+1)/n-p)
	}
	return far * math.Sqrt(n)
}

func TestScalarSamples(t *testing.T) {
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		if f.law == nil {
			t.Skip("has no density")
		}
		columns := f.random(rng, 3)
		for k := range 3 {
			p := row(columns, k)
			law, d := f.law(p), f.make(scalarNumbers(p)...)
			draws := d.Sample(torch.NewSource(11, uint64(k)), scalarDraws).T()
			require.NoError(t, d.Support().Check(draws))
			x := scalarRead(draws)
			require.Len(t, x, scalarDraws)
			require.Less(t, ks(x, law.cdf), 2.28, "%v", p)
			if f.name == "VonMises" || math.IsNaN(law.variance) || math.IsInf(law.variance, 0) {
				continue
			}
			var mean float64
			for _, v := range x {
				mean += v / scalarDraws
			}
			require.InDelta(t, law.mean, mean, 4*math.Sqrt(law.variance/scalarDraws), "mean of %v", p)
		}
	})
}

// The mean of a normal number above a is the hazard λ = φ(a)/Φ(−a), at a = 40 from 60-digit arithmetic.
func TestTruncatedNormalFarOut(t *testing.T) {
	scoped(t, func() {
		low := torch.Must(torch.Leaf(torch.Of(scalarVec(slices.Repeat([]float64{40}, scalarDraws)...))))
		d := dist.TruncatedNormal(0, 1, low, math.Inf(1))
		draws := d.Sample(torch.NewSource(3, 0)).T()
		x := scalarRead(draws)
		const hazard = 40.024968847207264
		var mean, square float64
		for _, v := range x {
			require.GreaterOrEqual(t, v, 40.0)
			mean += v / scalarDraws
		}
		for _, v := range x {
			square += (v - mean) * (v - mean) / scalarDraws
		}
		require.InDelta(t, hazard, mean, 4*math.Sqrt(square/scalarDraws))
		require.InDelta(t, hazard, scalarRead(d.Mean().T())[0], 1e-10)
		g := scalarGrad(draws, []torch.Tensor{low})[0]
		var slope, spread float64
		for _, v := range g {
			slope += v / scalarDraws
		}
		for _, v := range g {
			spread += (v - slope) * (v - slope) / scalarDraws
		}
		// d mean/da = λ(λ − a).
		require.InDelta(t, hazard*(hazard-40), slope, 4*math.Sqrt(spread/scalarDraws))
	})
}

// Draws are differentiated against differences of draws from the same random numbers.
func TestScalarReparameterisedDraws(t *testing.T) {
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		if !f.smooth {
			t.Skip("draws are not smooth in the parameters")
		}
		columns := f.random(rng, scalarSets)
		params, leaves := tensors(columns)
		got := scalarGrad(f.make(params...).Sample(torch.NewSource(2, 0)).T(), leaves)
		for i := range columns {
			h := steps(columns[i], 1e-4, support.Real)
			want := derivative(func(by float64) []float64 {
				at := slices.Clone(columns)
				at[i] = moved(columns[i], h, by)
				params, _ := tensors(at)
				return scalarRead(f.make(params...).Sample(torch.NewSource(2, 0)).T())
			}, h)
			for k := range want {
				require.InDelta(
					t,
					want[k],
					got[i][k],
					1e-6*math.Max(1, math.Abs(want[k])),
					"parameter %d of %v",
					i,
					row(columns, k),
				)
			}
		}
	})
}

// The gradient of the mean of bounded functions of the draws is that of the integral, by the density's own derivative:
// d/dp E[g] = E[g · d log p/dp]. Both sides are estimated from other draws.
func TestScalarGradientsOfRejectedDraws(t *testing.T) {
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		if !f.average {
			t.Skip("draws are checked one by one")
		}
		const n = 4 * scalarDraws
		g := func(x *ts.Tensor) *ts.Tensor { return x.MustAtan(false) }
		for set := range 2 {
			p := row(f.random(rng, 1), 0)
			columns := make([][]float64, len(p))
			for i := range p {
				columns[i] = slices.Repeat([]float64{p[i]}, n)
			}
			params, leaves := tensors(columns)
			path := scalarGrad(g(f.make(params...).Sample(torch.NewSource(21, uint64(set))).T()), leaves)
			x := f.make(params...).Sample(torch.NewSource(22, uint64(set))).T().MustDetach(false)
			values := scalarRead(g(x))
			score := scalarGrad(f.make(params...).LogProb(torch.Of(x)).T(), leaves)
			var center float64
			for _, v := range values {
				center += v / n
			}
			for i := range p {
				var a, aa, b, bb float64
				for k := range n {
					a, aa = a+path[i][k]/n, aa+path[i][k]*path[i][k]/n
					s := score[i][k] * (values[k] - center)
					b, bb = b+s/n, bb+s*s/n
				}
				require.InDelta(t, b, a, 4*math.Sqrt((aa-a*a+bb-b*b)/n), "parameter %d of %v", i, p)
			}
		}
	})
}

// Mapped over a leading axis, densities, draws and their gradients are those of a loop.
func TestScalarVmap(t *testing.T) {
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		const rows, size = 3, 4
		columns := f.random(rng, rows*size)
		_, leaves := tensors(columns)
		in := make([]*ts.Tensor, len(leaves))
		for i := range in {
			in[i] = leaves[i].T().MustReshape([]int64{rows, size}, false)
		}
		dims := make([]any, len(leaves))
		for i := range dims {
			dims[i] = in[i]
		}
		x := f.make(dims...).Sample(torch.NewSource(1, 0)).T().MustDetach(false)
		xs := scalarRead(x)
		inSupport(f, nil, columns, xs)
		x = torch.New(xs, rows, size).T()
		run := func(in []torch.Tensor, s *torch.Source) ([]torch.Tensor, error) {
			params := make([]any, len(leaves))
			for i := range params {
				params[i] = in[i]
			}
			d := f.make(params...)
			out := []torch.Tensor{d.LogProb(in[len(leaves)]), d.Sample(s, 2)}
			if c, ok := d.(dist.CDFer); ok {
				out = append(out, c.CDF(in[len(leaves)]))
			}
			if c, ok := d.(dist.ICDFer); ok {
				out = append(out, c.ICDF(torch.Of(scalarVec(0.1, 0.5, 0.6, 0.9))))
			}
			return out, nil
		}
		streams := torch.NewStreams(8, rows)
		all := append(slices.Clone(in), x)
		got := torch.Must(torch.VmapSources(run, raw.All(all), &streams, nil))
		for k := range rows {
			var one []torch.Tensor
			for _, t := range all {
				one = append(one, torch.Of(t.MustSelect(0, int64(k), false)))
			}
			want, err := run(one, torch.NewSource(8, uint64(k)))
			require.NoError(t, err)
			for i := range want {
				mine := got[i].T().MustSelect(0, int64(k), false)
				require.Equal(t, want[i].Shape(), torch.Of(mine).Shape())
				scalarNear(t, scalarRead(want[i].T()), scalarRead(mine), "output %d of row %d", i, k)
				if i < 2 && torch.Must(want[i].T().RequiresGrad()) {
					w, g := scalarGrad(want[i].T(), leaves), scalarGrad(mine, leaves)
					for j := range w {
						scalarNear(t, w[j], g[j], "gradient %d of output %d of row %d", j, i, k)
					}
				}
			}
		}
		// A parameter that is not mapped, beside a value that is.
		d := f.make(scalarNumbers(row(columns, 0))...)
		plain := scalarRead(d.LogProb(torch.Of(x)).T())
		mapped := torch.Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			return []torch.Tensor{d.LogProb(in[0])}, nil
		}, []torch.Tensor{torch.Of(x)}, nil))
		scalarNear(t, plain, scalarRead(mapped[0].T()), "numbers as parameters")
	})
}

func scalarNear(t *testing.T, want, got []float64, message string, args ...any) {
	t.Helper()
	require.Len(t, got, len(want), append([]any{message}, args...)...)
	for i := range want {
		same(t, want[i], got[i], 1e-13, message, args...)
	}
}

func TestScalarShapes(t *testing.T) {
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		columns := f.random(rng, 3)
		params, _ := tensors(columns)
		d := f.make(params...)
		require.Equal(t, f.name, d.Name())
		require.Equal(t, []int{3}, d.BatchShape())
		require.Empty(t, d.EventShape())
		wide := d.Expand(5, 3)
		require.Equal(t, []int{5, 3}, wide.BatchShape())
		require.Equal(t, []int{3}, d.BatchShape())
		x := wide.Sample(torch.NewSource(1, 0), 2).T()
		for _, s := range []*ts.Tensor{wide.Mean().T(), wide.Variance().T(), wide.LogProb(torch.Of(scalarVec(1))).T(),
			wide.LogProb(torch.Of(scalarVec(1, 2, 3))).T()} {
			require.Equal(t, []int{5, 3}, torch.Of(s).Shape())
		}
		require.Equal(t, []int{2, 5, 3}, torch.Of(x).Shape())
		require.Equal(t, []int{2, 5, 3}, wide.LogProb(torch.Of(x)).Shape())
		require.Equal(
			t,
			[]int{7, 5, 3},
			wide.LogProb(torch.New(make([]float64, 7), 7, 1, 1)).Shape(),
		)
		if f.name != "Delta" {
			draws := scalarRead(x)
			slices.Sort(draws)
			require.Len(t, slices.Compact(draws), 30, "draws of an expanded distribution are independent")
		}
		for i, p := range params { // one tensor, the rest numbers
			mixed := scalarNumbers(row(columns, 1))
			mixed[i] = torch.Of(p).Slice(0, 1, 2)
			require.Equal(t, []int{1}, f.make(mixed...).LogProb(torch.Of(scalarVec(1))).Shape())
			require.Equal(t, []int{4, 1}, f.make(mixed...).Sample(torch.NewSource(1, 0), 4).Shape())
		}
		number := f.make(scalarNumbers(row(columns, 1))...)
		require.Empty(t, number.BatchShape())
		require.Empty(t, number.Sample(torch.NewSource(1, 0)).Shape())
		require.Empty(t, number.Mean().Shape())
		require.Equal(t, f.name == "Delta", d.Support().Kind == support.KindPoint)
		require.Len(t, d.(dist.Parameterised).Params(), len(params))
	})
}

// In float32 densities and draws are float32, and as exact as it is.
func TestScalarFloat32(t *testing.T) {
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		columns := f.random(rng, 10)
		narrow := make([]any, len(columns))
		wide := make([]any, len(columns))
		for i, c := range columns {
			x := torch.Must(torch.FromSliceOn(torch.CPU, gotch.Float, c))
			narrow[i], wide[i] = x, x.T().MustTotype(gotch.Double, false)
		}
		d := f.make(narrow...)
		x := d.Sample(torch.NewSource(1, 0)).T()
		require.Equal(t, gotch.Float, torch.Must(torch.DTypeOfTensor(torch.Of(x))))
		got := d.LogProb(torch.Of(x)).T()
		require.Equal(t, gotch.Float, torch.Must(torch.DTypeOfTensor(torch.Of(got))))
		want := scalarRead(f.make(wide...).LogProb(torch.Of(x.MustTotype(gotch.Double, false))).T())
		for k, v := range scalarRead(got) {
			require.InDelta(t, want[k], v, 2e-4*math.Max(1, math.Abs(want[k])), "%v", row(columns, k))
		}
	})
}

func TestScalarErrors(t *testing.T) {
	scoped(t, func() {
		for want, f := range map[string]func(){
			"dist.Normal: scale is -1: it must be greater than 0": func() {
				dist.Normal(0, -1).Support()
			},
			"dist.Normal: loc is +Inf: it must be finite": func() {
				dist.Normal(math.Inf(1), 1).Support()
			},
			"dist.LogNormal: scale is 0: it must be greater than 0": func() {
				dist.LogNormal(0, 0).Support()
			},
			"dist.HalfNormal: scale is -2: it must be greater than 0": func() {
				dist.HalfNormal(-2).Support()
			},
			"dist.Cauchy: scale is NaN: it must be greater than 0": func() {
				dist.Cauchy(0, math.NaN()).Support()
			},
			"dist.HalfCauchy: scale is a string: a number, a torch.Tensor or a *ts.Tensor is required": func() {
				dist.HalfCauchy("x").Support()
			},
			"dist.StudentT: df is 0: it must be greater than 0": func() {
				dist.StudentT(0, 0, 1).Support()
			},
			"dist.Laplace: scale is -1: it must be greater than 0": func() {
				dist.Laplace(0, -1).Support()
			},
			"dist.Logistic: scale is -1: it must be greater than 0": func() {
				dist.Logistic(0, -1).Support()
			},
			"dist.Uniform: high is 1: it must be greater than low, which is 1": func() {
				dist.Uniform(1, 1).Support()
			},
			"dist.Uniform: low is -Inf: it must be finite": func() {
				dist.Uniform(math.Inf(-1), 1).Support()
			},
			"dist.Exponential: rate is 0: it must be greater than 0": func() {
				dist.Exponential(0).Support()
			},
			"dist.Gamma: rate is -1: it must be greater than 0": func() {
				dist.Gamma(1, -1).Support()
			},
			"dist.InverseGamma: concentration is -1: it must be greater than 0": func() {
				dist.InverseGamma(-1, 1).Support()
			},
			"dist.SkewNormal: skew is +Inf: it must be finite": func() {
				dist.SkewNormal(0, 1, math.Inf(1)).Support()
			},
			"dist.InverseGaussian: mean is -1: it must be greater than 0": func() {
				dist.InverseGaussian(-1, 1).Support()
			},
			"dist.GeneralizedNormal: shape is 0: it must be greater than 0": func() {
				dist.GeneralizedNormal(0, 1, 0).Support()
			},
			"dist.MultivariateStudentT: df is 0: it must be greater than 0": func() {
				dist.MultivariateStudentT(0, 0, ts.MustEye(2, gotch.Double, gotch.CPU)).Support()
			},
			"dist.MultivariateStudentT: scale_tril is a number: a tensor of square matrices is required": func() {
				dist.MultivariateStudentT(3, 0, 1).Support()
			},
			"dist.Chi2: df is -1: it must be greater than 0": func() { dist.Chi2(-1).Support() },
			"dist.Beta: concentration0 is 0: it must be greater than 0": func() {
				dist.Beta(1, 0).Support()
			},
			"dist.Weibull: concentration is 0: it must be greater than 0": func() {
				dist.Weibull(1, 0).Support()
			},
			"dist.Pareto: alpha is 0: it must be greater than 0": func() {
				dist.Pareto(1, 0).Support()
			},
			"dist.Gumbel: scale is 0: it must be greater than 0": func() {
				dist.Gumbel(0, 0).Support()
			},
			"dist.VonMises: concentration is -1: it must be at least 0": func() {
				dist.VonMises(0, -1).Support()
			},
			"dist.TruncatedNormal: high is 0: it must be greater than low, which is 2": func() {
				dist.TruncatedNormal(0, 1, 2, 0).Support()
			},
			"dist.TruncatedNormal: low is NaN: it must not be NaN": func() {
				dist.TruncatedNormal(0, 1, math.NaN(), 0).Support()
			},
			"dist.Delta: value is NaN: it must not be NaN": func() {
				dist.Delta(math.NaN()).Support()
			},
			"dist.Gamma: concentration is nil: a number or a tensor is required": func() {
				dist.Gamma((*ts.Tensor)(nil), 1).Support()
			},
			"dist.Normal: the shapes [[2] [3]]: they do not broadcast to one shape": func() {
				dist.Normal(scalarVec(1, 2), scalarVec(1, 2, 3)).Support()
			},
			"dist.Normal: batch shape [2]: it does not broadcast to [3 1]": func() {
				dist.Normal(scalarVec(1, 2), 1).Expand(3, 1)
			},
			"dist.ImproperUniform: it cannot be drawn from: its density has no integral": func() {
				dist.ImproperUniform(support.Real, nil, nil).Sample(nil).T()
			},
			"dist.ImproperUniform: event is [3]: the support, a symmetric positive-definite matrix, " +
				"needs at least 2 dimensions": func() {
				dist.ImproperUniform(support.PositiveDefinite, nil, []int{3}).Support()
			},
		} {
			err := torch.Do(func(*torch.Scope) error { f(); return nil })
			var mistake *dist.Error
			require.ErrorAs(t, err, &mistake)
			require.ErrorContains(t, err, want)
		}
	})
}

// Validate reads tensors.
func TestScalarValidate(t *testing.T) {
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		columns := f.random(rng, 2)
		for i := range columns {
			bad := slices.Clone(columns)
			bad[i] = []float64{columns[i][0], math.NaN()}
			params, _ := tensors(bad)
			require.ErrorContains(t, f.make(params...).Validate(), fmt.Sprintf("dist.%s: ", f.name))
			require.ErrorContains(t, f.make(params...).Validate(), "NaN at element 1 of shape [2]")
		}
	})
	scoped(t, func() {
		require.ErrorContains(t, dist.Gamma(scalarVec(1, -2), 1).Validate(), "dist.Gamma: concentration is -2 at element 1 "+
			"of shape [2]: it must be greater than 0")
		require.ErrorContains(t, dist.Uniform(scalarVec(0, 5), 3).Validate(),
			"dist.Uniform: high is 3: it must be greater than low, which is 5")
	})
}

func TestImproperUniform(t *testing.T) {
	scoped(t, func() {
		d := dist.ImproperUniform(support.Positive, []int{2}, []int{3})
		require.Equal(t, 1, d.Support().EventDims())
		require.NoError(t, d.Validate())
		x := torch.Must(torch.Leaf(torch.New(make([]float64, 12), 4, 1, 3)))
		y := d.LogProb(x).T()
		require.Equal(t, []int{4, 2}, torch.Of(y).Shape())
		require.Equal(t, make([]float64, 8), scalarRead(y))
		require.Equal(t, make([]float64, 12), scalarGrad(y, []torch.Tensor{x})[0])
		require.Equal(t, []int{5, 2}, d.Expand(5, 2).BatchShape())
		require.Equal(t, []int{2, 3}, d.Mean().Shape())
		require.True(t, math.IsNaN(scalarRead(d.Variance().T())[0]))
	})
}

func TestDeltaDraws(t *testing.T) {
	scoped(t, func() {
		v := torch.Must(torch.Leaf(torch.Of(scalarVec(1, 2))))
		x := dist.Delta(v).Expand(3, 2).Sample(nil, 2).T()
		require.Equal(t, []float64{1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}, scalarRead(x))
		require.Equal(t, []float64{6, 6}, scalarGrad(x, []torch.Tensor{v})[0])
		require.Equal(t, []float64{1, 2}, scalarRead(dist.Delta(v).Mean().T()))
		require.Equal(t, []float64{0, 0}, scalarRead(dist.Delta(v).Variance().T()))
		require.Equal(t, []float64{0, math.Inf(-1)}, scalarRead(dist.Delta(v).LogProb(torch.Of(scalarVec(1, 1))).T()))
		require.Equal(
			t,
			[]float64{0.5, 0.5},
			scalarRead(dist.Delta(math.Inf(1), 0.5).LogProb(torch.Of(scalarVec(math.Inf(1), math.Inf(1)))).T()),
		)
	})
}

// Tiny concentrations: the mean of Beta(a, a) is 1/2 and nearly all draws are at an end.
func TestBetaDrawsAtTinyConcentrations(t *testing.T) {
	scoped(t, func() {
		x := scalarRead(dist.Beta(1e-10, 3e-10).Sample(torch.NewSource(5, 0), scalarDraws).T())
		ones := 0.0
		for _, v := range x {
			require.False(t, math.IsNaN(v))
			if v > 0.5 {
				ones++
			}
		}
		require.InDelta(t, 0.25, ones/scalarDraws, 4*math.Sqrt(0.25*0.75/scalarDraws))
	})
}

// The circular mean and variance of draws, at a concentration where the scaled Bessel function is needed.
func TestVonMisesDrawsFollowTheirDirection(t *testing.T) {
	scoped(t, func() {
		const k = 1e6
		d := dist.VonMises(3, k)
		require.InDelta(t, 1/(2*k), scalarRead(d.Variance().T())[0], 1/(4*k*k)) // 1 - I1/I0 = 1/2k + 1/8k² + …
		var sum float64
		for _, x := range scalarRead(d.Sample(torch.NewSource(1, 0), scalarDraws).T()) {
			sum += (x - 3) * (x - 3) * k / scalarDraws
		}
		require.InDelta(t, 1, sum, 4*math.Sqrt(2./scalarDraws))
	})
}
