package dist_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// scalarExtremes are log densities where the textbook formulas overflow, underflow or cancel, from their definitions in
// 60-digit arithmetic.
var scalarExtremes = []struct {
	family string
	params []float64
	x      float64
	want   float64
}{
	{"Normal", []float64{0.0, 1.0}, 40.0, -800.91893853320467274},
	{"Normal", []float64{0.0, 1.0}, -40.0, -800.91893853320467274},
	{"Normal", []float64{3.0, 1e-150}, 3.0, 344.46882541590217985},
	{"Normal", []float64{100000000.0, 2.0}, 100000080.0, -801.61208571376461805},
	{"StudentT", []float64{100000000.0, 0.0, 1.0}, 0.5, -1.0439385367984227405},
	{"StudentT", []float64{100000000.0, 0.0, 1.0}, 40.0, -800.9125466039065209},
	{"StudentT", []float64{100000000.0, 1.0, 3.0}, -5000.0, -1370491.3323336300227},
	{"StudentT", []float64{1000000000000000.0, 0.0, 1.0}, 2.0, -2.9189385332046709918},
	{"StudentT", []float64{0.001, 0.0, 1.0}, 1e+200, -468.58258469083684022},
	{"StudentT", []float64{3.0, 0.0, 1.0}, 1e+200, -1840.8717386675238374},
	{"StudentT", []float64{0.001, 0.0, 1.0}, 0.001, -4.1482178062150430285},
	{"StudentT", []float64{19.9, 0.0, 1.0}, 1.5, -2.0508767176786314192},
	{"StudentT", []float64{20.1, 0.0, 1.0}, 1.5, -2.0507948665365295651},
	{"Beta", []float64{0.5, 0.5}, 1e-300, 344.24303406325745242},
	{"Beta", []float64{1e-300, 1.0}, 1e-300, 0.0},
	{"Beta", []float64{1e-300, 1e-300}, 0.5, -690.08238071765375987},
	{"Beta", []float64{1e-10, 3.0}, 1e-300, 667.74967689934569559},
	{"Beta", []float64{3.0, 2.0}, 1e-300, -1379.0661491466394101},
	{"Beta", []float64{100000000.0, 100000000.0}, 0.50003, 8.971122611314040167},
	{"Beta", []float64{100000000.0, 300000000.0}, 0.25001, 9.7148457989997628874},
	{"Beta", []float64{100000000.0, 0.5}, 0.9999999, 6.6970228588073510854},
	{"Beta", []float64{2.0, 10000000000.0}, 1e-10, 22.02585093009045684},
	{"Beta", []float64{1000000.0, 1000000.0}, 0.001, -5522448.8671970201327},
	{"Beta", []float64{9.99, 50.0}, 0.2, 1.7450298131251698655},
	{"Beta", []float64{10.0, 10.0}, 0.9, -7.9352812508302948298},
	{"Beta", []float64{1000000000000.0, 1000000000000.0}, 0.5, 13.936292795599394326},
	{"Gamma", []float64{1e-300, 1.0}, 1e-300, 0.0},
	{"Gamma", []float64{1e-10, 2.0}, 1e-200, 437.49116762294401444},
	{"Gamma", []float64{100000000.0, 1.0}, 100030000.0, -14.628679063474598934},
	{"Gamma", []float64{100000000.0, 0.001}, 100000000000.0, -17.037034184996325863},
	{"Gamma", []float64{1000000000000000.0, 1.0}, 1000000010000000.0, -18.238326740326682074},
	{"Gamma", []float64{50.0, 1.0}, 1e-200, -22709.89965528799259},
	{"Gamma", []float64{9.999, 2.0}, 5.0, -1.3854653476640500186},
	{"Gamma", []float64{10.0, 2.0}, 5.0, -1.3854144625751131456},
	{"Gamma", []float64{1000.0, 1.0}, 1000000.0, -992103.52537580287138},
	{"Gamma", []float64{100000000.0, 1e+300}, 1e-292, 680.64624899219951634},
	{"InverseGamma", []float64{100000000.0, 100000000.0}, 1.0001, 7.7913685021054200591},
	{"InverseGamma", []float64{1e-10, 1.0}, 1e+200, -483.54286957474357387},
	{"InverseGamma", []float64{3.0, 1e-05}, 1e+150, -1416.7829793718980407},
	{"InverseGamma", []float64{0.5, 1.0}, 0.001, -990.21073202445147372},
	{"InverseGamma", []float64{50.0, 10.0}, 0.01, -794.57280981124992228},
	{"Chi2", []float64{200000000.0}, 200010000.0, -10.947471918813752869},
	{"Chi2", []float64{1e-05}, 1e-300, 678.56600079536590055},
	{"Chi2", []float64{3.0}, 1e-300, -346.30670248231152533},
	{"VonMises", []float64{0.0, 0.0}, 1.0, -1.8378770664093454836},
	{"VonMises", []float64{0.0, 1e-12}, 1.0, -1.8378770664088051813},
	{"VonMises", []float64{0.5, 5.0}, -3.0, -9.8248422786858606059},
	{"VonMises", []float64{0.0, 100.0}, 0.3, -3.0839608437913269079},
	{"VonMises", []float64{0.0, 700.0}, -3.1, -1397.0381822561484223},
	{"VonMises", []float64{0.0, 100000000.0}, 0.0001, 7.7914018379381766066},
	{"VonMises", []float64{0.0, 1000000000000.0}, 3.0, -1989992496587.5488852},
	{"VonMises", []float64{1.0, 1000000000000000.0}, 1.0000000298023224, 15.90636045440060718},
	{"TruncatedNormal", []float64{0.0, 1.0, 40.0, math.Inf(1)}, 40.01, 3.2894534805491950255},
	{"TruncatedNormal", []float64{0.0, 1.0, 40.0, 41.0}, 40.5, -16.435496519450884573},
	{"TruncatedNormal", []float64{0.0, 1.0, math.Inf(-1), -40.0}, -40.02, 2.8893034805489903068},
	{"TruncatedNormal", []float64{0.0, 1.0, -1.0, 1.0}, 0.3, -0.58222338690254666618},
	{"TruncatedNormal", []float64{2.0, 3.0, -50.0, 50.0}, 1.0, -2.0731063774283379887},
	{"TruncatedNormal", []float64{0.0, 1.0, 8.0, 9.0}, 8.5, -2.0303199397675246245},
	{"TruncatedNormal", []float64{0.0, 1.0, -0.5, 0.25}, 0.1, 0.31335396811777749401},
	{"TruncatedNormal", []float64{5.0, 0.1, -3.0, 2.0}, 1.999, 5.4048405161326030233},
	{"TruncatedNormal", []float64{0.0, 1.0, 0.5, 100.0}, 3.0, -4.2430267716110541329},
	{"TruncatedNormal", []float64{0.0, 1.0, -2.0, -1.0}, -1.5, -0.048140264023917364155},
	{"TruncatedNormal", []float64{0, 1, 30, math.Inf(1)}, 30.01, 3.1022554231384774541},
	{"TruncatedNormal", []float64{0, 1, 8, 8.0001}, 8.00005, 9.210340345728180133},
	{"TruncatedNormal", []float64{0, 1, math.Inf(-1), -35}, -35.02, 2.8559627287177312454},
	{"TruncatedNormal", []float64{0, 1, 0.1, 0.100000001}, 0.1, 20.723265837522767004},
	{"TruncatedNormal", []float64{0, 1, -1e-12, 1e-12}, 0, 26.937873935368602919},
	{"TruncatedNormal", []float64{0, 1, 30, 30.0000001}, 30, 16.118097139271866629},
	{"TruncatedNormal", []float64{0, 1, 1e6, math.Inf(1)}, 1000000.000001, 12.81550294347140404},
	{"TruncatedNormal", []float64{0, 1, -1000000.000001, -1e6}, -1e6, 14.274181271920397463},
	{"TruncatedNormal", []float64{0, 1, -0.2, 0.04}, 0.03, 1.4322487222120453117},
	{"TruncatedNormal", []float64{0, 1, -0.2, 0.06}, 0.03, 1.3518733723387305877},
	{"TruncatedNormal", []float64{0, 1, 3, 3.08}, 3.01, 2.6142825943710898681},
	{"TruncatedNormal", []float64{0, 1, 3, 3.09}, 3.01, 2.5111190541617947314},
	{"TruncatedNormal", []float64{3, 0.5, 3, 3.001}, 3, 6.9077559456487360749},
	{"TruncatedNormal", []float64{0, 1, -1.1, -0.9}, -1, 1.6094395759311817212},
	{"TruncatedNormal", []float64{0, 1, 1, 37}, 2, -1.077916888195409236},
	{"TruncatedNormal", []float64{0, 1, -38, 38}, 1, -1.4189385332046727418},
	{"Weibull", []float64{1.0, 1000.0}, 0.999, 5.5405600209612224795},
	{"Weibull", []float64{1.0, 0.001}, 1e-300, 682.67580985770608215},
	{"Weibull", []float64{2.0, 30.0}, 1e-05, -351.26805651927282572},
	{"Weibull", []float64{1e-200, 2.0}, 1e-200, 460.21016577936908213},
	{"Logistic", []float64{0.0, 1.0}, 700.0, -700.0},
	{"Logistic", []float64{0.0, 1.0}, -700.0, -700.0},
	{"Logistic", []float64{0.0, 1.0}, 1e-08, -1.3862943611198906438},
	{"Logistic", []float64{0.0, 1e-10}, 0.001, -9999976.9741490699034},
	{"Gumbel", []float64{0.0, 1.0}, 700.0, -700.0},
	{"Gumbel", []float64{0.0, 1.0}, -6.0, -397.42879349273512261},
	{"Gumbel", []float64{0.0, 1.0}, 100000.0, -100000.0},
	{"Cauchy", []float64{0.0, 1.0}, 1e+200, -922.17876708346767372},
	{"Cauchy", []float64{0.0, 1.0}, 1e-200, -1.1447298858494001741},
	{"Cauchy", []float64{0.0, 1e-100}, 1.0, -231.40323918525396856},
	{"Cauchy", []float64{0.0, 1.0}, 1.0, -1.8378770664093454836},
	{"Cauchy", []float64{0.0, 1.0}, -1.0, -1.8378770664093454836},
	{"Pareto", []float64{1e-100, 3.0}, 1e+100, -1610.7109528071638691},
	{"Pareto", []float64{1.0, 100000000.0}, 1.0000000009313226, 18.327548485602863133},
	{"Pareto", []float64{1.0, 1e-08}, 1e+300, -709.19621554992134969},
	{"LogNormal", []float64{0.0, 1.0}, 1e-300, -237895.55838216290143},
	{"LogNormal", []float64{0.0, 1.0}, 1e+300, -239277.10943795932889},
	{"LogNormal", []float64{-700.0, 0.001}, 9.85967654375977e-305, 705.9888167457774643},
	{"SkewNormal", []float64{0.0, 1.0, 5.0}, -20.0, -5205.7500000468498161},
	{"SkewNormal", []float64{0.0, 1.0, -3.0}, 40.0, -8005.9322910610236918},
	{"SkewNormal", []float64{0.0, 1.0, 100000000.0}, 1e-12, -0.918858747931654981},
	{"SkewNormal", []float64{0.0, 1.0, 100000000.0}, -1e-07, -53.457076503157198441},
	{"SkewNormal", []float64{100000000.0, 2.0, 0.5}, 100000060.0, -450.91893853320467274},
	{"SkewNormal", []float64{0.0, 1e-150, 2.0}, 1e-150, 344.63895968713316168},
	{"InverseGaussian", []float64{1.0, 10000000000.0}, 1.00001, 10.093976931784004474},
	{"InverseGaussian", []float64{1.0, 1e-10}, 1e-12, -20.985332324182081628},
	{"InverseGaussian", []float64{1e-200, 1.0}, 1e-200, 689.85658936500903249},
	{"InverseGaussian", []float64{10000000000.0, 1.0}, 1000.0, -11.281071451577878325},
	{"InverseGaussian", []float64{3.0, 2.0}, 0.001, -989.54417646889591817},
	{"InverseGaussian", []float64{3.0, 2.0}, 1e+300, -1.1111111111111111694e+299},
	{"GeneralizedNormal", []float64{0.0, 1.0, 100.0}, 0.99, -1.0534892138871048404},
	{"GeneralizedNormal", []float64{0.0, 1.0, 1000.0}, 1.0, -1.6925707869616619399},
	{"GeneralizedNormal", []float64{0.0, 1.0, 0.05}, 1e+30, -74.6515402429972264},
	{"GeneralizedNormal", []float64{0.0, 1.0, 0.5}, 1e-300, -1.3862943611198906188},
	{"GeneralizedNormal", []float64{0.0, 1.0, 0.01}, 3.0, -365.44356942806127945},
	{"GeneralizedNormal", []float64{100000000.0, 2.0, 2.0}, 100000060.0, -901.2655121234846454},
	{"GeneralizedNormal", []float64{0.0, 1e-150, 1.5}, 3e-150, 339.60077917880091587},
}

