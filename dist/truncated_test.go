package dist_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// truncatedCase is a family with parameters and an interval in the middle of its mass.
type truncatedCase struct {
	name      string
	make      func(p ...any) dist.Distribution
	p         []float64
	low, high float64
	kink      float64 // where the density has one
}

var truncatedCases = []truncatedCase{
	{"Normal", func(p ...any) dist.Distribution { return dist.Normal(p[0], p[1]) }, []float64{0.5, 2}, -1, 3, 0},
	{"LogNormal", func(p ...any) dist.Distribution { return dist.LogNormal(p[0], p[1]) }, []float64{0.2, 0.7}, 0.3, 4, 1},
	{"HalfNormal", func(p ...any) dist.Distribution { return dist.HalfNormal(p[0]) }, []float64{1.5}, 0.2, 3, 1},
	{"Cauchy", func(p ...any) dist.Distribution { return dist.Cauchy(p[0], p[1]) }, []float64{0.5, 1.2}, -4, 3, 0.5},
	{"HalfCauchy", func(p ...any) dist.Distribution { return dist.HalfCauchy(p[0]) }, []float64{1.2}, 0.1, 7, 1},
	{"Laplace", func(p ...any) dist.Distribution { return dist.Laplace(p[0], p[1]) }, []float64{0.5, 1.2}, -3, 2, 0.5},
	{"Logistic", func(p ...any) dist.Distribution { return dist.Logistic(p[0], p[1]) }, []float64{0.5, 1.2}, -3, 9, 0.5},
	{"Uniform", func(p ...any) dist.Distribution { return dist.Uniform(p[0], p[1]) }, []float64{-4, 2}, -3, 1, 0},
	{"Exponential", func(p ...any) dist.Distribution { return dist.Exponential(p[0]) }, []float64{1.5}, 0.3, 2, 1},
	{"Gamma", func(p ...any) dist.Distribution { return dist.Gamma(p[0], p[1]) }, []float64{2.5, 1.5}, 0.3, 4, 1},
	{"InverseGamma", func(p ...any) dist.Distribution { return dist.InverseGamma(p[0], p[1]) },
		[]float64{2.5, 1.5}, 0.3, 4, 1},
	{"Chi2", func(p ...any) dist.Distribution { return dist.Chi2(p[0]) }, []float64{3}, 0.5, 6, 1},
	{"Weibull", func(p ...any) dist.Distribution { return dist.Weibull(p[0], p[1]) }, []float64{1.5, 2.2}, 0.3, 2, 1},
	{"Pareto", func(p ...any) dist.Distribution { return dist.Pareto(p[0], p[1]) }, []float64{1, 1.5}, 1.5, 8, 2},
	{"Gumbel", func(p ...any) dist.Distribution { return dist.Gumbel(p[0], p[1]) }, []float64{0.2, 1.5}, -1, 6, 1},
	{
		"TruncatedNormal",
		func(p ...any) dist.Distribution { return dist.TruncatedNormal(p[0], p[1], -2, 9) },
		[]float64{0.5, 2},
		-1,
		3,
		0,
	},
	{
		"StudentT",
		func(p ...any) dist.Distribution { return dist.StudentT(3.5, p[0], p[1]) },
		[]float64{0.5, 1.2},
		-3,
		9,
		0.5,
	},
	{
		"InverseGaussian",
		func(p ...any) dist.Distribution { return dist.InverseGaussian(p[0], p[1]) },
		[]float64{1.5, 2},
		0.3,
		4,
		1,
	},
	{"Mixture", func(p ...any) dist.Distribution {
		return dist.Mixture([]float64{1, 2}, dist.Normal(p[0], 1), dist.Gamma(3, p[1]))
	}, []float64{-0.5, 2}, -2, 3, 0},
}

func eachTruncated(t *testing.T, f func(t *testing.T, c truncatedCase)) {
	for _, c := range truncatedCases {
		t.Run(c.name, func(t *testing.T) { scoped(t, func() { f(t, c) }) })
	}
}

