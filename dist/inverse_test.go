package dist_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Quantiles by iteration against those that have a closed form: two degrees of freedom, one (Cauchy's), a shape of 1
// (exponential), a shape so small that P = tᵃ/Γ(a + 1), and a mixture of two parts far from each other.
func TestQuantilesByIteration(t *testing.T) {
	p := []float64{1e-300, 1e-100, 1e-12, 1e-3, 0.2, 0.5, 0.7, 0.999, 1 - 1e-12}
	inf := math.Inf(1)
	second := func(p float64) float64 { return (2*p - 1) / math.Sqrt(2*p*(1-p)) }
	cauchy := func(p float64) float64 {
		if p > 0.5 {
			return 1 / math.Tan(math.Pi*(1-p))
		}
		if p == 0.5 {
			return 0
		}
		return -1 / math.Tan(math.Pi*p)
	}
	far := dist.Truncated(dist.Mixture([]float64{1, 1}, dist.Normal(-1e6, 1e-3), dist.StudentT(2, 1e6, 1e-3)), -inf, 2e6)
	for name, c := range map[string]struct {
		d    dist.Distribution
		want func(p float64) float64
	}{
		"t(1)":     {dist.StudentT(1, 0, 3), func(p float64) float64 { return 3 * cauchy(p) }},
		"t(2)":     {dist.StudentT(2, 0, 1e-30), func(p float64) float64 { return 1e-30 * second(p) }},
		"Gamma(1)": {dist.Truncated(dist.Gamma(1, 2), 3, inf), func(p float64) float64 { return 3 - math.Log1p(-p)/2 }},
		"Chi2(2)":  {dist.Truncated(dist.Chi2(2), 0, 1e300), func(p float64) float64 { return -2 * math.Log1p(-p) }},
		"InverseGamma": {dist.Truncated(dist.InverseGamma(1, 3), 0, 1e300), func(p float64) float64 {
			return -3 / math.Log(p)
		}},
		"Gamma(0.02)": {dist.Truncated(dist.Gamma(0.02, 1), 0, 1e-20), func(p float64) float64 {
			return 1e-20 * math.Pow(p, 50)
		}},
		"mixture": {far, func(p float64) float64 {
			if p > 0.5 {
				return 1e6 + 1e-3*second(2*p-1)
			}
			return math.NaN()
		}},
	} {
		scoped(t, func() {
			for i, x := range c.d.(dist.ICDFer).ICDF(torch.Of(scalarVec(p...))).Values() {
				if want := c.want(p[i]); !math.IsNaN(want) && math.Abs(want) > 1e-300 && !(name == "mixture" && p[i] > 0.99) {
					require.InEpsilon(t, want, x, 1e-9, "%s at %v", name, p[i])
				} else if want == 0 {
					require.InDelta(t, 0, x, 1e-12, "%s at %v", name, p[i])
				}
			}
		})
	}
}

// Numbers that are computed by pieces are those that are computed by few, and what is left of the computation is a
// handful of tensors.
func TestManyAtOnce(t *testing.T) {
	const n = 10000
	p, own := make([]float64, n), make([]float64, n)
	for i := range p {
		p[i], own[i] = (float64(i)+0.5)/n, 0.5+float64(i%17)
	}
	scoped(t, func() {
		few := func(v []float64, at int) torch.Tensor { return torch.Of(scalarVec(v[at : at+10]...)) }
		for name, make := range map[string]func(own torch.Tensor) dist.Distribution{
			"StudentT":        func(own torch.Tensor) dist.Distribution { return dist.StudentT(own, 0, 1) },
			"Laplace":         func(own torch.Tensor) dist.Distribution { return dist.Laplace(own, 2) },
			"TruncatedNormal": func(own torch.Tensor) dist.Distribution { return dist.TruncatedNormal(own, 1, 0, 9) },
			"Truncated StudentT": func(own torch.Tensor) dist.Distribution {
				return dist.Truncated(dist.StudentT(own, 0, 1), -1, own)
			},
			"Truncated Gamma": func(own torch.Tensor) dist.Distribution {
				return dist.Truncated(dist.Gamma(own, 1), 0.1, 9)
			},
			"Truncated Chi2": func(own torch.Tensor) dist.Distribution { return dist.Truncated(dist.Chi2(own), own, 20) },
			"Truncated LogNormal": func(own torch.Tensor) dist.Distribution {
				return dist.Truncated(dist.LogNormal(0, own), 0.1, 9)
			},
			"Truncated Mixture": func(own torch.Tensor) dist.Distribution {
				w := torch.Stack(-1, []torch.Tensor{own, own.Square()})
				return dist.Truncated(dist.Mixture(w, dist.Normal(own, 1), dist.InverseGaussian(own, 1)), -1, 9)
			},
			"Truncated MixtureSameFamily": func(own torch.Tensor) dist.Distribution {
				both := torch.Stack(-1, []torch.Tensor{own, own.Square()})
				return dist.Truncated(dist.MixtureSameFamily([]float64{1, 2}, dist.Gamma(both, 1)), 0.1, 9)
			},
		} {
			d, u := make(torch.Of(scalarVec(own...))), torch.Of(scalarVec(p...))
			require.NoError(t, torch.Do(func(s *torch.Scope) error {
				x := d.(dist.ICDFer).ICDF(u)
				back := d.(dist.CDFer).CDF(x)
				require.Less(t, s.Owned(), 40, name)
				for _, at := range []int{0, 2040, n - 10} {
					part := make(few(own, at))
					for i, want := range part.(dist.ICDFer).ICDF(few(p, at)).Values() {
						countClose(t, want, x.Values()[at+i], 1e-11, 0, "%s", name)
					}
					require.InDeltaSlice(t, p[at:at+10], back.Values()[at:at+10], 1e-9, name)
				}
				return nil
			}))
		}
	})
}
