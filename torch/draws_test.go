package torch_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/torch"
)

func constant(v float64, n int) torch.Tensor {
	data := make([]float64, n)
	for i := range data {
		data[i] = v
	}
	return vec(data)
}

// meanAndVariance checks both within four standard errors; kurtosis is the law's fourth standardised moment.
func meanAndVariance(t *testing.T, values []float64, mean, variance, kurtosis float64) {
	t.Helper()
	n := float64(len(values))
	var m, v float64
	for _, x := range values {
		m += x / n
	}
	for _, x := range values {
		v += (x - mean) * (x - mean) / n
	}
	require.InDelta(t, mean, m, 4*math.Sqrt(variance/n), "mean")
	require.InDelta(t, variance, v, 4*variance*math.Sqrt((kurtosis-1)/n), "variance")
}

const manyDraws = 40000

func TestGammaDrawsHaveTheMomentsOfTheirLaw(t *testing.T) {
	s := torch.NewSource(7, 0)
	for _, alpha := range []float64{0.2, 0.9, 1, 3.5, 1e6} {
		x := floats(torch.Must(s.Gamma(constant(alpha, manyDraws))))
		meanAndVariance(t, x, alpha, alpha, 3+6/alpha)
	}
}

// log G ~ log(u)/alpha + O(alpha) for tiny alpha: alpha log G is minus an exponential number.
func TestLogGammaDrawsDoNotUnderflow(t *testing.T) {
	s := torch.NewSource(7, 1)
	const alpha = 1e-9
	x := floats(torch.Must(s.LogGamma(constant(alpha, manyDraws))))
	for i := range x {
		x[i] *= -alpha
	}
	meanAndVariance(t, x, 1, 1, 9)
}

func TestPoissonDrawsHaveTheMomentsOfTheirLaw(t *testing.T) {
	s := torch.NewSource(7, 2)
	for _, rate := range []float64{0.3, 4, 9.9, 10.1, 60, 1e9, 1e14} {
		x := floats(torch.Must(s.Poisson(constant(rate, manyDraws))))
		meanAndVariance(t, x, rate, rate, 3+1/rate)
	}
	zero := floats(torch.Must(s.Poisson(constant(0, 10))))
	require.Equal(t, make([]float64, 10), zero)
}

func TestBinomialDrawsHaveTheMomentsOfTheirLaw(t *testing.T) {
	s := torch.NewSource(7, 3)
	for _, c := range []struct{ n, p float64 }{{1, 0.3}, {7, 0.9}, {40, 0.5}, {1000, 0.011}, {1000, 0.97}, {1e12, 0.25}} {
		x := floats(torch.Must(s.Binomial(constant(c.n, manyDraws), constant(c.p, 1))))
		v := c.n * c.p * (1 - c.p)
		meanAndVariance(t, x, c.n*c.p, v, 3+(1-6*c.p*(1-c.p))/v)
	}
	ends := floats(torch.Must(s.Binomial(constant(20, 1), vec([]float64{0, 1}))))
	require.Equal(t, []float64{0, 20}, ends)
}

// chiSquared compares counts with probabilities: the statistic within four standard deviations of its mean.
func chiSquared(t *testing.T, values []float64, probability func(k int) float64, cells int) {
	t.Helper()
	counts := make([]float64, cells+1)
	for _, v := range values {
		counts[min(int(v), cells)]++
	}
	n, rest, stat := float64(len(values)), 1.0, 0.0
	for k := range counts {
		p := rest
		if k < cells {
			p = probability(k)
			rest -= p
		}
		stat += (counts[k] - n*p) * (counts[k] - n*p) / (n * p)
	}
	require.Less(t, stat, float64(cells)+4*math.Sqrt(2*float64(cells)))
}