// The density, moments and CDF by quadrature of the density that is cut off, and draws by the CDF. Ends are numbers and
// tensors; an infinite end, as a number or an element, is no end.
func TestTruncatedLaw(t *testing.T) {
	eachTruncated(t, func(t *testing.T, c truncatedCase) {
		base := c.make(scalarNumbers(c.p)...)
		density := func(x float64) float64 {
			return math.Exp(scalarRead(base.LogProb(torch.Scalar(x)).T())[0])
		}
		// The density is tabulated once: quadratures of functions of it are on the same grid.
		const n = 2000
		grid := func(a, b float64) (x, p []float64) {
			for i := range n + 1 {
				x = append(x, a+(b-a)*float64(i)/n)
			}
			p = scalarRead(base.LogProb(torch.Of(scalarVec(x...))).T().MustExp(false))
			return x, p
		}
		integral := func(g func(x float64) float64, a, b float64) (sum float64) {
			if a >= b {
				return 0
			}
			x, p := grid(a, b)
			for i := range x {
				w := 2 + 2*float64(i%2)
				if i == 0 || i == n {
					w = 1
				}
				sum += w * p[i] * g(x[i]) * (b - a) / n / 3
			}
			return sum
		}
		parts := func(g func(x float64) float64, a, b float64) float64 { // on either side of a kink
			return integral(g, a, math.Min(b, c.kink)) + integral(g, math.Max(a, c.kink), b)
		}
		one := func(float64) float64 { return 1 }
		mass := parts(one, c.low, c.high)
		mean := parts(func(x float64) float64 { return x }, c.low, c.high) / mass
		variance := parts(func(x float64) float64 { return (x - mean) * (x - mean) }, c.low, c.high) / mass
		inf := math.Inf(1)
		for kind, d := range map[string]dist.Distribution{
			"numbers": dist.Truncated(base, c.low, c.high),
			"tensors": dist.Truncated(base, scalarVec(c.low, -inf), scalarVec(c.high, inf)),
		} {
			require.NoError(t, d.Validate())
			middle := (c.low + 2*c.high) / 3
			require.InDelta(
				t,
				math.Log(density(middle)/mass),
				scalarRead(d.LogProb(torch.Of(scalarVec(middle))).T())[0],
				1e-8,
				kind,
			)
			require.InDelta(
				t,
				parts(one, c.low, middle)/mass,
				scalarRead(d.(dist.CDFer).CDF(torch.Of(scalarVec(middle))).T())[0],
				1e-8,
				kind,
			)
			require.InDelta(
				t,
				middle,
				scalarRead(d.(dist.ICDFer).ICDF(torch.Of(scalarVec(parts(one, c.low, middle) / mass))).T())[0],
				1e-7,
				kind,
			)
			require.InDelta(t, mean, scalarRead(d.Mean().T())[0], 1e-8, kind)
			require.InDelta(t, variance, scalarRead(d.Variance().T())[0], 1e-8, kind)
			for _, x := range []float64{c.low - 0.01, c.high + 0.01, -inf, inf} {
				require.Equal(t, math.Inf(-1), scalarRead(d.LogProb(torch.Of(scalarVec(x))).T())[0], "%s at %v", kind, x)
			}
			require.Equal(t, 0.0, scalarRead(d.(dist.CDFer).CDF(torch.Of(scalarVec(c.low - 0.01))).T())[0])
			require.Equal(t, 1.0, scalarRead(d.(dist.CDFer).CDF(torch.Of(scalarVec(c.high + 0.01))).T())[0])
			if kind == "tensors" && c.name != "Uniform" && c.name != "TruncatedNormal" {
				v := scalarVec(middle)
				require.InDelta(
					t,
					scalarRead(base.LogProb(torch.Of(v)).T())[0],
					scalarRead(d.LogProb(torch.Of(v)).T())[1],
					1e-12,
					"no ends",
				)
				same(t, scalarRead(base.Mean().T())[0], scalarRead(d.Mean().T())[1], 1e-8, "mean without ends")
				same(t, scalarRead(base.Variance().T())[0], scalarRead(d.Variance().T())[1], 1e-7, "variance without ends")
				continue
			}
			draws := d.Sample(torch.NewSource(4, 0), 4000).T()
			x := scalarRead(draws)
			if kind == "numbers" {
				require.NoError(t, d.Support().Check(draws))
				// The distribution function by the midpoint rule.
				const cells = 4000
				at, sums := make([]float64, cells), make([]float64, cells+1)
				for i := range at {
					at[i] = c.low + (c.high-c.low)*(float64(i)+0.5)/cells
				}
				for i, p := range scalarRead(base.LogProb(torch.Of(scalarVec(at...))).T().MustExp(false)) {
					sums[i+1] = sums[i] + p*(c.high-c.low)/cells/mass
				}
				require.Less(t, ks(x, func(x float64) float64 {
					i, rest := math.Modf((x - c.low) / (c.high - c.low) * cells)
					if int(i) == cells {
						return 1
					}
					return sums[int(i)] + rest*(sums[int(i)+1]-sums[int(i)])
				}), 2.28)
			}
		}
	})
}