// Every value is computed with parameters that are numbers, and with parameters that are tensors.
func TestScalarDensitiesAtExtremes(t *testing.T) {
	for _, c := range scalarExtremes {
		f := scalarFamily(c.family)
		tensors := make([]any, len(c.params))
		for i, p := range c.params {
			tensors[i] = scalarVec(p)
		}
		for kind, params := range map[string][]any{"numbers": scalarNumbers(c.params), "tensors": tensors} {
			got := scalarRead(f.make(params...).LogProb(torch.Of(scalarVec(c.x))).T())[0]
			require.InDelta(
				t,
				c.want,
				got,
				1e-10*math.Max(math.Abs(c.want), 1e-3),
				"%s%v at %v, %s",
				c.family,
				c.params,
				c.x,
				kind,
			)
		}
	}
}

// Gradients at the same places are finite, and zero times infinity does not come up.
func TestScalarGradientsAtExtremesAreNumbers(t *testing.T) {
	for _, c := range scalarExtremes {
		leaves := []torch.Tensor{torch.Must(torch.Leaf(torch.Of(scalarVec(c.x))))}
		var params []any
		for _, p := range c.params {
			leaves = append(leaves, torch.Must(torch.Leaf(torch.Of(scalarVec(p)))))
			params = append(params, leaves[len(leaves)-1])
		}
		y := scalarFamily(c.family).make(params...).LogProb(leaves[0]).T()
		for i, g := range scalarGrad(y, leaves) {
			require.False(t, math.IsNaN(g[0]), "%s%v at %v: gradient %d", c.family, c.params, c.x, i)
		}
	}
}