func TestCountsHaveTheProbabilitiesOfTheirLaw(t *testing.T) {
	s := torch.NewSource(7, 4)
	lg := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	for _, rate := range []float64{3, 14} {
		x := floats(torch.Must(s.Poisson(constant(rate, manyDraws))))
		chiSquared(t, x, func(k int) float64 {
			return math.Exp(float64(k)*math.Log(rate) - rate - lg(float64(k)+1))
		}, int(rate)*2)
	}
	for _, p := range []float64{0.1, 0.6} {
		x := floats(torch.Must(s.Binomial(constant(40, manyDraws), constant(p, 1))))
		chiSquared(t, x, func(k int) float64 {
			k1 := float64(k)
			return math.Exp(lg(41) - lg(k1+1) - lg(41-k1) + k1*math.Log(p) + (40-k1)*math.Log(1-p))
		}, int(40*p)+8)
	}
}

func TestMultinomialDraws(t *testing.T) {
	s := torch.NewSource(7, 5)
	x := torch.Must(s.Multinomial(constant(30, manyDraws), vec([]float64{1, 0, 2, 5})))
	shape := x.Shape()
	require.Equal(t, []int{manyDraws, 4}, shape)
	all := torch.Must(torch.ToSlice[float64](x))
	for j, p := range []float64{0.125, 0, 0.25, 0.625} {
		column := make([]float64, manyDraws)
		for i := range column {
			column[i] = all[4*i+j]
			if j == 0 {
				require.Equal(t, 30.0, all[4*i]+all[4*i+1]+all[4*i+2]+all[4*i+3])
			}
		}
		v := 30 * p * (1 - p)
		if p == 0 {
			v, p = 0, 0
			require.Equal(t, make([]float64, manyDraws), column)
			continue
		}
		meanAndVariance(t, column, 30*p, v, 3+(1-6*p*(1-p))/v)
	}
}

func TestVonMisesDraws(t *testing.T) {
	s := torch.NewSource(7, 6)
	// E cos = I1(k)/I0(k) and E cos 2x = 1 - 2 E cos / k.
	for _, k := range []float64{1e-6, 1, 4, 20, 1e4} {
		x := floats(torch.Must(s.VonMises(constant(k, manyDraws))))
		at := constant(k, 1)
		ratio := floats(torch.Of(at.T().MustSpecialI1e(false)))[0] / floats(torch.Of(at.T().MustSpecialI0e(false)))[0]
		n := float64(manyDraws)
		var cos, sin float64
		for _, v := range x {
			require.LessOrEqual(t, math.Abs(v), math.Pi)
			cos += math.Cos(v) / n
			sin += math.Sin(v) / n
		}
		second := 1 - 2*ratio/k
		require.InDelta(t, ratio, cos, 4*math.Sqrt(((1+second)/2-ratio*ratio)/n))
		require.InDelta(t, 0, sin, 4*math.Sqrt((1-second)/2/n))
	}
}

func TestDrawsOutsideTheirDomainAreNaN(t *testing.T) {
	s := torch.NewSource(1, 0)
	bad := []float64{-1, math.NaN(), math.Inf(1)}
	for name, x := range map[string]torch.Tensor{
		"gamma": torch.Must(s.Gamma(vec(bad))), "poisson": torch.Must(s.Poisson(vec(bad))),
		"binomial":    torch.Must(s.Binomial(vec(bad), constant(0.5, 1))),
		"probability": torch.Must(s.Binomial(constant(5, 1), vec(bad))),
		"von Mises":   torch.Must(s.VonMises(vec(bad))),
	} {
		for _, v := range torch.Must(torch.ToSlice[float64](x)) {
			require.True(t, math.IsNaN(v), name)
		}
	}
}

// d/dalpha E[g] is known: E[G] = alpha, and E[log G] = digamma(alpha), whose derivative is trigamma.
func TestGradientsOfGammaDraws(t *testing.T) {
	s := torch.NewSource(7, 7)
	for _, c := range []struct{ alpha, trigamma float64 }{{0.5, math.Pi * math.Pi / 2}, {1, math.Pi * math.Pi / 6},
		{3, math.Pi*math.Pi/6 - 1.25}} {
		alpha := torch.Must(torch.Leaf(constant(c.alpha, manyDraws)))
		logs := torch.Must(s.LogGamma(alpha))
		for i, y := range []torch.Tensor{torch.Of(logs.T().MustExp(false)), logs} {
			grads := torch.Must(torch.Grad([]torch.Tensor{torch.Of(y.T().MustSum(y.T().DType(), false))}, []torch.Tensor{alpha},
				&torch.GradOptions{KeepGraph: true}))
			g := torch.Must(torch.ToSlice[float64](grads[0]))
			want := []float64{1, c.trigamma}[i]
			var mean, square float64
			for _, v := range g {
				mean += v / manyDraws
				square += v * v / manyDraws
			}
			require.InDelta(t, want, mean, 4*math.Sqrt((square-mean*mean)/manyDraws))
		}
	}
}