// Gradients in the value, the parameters and the ends, and of draws, by differences.
func TestTruncatedGradients(t *testing.T) {
	eachTruncated(t, func(t *testing.T, c truncatedCase) {
		at := append(slices.Clone(c.p), c.low, c.high, 0.4*c.low+0.6*c.high)
		run := func(v []*ts.Tensor) []*ts.Tensor {
			p := make([]any, len(c.p))
			for i := range p {
				p[i] = v[i]
			}
			k := len(p)
			d := dist.Truncated(c.make(p...), v[k], v[k+1])
			return []*ts.Tensor{
				d.LogProb(torch.Of(v[k+2])).T(),
				d.(dist.CDFer).CDF(torch.Of(v[k+2])).T(),
				d.Sample(torch.NewSource(7, 0)).T(),
				d.(dist.ICDFer).ICDF(torch.Of(scalarVec(0.9).MustReshape([]int64{}, false))).T(),
			}
		}
		constants := func(v []float64) (out []*ts.Tensor) {
			for _, x := range v {
				out = append(out, torch.Scalar(x).T())
			}
			return out
		}
		leaves := make([]torch.Tensor, len(at))
		for i, l := range constants(at) {
			leaves[i] = torch.Must(torch.Leaf(torch.Of(l)))
		}
		var got [][][]float64
		for _, y := range run(raw.Pointers(leaves)) {
			got = append(got, scalarGrad(y, leaves))
		}
		for i := range at {
			h := 1e-4 * math.Max(math.Abs(at[i]), 0.1)
			want := derivative(func(by float64) (all []float64) {
				v := slices.Clone(at)
				v[i] += by * h
				for _, y := range run(constants(v)) {
					all = append(all, scalarRead(y)...)
				}
				return all
			}, []float64{h, h, h, h})
			for o := range want {
				require.InDelta(t, want[o], got[o][i][0], 2e-6*math.Max(1, math.Abs(want[o])), "output %d, argument %d", o, i)
			}
		}
	})
}