// Outside the support the density is zero, and the gradients are zero too.
func TestScalarDensitiesOutsideTheSupport(t *testing.T) {
	for _, c := range []struct {
		family string
		params []float64
		xs     []float64
	}{
		{"LogNormal", []float64{0, 1}, []float64{0, -1, math.Inf(-1)}},
		{"InverseGaussian", []float64{1, 2}, []float64{0, -1, math.Inf(-1)}},
		{"HalfNormal", []float64{1}, []float64{-1e-300, -3}},
		{"HalfCauchy", []float64{1}, []float64{-1e-300, -3}},
		{"Uniform", []float64{-1, 2}, []float64{-1.1, 2.1, math.Inf(1)}},
		{"Exponential", []float64{2}, []float64{-1e-300, -3}},
		{"Gamma", []float64{0.5, 1}, []float64{-1e-300, -3}},
		{"Gamma", []float64{50, 1}, []float64{-1e-300, -3}},
		{"InverseGamma", []float64{2, 1}, []float64{0, -3, 1e-310}},
		{"Chi2", []float64{5}, []float64{-1e-300, -3}},
		{"Beta", []float64{0.5, 2}, []float64{-1e-300, 1.1}},
		{"Beta", []float64{20, 30}, []float64{-0.1, 1.1}},
		{"Weibull", []float64{2, 1.5}, []float64{-1e-300, -3}},
		{"Pareto", []float64{2, 1.5}, []float64{1.99, 0, -3}},
		{"TruncatedNormal", []float64{0, 1, -1, 2}, []float64{-1.1, 2.1, math.Inf(1)}},
	} {
		for _, x := range c.xs {
			leaves := []torch.Tensor{torch.Must(torch.Leaf(torch.Of(scalarVec(x))))}
			var params []any
			for _, p := range c.params {
				leaves = append(leaves, torch.Must(torch.Leaf(torch.Of(scalarVec(p)))))
				params = append(params, leaves[len(leaves)-1])
			}
			f := scalarFamily(c.family)
			require.Equal(
				t,
				math.Inf(-1),
				scalarRead(f.make(scalarNumbers(c.params)...).LogProb(torch.Of(scalarVec(x))).T())[0],
				"%s at %v",
				c.family,
				x,
			)
			y := f.make(params...).LogProb(leaves[0]).T()
			require.Equal(t, math.Inf(-1), scalarRead(y)[0], "%s at %v", c.family, x)
			for i, g := range scalarGrad(y, leaves) {
				require.Zero(t, g[0], "%s at %v: gradient %d", c.family, x, i)
			}
		}
	}
}