// Evaluation k of a mapped function draws what a source over chain k draws, and has its gradients, whether the
// parameter is mapped or not, and however vmaps nest.
func TestMappedDrawsAreThoseOfEachChain(t *testing.T) {
	alpha := torch.Must(torch.Leaf(vec([]float64{0.3, 2, 50, 0.01, 1, 7}, 3, 2)))
	shared := vec([]float64{0.4, 0.7})
	draw := func(a torch.Tensor, s *torch.Source) []torch.Tensor {
		return []torch.Tensor{torch.Must(s.LogGamma(a)), torch.Must(s.Poisson(a)), torch.Must(s.Gamma(shared)),
			torch.Must(s.Binomial(constant(9, 1), shared)), torch.Must(s.Multinomial(constant(4, 3), a)),
			torch.Must(s.Dirichlet(a)), torch.Must(s.VonMises(a))}
	}
	streams := torch.Streams{Seed: 3, Chains: []uint64{5, 0, 9}}
	got := torch.Must(torch.VmapSources(func(in []torch.Tensor, s *torch.Source) ([]torch.Tensor, error) {
		return draw(in[0], s), nil
	}, []torch.Tensor{alpha}, &streams, nil))
	gradient := func(y torch.Tensor) []float64 {
		g := torch.Must(torch.Grad([]torch.Tensor{torch.Of(y.T().MustSum(y.T().DType(), false))}, []torch.Tensor{alpha},
			&torch.GradOptions{KeepGraph: true}))
		return torch.Must(torch.ToSlice[float64](g[0]))
	}
	whole := gradient(got[0])
	for k, chain := range []uint64{5, 0, 9} {
		row := alpha.T().MustSelect(0, int64(k), false)
		want := draw(torch.Of(row), torch.NewSource(3, chain))
		for i := range want {
			require.Equal(
				t,
				torch.Must(torch.ToSlice[float64](want[i])),
				torch.Must(torch.ToSlice[float64](torch.Of(got[i].T().MustSelect(0, int64(k), false)))),
				"output %d",
				i,
			)
		}
		require.Equal(t, gradient(want[0])[2*k:2*k+2], whole[2*k:2*k+2])
	}
}

// A source from outside gives all evaluations of a vmap the same numbers.
func TestDrawsOfAnOuterSourceAreShared(t *testing.T) {
	alpha := vec([]float64{2, 2, 3, 3}, 2, 2)
	outer := torch.NewSource(4, 4)
	got := torch.Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
		inner := torch.Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			y, err := outer.Gamma(in[0])
			return []torch.Tensor{y}, err
		}, in, nil))
		return inner, nil
	}, []torch.Tensor{alpha}, nil))
	for i, a := range []float64{2, 2, 3, 3} {
		want := torch.Must(torch.ToSlice[float64](torch.Must(torch.NewSource(4, 4).Gamma(torch.Scalar(a)))))
		require.Equal(t, want[0], torch.Must(torch.ToSlice[float64](got[0]))[i])
	}
}

func TestSecondDerivativesOfGammaDrawsAreRefused(t *testing.T) {
	alpha := torch.Must(torch.Leaf(constant(2, 1)))
	y := torch.Must(torch.NewSource(1, 1).Gamma(alpha)).T().MustSum(alpha.T().DType(), false)
	g := torch.Must(torch.Grad([]torch.Tensor{torch.Of(y)}, []torch.Tensor{alpha}, &torch.GradOptions{CreateGraph: true}))
	_, err := torch.Grad([]torch.Tensor{torch.Of(g[0].T().MustSum(alpha.T().DType(), false))}, []torch.Tensor{alpha}, nil)
	require.ErrorContains(t, err, "second derivatives of gamma draws are not implemented")
}