// Far out in the tails log p is known in closed form: the exponential, logistic, Laplace and Gumbel tails are
// exponential there, Pareto's and Cauchy's are powers.
func TestTruncatedTails(t *testing.T) {
	scoped(t, func() {
		inf := math.Inf(1)
		for i, c := range []struct {
			d         dist.Distribution
			low, high float64
			x, want   float64
			median    float64
		}{
			{dist.Exponential(2), 1000, inf, 1000.5, math.Log(2) - 1, 1000 + math.Ln2/2},
			{dist.Exponential(2), 1000, 1001, 1000.5, math.Log(2) - 1 - math.Log1p(-math.Exp(-2)),
				1000 - math.Log((1+math.Exp(-2))/2)/2},
			{dist.Logistic(0, 1), 900, inf, 901, -1, 900 + math.Ln2},
			{dist.Logistic(0, 1), -inf, -900, -901, -1, -900 - math.Ln2},
			{dist.Laplace(0, 2), 2000, inf, 2002, -1 - math.Ln2, 2000 + 2*math.Ln2},
			{dist.Laplace(0, 2), -inf, -2000, -2002, -1 - math.Ln2, -2000 - 2*math.Ln2},
			{dist.Gumbel(0, 1), 800, inf, 801, -1, 800 + math.Ln2},
			{dist.Pareto(1, 3), 1e50, inf, 2e50, math.Log(3) - 4*math.Ln2 - 50*math.Ln10, 1e50 * math.Cbrt(2)},
			{dist.Cauchy(0, 1), 1e20, inf, 2e20, -2*math.Ln2 - 20*math.Ln10, 2e20},
			{dist.Cauchy(0, 1), -inf, -1e20, -2e20, -2*math.Ln2 - 20*math.Ln10, -2e20},
			{dist.HalfCauchy(1), 1e20, inf, 2e20, -2*math.Ln2 - 20*math.Ln10, 2e20},
			{dist.Weibull(1, 2), 100, inf, 100.01, math.Log(2*100.01) - (100.01*100.01 - 1e4), math.Sqrt(1e4 + math.Ln2)},
			// The logarithm of a lognormal number is normal: λ(40), the hazard of the normal law, from 60-digit arithmetic.
			{dist.LogNormal(0, 1), math.Exp(40), inf, math.Exp(40), math.Log(40.024968847207264) - 40,
				math.Exp(40.01731412676465)},
			// The tail integral of x^½ e⁻ˣ is e⁻ˣ √x (1 + 1/2x − 1/4x² + …).
			{dist.Gamma(1.5, 1), 600, inf, 600, -math.Log1p(1./1200 - 1./(4*360000) + 3./(8*600*360000)), 600.6937},
			// (1 + x) e⁻ˣ.
			{dist.Gamma(2, 1), 2000, inf, 2001, -1, 2000.6934936940775},
		} {
			d := dist.Truncated(c.d, c.low, c.high)
			require.NoError(t, d.Validate())
			countClose(t, c.want, scalarRead(d.LogProb(torch.Of(scalarVec(c.x))).T())[0], 1e-10, 1e-10, "%d: %s", i, d.Name())
			countClose(
				t,
				c.median,
				scalarRead(d.(dist.ICDFer).ICDF(torch.Of(scalarVec(0.5))).T())[0],
				1e-6,
				0,
				"%d: the median of %s",
				i,
				d.Name(),
			)
			x := scalarRead(d.Sample(torch.NewSource(1, 0), 1000).T())
			above := 0.0
			for _, v := range x {
				require.True(t, v >= c.low && v <= c.high && !math.IsInf(v, 0))
				if v > c.median {
					above++
				}
			}
			require.InDelta(t, 500, above, 4*math.Sqrt(250), "%d: half of the draws of %s are above the median", i, d.Name())
		}
		// No memory: the mean and variance of an exponential number above 1000.
		d := dist.Truncated(dist.Exponential(2), 1000, inf)
		require.InDelta(t, 1000.5, scalarRead(d.Mean().T())[0], 1e-9)
		require.InDelta(t, 0.25, scalarRead(d.Variance().T())[0], 1e-9)
		// Moments that do not exist.
		for _, c := range []struct {
			d              dist.Distribution
			mean, variance float64
		}{
			{dist.Truncated(dist.Cauchy(0, 1), 0, inf), inf, math.NaN()},
			{dist.Truncated(dist.Cauchy(0, 1), -inf, 0), -inf, math.NaN()},
			{dist.Truncated(dist.Cauchy(0, 1), scalarVec(-inf), inf), math.NaN(), math.NaN()},
			{dist.Truncated(dist.Pareto(1, 1.5), 2, inf), 6, inf}, // Pareto(2, 1.5)
			{dist.Truncated(dist.Pareto(1, 0.5), 2, inf), inf, math.NaN()},
			{dist.Truncated(dist.Pareto(1, 3), 2, inf), 3, 3}, // Pareto(2, 3)
		} {
			same(t, c.mean, scalarRead(c.d.Mean().T())[0], 1e-9, "mean")
			same(t, c.variance, scalarRead(c.d.Variance().T())[0], 1e-8, "variance")
		}
		// A probability that underflows: the density is 0, and Validate says why.
		lost := dist.Truncated(dist.Exponential(1e10), 1e300, inf)
		require.Equal(t, math.Inf(-1), scalarRead(lost.LogProb(torch.Of(scalarVec(2e300))).T())[0])
		require.EqualError(t, lost.Validate(), "dist.Truncated: the interval is element 0 of shape []: its probability is "+
			"0 to the accuracy of Exponential")
		// One of exp(-5000) does not, by 60 digits.
		deep := dist.Truncated(dist.InverseGaussian(1, 1), 0, 1e-4)
		require.NoError(t, deep.Validate())
		require.InEpsilon(t, -4981.2326207007501, scalarRead(deep.LogProb(torch.Of(scalarVec(5e-5))).T())[0], 1e-12)
	})
}