// At the ends of a closed support the density is its limit.
func TestScalarDensitiesAtTheEnds(t *testing.T) {
	for _, c := range []struct {
		family string
		params []float64
		x      float64
		want   float64
	}{
		{"Exponential", []float64{2}, 0, math.Log(2)},
		{"Gamma", []float64{1, 2}, 0, math.Log(2)},
		{"Gamma", []float64{2, 2}, 0, math.Inf(-1)},
		{"Gamma", []float64{20, 2}, 0, math.Inf(-1)},
		{"Gamma", []float64{0.5, 2}, 0, math.Inf(1)},
		{"Beta", []float64{1, 3}, 0, math.Log(3)},
		{"Beta", []float64{3, 1}, 1, math.Log(3)},
		{"Beta", []float64{1, 1}, 0.5, 0},
		{"Beta", []float64{2, 1}, 0, math.Inf(-1)},
		{"Beta", []float64{20, 30}, 0, math.Inf(-1)},
		{"Beta", []float64{20, 30}, 1, math.Inf(-1)},
		{"Beta", []float64{0.5, 30}, 0, math.Inf(1)},
		{"Weibull", []float64{2, 1}, 0, -math.Log(2)},
		{"Uniform", []float64{2, 5}, 2, -math.Log(3)},
		{"Uniform", []float64{2, 5}, 5, -math.Log(3)},
		{"HalfNormal", []float64{1}, 0, 0.5 * math.Log(2/math.Pi)},
		{"HalfCauchy", []float64{1}, 0, math.Log(2 / math.Pi)},
		{"Pareto", []float64{2, 3}, 2, math.Log(1.5)},
		{"Delta", []float64{2, 3}, 2, 3},
		{"Delta", []float64{2, 3}, 2.5, math.Inf(-1)},
		{"Delta", []float64{2, 3}, math.Inf(1), math.Inf(-1)},
	} {
		f := scalarFamily(c.family)
		tensors := make([]any, len(c.params))
		for i, p := range c.params {
			tensors[i] = scalarVec(p)
		}
		for _, params := range [][]any{scalarNumbers(c.params), tensors} {
			got := scalarRead(f.make(params...).LogProb(torch.Of(scalarVec(c.x))).T())[0]
			if math.IsInf(c.want, 0) {
				require.Equal(t, c.want, got, "%s%v at %v", c.family, c.params, c.x)
			} else {
				require.InDelta(t, c.want, got, 1e-14, "%s%v at %v", c.family, c.params, c.x)
			}
		}
	}
}