// The families that become others have the others' accuracy; an interval around the support changes nothing.
func TestTruncatedBecomesAnother(t *testing.T) {
	scoped(t, func() {
		inf := math.Inf(1)
		require.Equal(t, dist.TruncatedNormal(0.0, 1.0, 40.0, inf), dist.Truncated(dist.Normal(0, 1), 40, inf))
		require.Equal(t, dist.TruncatedNormal(0.0, 2.0, 0.0, 1.0), dist.Truncated(dist.HalfNormal(2), -3, 1))
		require.Equal(t, dist.Uniform(0.5, 1.0), dist.Truncated(dist.Uniform(0, 1), 0.5, 3))
		require.Equal(t, dist.TruncatedNormal(0.0, 1.0, 1.0, 2.0), dist.Truncated(dist.TruncatedNormal(0, 1, -3, 2), 1, 5))
		require.Equal(t, dist.Gamma(2, 3), dist.Truncated(dist.Gamma(2, 3), -1, inf))
		twice := dist.Truncated(dist.Truncated(dist.Exponential(1), 1, 5), 2, 9)
		require.Equal(t, "Truncated(Exponential)", twice.Name())
		require.Equal(t, "Exponential", twice.(interface{ Base() dist.Distribution }).Base().Name())
		require.Equal(t, support.Interval(2, 5), twice.Support())
		require.Equal(t, support.Interval(0, 5), dist.Truncated(dist.Gamma(1, 1), -2, 5).Support())
		require.Equal(t, support.Interval(2, inf), dist.Truncated(dist.Gamma(1, 1), 2, inf).Support())
		low := scalarVec(-1, 2)
		s := dist.Truncated(dist.Gamma(1, 1), low, 5).Support()
		require.Equal(t, []float64{0, 2}, s.Low.Values())
		require.Equal(t, []int{2}, dist.Truncated(dist.Normal(0, 1), low, 5).BatchShape())

		d := dist.Truncated(dist.Gamma(scalarVec(2, 3), 1), 1, 4)
		wide := d.Expand(3, 2)
		require.Equal(t, []int{3, 2}, wide.BatchShape())
		for _, x := range []*ts.Tensor{wide.Mean().T(), wide.Variance().T(), wide.LogProb(torch.Of(scalarVec(2))).T(),
			wide.Sample(torch.NewSource(1, 0)).T()} {
			require.Equal(t, []int{3, 2}, countShape(x))
		}
		require.Equal(t, []int{4, 3, 2}, countShape(wide.Sample(torch.NewSource(1, 0), 4).T()))
		require.Equal(t, []int{4, 3, 2}, countShape(wide.LogProb(wide.Sample(torch.NewSource(1, 0), 4)).T()))
		require.Equal(t, torch.Of(1), d.(dist.Parameterised).Params()["low"])
		narrow := dist.Truncated(dist.Logistic(0, scalarVec(1).MustTotype(gotch.Float, false)), -1, 1)
		require.Equal(t, gotch.Float, narrow.Sample(torch.NewSource(1, 0)).T().DType())
		require.Equal(t, gotch.Float, narrow.LogProb(narrow.Sample(torch.NewSource(1, 0))).T().DType())
	})
}