// The gradients of a truncated normal density, far out and of narrow intervals, by differences of densities that are
// right to 1e-10. Each step is a part of what the density changes over.
func TestTruncatedNormalGradientsAtExtremes(t *testing.T) {
	scoped(t, func() {
		inf := math.Inf(1)
		for _, c := range []struct {
			p    []float64 // loc, scale, low, high, x
			step float64
		}{
			{[]float64{0, 1, 30, inf, 30.01}, 1e-3}, {[]float64{0, 1, 8, 8.0001, 8.00005}, 1e-6},
			{[]float64{0, 1, -inf, -35, -35.02}, 1e-3},
			{[]float64{0, 1, 0.1, 0.1001, 0.10005}, 1e-6}, {[]float64{0, 1, -0.2, 0.04, 0.03}, 1e-4},
			{[]float64{0, 1, 3, 3.08, 3.01}, 1e-4},
			{[]float64{0, 1, 3, 3.09, 3.01}, 1e-4}, {[]float64{3, 0.5, 3, 3.001, 3.0004}, 1e-5},
			{[]float64{0, 1, -1.5, -0.9, -1}, 1e-3}, {[]float64{0, 1, 1, 37, 2}, 1e-3},
			{[]float64{0, 1, 5, 7, 5.5}, 1e-3}, {[]float64{0, 1, -9, -5, -5.5}, 1e-3}, {[]float64{0, 1, -38, 38, 1}, 1e-3},
		} {
			density := func(p []float64) *ts.Tensor {
				return dist.TruncatedNormal(scalarVec(p[0]), scalarVec(p[1]), scalarVec(p[2]), scalarVec(p[3])).
					LogProb(torch.Of(scalarVec(p[4]))).
					T()
			}
			leaves := make([]torch.Tensor, 5)
			for i, v := range c.p {
				leaves[i] = torch.Must(torch.Leaf(torch.Of(scalarVec(v))))
			}
			got := scalarGrad(
				dist.TruncatedNormal(leaves[0], leaves[1], leaves[2], leaves[3]).LogProb(leaves[4]).T(),
				leaves,
			)
			for i := range c.p {
				if math.IsInf(c.p[i], 0) {
					require.Zero(t, got[i][0], "%v", c.p)
					continue
				}
				want := derivative(func(by float64) []float64 {
					p := slices.Clone(c.p)
					p[i] += by * c.step
					return scalarRead(density(p))
				}, []float64{c.step})[0]
				require.InDelta(t, want, got[i][0], 1e-6*math.Max(1, math.Abs(want))+1e-11/c.step, "argument %d of %v", i, c.p)
			}
		}
	})
}

// Moments in a tail, where the mean beyond a is a plus a continued fraction, and of narrow intervals, where the density
// is nearly linear: E = m − m w²/12, V = w²/12 to order w⁴, with the middle m and the width w.
func TestTruncatedNormalMomentsAtExtremes(t *testing.T) {
	scoped(t, func() {
		for _, a := range []float64{30, 1e3, 1e6} {
			fraction := 0.0
			for k := 200.; k >= 1; k-- {
				fraction = k / (a + fraction)
			}
			// With the hazard λ = a + f the variance is 1 − λ(λ − a) = 1 − f(a + f), where f(a + f) = 1 − 2/a² + …:
			// by its own series.
			aa := a * a
			variance := (1 - 6/aa + 50/(aa*aa) - 518/(aa*aa*aa)) / aa
			for _, d := range []dist.Distribution{dist.TruncatedNormal(3, 2, 3+2*a, math.Inf(1)),
				dist.TruncatedNormal(scalarVec(3), 2, scalarVec(3+2*a), math.Inf(1))} {
				countClose(t, 3+2*(a+fraction), scalarRead(d.Mean().T())[0], 1e-15, 0, "mean beyond %v", a)
				countClose(t, 4*variance, scalarRead(d.Variance().T())[0], 1e-8, 0, "variance beyond %v", a)
			}
			low := dist.TruncatedNormal(0, 1, math.Inf(-1), -a)
			countClose(t, -a-fraction, scalarRead(low.Mean().T())[0], 1e-15, 0, "mean below %v", -a)
		}
		for _, m := range []float64{0, 0.3, -8, 8} {
			const w = 1e-4
			d := dist.TruncatedNormal(0, 1, m-w/2, m+w/2)
			require.InDelta(t, m-m*w*w/12, scalarRead(d.Mean().T())[0], 1e-13)
			countClose(t, w*w/12, scalarRead(d.Variance().T())[0], 1e-7, 0, "variance at %v", m)
		}
	})
}