func TestTruncatedErrors(t *testing.T) {
	scoped(t, func() {
		for want, f := range map[string]func(){
			"dist.Truncated: base is nil: a distribution with a CDF is required": func() { dist.Truncated(nil, 0, 1).Support() },
			"dist.Truncated: base is VonMises: VonMises has no CDF here, and a truncated density is divided " +
				"by a difference of CDFs: " +
				"truncate a family with a CDF, or give the density by a Factor on a site with the interval as its support": func() {
				dist.Truncated(dist.VonMises(0, 1), 0, 1).Support()
			},
			"dist.Truncated: base is Mixture: VonMises has no CDF here": func() {
				dist.Truncated(dist.Mixture([]float64{1, 1}, dist.VonMises(0, 1), dist.VonMises(1, 1)), 0, 1).Support()
			},
			"dist.Truncated: base is Multinomial over a vector of whole numbers from 0 with sum 3: " +
				"a distribution of single numbers is required": func() {
				dist.Truncated(dist.Multinomial(3, scalarVec(0.5, 0.5)), 0, 1).Support()
			},
			"dist.Truncated: the interval is [1, +Inf]: both ends of Poisson must be finite: its mass is a sum over all " +
				"values between them": func() { dist.Truncated(dist.Poisson(1), 1, math.Inf(1)).Support() },
			"dist.Truncated: the interval is [-3, -1]: it must have a part in the support of Poisson, a whole number of " +
				"at least 0": func() { dist.Truncated(dist.Poisson(1), -3, -1).Support() },
			"dist.Truncated: the interval is [0, 1e+09]: it has 1000000001 values, and at most 1048576 are summed": func() {
				dist.Truncated(dist.Poisson(1), 0, 1e9).Support()
			},
			"dist.Truncated: high is a tensor of shape [2]: the ends of whole numbers are Go numbers": func() {
				dist.Truncated(dist.Poisson(1), 0, scalarVec(1, 2)).Support()
			},
			"dist.Truncated: base is Normal over a real number: a distribution of single real numbers is required": func() {
				dist.Truncated(dist.Independent(dist.Normal(scalarVec(1), 1), 1), 0, 1).Support()
			},
			"dist.Truncated: low is NaN: it must not be NaN": func() {
				dist.Truncated(dist.Gamma(1, 1), math.NaN(), 1).Support()
			},
			"dist.Truncated: low is a string: a number, a torch.Tensor or a *ts.Tensor is required": func() {
				dist.Truncated(dist.Gamma(1, 1), "0", 1).Support()
			},
			"dist.Truncated: high is 1: it must be greater than low, which is 2": func() {
				dist.Truncated(dist.Gamma(1, 1), 2, 1).Support()
			},
			"dist.Truncated: the interval is [-3, -1]: it must have a part in the support of Gamma, " +
				"a number greater than 0": func() {
				dist.Truncated(dist.Gamma(1, 1), -3, -1).Support()
			},
			"dist.Truncated: the shapes [[] [2] [3]]: they do not broadcast to one shape": func() {
				dist.Truncated(dist.Gamma(1, 1), scalarVec(1, 2), scalarVec(3, 4, 5)).Support()
			},
		} {
			err := torch.Do(func(*torch.Scope) error { f(); return nil })
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "(at dist/truncated_test.go:")
		}
		require.EqualError(t, dist.Truncated(dist.Gamma(1, 1), scalarVec(1, 3), 2).Validate(), "dist.Truncated: high is 2: "+
			"it must be greater than low, which is 3")
		require.EqualError(t, dist.Truncated(dist.Gamma(1, scalarVec(-1)), 1, 2).Validate(),
			"dist.Gamma: rate is -1: it must be greater than 0")
	})
}

// Values, draws and their gradients under vmap are those of the loop.
func TestTruncatedVmap(t *testing.T) {
	eachTruncated(t, func(t *testing.T, c truncatedCase) {
		const rows = 3
		columns := make([][]float64, len(c.p)+3)
		for k := range rows {
			for i, v := range append(slices.Clone(c.p), c.low, c.high, 0.5*(c.low+c.high)) {
				columns[i] = append(columns[i], v+0.02*float64(k))
			}
		}
		_, leaves := tensors(columns)
		run := func(in []torch.Tensor, s *torch.Source) ([]torch.Tensor, error) {
			p := make([]any, len(c.p))
			for i := range p {
				p[i] = in[i]
			}
			d := dist.Truncated(c.make(p...), in[len(p)], in[len(p)+1])
			return []torch.Tensor{
				d.LogProb(in[len(p)+2]),
				d.Sample(s, 2),
				d.(dist.CDFer).CDF(in[len(p)+2]),
				d.Mean(),
				d.Variance(),
			}, nil
		}
		streams := torch.NewStreams(8, rows)
		got := torch.Must(torch.VmapSources(run, leaves, &streams, nil))
		for k := range rows {
			var one []torch.Tensor
			for _, l := range leaves {
				one = append(one, torch.Of(l.T().MustSelect(0, int64(k), false)))
			}
			want := torch.Must(run(one, torch.NewSource(8, uint64(k))))
			for i := range want {
				mine := got[i].T().MustSelect(0, int64(k), false)
				require.Equal(t, countShape(want[i].T()), countShape(mine))
				for j, v := range scalarRead(want[i].T()) {
					countClose(t, v, scalarRead(mine)[j], 1e-11, 1e-13, "output %d of row %d", i, k)
				}
				if i < 3 {
					w, g := scalarGrad(want[i].T(), leaves), scalarGrad(mine, leaves)
					for j := range w {
						for e := range w[j] {
							countClose(t, w[j][e], g[j][e], 1e-9, 1e-11, "gradient %d of output %d of row %d", j, i, k)
						}
					}
				}
			}
		}
	})
}
